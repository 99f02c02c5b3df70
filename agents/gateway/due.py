"""The compiled queries for asks and runs of remote agents that are due, and the limit on how long a
remote agent's run may rest."""

from django.db.models import QuerySet
from django.db.models.functions import Now

from agents.gateway.models import AgentRun
from agents.platform.bounded_waits import BoundedWait
from agents.platform.queries.compiled import compile_ids
from agents.runs.engine.timing import timing
from agents.runs.models import (
    ENDED,
    IS_UNFINISHED,
    Approval,
    ApprovalStatus,
    CallStatus,
    Origin,
    Run,
    RunStatus,
    ToolCall,
)


def _select_resting_runs() -> QuerySet[Run]:
    """Select resting runs of remote agents that did not get a request in time."""
    return Run.objects.filter(
        IS_UNFINISHED, status=RunStatus.WAITING, origin=Origin.MCP, next_wake_at__lte=Now()
    )


def _select_unredeemed_asks() -> QuerySet[Approval]:
    """Select approvals of asks that were not redeemed in time."""
    return Approval.objects.filter(
        status=ApprovalStatus.APPROVED, run__origin=Origin.ASK, valid_until__lte=Now()
    )


def _select_silent_asks() -> QuerySet[ToolCall]:
    """Select redeemed asks whose agent did not report the outcome in time."""
    return ToolCall.objects.filter(
        status=CallStatus.EXECUTING, run__origin=Origin.ASK, deadline_at__lte=Now()
    )


def _select_keyless_runs() -> QuerySet[AgentRun]:
    """Select open runs whose agent key no longer works."""
    return (
        AgentRun.without_key().exclude(run__status__in=ENDED).filter(run__cancel_requested_at=None)
    )


RESTING_RUNS = compile_ids(_select_resting_runs)
UNREDEEMED_ASKS = compile_ids(_select_unredeemed_asks)
SILENT_ASKS = compile_ids(_select_silent_asks)
KEYLESS_RUNS = compile_ids(_select_keyless_runs, pk="run_id")

SESSION_WAITS = (
    BoundedWait(
        "resting sessions",
        lambda: Run.objects.filter(status=RunStatus.WAITING, origin=Origin.MCP),
        "next_wake_at",
        lambda: timing().session_idle,
        lambda: Now() + timing().session_idle,
    ),
)
