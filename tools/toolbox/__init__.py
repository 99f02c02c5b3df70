"""The toolbox in plain Python, without Django: it looks up, judges and executes calls."""

from tools.toolbox.conditions import Condition, Otherwise, Rule
from tools.toolbox.executor import Batch, FinishedCall, PreparedCall, Progress, run_call
from tools.toolbox.isolation import run_isolated
from tools.toolbox.limits import MAX_CACHED_CHARACTERS, Guards, ResultCache
from tools.toolbox.permissions import (
    Grants,
    Permission,
    Policy,
    Verdict,
    determine_level,
    find_refusal,
    judge_call,
)
from tools.toolbox.rate_limits import ProcessRateLimiter, RateLimiter
from tools.toolbox.threads import count_abandoned_threads
from tools.toolbox.toolbox import (
    CallLimits,
    Toolbox,
    format_menu,
    is_run_parameter,
    refuse_invalid_tool,
)

__all__ = [
    "MAX_CACHED_CHARACTERS",
    "Batch",
    "CallLimits",
    "Condition",
    "FinishedCall",
    "Grants",
    "Guards",
    "Otherwise",
    "Permission",
    "Policy",
    "PreparedCall",
    "ProcessRateLimiter",
    "Progress",
    "RateLimiter",
    "ResultCache",
    "Rule",
    "Toolbox",
    "Verdict",
    "count_abandoned_threads",
    "determine_level",
    "find_refusal",
    "format_menu",
    "is_run_parameter",
    "judge_call",
    "refuse_invalid_tool",
    "run_call",
    "run_isolated",
]
