"""The compiled queries of one run: its row under its lock, its state, its events and its calls."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import (
    Case,
    Count,
    Exists,
    F,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce, Now

from agents.accounts.models import Organization
from agents.employees.models import Employee
from agents.platform.queries.compiled import CompiledQuery, ModelColumns
from agents.runs.models import (
    TERMINAL_CALLS,
    Approval,
    ApprovalKind,
    ApprovalStatus,
    CallStatus,
    Event,
    EventType,
    Origin,
    Pass,
    Run,
    RunStatus,
    ToolCall,
)

EVENTS_PER_PAGE = 200

CALL_COLUMNS = (
    "organization_id", "run_id", "tool", "version", "level", "status", "params", "model_params", "why", "pass_number",
    "index", "duration_ms", "duplicate_of_id", "idempotency_key", "started_at", "definition_hash", "parent_call_id",
    "late_effect",
)  # fmt: skip
"""The columns of a call that lines and cards show. Results are left out: they may be large, and
events contain the part that is shown."""


class LockedRun(NamedTuple):
    """A locked run, and the database's time when it was locked."""

    run: Run
    now: datetime


def _build_lock(*, wait: bool) -> Callable[[int], QuerySet[Run]]:
    def build(run_id: int) -> QuerySet[Run]:
        return (
            Run.objects.filter(pk=run_id)
            .order_by()
            .select_for_update(no_key=True, skip_locked=not wait)
        )

    return build


def _compile_lock(*, wait: bool) -> CompiledQuery[LockedRun]:
    return CompiledQuery(LockedRun, _build_lock(wait=wait), run=ModelColumns(Run), now=Now())


LOCKED_RUN = _compile_lock(wait=True)
LOCKED_RUN_IF_FREE = _compile_lock(wait=False)


class TaskEmployee(NamedTuple):
    """The employee that gets a task, with its organization."""

    employee: Employee
    organization: Organization


TASK_EMPLOYEE = CompiledQuery(
    TaskEmployee,
    lambda organization_id, employee_id: Employee.objects.filter(
        organization_id=organization_id, pk=employee_id
    ).order_by(),
    employee=ModelColumns(Employee),
    organization=ModelColumns(Organization, "organization__"),
)


def annotate_waits(rows: QuerySet[Run]) -> QuerySet[Run]:
    """Annotate each run with `waits_for`: `decision`, `answer`, `colleague`, `agent`, or empty if
    it waits for none of these."""
    cards = Approval.objects.filter(run_id=OuterRef("pk"), status=ApprovalStatus.PENDING)
    delegated = Run.objects.filter(
        parent_id=OuterRef("pk"), parent_call__status=CallStatus.SUSPENDED
    ).order_by()
    approved = Approval.objects.filter(run_id=OuterRef("pk"), status=ApprovalStatus.APPROVED)
    waits = Q(status=RunStatus.WAITING)
    return rows.annotate(
        waits_for=Case(
            When(waits & Exists(cards.filter(kind=ApprovalKind.APPROVAL)), then=Value("decision")),
            When(waits & Exists(cards.filter(kind=ApprovalKind.QUESTION)), then=Value("answer")),
            When(waits & Exists(delegated), then=Value("colleague")),
            When(waits & Q(origin=Origin.MCP) & Exists(approved), then=Value("")),
            When(waits & Q(origin__in=(Origin.MCP, Origin.ASK)), then=Value("agent")),
            default=Value(""),
        )
    )


def annotate_activity(rows: QuerySet[Run]) -> QuerySet[Run]:
    """Annotate each run with `waits_for`, as `annotate_waits` does, and with its current
    activity.

    The columns are `employee_name`; `decisions`, `answers` and `unknowns`, the numbers of open
    cards by kind; `running_calls`, the number of executing calls, with `running_tool` and
    `running_since` of the newest of these calls; `colleagues`, the number of open delegated tasks,
    with `colleague` and `colleague_run` of the first one; and `last_event_at`.
    """
    calls = ToolCall.objects.filter(
        ~Q(status__in=TERMINAL_CALLS), run_id=OuterRef("pk"), status=CallStatus.EXECUTING
    )
    newest = calls.order_by("-started_at", "-pk")
    delegated = Run.objects.filter(
        parent_id=OuterRef("pk"), parent_call__status=CallStatus.SUSPENDED
    ).order_by("pk")
    events = Event.objects.filter(run_id=OuterRef("pk")).order_by("-seq")
    return annotate_waits(rows).annotate(
        employee_name=F("employee__name"),
        decisions=_count(_list_cards(ApprovalKind.APPROVAL)),
        answers=_count(_list_cards(ApprovalKind.QUESTION)),
        unknowns=_count(_list_cards(ApprovalKind.UNKNOWN)),
        running_calls=_count(calls),
        running_tool=Subquery(newest.values("tool")[:1]),
        running_since=Subquery(newest.values("started_at")[:1]),
        colleagues=_count(delegated, "parent_id"),
        colleague=Subquery(delegated.values("employee__name")[:1]),
        colleague_run=Subquery(delegated.values("pk")[:1]),
        last_event_at=Subquery(events.values("created_at")[:1]),
    )


