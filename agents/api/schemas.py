"""The shapes of requests, with their limits, and of answers."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from agents.approvals.models import ApprovalKind, ApprovalStatus
from agents.platform.row_ids import row_id
from agents.runs.actions import MOST_PASSES
from agents.runs.models import RunStatus
from tools.contract.canonical import storable_json

LONGEST_TEXT = 20_000
LONGEST_REASON = 2_000
LONGEST_NAME = 200
LONGEST_MODE = 40
LONGEST_GRACE_S = 60
MOST_DECISIONS = 200
LARGEST_PAGE = 200


def storable(value: Any) -> Any:
    """The value itself, once it is known that every database can keep it.

    Raises:
        ValueError: it is not JSON, or holds a NUL character or half a surrogate pair.
    """
    try:
        storable_json(value)
    except TypeError as error:
        raise ValueError(str(error)) from error
    return value


Text = Annotated[str, AfterValidator(storable)]
Name = Annotated[Text, Field(max_length=LONGEST_NAME)]
RowId = Annotated[int, BeforeValidator(row_id), WithJsonSchema({"type": "string"})]
Digest = Annotated[
    Text,
    Field(
        min_length=1,
        max_length=LONGEST_NAME,
        description="The digest of the card that was shown, as `GET /api/approvals/{approval_id}` tells it.",
        examples=["the card's digest"],
    ),
]


class Body(BaseModel):
    """A request's body; a field that is not known is refused, because it may be a misspelt one."""

    model_config = ConfigDict(extra="forbid")


class NewRun(Body):
    """A task for an employee."""

    employee_id: RowId = Field(description="The `id` of an employee: `GET /api/employees` lists them.")
    task: Text = Field(
        min_length=1,
        max_length=LONGEST_TEXT,
        description="What the employee shall do; `example_tasks` of an employee are some that it knows.",
        examples=["Find the companies in region EU without a phone number and draft a report."],
    )
    mode: Text = Field("", max_length=LONGEST_MODE, description="The set of tools; empty: the employee's own.")
    client_request_id: Name = Field(
        "", description="Your own name of the order: sent again, it answers the run that it started the first time."
    )


class NewMessage(Body):
    """A further instruction."""

    text: Text = Field(min_length=1, max_length=LONGEST_TEXT, examples=["Leave out the archived ones."])


class MorePasses(Body):
    """How much further a run may go."""

    max_passes: int | None = Field(None, ge=1, le=MOST_PASSES, description="None: as many as the employee has.")


class Denial(Body):
    """A refusal of the card that was shown."""

    digest: Digest
    decision_id: Name = Field("", description="The same decision sent again gets the same answer.")
    reason: Text = Field("", max_length=LONGEST_REASON, description="Told to the model.")


class Approving(Body):
    """Consent to the card that was shown; with `params` no consent but a request for a changed card."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"digest": "the card's digest", "grace_s": 0}]})

    digest: Digest
    decision_id: Name = Field("", description="The same decision sent again gets the same answer.")
    params: Annotated[dict[str, Any], AfterValidator(storable)] | None = Field(
        None, description="Approves nothing: makes a new card with these params, see `next_approval_id`."
    )
    grace_s: int = Field(0, ge=0, le=LONGEST_GRACE_S, description="Seconds in which the approval can be undone.")
    confirm: Text = Field(
        "", max_length=LONGEST_REASON, description="The card's `confirm`, typed; required at destructive level."
    )


class Undoing(Body):
    """Takes an approval back within its grace."""

    decision_id: Name = Field("", description="The decision to take back; empty: whichever is yours.")


class Answering(Body):
    """A person's answer to an employee's question."""

    text: Text = Field(min_length=1, max_length=LONGEST_TEXT, examples=["The one in South Street."])
    decision_id: Name = Field("", description="The same decision sent again gets the same answer.")


class BulkDecision(Denial):
    """One of many decisions."""

    approval_id: RowId = Field(description="The `id` of a card: `GET /api/approvals?status=pending` lists them.")
    action: Literal["approve", "deny"]


class BulkDecisions(Body):
    """Decisions that are made one after the other; one that fails leaves the others whole."""

    decisions: list[BulkDecision] = Field(min_length=1, max_length=MOST_DECISIONS)


class Resolution(Body):
    """A person's finding about a call whose outcome was unknown, or the acknowledgment of its late effect."""

    outcome: Literal["succeeded", "not_done", "acknowledged"]
    reason: Text = Field(min_length=1, max_length=LONGEST_REASON, description="How you know.")


class Paging(BaseModel):
    """Which part of a list."""

    cursor: Name = Field("", description="The `next_cursor` of the page before; empty: the first page.")
    limit: int = Field(50, ge=1, le=LARGEST_PAGE)


class RunFilter(Paging):
    """Which runs."""

    status: RunStatus | None = None
    employee_id: RowId | None = None
    q: Name = Field("", description="Text in the title or the task.")


class Order(StrEnum):
    """The order of a list."""

    OLDEST = "oldest"
    NEWEST = "newest"


