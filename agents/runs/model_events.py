"""The events about the model's responses and requests, with their payload as fields."""

from dataclasses import dataclass

from agents.runs.events import RunEvent
from agents.runs.models import EventType


@dataclass(frozen=True)
class AssistantMessage(RunEvent):
    """The model's text."""

    type = EventType.ASSISTANT_MESSAGE
    text: str
    pass_number: int


@dataclass(frozen=True)
class AssistantThought(RunEvent):
    """The model's reasoning, cut to the length that is shown."""

    type = EventType.ASSISTANT_THOUGHT
    pass_number: int
    text: str
    truncated: bool | None = None


@dataclass(frozen=True)
class AnswerCut(RunEvent):
    """The model's response is incomplete."""

    type = EventType.ANSWER_CUT
    pass_number: int
    cut_off: str


@dataclass(frozen=True)
class AnswerUnusable(RunEvent):
    """A complete or partial response is unusable; its usage counts like that of a pass.

    Attributes:
        text: its readable part, if it was cut off.
    """

    type = EventType.ANSWER_UNUSABLE
    pass_number: int
    code: str
    reason: str
    input_tokens: int
    output_tokens: int
    usage_estimated: bool
    cost: float | None
    text: str | None = None
    duration_ms: int = 0


@dataclass(frozen=True)
class ProviderDelayed(RunEvent):
    """The provider failed and will be tried again."""

    type = EventType.PROVIDER_DELAYED
    code: str
    reason: str
    tries: int
    retry_at: str


@dataclass(frozen=True)
class HistoryShortened(RunEvent):
    """A request was shortened further than the one before it."""

    type = EventType.HISTORY_SHORTENED
    pass_number: int
    results: int
    texts: int
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True)
class UsageReported(RunEvent):
    """The server reported the usage of a pass that had been estimated."""

    type = EventType.USAGE_REPORTED
    pass_number: int
    input_tokens: int
    output_tokens: int
    cost: float | None


@dataclass(frozen=True)
class RequestAdapted(RunEvent):
    """Requests of the run differ from the usual form, because the model's server refuses that.

    Attributes:
        changes: the differences in words: `without temperature`.
    """

    type = EventType.REQUEST_ADAPTED
    pass_number: int
    changes: list[str]