def _list_cards(kind: ApprovalKind) -> QuerySet[Approval]:
    return Approval.objects.filter(run_id=OuterRef("pk"), status=ApprovalStatus.PENDING, kind=kind)


def _count(rows: QuerySet[Any, Any], key: str = "run_id") -> Coalesce:
    """Return an expression that counts the rows of a subquery, which must all have the same key."""
    return Coalesce(
        Subquery(rows.order_by().values(key).annotate(number=Count("pk")).values("number")), 0
    )


class RunStateRow(NamedTuple):
    """The columns from which the state of a run is computed."""

    organization_id: int
    status: str
    exit_reason: str
    outcome: str
    waits_for: str
    patience_tries: int
    next_wake_at: datetime | None
    stopped_because: str
    cancel_requested_at: datetime | None
    next_event_seq: int
    employee_name: str
    decisions: int
    answers: int
    unknowns: int
    running_calls: int
    running_tool: str | None
    running_since: datetime | None
    colleagues: int
    colleague: str | None
    colleague_run: int | None
    last_event_at: datetime | None


RUN_STATE = CompiledQuery(
    RunStateRow, lambda run_id: annotate_activity(Run.objects.filter(pk=run_id)).order_by()
)


class EventRow(NamedTuple):
    """A row with one event."""

    event: Event


LATER_EVENTS = CompiledQuery(
    EventRow,
    lambda run_id, after: Event.objects.filter(run_id=run_id, seq__gt=after).order_by("seq")[
        :EVENTS_PER_PAGE
    ],
    event=ModelColumns(Event),
)


class DisplayedCall(NamedTuple):
    """A call with the columns that lines and cards show; `has_card` is True if the call has or had
    a card."""

    call: ToolCall
    has_card: bool


DISPLAYED_CALLS = CompiledQuery(
    DisplayedCall,
    lambda run_id, first, last: ToolCall.objects.filter(
        run_id=run_id, pk__gte=first, pk__lte=last
    ).order_by(),
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
    lambda run_id, first, last: Pass.objects.filter(
        run_id=run_id, number__gte=first, number__lte=last
    ).order_by(),
    currency="run__organization__currency",
)


class TimelineEvent(NamedTuple):
    """An event for the timeline, with fields of its payload; missing fields are None."""

    run_id: int
    seq: int
    type: str
    created_at: datetime
    pass_number: str | None
    call_id: str | None
    tool: str | None
    level: str | None
    display_name: str | None
    employee: str | None


TIMELINE_TYPES = (
    EventType.PASS_STARTED, EventType.ASSISTANT_MESSAGE, EventType.TOOL_START, EventType.TOOL_RESULT,
    EventType.TOOL_REJECTED, EventType.APPROVAL_REQUESTED, EventType.APPROVAL_DECIDED, EventType.QUESTION_ASKED,
    EventType.QUESTION_ANSWERED, EventType.CALL_RESOLVED, EventType.RUN_NEEDS_ATTENTION, EventType.RUN_RESUMED,
    EventType.PROVIDER_DELAYED, EventType.RUN_FINISHED,
)  # fmt: skip
MAX_TIMELINE_EVENTS = 2_000
TIMELINE_COLUMNS = {
    "pass_number": KT("payload__pass_number"),
    "call_id": KT("payload__call_id"),
    "tool": KT("payload__tool"),
    "level": KT("payload__level"),
    "display_name": KT("payload__display_name"),
    "employee": KT("payload__params__employee"),
}


def list_timeline_events(run_id: int) -> QuerySet[Event]:
    """Select the events of a run that its timeline shows."""
    return Event.objects.filter(run_id=run_id, type__in=TIMELINE_TYPES)


def _list_events_of_passes(run_id: int, seq: int) -> QuerySet[Event]:
    passes = Event.objects.filter(run_id=run_id, type=EventType.PASS_STARTED, seq__lt=seq)
    start = Subquery(passes.order_by("-seq").values("seq")[:1])
    return (
        list_timeline_events(run_id)
        .filter(seq__gte=Coalesce(start, 0))
        .order_by("seq")[:MAX_TIMELINE_EVENTS]
    )


LATER_TIMELINE_EVENTS = CompiledQuery(
    TimelineEvent,
    _list_events_of_passes,
    **TIMELINE_COLUMNS,  # type: ignore[arg-type]  # mypy takes them for `placeholders`
)
"""The query for a run's timeline events, beginning with the pass that contains the event with this
number."""
