"""What providers over HTTP share: one answer under one watch, quick tries again, and bodies as JSON."""

import json
import math
import random
import threading
import time
import urllib.parse
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx2

from agents.providers.answers import response_from
from agents.providers.base import ModelRequest, ModelResponse, ProviderConfig, ProviderError, Usage
from agents.providers.failures import bad_answer, quote
from agents.providers.reading import Reading, Received
from agents.providers.transport import Watch, refusal_of, watching
from agents.providers.wire_names import WireNames, table_for

DEFAULT_RETRIES = 1
RETRY_PAUSE_S = 0.3
CHECK_S = 10.0
TOKENS_OF_A_CHARACTER = 0.3
_WORTH_A_QUICK_RETRY = frozenset({"unreachable", "server_error"})


class HttpProvider(ABC):
    """A Provider of which a kind says how it sends a request and how it reads the answer.

    Tries again quickly only while nothing was received; long patience is the caller's.
    """

    def __init__(self, config: ProviderConfig, base_url: str) -> None:
        self._config = config
        self._base_url = base_url
        self._retries = int(config.options.get("max_retries", DEFAULT_RETRIES))

    def ask(self, request: ModelRequest, on_text: Callable[[str], None], stopped: threading.Event) -> ModelResponse:
        """Answer one pass, as the protocol says."""
        names = table_for(tuple(tool["function"]["name"] for tool in request.tools))
        watch = Watch(min(request.deadline, time.monotonic() + self._config.timeout_s), stopped)
        with watching(watch):
            watch.check()
            response = self._send_patiently(request, names, watch)
            tail = None
            try:
                reading = Reading(watch, names.offers, self._config.api_key, on_text, response.close)
                received = self._read(reading, response.iter_bytes())
                tail = received.tail
            except httpx2.HTTPError as error:
                raise unreadable(error, self._config.api_key) from error
            finally:
                if tail is None:
                    response.close()
        usage = received.usage or estimate(request, received.message)
        late_usage = tail if usage.is_estimated else None
        answer = response_from(replace(received, usage=usage), names, _used_ids(request.messages))
        return replace(answer, late_usage=late_usage)

    def check(self) -> None:
        """Ask for something that costs nothing."""
        with watching(Watch(time.monotonic() + CHECK_S, threading.Event())):
            self._check()

    def refusal(self, seconds: float) -> str:
        """Say why connecting to the provider's address is not allowed."""
        return refusal_of(self._base_url, self._config.private_hosts, seconds)

    @abstractmethod
    def _send(self, request: ModelRequest, names: WireNames) -> httpx2.Response:
        """Ask once; the response has status 2xx, and its body is still unread."""

    @abstractmethod
    def _read(self, reading: Reading, chunks: Iterator[bytes]) -> Received: ...

    @abstractmethod
    def _check(self) -> None: ...

    def _send_patiently(self, request: ModelRequest, names: WireNames, watch: Watch) -> httpx2.Response:
        tries_left = self._retries
        while True:
            try:
                return self._send(request, names)
            except ProviderError as error:
                is_worth_it = error.transient and error.code in _WORTH_A_QUICK_RETRY and error.retry_after is None
                if tries_left <= 0 or not is_worth_it:
                    raise
            tries_left -= 1
            watch.pause(RETRY_PAUSE_S * (0.5 + random.random()))

    def _json_of(self, response: httpx2.Response) -> Any:
        """The whole body of a checked server's answer."""
        try:
            return json.loads(response.read())
        except ValueError as error:
            shown = quote(response.text[:2000], self._config.api_key)
            raise bad_answer(
                f"{self._base_url} does not answer like a model's server: {shown}", transient=False
            ) from error
        except httpx2.HTTPError as error:
            raise unreadable(error, self._config.api_key) from error
        finally:
            response.close()


def check_address(base_url: str, api_key: str) -> None:
    """Raise ProviderError for an address or a key that can never work."""
    try:
        scheme = urllib.parse.urlsplit(base_url).scheme
        httpx2.URL(base_url)
    except (ValueError, httpx2.InvalidURL) as error:
        raise ProviderError("bad_settings", f"base_url {base_url!r} is no address: {error}", transient=False) from error
    if scheme not in ("http", "https"):
        raise ProviderError(
            "bad_settings", f"base_url {base_url!r} must start with http:// or https://", transient=False
        )
    if not (api_key.isascii() and api_key.isprintable()) or " " in api_key:
        raise ProviderError("bad_settings", "The API key holds characters that no key has", transient=False)


def estimate(request: ModelRequest, answer: dict[str, Any]) -> Usage:
    """Estimate the usage of an answer whose server reports none."""
    asked = json.dumps([request.messages, request.tools], ensure_ascii=False)
    answered = json.dumps(answer, ensure_ascii=False)
    tokens = [math.ceil(len(text) * TOKENS_OF_A_CHARACTER) for text in (asked, answered)]
    return Usage(tokens[0], tokens[1], is_estimated=True)


def merged_body(extra: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
    """What is sent: ours wins over the extra fields, and where ours is empty the field is left out."""
    return {name: value for name, value in {**extra, **ours}.items() if name not in ours or value}


def encoded(body: dict[str, Any]) -> bytes:
    """The body as JSON; raises ProviderError for what JSON cannot say."""
    try:
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (ValueError, TypeError) as error:
        raise ProviderError("refused", f"The request cannot be written as JSON: {error}", transient=False) from error
    return text.encode("utf-8", "replace")


def unreadable(error: Exception, secret: str) -> ProviderError:
    """The failure behind what the HTTP client could not make sense of."""
    return bad_answer(f"The answer cannot be read: {quote(str(error), secret)}")


def _used_ids(messages: list[dict[str, Any]]) -> Iterator[str]:
    """Ids of earlier calls: some servers count from call_0 again in every pass."""
    return (message["tool_call_id"] for message in messages if "tool_call_id" in message)
