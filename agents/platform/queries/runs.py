"""The compiled queries of one run: its row under its lock, its state, its events and its calls."""

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Now

from agents.approvals.models import Approval, ApprovalKind, ApprovalStatus
from agents.platform.queries.compiled import CompiledQuery, ModelColumns
from agents.runs.models import CallStatus, Event, Pass, Run, RunStatus, ToolCall

EVENTS_PER_PAGE = 200

CALL_COLUMNS = (
    "organization_id", "run_id", "tool", "version", "level", "status", "params", "model_params", "why", "pass_number",
    "index", "duration_ms", "duplicate_of_id", "idempotency_key", "started_at", "definition_hash", "parent_call_id",
    "late_effect",
)  # fmt: skip
"""The columns of a call that lines and cards show. Results may be large, and events carry the part that is shown."""


class LockedRun(NamedTuple):
    """A locked run, and the database's time when it was locked."""

    run: Run
    now: datetime


def _build_lock(*, wait: bool) -> Callable[[int], QuerySet[Run]]:
    return lambda run_id: Run.objects.filter(pk=run_id).order_by().select_for_update(no_key=True, skip_locked=not wait)


LOCKED_RUN = CompiledQuery(LockedRun, _build_lock(wait=True), run=ModelColumns(Run), now=Now())
LOCKED_RUN_IF_FREE = CompiledQuery(LockedRun, _build_lock(wait=False), run=ModelColumns(Run), now=Now())


class RunOwner(NamedTuple):
    """The organization of a run."""

    organization_id: int


RUN_OWNER = CompiledQuery(RunOwner, lambda run_id: Run.objects.filter(pk=run_id).order_by())


def annotate_waits(rows: QuerySet[Run]) -> QuerySet[Run]:
    """Add `waits_for` to each run: `decision`, `answer`, `colleague`, or empty if nobody has to act."""
    cards = Approval.objects.filter(run_id=OuterRef("pk"), status=ApprovalStatus.PENDING)
    delegated = Run.objects.filter(parent_id=OuterRef("pk"), parent_call__status=CallStatus.SUSPENDED).order_by()
    waits = Q(status=RunStatus.WAITING)
    return rows.annotate(
        waits_for=Case(
            When(waits & Exists(cards.filter(kind=ApprovalKind.APPROVAL)), then=Value("decision")),
            When(waits & Exists(cards.filter(kind=ApprovalKind.QUESTION)), then=Value("answer")),
            When(waits & Exists(delegated), then=Value("colleague")),
            default=Value(""),
        )
    )


class RunStateRow(NamedTuple):
    """The columns of a run that its state is computed from."""

    status: str
    exit_reason: str
    waits_for: str
    patience_tries: int
    next_wake_at: datetime | None
    stopped_because: str
    next_event_seq: int


RUN_STATE = CompiledQuery(RunStateRow, lambda run_id: annotate_waits(Run.objects.filter(pk=run_id)).order_by())


class NextEvent(NamedTuple):
    """The number of a run's next event."""

    next_event_seq: int


NEXT_EVENT = CompiledQuery(NextEvent, lambda run_id: Run.objects.filter(pk=run_id).order_by())


class EventRow(NamedTuple):
    """A row with one event."""

    event: Event


LATER_EVENTS = CompiledQuery(
    EventRow,
    lambda run_id, after: Event.objects.filter(run_id=run_id, seq__gt=after).order_by("seq")[:EVENTS_PER_PAGE],
    event=ModelColumns(Event),
)


class DisplayedCall(NamedTuple):
    """A call as lines and cards show it; `has_card` is True if a person is or was asked about it."""

    call: ToolCall
    has_card: bool


DISPLAYED_CALLS = CompiledQuery(
    DisplayedCall,
    lambda run_id, first, last: ToolCall.objects.filter(run_id=run_id, pk__gte=first, pk__lte=last).order_by(),
    call=ModelColumns(ToolCall, only=CALL_COLUMNS),
    has_card=Exists(Approval.objects.filter(tool_call=OuterRef("pk"))),
)


class PassUsage(NamedTuple):
    """The tokens, duration and cost of a pass."""

    number: int
    input_tokens: int
    output_tokens: int
    duration_ms: int
    cost_micros: int
    currency: str
    usage_estimated: bool


PASS_USAGE = CompiledQuery(
    PassUsage,
    lambda run_id, first, last: Pass.objects.filter(run_id=run_id, number__gte=first, number__lte=last).order_by(),
    currency="run__organization__currency",
)


class TimedCall(NamedTuple):
    """A call as the time strip of its pass shows it; `has_card` is True if a person is or was asked about it."""

    call: ToolCall
    has_card: bool


TIMED_CALLS = CompiledQuery(
    TimedCall,
    lambda run_id, first, last: ToolCall.objects.filter(
        run_id=run_id, pass_number__gte=first, pass_number__lte=last, started_at__isnull=False
    ).order_by(),
    call=ModelColumns(
        ToolCall,
        only=("organization_id", "tool", "level", "status", "pass_number", "index", "duration_ms", "started_at"),
    ),
    has_card=Exists(Approval.objects.filter(tool_call=OuterRef("pk"))),
)
