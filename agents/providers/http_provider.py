"""The base class of providers over HTTP: requests with quick retries, cancellation and JSON
bodies."""

import json
import math
import random
import threading
import time
import urllib.parse
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import httpx2

from agents.providers.base import (
    ModelRequest,
    ModelResponse,
    ProviderConfig,
    ProviderError,
    ProviderStopped,
    Usage,
)
from agents.providers.content_text import extract_text
from agents.providers.reasoning_text import split_reasoning
from agents.providers.response_reader import RawResponse, ResponseProgress, ResponseReader
from agents.providers.responses import build_response
from agents.providers.server_errors import build_response_error, quote
from agents.providers.transport import CancelScope, explain_refusal
from agents.providers.unusable_responses import MAX_TRIES
from agents.providers.wire_names import WireNames, get_wire_names
from tools.network.transport import within

DEFAULT_RETRIES = 1
RETRY_PAUSE_S = 0.3
CHECK_S = 10.0
TOKENS_PER_CHARACTER = 0.3
_WORTH_A_QUICK_RETRY = frozenset({"unreachable", "server_error"})


@dataclass(frozen=True)
class SentRequest:
    """A request that the server accepted. Its response has a status 2xx and a body that has not
    been read.

    Attributes:
        adaptations, learned: see `ModelResponse`.
    """

    response: httpx2.Response
    adaptations: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()


class HttpProvider(ABC):
    """A provider over HTTP. Subclasses send the request and read the response.

    A failed request is retried only after a short pause, and only if nothing was received. The
    caller decides about longer waits.
    """

    def __init__(self, config: ProviderConfig, base_url: str) -> None:
        self._config = config
        self._base_url = base_url
        self._retries = int(config.options.get("max_retries", DEFAULT_RETRIES))

    def ask(
        self, request: ModelRequest, on_text: Callable[[str], None], stopped: threading.Event
    ) -> ModelResponse:
        """Return the response for one pass, as `Provider.ask` specifies."""
        names = get_wire_names(tuple(tool["function"]["name"] for tool in request.tools))
        scope = CancelScope(
            min(request.deadline, time.monotonic() + self._config.answer_timeout_s), stopped
        )
        progress = ResponseProgress()
        try:
            with within(scope):
                scope.check()
                sent = self._send_with_retries(request, names, scope)
                close = sent.response.close
                reader = ResponseReader(
                    scope, names.is_offered, self._config.api_key, on_text, close, progress
                )
                received = self._read_response(sent.response, reader)
        except (ProviderError, ProviderStopped) as error:
            _keep_progress(error, request, progress)
            raise
        usage = received.usage or estimate_usage(request, received.message)
        late_usage = received.rest if usage.is_estimated else None
        received = replace(received, usage=usage)
        response = build_response(received, names, _find_used_ids(request.messages), request.tools)
        return replace(
            response, late_usage=late_usage, adaptations=sent.adaptations, learned=sent.learned
        )

    def _read_response(self, response: httpx2.Response, reader: ResponseReader) -> RawResponse:
        """Read the response. Close it unless another thread is still reading the rest of it."""
        rest = None
        try:
            received = self._read(reader, response.iter_bytes())
            rest = received.rest
        except httpx2.HTTPError as error:
            raise build_unreadable_error(error, self._config.api_key) from error
        finally:
            if rest is None:
                response.close()
        return received

    def check(self) -> str:
        """Check the server with a free request, as `Provider.check` specifies."""
        limit_s = min(CHECK_S, self._config.timeout_s)
        with within(CancelScope(time.monotonic() + limit_s, threading.Event())):
            return self._check()

    def explain_refusal(self, seconds: float) -> str | None:
        """Return the reason why connecting to the provider's address is not allowed; None if it is
        allowed, or if finding the host takes longer than `seconds`."""
        return explain_refusal(self._base_url, self._config.private_hosts, seconds)

    @abstractmethod
    def _send(self, request: ModelRequest, names: WireNames, scope: CancelScope) -> SentRequest:
        """Send the request, and send it again in each form that a refusal requires."""

    @abstractmethod
    def _read(self, reader: ResponseReader, chunks: Iterator[bytes]) -> RawResponse:
        """Read the response from the chunks of its body."""

    @abstractmethod
    def _check(self) -> str:
        """Send a free request, and check its response; return a warning, or an empty text."""

    def _send_with_retries(
        self, request: ModelRequest, names: WireNames, scope: CancelScope
    ) -> SentRequest:
        tries_left = self._retries
        while True:
            try:
                return self._send(request, names, scope)
            except ProviderError as error:
                is_worth_it = (
                    error.transient
                    and error.code in _WORTH_A_QUICK_RETRY
                    and error.retry_after is None
                )
                if tries_left <= 0 or not is_worth_it:
                    raise
            tries_left -= 1
            scope.pause(RETRY_PAUSE_S * (0.5 + random.random()))

    def _read_json(self, response: httpx2.Response) -> Any:
        """Return the JSON of the response to a check. Raise ProviderError if the response is not
        JSON."""
        try:
            return json.loads(response.read())
        except ValueError as error:
            shown = quote(response.text[:2000], self._config.api_key)
            raise build_response_error(
                f"{self._base_url} does not respond like a model's server: {shown}", transient=False
            ) from error
        except httpx2.HTTPError as error:
            raise build_unreadable_error(error, self._config.api_key) from error
        finally:
            response.close()