class ApprovalFilter(Paging):
    """Which approvals."""

    order: Order | None = Field(
        None,
        description="`oldest` first, in call order, or `newest` first; send the same order for each page. "
        "The default is `oldest` for `status=pending`, so that clients can decide from the top, else `newest`.",
    )

    status: ApprovalStatus | None = None
    kind: ApprovalKind | None = None
    run_id: RowId | None = None
    employee_id: RowId | None = None
    tool: Name = ""


class EventFilter(BaseModel):
    """Which events of a run."""

    after: int = Field(0, ge=0, le=2**31 - 1, description="Only events with a greater number.")


Shape = TypeVar("Shape")


class Page(BaseModel, Generic[Shape]):
    """A part of a list; `next_cursor` is None at its end."""

    items: list[Shape]
    next_cursor: str | None


class FieldFault(BaseModel):
    """One field that is wrong, and why."""

    field: str = Field(examples=["task"])
    detail: str = Field(examples=["String should have at least 1 character"])


class Problem(BaseModel):
    """Every answer that is not 2xx, as application/problem+json. A code may bring further fields."""

    type: str = Field(examples=["about:blank"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["There is no run 4711."])
    code: str = Field(examples=["not_found"], description="Stable, for programs.")
    field: str | None = Field(None, description="The first field that is wrong.")
    errors: list[FieldFault] | None = Field(None, description="All fields that are wrong.")
    decided_by: str | None = Field(None, description="Who decided before.")
    decided_at: datetime | None = None
    approval_status: ApprovalStatus | None = None


class Alive(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    """Work can be done; parts in `degraded` are unavailable, and work waits for them without being lost."""

    status: Literal["ready"] = "ready"
    degraded: list[str] = Field(examples=[["worker"]], description="Any of: redis, worker, sweeper, files.")
    workers_alive: int | None = Field(examples=[1], description="Running workers; null while Redis is unavailable.")
    workers_seen: int | None = Field(
        examples=[2],
        description="Running workers and those that vanished in the last ten minutes; null while Redis is unavailable.",
    )


class EmployeeShape(BaseModel):
    """A configured AI worker."""

    id: str
    name: str
    job_title: str
    mode: str
    provider: str
    model: str
    allowed_tools: list[str]
    example_tasks: list[str]
    is_active: bool


class ToolCallShape(BaseModel):
    """The model's request to use a tool. In a run, a result's data beyond 4 KB is left out and marked `truncated`."""

    id: str
    tool: str
    level: str
    status: str
    params: dict[str, Any]
    result: dict[str, Any] | None = Field(description="success, summary, data, markdown, error, metadata")
    duration_ms: int | None
    pass_number: int
    approval_id: str | None = Field(description="The newest card of this call.")
    duplicate_of: str | None = Field(description="The call whose result counts for this one too.")
    late_effect: dict[str, Any] | None = Field(
        description="Set if the call was declared not done but happened: reported_at, result, done_again_by."
    )


class WholeToolCall(ToolCallShape):
    """One call with its whole result."""

    run_id: str
    version: str
    why: str = Field(description="What the machine judged, and why.")
    model_params: dict[str, Any] | None = Field(description="What the model asked for, if a person changed it.")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class Usage(BaseModel):
    """What the model was asked; `cost` is in the organisation's currency, and None where no price is known."""

    input_tokens: int
    output_tokens: int
    cost: float | None = None


class RunSummary(BaseModel):
    """A run as it stands in a list."""

    id: str
    status: RunStatus
    exit_reason: str
    employee_id: str
    title: str
    task: str
    mode: str
    origin: str
    parent_run_id: str | None = Field(description="Of a task that was handed over: the run that waits for it.")
    answer: str
    problem: str = Field(description="What went wrong, in words for a person.")
    pass_number: int
    max_passes: int
    usage: Usage
    usage_estimated: bool = Field(
        description="Part of the usage is an estimate: the model's server has not reported it."
    )
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class RunShape(RunSummary):
    """The whole loop from task to answer."""

    tool_calls: list[ToolCallShape]


class EventShape(BaseModel):
    """One line of the activity panel; numbered per run without gaps."""

    seq: int
    type: str
    payload: dict[str, Any]
    created_at: datetime


class ApprovalShape(BaseModel):
    """One card: what would happen, sealed by its digest, and what became of it."""

    id: str
    kind: ApprovalKind
    status: ApprovalStatus
    run_id: str
    employee_id: str
    call_id: str
    tool: str
    level: str
    params: dict[str, Any]
    digest: str
    sentence: str
    preview: dict[str, Any]
    why: str
    warning: str = Field(description="A warning to read before deciding; empty for most cards, and for decided ones.")
    confirm: str = Field(description="What must be typed to approve; empty below destructive level.")
    requested_at: datetime
    expires_at: datetime
    decided_by: str | None
    decided_at: datetime | None
    reason: str
    start_after: datetime | None = Field(description="Until then the approval can be undone.")
    next_approval_id: str | None = Field(description="The card that replaced this one.")


class Outcome(BaseModel):
    """What became of one of many decisions: the answer that it would have got by itself."""

    approval_id: str
    status: int = Field(examples=[200, 409])
    code: str
    detail: str


class Outcomes(BaseModel):
    """One outcome for each decision, in their order."""

    outcomes: list[Outcome]
