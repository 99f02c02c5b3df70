"""The protocol of providers: requests, responses, settings and errors. It is plain Python without
Django."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from tools.contract import PrivateHosts

CONTINUE_REQUEST = "Please continue."
"""The message that is added to a run when a person allows it more passes."""


@dataclass(frozen=True)
class CallOutcome:
    """An earlier tool call of the run, for providers that follow a script; passes are numbered from
    1."""

    pass_number: int
    index: int
    tool: str
    params: dict[str, Any]
    status: str
    """One of succeeded, failed, denied, expired, cancelled, rejected and duplicate."""
    success: bool
    data: Any
    summary: str
    reason: str
    """The reason that a person gave for a denial, or the message of the error."""


def no_outcomes() -> Sequence[CallOutcome]:
    """Return an empty list of outcomes, for requests without earlier calls."""
    return ()


@dataclass(frozen=True)
class ModelRequest:
    """A request for the response of one pass.

    Attributes:
        messages: the history in the format of Chat Completions.
        tools: the definitions of the tools, with their internal dotted names.
        deadline: the value of `time.monotonic()` after which the provider gives up.
        closing: True to request an answer without calls.
        outcomes: a function that returns the earlier calls, for providers that need them.
    """

    model: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    deadline: float
    closing: bool = False
    outcomes: Callable[[], Sequence[CallOutcome]] = no_outcomes


@dataclass(frozen=True)
class RequestedCall:
    """A call that the model requests. `tool` is the tool's internal name, or an unknown name
    unchanged; `arguments` are raw JSON."""

    provider_call_id: str
    tool: str
    arguments: str


@dataclass(frozen=True)
class Usage:
    """The tokens of one request and its response. They are estimated if the server did not report
    them.

    Attributes:
        cached_tokens: the input tokens that the server had in its cache.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    is_estimated: bool = False
    cached_tokens: int = 0

    @property
    def total(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True)
class ContextWindow:
    """A model's limit and a request's size, in tokens, as a server named them when it refused the
    request as too long; 0 for a number that it did not name."""

    limit: int = 0
    requested: int = 0


class LateUsage(Protocol):
    """The usage of a complete response, if the response's server may still report it."""

    def then(self, take: Callable[[Usage], None]) -> None:
        """Call `take` with the usage as soon as it arrives, in any thread. If no usage arrives,
        `take` is never called."""

    def wait(self) -> Usage | None:
        """Wait for the usage and return it; return None if it can no longer arrive."""


class CutOff(StrEnum):
    """The reason why a response is incomplete."""

    NOTHING = ""
    """The response is complete."""
    LENGTH = "length"
    FILTER = "content_filter"


@dataclass(frozen=True)
class ModelResponse:
    """A model's response.

    Attributes:
        message: the message to store, and to send back unchanged; each of its calls has an id that
            is unique and not empty.
        thought: the text between <think> tags, which `message` and `text` do not contain.
        late_usage: the usage that the server may still report while `usage` is an estimate; None if
            there is none.
        adaptations: the changes to the usual request that were needed because the server refused
            it, in words.
        learned: the adaptations that were learned from this request.
    """

    message: dict[str, Any]
    text: str
    calls: tuple[RequestedCall, ...]
    usage: Usage
    thought: str = ""
    cut_off: CutOff = CutOff.NOTHING
    late_usage: LateUsage | None = None
    adaptations: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()


class ProviderError(Exception):
    """The provider could not return a response.

    Attributes:
        code: one of rate_limited, quota_exhausted, server_error, unreachable, timeout, cut_stream,
            bad_answer, bad_key, not_found, refused, context_too_long, bad_settings, bad_script,
            answer_cut, answer_filtered, call_as_text, missing_call, empty_answer.
        transient: True if a retry can help.
        retry_after: the number of seconds that the server asked us to wait.
        most_tries: the maximum number of attempts if responses are unusable; None for the usual
            number.
        usage: the usage of a complete or partial response that is unusable.
        duration_ms: the time from the request to the failure.
        text: the text of a response that was cut off.
        window: the limit that the server named, if the request is too long.
    """

    most_tries: int | None = None
    usage: Usage | None = None
    duration_ms: int = 0
    text: str = ""
    window: "ContextWindow | None" = None

    def __init__(
        self, code: str, message: str, *, transient: bool, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.transient = transient
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class ProviderStopped(Exception):
    """The response was abandoned because the caller set `stopped`. No part of it may be recorded.

    Attributes:
        usage: the usage of the received part.
        duration_ms: the time from the request to the end.
    """

    usage: Usage | None = None
    duration_ms: int = 0


class Provider(Protocol):
    """A source of model responses."""

    def ask(
        self, request: ModelRequest, on_text: Callable[[str], None], stopped: threading.Event
    ) -> ModelResponse:
        """Return the response for one pass. Streamed text is passed to `on_text` piece by piece.

        Raises:
            ProviderError, ProviderStopped
        """

    def explain_refusal(self, seconds: float) -> str | None:
        """Return the reason why connecting is not allowed; None if it is allowed, or if finding the
        host takes longer than `seconds`."""

    def check(self) -> str:
        """Send a free request to check that the provider works with these settings. Return a
        warning, or an empty text.

        Raises:
            ProviderError
        """


@dataclass(frozen=True)
class ModelSettings:
    """Settings for a model's responses; None leaves the choice to the server.

    Attributes:
        num_ctx: the context window in tokens, which only Ollama needs.
        body: fields that are merged into every request; they cannot replace the conversation or the
            tools.
    """

    temperature: float | None = None
    max_tokens: int | None = None
    num_ctx: int | None = None
    body: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ProviderConfig:
    """The configuration of a provider.

    Attributes:
        timeout_s: the longest silence, in seconds, while a response streams.
        answer_timeout_s: the time limit, in seconds, for one complete response; the request's own
            deadline applies too.
        models: the names of models that `check` looks for, if the server lists its models.
        scripts_dir: the folder with the files of scripts, for kind "scripted".
        private_hosts: the servers at private addresses to which connections are allowed.
        options: max_retries (quick retries while nothing was received, default 1); for kind
            "openai" also stream and include_usage (both default true).
    """

    kind: str
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    scripts_dir: Path = Path()
    timeout_s: float = 120
    answer_timeout_s: float = 1800
    settings: ModelSettings = ModelSettings()
    models: tuple[str, ...] = ()
    private_hosts: PrivateHosts = field(default_factory=PrivateHosts)
    options: dict[str, Any] = field(default_factory=dict)
