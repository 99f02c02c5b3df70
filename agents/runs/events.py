"""The events of a run: one class for each type, whose fields are the payload for the panel, REST
and sockets.

CONTRIBUTING.md lists the places to change for a new type.
"""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, ClassVar, Self

from agents.runs.models import (
    Approval,
    ApprovalKind,
    ApprovalStatus,
    EventType,
    Run,
    ToolCall,
)
from agents.runs.models.event import brief_params, brief_result
from tools.contract import Tool, ToolError, ToolResult, name_tool

MAX_PROGRESS_TEXT = 500


@dataclass(frozen=True)
class RunEvent:
    """The base class of all run events."""

    type: ClassVar[EventType]

    @property
    def payload(self) -> dict[str, Any]:
        """The fields for the event's row, without optional fields that are None."""
        return {
            field.name: value
            for field in fields(self)
            if (value := getattr(self, field.name)) is not None or field.default is not None
        }


@dataclass(frozen=True)
class RunStarted(RunEvent):
    """A run was submitted; optional fields name the trigger, schedule, agent or run that started
    it, and show whether a person typed the task on a page."""

    type = EventType.RUN_STARTED
    by: str
    parent_run_id: str | None = None
    agent_key: str | None = None
    trigger: str | None = None
    schedule_id: str | None = None
    scheduled_for: str | None = None
    missed: int | None = None
    is_typed: bool | None = None


@dataclass(frozen=True)
class RunTitled(RunEvent):
    """The employee's model was asked for a title; `title` is None if the response was unusable."""

    type = EventType.RUN_TITLED
    input_tokens: int
    output_tokens: int
    cost: float | None
    title: str | None = None


@dataclass(frozen=True)
class RunWaiting(RunEvent):
    """The run waits for people, colleagues or time.

    Attributes:
        decisions, answers: the numbers of open approvals and open questions.
        colleagues: the names of the employees that work on delegated tasks.
    """

    type = EventType.RUN_WAITING
    approval_ids: list[str]
    decisions: int
    answers: int
    colleagues: list[str]
    pass_number: int


@dataclass(frozen=True)
class RunNeedsAttention(RunWaiting):
    """The run waits, and the outcome of a call is unknown."""

    type = EventType.RUN_NEEDS_ATTENTION


@dataclass(frozen=True)
class RunStopped(RunEvent):
    """A person stopped the run's organization or employee; the panel shows the run as waiting."""

    type = EventType.RUN_WAITING
    reason: str
    approval_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunResumed(RunEvent):
    """The run continues, for example after a wait, a stop or the loss of its worker."""

    type = EventType.RUN_RESUMED
    by: str
    reason: str | None = None
    pass_number: int | None = None


@dataclass(frozen=True)
class CancelRequested(RunEvent):
    """A person or the engine cancelled the run, which ends once its executing calls have ended."""

    type = EventType.CANCEL_REQUESTED
    by: str


@dataclass(frozen=True)
class RunFinished(RunEvent):
    """The run ended; `cost` is None if no price is known, and `outcome` says what the run achieved.

    Attributes:
        problem: a sentence on why the run failed; empty for most runs. Events of older versions
            lack the field.
    """

    type = EventType.RUN_FINISHED
    status: str
    exit_reason: str
    answer: str
    pass_number: int
    input_tokens: int
    output_tokens: int
    usage_estimated: bool
    cost: float | None
    currency: str
    outcome: str
    problem: str = ""

    @classmethod
    def of(cls, run: Run, cost: float | None) -> Self:
        """Build the event from the run's row."""
        end = (str(run.status), str(run.exit_reason), run.answer)
        figures = (
            *end,
            run.pass_number,
            run.input_tokens,
            run.output_tokens,
            run.estimated_tokens > 0,
        )
        ending = (run.organization.currency, str(run.outcome), run.problem)
        return cls(*figures, cost, *ending)


@dataclass(frozen=True)
class MessageAdded(RunEvent):
    """A person sent the employee a message; `typed_number` is its number if it was typed on a
    page."""

    type = EventType.MESSAGE_ADDED
    text: str
    by: str
    typed_number: int | None = None


@dataclass(frozen=True)
class PassStarted(RunEvent):
    """The model is called."""

    type = EventType.PASS_STARTED
    pass_number: int


@dataclass(frozen=True)
class ToolStarted(RunEvent):
    """A call starts."""

    type = EventType.TOOL_START
    call_id: str
    tool: str
    display_name: str
    level: str
    params: dict[str, Any]
    summary: str
    pass_number: int
    parent_call_id: str | None = None
    truncated: bool | None = None

    @classmethod
    def of(cls, call: ToolCall, tool: Tool | None, summary: str) -> Self:
        """Build the event for the start of a call; the tool is None if it is no longer
        installed."""
        params, truncated = brief_params(call.params)
        about = (str(call.pk), call.tool, str(name_tool(tool, call.tool)), call.level)
        parent_id = str(call.parent_call_id) if call.parent_call_id else None
        return cls(*about, params, summary, call.pass_number, parent_id, truncated)


