"""Schemas of requests, with their limits, and of responses."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Generic, Literal, TypeVar
from uuid import UUID

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from agents.api.card_schemas import CardMark
from agents.platform.row_ids import parse_row_id
from agents.runs.actions import MAX_PASSES
from agents.runs.engine.timing import MAX_GRACE_S
from agents.runs.models import ApprovalKind, ApprovalStatus, RunStatus
from tools.contract.canonical import storable_json

LONGEST_TEXT = 20_000
LONGEST_REASON = 2_000
LONGEST_NAME = 200
LONGEST_MODE = 40
MAX_DECISIONS = 200
MAX_SEEN_MARKS = 50
LARGEST_PAGE = 200


def check_storable(value: Any) -> Any:
    """Return the value if every database can store it.

    Raises:
        ValueError: the value is not JSON, or contains a NUL character or a lone surrogate.
    """
    try:
        storable_json(value)
    except TypeError as error:
        raise ValueError(str(error)) from error
    return value


Text = Annotated[str, AfterValidator(check_storable)]
Name = Annotated[Text, Field(max_length=LONGEST_NAME)]
RowId = Annotated[int, BeforeValidator(parse_row_id), WithJsonSchema({"type": "string"})]
Digest = Annotated[
    Text,
    Field(
        min_length=1,
        max_length=LONGEST_NAME,
        description="The `digest` of the card that you decide, from `GET /api/approvals/{approval_id}`.",
        examples=["the card's digest"],
    ),
]


DESPITE_CLAIM = Field(
    "", description="The card's `claimed_by`, to decide a card that another person has taken."
)


class RequestBody(BaseModel):
    """Base of request bodies; unknown fields are refused, because they may be misspelled."""

    model_config = ConfigDict(extra="forbid")


class NewRun(RequestBody):
    """A new task for an employee."""

    employee_id: RowId = Field(
        description="The `id` of an employee: `GET /api/employees` lists them."
    )
    task: Text = Field(
        min_length=1,
        max_length=LONGEST_TEXT,
        description="What the employee should do. See `example_tasks` of an employee for ideas.",
        examples=["Find the companies in region EU without a phone number and draft a report."],
    )
    mode: Text = Field(
        "",
        max_length=LONGEST_MODE,
        description="The set of tools; defaults to the employee's mode.",
    )
    client_request_id: Name = Field(
        "",
        description="Your own id for this request. A repeated request returns the run that the first one started.",
    )


class NewMessage(RequestBody):
    """A message to the employee of a run."""

    text: Text = Field(
        min_length=1, max_length=LONGEST_TEXT, examples=["Leave out the archived ones."]
    )
    client_message_id: Name = Field(
        "",
        description="Your own id for this message, unique within the run. A repeated request adds no second message.",
    )


class ContinueRequest(RequestBody):
    """The number of passes that a resumed run may use."""

    max_passes: int | None = Field(
        None, ge=1, le=MAX_PASSES, description="Null uses the employee's limit."
    )
    client_message_id: Name = Field(
        "",
        description="Your own id for this request, unique within the run. "
        "A repeated request does not resume the run again.",
    )


class DenyRequest(RequestBody):
    """A denial of one card."""

    digest: Digest
    decision_id: Name = Field(
        "", description="Your own id for this decision. A repeated request gets the same response."
    )
    reason: Text = Field("", max_length=LONGEST_REASON, description="Sent to the model.")
    despite_claim_of: Name = DESPITE_CLAIM


class DismissRequest(DenyRequest):
    """A dismissal of one card: everything that it asks for is already done."""

    reason: Text = Field("", max_length=LONGEST_REASON, description="Kept with the card.")


SeenMarks = Annotated[
    list[Name],
    Field(
        max_length=MAX_SEEN_MARKS,
        description="The kinds of the card's `marks` that you have seen. Without those of a warning, and without "
        "`new`, `outside`, `preview` and `restored`, the response is 409 `marks_not_seen` with the marks.",
    ),
]


class ApproveRequest(RequestBody):
    """An approval of one card; with `params`, a request for a changed card instead."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"digest": "the card's digest", "grace_s": 0}]}
    )

    digest: Digest
    decision_id: Name = Field(
        "", description="Your own id for this decision. A repeated request gets the same response."
    )
    params: Annotated[dict[str, Any], AfterValidator(check_storable)] | None = Field(
        None,
        description="Approves nothing: creates a new card with these params, see `next_approval_id`.",
    )
    grace_s: int = Field(
        0, ge=0, le=MAX_GRACE_S, description="Seconds in which the approval can be undone."
    )
    confirm: Text = Field(
        "",
        max_length=LONGEST_REASON,
        description="The text of the card's `confirm`; required at destructive level.",
    )
    despite_claim_of: Name = DESPITE_CLAIM
    seen_approvals: Text | None = Field(
        None,
        max_length=LONGEST_TEXT,
        description="The card's `votes` as you saw them, such as `ann, ben for fay`. If they have changed, the "
        "response is 409 `approvals_changed`. Null skips this check.",
    )

    seen_marks: SeenMarks = []


