"""The events about requests to models and about their responses."""

from dataclasses import dataclass

from agents.runs.events import RunEvent
from agents.runs.models import EventType


@dataclass(frozen=True)
class AssistantMessage(RunEvent):
    """The model wrote a text."""

    type = EventType.ASSISTANT_MESSAGE
    text: str
    pass_number: int


@dataclass(frozen=True)
class AssistantThought(RunEvent):
    """The model sent reasoning, which is cut to the length that the panel shows."""

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
    """A complete or partial response was unusable; its usage is counted like that of a pass.

    Attributes:
        text: the received text, if the response was cut off.
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
    """A request was shortened further than the previous request."""

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
    """Requests of the run were adapted, because the model server refuses their usual form.

    Attributes:
        changes: the adaptations in words, such as `without temperature`.
    """

    type = EventType.REQUEST_ADAPTED
    pass_number: int
    changes: list[str]
