"""The queries for a remote agent's request: its key, the run that takes its call, and the state of
that call."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db.models import Exists, F, OuterRef, QuerySet, Subquery

from agents.accounts.models import Membership, Organization
from agents.employees.models import Employee
from agents.gateway.models import AgentKey, AgentRun
from agents.platform.queries.compiled import CompiledQuery, ModelColumns
from agents.runs.models import (
    ENDED,
    Approval,
    ApprovalStatus,
    CallStatus,
    Event,
    EventType,
    Origin,
    Run,
    ToolCall,
)
from tools.contract import Level

MAX_CALLS_OF_A_RUN = 500
"""The maximum number of requests in one run. The cost of a request grows with the length of its
run, so the next request starts a new run."""
_AT_WORK = (CallStatus.APPROVED, CallStatus.EXECUTING)
_READING = (Level.READ.value, Level.DRAFT.value)


class KeyOwner(NamedTuple):
    """A working agent key with its member and its employee."""

    key: AgentKey
    member: Membership
    user: User
    employee: Employee
    organization: Organization


KEY_OWNER = CompiledQuery(
    KeyOwner,
    lambda key_hash: (
        AgentKey.usable()
        .filter(hash=key_hash, membership__organization_id=F("employee__organization_id"))
        .order_by()
    ),
    placeholders=("the hash of a key",),
    key=ModelColumns(AgentKey),
    member=ModelColumns(Membership, "membership__"),
    user=ModelColumns(User, "membership__user__"),
    employee=ModelColumns(Employee, "employee__"),
    organization=ModelColumns(Organization, "employee__organization__"),
)


class RunOfKey(NamedTuple):
    """The id of a run that takes calls of a key."""

    run_id: int


def _select_usable_runs(key_id: int) -> QuerySet[AgentRun]:
    writing = ToolCall.objects.filter(run_id=OuterRef("run_id"), status__in=_AT_WORK).exclude(
        level__in=_READING
    )
    runs = AgentRun.objects.filter(key_id=key_id, run__origin=Origin.MCP).exclude(
        run__status__in=ENDED
    )
    usable = runs.filter(
        ~Exists(writing), run__pass_number__lt=MAX_CALLS_OF_A_RUN, run__cancel_requested_at=None
    )
    return usable.order_by("-run_id")


RUNS_OF_SESSION = CompiledQuery(
    RunOfKey,
    lambda key_id, session_id: _select_usable_runs(key_id).filter(session_id=session_id)[:1],
)
RUNS_WITHOUT_SESSION = CompiledQuery(
    RunOfKey, lambda key_id: _select_usable_runs(key_id).filter(session_id=None)[:1]
)
"""The query for the newest run, outside sessions, that takes calls of a key. A run that is
executing an approved write does not take calls, because it does nothing else during that time."""


class AgentCall(NamedTuple):
    """A call with its run, and with the newest card about the call that is waiting or approved."""

    call: ToolCall
    run: Run
    card_id: int | None
    expires_at: datetime | None


_CARDS = Approval.objects.filter(
    tool_call=OuterRef("pk"), status__in=(ApprovalStatus.PENDING, ApprovalStatus.APPROVED)
).order_by("-sequence")
CARD_ID, CARD_END = Subquery(_CARDS.values("pk")[:1]), Subquery(_CARDS.values("expires_at")[:1])
CALL_OF_KEY = CompiledQuery(
    AgentCall,
    lambda call_id, key_id: ToolCall.objects.filter(
        pk=call_id, run__agent_run__key_id=key_id, parent_call=None
    ).order_by(),
    call=ModelColumns(ToolCall),
    run=ModelColumns(Run, "run__"),
    card_id=CARD_ID,
    expires_at=CARD_END,
)
"""The query for a call of this key that an agent requested; calls made by a tool or a recipe are
left out."""


def read_statuses(call_ids: Collection[int]) -> dict[int, str]:
    """Read the statuses of these calls, by call id."""
    return dict(ToolCall.objects.filter(pk__in=call_ids).values_list("pk", "status"))


def list_progress(run_id: int, after: int) -> list[tuple[int, dict[str, Any]]]:
    """List the run's progress events after the event number `after`, each as its number and
    payload."""
    reports = Event.objects.filter(run_id=run_id, type=EventType.TOOL_PROGRESS, seq__gt=after)
    return list(reports.order_by("seq").values_list("seq", "payload"))