class UndoRequest(RequestBody):
    """A request to undo an approval that has not started."""

    decision_id: Name = Field(
        "", description="The decision to undo; if empty, your own decision, whatever its id."
    )


class AnswerRequest(RequestBody):
    """A person's answer to an employee's question."""

    text: Text = Field(min_length=1, max_length=LONGEST_TEXT, examples=["The one in South Street."])
    decision_id: Name = Field(
        "", description="Your own id for this decision. A repeated request gets the same response."
    )


class BulkDecision(DenyRequest):
    """One decision of a bulk request."""

    approval_id: RowId = Field(
        description="The `id` of a card: `GET /api/approvals?status=pending` lists them."
    )
    action: Literal["approve", "deny"]
    grace_s: int = Field(
        0, ge=0, le=MAX_GRACE_S, description="Seconds in which an approval can be undone."
    )
    seen_marks: SeenMarks = []


class BulkDecisions(RequestBody):
    """Decisions that are applied one after the other; a failed one does not affect the others."""

    decisions: list[BulkDecision] = Field(min_length=1, max_length=MAX_DECISIONS)
    bulk_id: UUID | None = Field(
        None,
        description="The same UUID in several requests makes them one bulk decision on the oversight page.",
    )


class ResolveRequest(RequestBody):
    """A person's finding about a call with an unknown outcome, or the acknowledgment of its late
    effect."""

    outcome: Literal["succeeded", "not_done", "acknowledged"]
    reason: Text = Field(
        min_length=1, max_length=LONGEST_REASON, description="How you know the outcome."
    )


class PageQuery(BaseModel):
    """Query parameters that select a page of a list."""

    cursor: Name = Field(
        "", description="The `next_cursor` of the previous page; empty for the first page."
    )
    limit: int = Field(50, ge=1, le=LARGEST_PAGE)


class RunFilter(PageQuery):
    """Filters for runs."""

    status: RunStatus | None = None
    employee_id: RowId | None = None
    q: Name = Field(
        "",
        description="Text to find in title or task. The search for a rare text stops after a tenth of a second, "
        "so a page may have fewer runs than `limit`, or none. Follow `next_cursor` until it is null.",
    )


class ListOrder(StrEnum):
    """Order of a list."""

    OLDEST = "oldest"
    NEWEST = "newest"


class ApprovalFilter(PageQuery):
    """Filters for approvals."""

    order: ListOrder | None = Field(
        None,
        description="`oldest` first, in call order, or `newest` first. Send the same order for each page. "
        "Defaults to `oldest` for `status=pending`, so that clients can decide from the top, and else to `newest`.",
    )

    status: ApprovalStatus | None = None
    kind: ApprovalKind | None = None
    run_id: RowId | None = None
    employee_id: RowId | None = None
    tool: Name = ""


class EventFilter(BaseModel):
    """Filter for the events of a run."""

    after: int = Field(
        0, ge=0, le=2**31 - 1, description="Return only events with a greater number."
    )


Item = TypeVar("Item")


class CursorPage(BaseModel, Generic[Item]):
    """A page of a list; `next_cursor` is null on the last page. With filters, earlier pages may be
    short or empty, too."""

    items: list[Item]
    next_cursor: str | None


