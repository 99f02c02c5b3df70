"""What every provider is given, what it answers and how it fails; plain Python without Django."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from tools.contract import PrivateHosts

GO_ON = "Please go on."
"""What a person says to a run by giving it more passes."""


@dataclass(frozen=True)
class CallOutcome:
    """One earlier tool call of the run, for providers that follow a script; passes are numbered from 1."""

    pass_number: int
    index: int
    tool: str
    params: dict[str, Any]
    status: str
    """succeeded, failed, denied, expired, cancelled, rejected or duplicate"""
    success: bool
    data: Any
    summary: str
    reason: str
    """the person's reason of a denial, or the error's message"""


def no_outcomes() -> Sequence[CallOutcome]:
    return ()


@dataclass(frozen=True)
class ModelRequest:
    """One pass to be answered.

    `messages` have the shape of Chat Completions, `tools` are definitions with the internal dotted names, `deadline`
    is a value of `time.monotonic()` after which the provider gives up by itself. `closing` asks for an answer without
    calls. `outcomes` is called only by a provider that wants them.
    """

    model: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    deadline: float
    closing: bool = False
    outcomes: Callable[[], Sequence[CallOutcome]] = no_outcomes


@dataclass(frozen=True)
class RequestedCall:
    """A call that the model asks for: the internal tool name (an unknown one as it came) and the raw JSON text."""

    provider_call_id: str
    tool: str
    arguments: str


@dataclass(frozen=True)
class Usage:
    """The tokens of one answer; `is_estimated` if its server did not report them."""

    input_tokens: int = 0
    output_tokens: int = 0
    is_estimated: bool = False

    @property
    def total(self) -> int:
        return self.input_tokens + self.output_tokens


class LateUsage(Protocol):
    """The usage of a complete answer, which its server may still report."""

    def then(self, take: Callable[[Usage], None]) -> None:
        """Call `take` with the usage once it comes, in any thread; never if it does not come."""

    def wait(self) -> Usage | None:
        """Return the usage, or None once it can no longer come."""


class CutOff(StrEnum):
    """The reason why an answer is incomplete."""

    NOTHING = ""
    """It is complete."""
    LENGTH = "length"
    FILTER = "content_filter"


@dataclass(frozen=True)
class ModelResponse:
    """A model's answer; `message` is stored and sent back unchanged, ids are unique and not empty.

    `thought` is what the model wrote between <think> tags: it is part of neither the message nor the text. `late_usage`
    is there while `usage` is an estimate that its server may still correct.
    """

    message: dict[str, Any]
    text: str
    calls: tuple[RequestedCall, ...]
    usage: Usage
    thought: str = ""
    cut_off: CutOff = CutOff.NOTHING
    late_usage: LateUsage | None = None


class ProviderError(Exception):
    """The provider could not answer.

    `code` is one of rate_limited, quota_exhausted, server_error, unreachable, timeout, cut_stream, bad_answer, bad_key,
    not_found, refused, context_too_long, bad_settings, bad_script, answer_cut, answer_filtered. `transient` is True
    where trying again later can help, and `most_tries` how often at most; `retry_after` is what the server asked for,
    in seconds. `usage` is that of the unusable answer.
    """

    most_tries: int | None = None
    usage: Usage | None = None

    def __init__(self, code: str, message: str, *, transient: bool, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.transient = transient
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class ProviderStopped(Exception):
    """`stopped` was set: the answer was given up at once and nothing of it may be recorded."""


class Provider(Protocol):
    def ask(self, request: ModelRequest, on_text: Callable[[str], None], stopped: threading.Event) -> ModelResponse:
        """Answer one pass; streamed text goes to `on_text` piece by piece. Raises ProviderError or ProviderStopped."""

    def refusal(self, seconds: float) -> str:
        """Say why connecting to it is not allowed; empty if it is, or if its host is not found in this time."""

    def check(self) -> None:
        """See cheaply whether the provider can be reached with these settings; raises ProviderError."""


@dataclass(frozen=True)
class ModelSettings:
    """How the model is asked to answer; its server decides about what is None.

    `num_ctx` is the length of the context in tokens, which only Ollama is told. `body` is merged into every request
    and replaces neither the conversation nor the tools.
    """

    temperature: float | None = None
    max_tokens: int | None = None
    num_ctx: int | None = None
    body: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ProviderConfig:
    """The configuration for reaching a model.

    `timeout_s` is the longest time for one whole answer; the request's own deadline counts too. `models` are the names
    that `check` looks for where the server lists what it has. `options` of a server: max_retries (quick tries again
    before anything was received, default 1); of kind "openai" also stream and include_usage (both default true).
    `private_hosts` are the servers outside of the public network that may be connected to.
    """

    kind: str
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    script: str = ""
    timeout_s: float = 120
    settings: ModelSettings = ModelSettings()
    models: tuple[str, ...] = ()
    private_hosts: PrivateHosts = field(default_factory=PrivateHosts)
    options: dict[str, Any] = field(default_factory=dict)
