"""The compiled queries with which a driver loads the run, its calls, passes and approved cards, and
the permissions."""

from datetime import datetime
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery, TextField
from django.db.models.functions import Cast, Now

from agents.accounts.models import Organization
from agents.employees.models import Employee, Grant, ModelProvider, ToolRule
from agents.platform.queries.compiled import CompiledQuery, IdRow, ModelColumns
from agents.runs.models import (
    TERMINAL_CALLS,
    Approval,
    ApprovalStatus,
    Pass,
    Run,
    RunStatus,
    ToolCall,
    WithheldBulk,
)

_STOPPED_ORGANIZATION = Organization.objects.filter(
    pk=OuterRef("organization_id"), stopped_at__isnull=False
)
_STOPPED_EMPLOYEE = Employee.objects.filter(pk=OuterRef("employee_id"), stopped_at__isnull=False)


class DueRun(NamedTuple):
    """A queued run that may get a driver, and the database's time."""

    lease_epoch: int
    started_at: datetime | None
    now: datetime


DUE_RUN = CompiledQuery(
    DueRun,
    lambda run_id: (
        Run.objects.filter(
            Q(next_wake_at__isnull=True) | Q(next_wake_at__lte=Now()),
            Q(~Exists(_STOPPED_ORGANIZATION), ~Exists(_STOPPED_EMPLOYEE), stopped_because="")
            | Q(cancel_requested_at__isnull=False),
            pk=run_id,
            status=RunStatus.QUEUED,
        )
        .order_by()
        .select_for_update(no_key=True)
    ),
    now=Now(),
)
"""The query for a run that is due. A cancelled run that a leaving worker requeued is due, too,
because a driver must end it."""


class RunWithPeople(NamedTuple):
    """A run with the people and the configuration that its calls need."""

    run: Run
    employee: Employee
    provider: ModelProvider
    organization: Organization
    creator: User


RUN_WITH_PEOPLE = CompiledQuery(
    RunWithPeople,
    lambda run_id: Run.objects.filter(pk=run_id).order_by(),
    run=ModelColumns(Run),
    employee=ModelColumns(Employee, "employee__"),
    provider=ModelColumns(ModelProvider, "employee__provider__"),
    organization=ModelColumns(Organization, "organization__"),
    creator=ModelColumns(User, "created_by__"),
)


class GrantRow(NamedTuple):
    """A grant of an employee, with the organization's rule for the tool and the plan's features.

    JSON columns are unparsed text, so that rows can be keys of a cache.
    """

    tool: str
    level: str
    conditions: str
    delegates: str
    version: str
    level_for_all: str | None
    stopped_by: str | None
    organization_id: int
    tools_version: int
    capabilities: str
    features: str


_RULE = ToolRule.objects.filter(
    organization=OuterRef("employee__organization"), tool=OuterRef("tool")
).order_by()
GRANTS = CompiledQuery(
    GrantRow,
    lambda employee_id: Grant.objects.filter(employee_id=employee_id).order_by(),
    conditions=Cast("conditions", TextField()),
    delegates=Cast("delegates", TextField()),
    level_for_all=Subquery(_RULE.values("level")),
    stopped_by=Subquery(_RULE.filter(stopped_at__isnull=False).values("stopped_by")),
    organization_id="employee__organization_id",
    tools_version="employee__organization__tools_version",
    capabilities=Cast("employee__capabilities", TextField()),
    features=Cast("employee__organization__plan_features", TextField()),
)


class CallState(NamedTuple):
    """The state of one call."""

    status: str
    pass_number: int


OPEN_OR_LAST_CALLS = CompiledQuery(
    CallState,
    lambda run_id, number: ToolCall.objects.filter(
        Q(pass_number=number) | ~Q(status__in=TERMINAL_CALLS), run_id=run_id
    ).order_by(),
)
"""The query for the open calls of a run, and all calls of the pass with this number."""


class CallContent(NamedTuple):
    """A call with its tool message for the model."""

    pass_number: int
    provider_call_id: str
    content: str | None
    content_of_original: str | None
    signature: str
    parent_call_id: int | None


CALLS_SINCE = CompiledQuery(
    CallContent,
    lambda run_id, after: ToolCall.objects.filter(run_id=run_id, pass_number__gt=after).order_by(
        "pass_number", "index"
    ),
    content_of_original="duplicate_of__content",
)
"""The query for the calls of all passes after the given pass."""


class PassContent(NamedTuple):
    """A recorded pass, as the model's history contains it."""

    number: int
    response: dict[str, Any]
    messages_upto: int
    input_tokens: int
    usage_estimated: bool


PASSES_SINCE = CompiledQuery(
    PassContent,
    lambda run_id, after: Pass.objects.filter(run_id=run_id, number__gt=after).order_by("number"),
)
"""The query for the passes after the given one."""


def _select_startable() -> QuerySet[Approval]:
    return Approval.objects.filter(
        ~WithheldBulk.find_for_approval(), status=ApprovalStatus.APPROVED
    )


class StartableCard(NamedTuple):
    """An approved card whose call may start or only waits for an earlier call, with the call and
    the person who decided."""

    card: Approval
    call: ToolCall
    decided_by: User


STARTABLE_CARD = CompiledQuery(
    StartableCard,
    lambda run_id: (
        _select_startable()
        .filter(run_id=run_id, start_after__lte=Now())
        .order_by(F("after").asc(nulls_first=True), "tool_call")[:1]
    ),
    card=ModelColumns(Approval),
    call=ModelColumns(ToolCall, "tool_call__"),
    decided_by=ModelColumns(User, "decided_by__"),
)
"""The query for the run's first approved card whose grace period is over and that is not withheld;
cards that wait for an earlier call come last."""

STILL_APPROVED = CompiledQuery(
    IdRow, lambda card_id: _select_startable().filter(pk=card_id).order_by()
)
"""The query for the card, if it is still approved and not withheld."""