def check_address(base_url: str, api_key: str) -> None:
    """Raise ProviderError for an address or a key that can never work."""
    try:
        scheme = urllib.parse.urlsplit(base_url).scheme
        httpx2.URL(base_url)
    except (ValueError, httpx2.InvalidURL) as error:
        raise ProviderError(
            "bad_settings", f"base_url {base_url!r} is not an address: {error}", transient=False
        ) from error
    if scheme not in ("http", "https"):
        raise ProviderError(
            "bad_settings",
            f"base_url {base_url!r} must start with http:// or https://",
            transient=False,
        )
    if not (api_key.isascii() and api_key.isprintable()) or " " in api_key:
        raise ProviderError(
            "bad_settings", "The API key has characters that no key contains", transient=False
        )


def estimate_usage(request: ModelRequest, response: dict[str, Any]) -> Usage:
    """Estimate the tokens of a request and its response from their lengths, for servers that do not
    report the usage."""
    asked = json.dumps([request.messages, request.tools], ensure_ascii=False)
    responded = json.dumps(response, ensure_ascii=False)
    tokens = [math.ceil(len(text) * TOKENS_PER_CHARACTER) for text in (asked, responded)]
    return Usage(tokens[0], tokens[1], is_estimated=True)


def _keep_progress(
    error: ProviderError | ProviderStopped, request: ModelRequest, progress: ResponseProgress
) -> None:
    """Add the usage and the text of the received part to the error. If some text had arrived, allow
    fewer attempts."""
    message = progress.build()
    if isinstance(error, ProviderError) and error.code == "answer_cut" and not message:
        # The server's error quotes the call that it could not parse, so its text is the response.
        message = {"content": error.message}
    if error.usage is None and (
        progress.usage is not None or progress.has_content or message.get("content")
    ):
        error.usage = progress.usage or estimate_usage(request, message)
    if isinstance(error, ProviderError) and progress.has_content:
        error.text = split_reasoning(extract_text(message.get("content"))).content.strip()
        error.most_tries = MAX_TRIES if error.text else error.most_tries


def merge_body(extra: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
    """Merge both dicts into a body. A field in `ours` replaces the same field in `extra`; if its
    value is empty, the field is left out."""
    return {name: value for name, value in {**extra, **ours}.items() if name not in ours or value}


def encode_body(body: dict[str, Any]) -> bytes:
    """Encode the body as JSON.

    Raises:
        ProviderError: JSON cannot express a value.
    """
    try:
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (ValueError, TypeError) as error:
        raise ProviderError(
            "refused", f"The request cannot be written as JSON: {error}", transient=False
        ) from error
    return text.encode("utf-8", "replace")


def build_unreadable_error(error: Exception, secret: str) -> ProviderError:
    """Build the error for a response that the HTTP client cannot read."""
    return build_response_error(f"The response cannot be read: {quote(str(error), secret)}")


def _find_used_ids(messages: list[dict[str, Any]]) -> frozenset[str]:
    """Return the ids of earlier calls. They must not be used again, although some servers start
    from call_0 in every pass."""
    return frozenset(message["tool_call_id"] for message in messages if "tool_call_id" in message)