@dataclass(frozen=True)
class ToolProgress(RunEvent):
    """A call reports its progress; `run_id` is the run of the colleague who works on it."""

    type = EventType.TOOL_PROGRESS
    call_id: str
    fraction: float
    text: str
    run_id: str | None = None

    @classmethod
    def of(cls, call: ToolCall, fraction: float, text: str) -> Self:
        """Build the event for the progress of a call: round the number, and cut the text to fit a
        line."""
        return cls(str(call.pk), round(fraction, 3), text[:MAX_PROGRESS_TEXT])


@dataclass(frozen=True)
class ToolFinished(RunEvent):
    """A call succeeded, failed, or ended with an unknown outcome."""

    type = EventType.TOOL_RESULT
    call_id: str
    tool: str
    result: dict[str, Any]
    duration_ms: int

    @classmethod
    def of(cls, call: ToolCall, result: ToolResult, duration_ms: int = 0) -> Self:
        """Build the event for the result of a call, without data that is too large for an event."""
        return cls(str(call.pk), call.tool, brief_result(result.as_json()), duration_ms)


@dataclass(frozen=True)
class ToolSkipped(RunEvent):
    """A call was skipped, because it repeats an earlier call."""

    type = EventType.TOOL_SKIPPED
    call_id: str
    tool: str
    duplicate_of: str


@dataclass(frozen=True)
class ToolRejected(RunEvent):
    """A call may not run, or was given up before its start."""

    type = EventType.TOOL_REJECTED
    call_id: str
    tool: str
    code: str
    reason: str

    @classmethod
    def of(cls, call: ToolCall, error: ToolError) -> Self:
        """Build the event for a call that was rejected with this error."""
        return cls(str(call.pk), call.tool, str(error.code), error.message)


@dataclass(frozen=True)
class CallResolved(RunEvent):
    """An unknown outcome was resolved, a late effect was acknowledged, or the executor sent its
    report late."""

    type = EventType.CALL_RESOLVED
    call_id: str
    outcome: str
    by: str
    reason: str


@dataclass(frozen=True)
class LateEffect(RunEvent):
    """The executor reported that a call took effect although it had been marked as not done."""

    type = EventType.LATE_EFFECT
    call_id: str
    approval_id: str
    summary: str
    reason: str
    done_again_by: list[str]


@dataclass(frozen=True)
class ApprovalRequested(RunEvent):
    """A card asks for a decision; the event's line in the panel always shows the card's current
    state.

    Attributes:
        preapproved: True if a standing grant approves the card immediately, so that nobody has to
            decide.
    """

    type = EventType.APPROVAL_REQUESTED
    approval_id: str
    call_id: str
    tool: str
    level: str
    sentence: str
    params: dict[str, Any]
    digest: str
    expires_at: str
    truncated: bool | None = None
    preapproved: bool | None = None

    @classmethod
    def of(cls, card: Approval, call: ToolCall, expires_at: datetime) -> Self:
        """Build the event for a new card of the call."""
        params, truncated = brief_params(call.params)
        about = (str(card.pk), str(call.pk), call.tool, call.level, card.sentence)
        preapproved = True if card.standing_grant_id is not None else None
        return cls(*about, params, card.digest, expires_at.isoformat(), truncated, preapproved)


@dataclass(frozen=True)
class ApprovalVoted(RunEvent):
    """A person approved a card that needs more approvals, or withdrew that approval."""

    type = EventType.APPROVAL_VOTED
    approval_id: str
    call_id: str
    by: str
    still_needed: str
    withdrawn: bool | None = None

    @classmethod
    def of(cls, card: Approval, by: str, still_needed: str) -> Self:
        """Build the event for this person's vote."""
        return cls(str(card.pk), str(card.tool_call_id), by, still_needed)


@dataclass(frozen=True)
class ApprovalDecided(RunEvent):
    """A card was closed; `next_approval_id` names the card that replaced it.

    Attributes:
        dismissed: True if a person dismissed the card because there was nothing to do; events of
            older versions lack this field.
        kind: `question`; None for an approval, and for all cards in events of older versions.
    """

    type = EventType.APPROVAL_DECIDED
    approval_id: str
    call_id: str
    status: str
    decided_by: str
    reason: str
    next_approval_id: str | None
    dismissed: bool | None = None
    kind: str | None = None

    @classmethod
    def of(cls, card: Approval, reason: str, next_approval_id: str | None = None) -> Self:
        """Build the event for a closed card, whose status shows how it was closed."""
        is_approval = card.kind == ApprovalKind.APPROVAL
        return cls(
            str(card.pk),
            str(card.tool_call_id),
            str(card.status),
            card.decider,
            reason,
            next_approval_id,
            True if is_approval and card.status == ApprovalStatus.ANSWERED else None,
            None if is_approval else str(card.kind),
        )


@dataclass(frozen=True)
class QuestionAsked(RunEvent):
    """The employee asks people a question."""

    type = EventType.QUESTION_ASKED
    approval_id: str
    call_id: str
    text: str
    choices: list[str]
    expires_at: str


@dataclass(frozen=True)
class QuestionAnswered(RunEvent):
    """A person answered the employee's question; `is_typed` says that they did so on a page."""

    type = EventType.QUESTION_ANSWERED
    approval_id: str
    call_id: str
    text: str
    by: str
    is_typed: bool | None = None
