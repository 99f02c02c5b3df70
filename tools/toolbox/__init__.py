"""What happens to a call: looked up, judged, executed. Plain Python, without Django."""

from .conditions import Condition, Otherwise, Rule
from .executor import Batch, Finished, PreparedCall, Progress, run_call
from .isolation import isolated
from .limits import LARGEST_KEPT, Guards, RateLimiter, ResultCache
from .permissions import Grants, Permission, Policy, Verdict, level_of, refusal_for, verdict_for
from .threads import abandoned_threads
from .toolbox import Limits, Toolbox, comes_from_the_run, menu_of

__all__ = [
    "LARGEST_KEPT",
    "Batch",
    "Condition",
    "Finished",
    "Grants",
    "Guards",
    "Limits",
    "Otherwise",
    "Permission",
    "Policy",
    "PreparedCall",
    "Progress",
    "RateLimiter",
    "ResultCache",
    "Rule",
    "Toolbox",
    "Verdict",
    "abandoned_threads",
    "comes_from_the_run",
    "isolated",
    "level_of",
    "menu_of",
    "refusal_for",
    "run_call",
    "verdict_for",
]