class FieldProblem(BaseModel):
    """One invalid field, and why it is invalid."""

    field: str = Field(examples=["task"])
    detail: str = Field(examples=["String should have at least 1 character"])


class Problem(BaseModel):
    """An error response, as application/problem+json. Some codes add further fields."""

    type: str = Field(examples=["about:blank"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["There is no run 4711."])
    code: str = Field(examples=["not_found"], description="Stable identifier for programs.")
    field: str | None = Field(None, description="The first invalid field.")
    errors: list[FieldProblem] | None = Field(None, description="All invalid fields.")
    decided_by: str | None = Field(None, description="Name of the person who has already decided.")
    decided_at: datetime | None = None
    approval_status: ApprovalStatus | None = None


class HealthStatus(BaseModel):
    """The response of a running process."""

    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    """The state of the installation. The parts in `degraded` are unavailable; work waits for them
    and is not lost."""

    status: Literal["ready"] = "ready"
    degraded: list[str] = Field(
        examples=[["worker"]], description="Unavailable: redis, worker, sweeper or files."
    )
    workers_alive: int | None = Field(
        examples=[1], description="Running workers; null while Redis is unavailable."
    )
    workers_seen: int | None = Field(
        examples=[2],
        description="Running workers, plus those that vanished in the last ten minutes and were not replaced; "
        "null while Redis is unavailable.",
    )


class EmployeeSummary(BaseModel):
    """A configured AI worker."""

    id: str
    name: str
    job_title: str
    mode: str
    provider: str
    model: str
    allowed_tools: list[str]
    pinned_versions: dict[str, str] = Field(
        description="By tool, the only version that the employee uses."
    )
    example_tasks: list[str]
    is_active: bool


class ToolCallSummary(BaseModel):
    """A tool call in a run. Result data beyond 4 KB is left out, and the result is marked
    `truncated`."""

    id: str
    tool: str
    level: str
    status: str
    params: dict[str, Any]
    result: dict[str, Any] | None = Field(
        description="success, summary, data, markdown, error, metadata, content_type, details"
    )
    duration_ms: int | None
    pass_number: int
    marks: list[CardMark] = Field(
        description="The marks of the newest card; without a card, those that the params need."
    )
    approval_id: str | None = Field(description="The newest card of this call.")
    duplicate_of: str | None = Field(description="The earlier call whose result this one reuses.")
    late_effect: dict[str, Any] | None = Field(
        description="Set if the call was resolved as not done but had an effect: reported_at, result, done_again_by."
    )


class ToolCallDetail(ToolCallSummary):
    """A tool call with its whole result."""

    run_id: str
    version: str
    why: str = Field(description="The machine's verdict, and its reason.")
    model_params: dict[str, Any] | None = Field(
        description="The model's original params, if a person changed them."
    )
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class TokenUsage(BaseModel):
    """Tokens used by the model; `cost` is in the organization's currency, and null without a known
    price."""

    input_tokens: int
    output_tokens: int
    cost: float | None = None


class RunSummary(BaseModel):
    """A run in a list."""

    id: str
    status: RunStatus
    exit_reason: str
    employee_id: str
    title: str
    task: str
    mode: str
    origin: str
    correlation_id: str = Field(
        description="The `X-Request-ID` of the request that started the run."
    )
    parent_run_id: str | None = Field(
        description="For a delegated task: the run that waits for it."
    )
    answer: str
    problem: str = Field(description="What went wrong, as text for people.")
    pass_number: int
    max_passes: int
    usage: TokenUsage
    usage_estimated: bool = Field(
        description="Part of the usage is an estimate, because the model's server has not reported it."
    )
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class RunDetail(RunSummary):
    """A run with its tool calls."""

    tool_calls: list[ToolCallSummary]


class EventDetail(BaseModel):
    """One line of the activity panel, numbered per run without gaps."""

    seq: int
    type: str
    payload: dict[str, Any]
    marks: list[CardMark] = Field(
        description="The marks of the card that the event requests, or of the call that it introduces."
    )
    created_at: datetime


class BulkUndo(RequestBody):
    """Approvals to undo, one after the other; a failed one does not affect the others."""

    approval_ids: list[RowId] = Field(min_length=1, max_length=MAX_DECISIONS)
