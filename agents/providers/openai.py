"""Asks OpenAI and every server that speaks its Chat Completions, through the official SDK's own request path."""

import functools
import json
import random
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
from openai import APIStatusError, OpenAI, Stream

from agents.providers.answers import response_from
from agents.providers.base import ModelRequest, ModelResponse, ProviderConfig, ProviderError
from agents.providers.failures import bad_answer, from_status, quote
from agents.providers.streams import Reader, Received
from agents.providers.transport import Watch, WatchedTransport, watching
from agents.providers.wire_names import WireNames, table_for

DEFAULT_BASE_URL = "https://api.openai.com/v1"
DEFAULT_RETRIES = 1
RETRY_PAUSE_S = 0.3
CHECK_S = 10.0
_NO_KEY = "none"
_WORTH_A_QUICK_RETRY = frozenset({"unreachable", "server_error"})


class Endpoint:
    """One address and key: the SDK's client with its connections, and what we learnt about the server."""

    def __init__(self, base_url: str, api_key: str) -> None:
        self.api_key = api_key
        self.takes_stream_options = True
        self.client = OpenAI(
            base_url=base_url,
            api_key=api_key or _NO_KEY,
            max_retries=0,
            timeout=None,
            http_client=httpx2.Client(transport=WatchedTransport(base_url), timeout=None, follow_redirects=False),
        )

    def post(self, content: bytes) -> httpx2.Response:
        """The response with its body still unread; raises ProviderError for every status but 2xx."""
        return self._named(
            lambda: self.client.post(
                "/chat/completions", content=content, cast_to=object, stream=True, stream_cls=Stream[object]
            )
        )

    def get(self, path: str) -> httpx2.Response:
        return self._named(lambda: self.client.get(path, cast_to=object, stream=True, stream_cls=Stream[object]))

    def _named(self, send: Callable[[], Stream[object]]) -> httpx2.Response:
        try:
            return send().response
        except APIStatusError as error:
            body = error.body if error.body is not None else error.response.text
            self._learn(error.status_code, error.response.text)
            raise from_status(error.status_code, body, error.response.headers, self.api_key) from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise bad_answer(f"The answer cannot be read: {quote(str(error), self.api_key)}") from error

    def _learn(self, status: int, text: str) -> None:
        if status in (400, 422) and ("stream_options" in text or "include_usage" in text):
            self.takes_stream_options = False


@functools.lru_cache(maxsize=64)
def endpoint_for(base_url: str, api_key: str) -> Endpoint:
    """The endpoint of this address and key, shared by all threads; raises ProviderError for what can never work."""
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
    return Endpoint(base_url, api_key)


class OpenAIProvider:
    """A Provider over Chat Completions.

    Usage of a stream is asked for with `stream_options`, which a few servers refuse: then it is asked again without,
    and the endpoint remembers. Tries again quickly only while nothing was received; long patience is the caller's.
    """

    def __init__(self, config: ProviderConfig) -> None:
        self._base_url = config.base_url or DEFAULT_BASE_URL
        self._api_key = config.api_key
        self._timeout_s = config.timeout_s
        self._retries = int(config.options.get("max_retries", DEFAULT_RETRIES))
        self._streams = bool(config.options.get("stream", True))
        self._include_usage = bool(config.options.get("include_usage", True))
        self._extra_body: dict[str, Any] = config.options.get("body") or {}

    def ask(self, request: ModelRequest, on_text: Callable[[str], None], stopped: threading.Event) -> ModelResponse:
        names = table_for(tuple(tool["function"]["name"] for tool in request.tools))
        entered = time.monotonic()
        endpoint = endpoint_for(self._base_url, self._api_key)
        made_at = time.monotonic()  # making the first client of an address is our time, not the server's
        watch = Watch(min(request.deadline + made_at - entered, made_at + self._timeout_s), stopped)
        with watching(watch):
            watch.check()
            response = self._open(endpoint, self._body(request, names), watch)
            try:
                reader = Reader(watch, names.offers, self._api_key, on_text)
                received = self._read(reader, response)
            finally:
                response.close()
        return response_from(received, names, _used_ids(request.messages))

    def check(self) -> None:
        """List the models; a server without that list is asked for an answer in a way that it refuses at no cost."""
        endpoint = endpoint_for(self._base_url, self._api_key)
        watch = Watch(time.monotonic() + CHECK_S, threading.Event())
        with watching(watch):
            try:
                self._check_models(endpoint.get("/models"))
            except ProviderError as error:
                if error.code != "not_found":
                    raise
                self._check_completions(endpoint)

    def _check_models(self, response: httpx2.Response) -> None:
        try:
            body = response.read()
            json.loads(body)
        except ValueError as error:
            shown = quote(response.text[:2000], self._api_key)
            raise bad_answer(
                f"{self._base_url} does not answer like a model's server: {shown}", transient=False
            ) from error
        finally:
            response.close()

    def _check_completions(self, endpoint: Endpoint) -> None:
        try:
            endpoint.post(b"{}").close()
        except ProviderError as error:
            if error.code != "refused":
                raise

    def _body(self, request: ModelRequest, names: WireNames) -> dict[str, Any]:
        body = {**self._extra_body, "model": request.model, "messages": names.messages(request.messages)}
        if request.tools and not request.closing:
            body["tools"] = names.definitions(request.tools)
        if self._streams:
            body["stream"] = True
        return body

    def _open(self, endpoint: Endpoint, body: dict[str, Any], watch: Watch) -> httpx2.Response:
        tries_left = self._retries
        while True:
            asks_usage = self._streams and self._include_usage and endpoint.takes_stream_options
            usage = {"stream_options": {"include_usage": True}} if asks_usage else {}
            try:
                return endpoint.post(_encoded({**body, **usage}))
            except ProviderError as error:
                if asks_usage and not endpoint.takes_stream_options:
                    continue
                if tries_left <= 0 or error.retry_after is not None or error.code not in _WORTH_A_QUICK_RETRY:
                    raise
                if not error.transient:
                    raise
            tries_left -= 1
            watch.pause(RETRY_PAUSE_S * (0.5 + random.random()))

    def _read(self, reader: Reader, response: httpx2.Response) -> Received:
        try:
            return reader.read(response.iter_bytes())
        except httpx2.HTTPError as error:
            raise bad_answer(f"The answer cannot be read: {quote(str(error), self._api_key)}") from error


def _encoded(body: dict[str, Any]) -> bytes:
    try:
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (ValueError, TypeError) as error:
        raise ProviderError("refused", f"The request cannot be written as JSON: {error}", transient=False) from error
    return text.encode("utf-8", "replace")


def _used_ids(messages: list[dict[str, Any]]) -> Iterator[str]:
    """Ids of earlier calls: some servers count from call_0 again in every pass."""
    return (message["tool_call_id"] for message in messages if "tool_call_id" in message)
