"""Asks OpenAI and every server that speaks its Chat Completions, through the official SDK's own request path."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
from openai import APIStatusError, OpenAI, Stream
from typing_extensions import override

from agents.providers.base import ModelRequest, ProviderConfig, ProviderError
from agents.providers.failures import from_status
from agents.providers.over_http import HttpProvider, check_address, encoded, merged_body, unreadable
from agents.providers.reading import Reading, Received
from agents.providers.streams import read_completion
from agents.providers.transport import WatchedTransport
from agents.providers.wire_names import WireNames
from tools.contract import PrivateHosts

DEFAULT_BASE_URL = "https://api.openai.com/v1"
_NO_KEY = "none"


class Endpoint:
    """One address and key: the SDK's client with its connections, and the fields that we learnt to leave out."""

    def __init__(self, base_url: str, api_key: str, private_hosts: PrivateHosts) -> None:
        self.api_key = api_key
        self.refuses: frozenset[str] = frozenset()
        self.client = OpenAI(
            base_url=base_url,
            api_key=api_key or _NO_KEY,
            max_retries=0,
            timeout=None,
            http_client=httpx2.Client(
                transport=WatchedTransport(base_url, private_hosts), timeout=None, follow_redirects=False
            ),
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
            raise unreadable(error, self.api_key) from error

    def _learn(self, status: int, text: str) -> None:
        if status not in (400, 422):
            return
        if "stream_options" in text or "include_usage" in text:
            self.refuses |= {"stream_options"}
        if "max_tokens" in text and "max_completion_tokens" in text:
            self.refuses |= {"max_tokens"}


@functools.lru_cache(maxsize=64)
def endpoint_for(base_url: str, api_key: str, private_hosts: PrivateHosts) -> Endpoint:
    """The endpoint of this address and key, shared by all threads; raises ProviderError for what can never work."""
    check_address(base_url, api_key)
    return Endpoint(base_url, api_key, private_hosts)


class OpenAIProvider(HttpProvider):
    """A Provider over Chat Completions.

    A few servers refuse `stream_options`, by which the usage of a stream is asked for, and some models `max_tokens`
    under its older name: then it is asked again otherwise, and the endpoint remembers.
    """

    def __init__(self, config: ProviderConfig) -> None:
        super().__init__(config, config.base_url or DEFAULT_BASE_URL)
        self._endpoint = endpoint_for(self._base_url, config.api_key, config.private_hosts)
        self._streams = bool(config.options.get("stream", True))
        self._include_usage = bool(config.options.get("include_usage", True))

    @override
    def _send(self, request: ModelRequest, names: WireNames) -> httpx2.Response:
        while True:
            known = self._endpoint.refuses
            try:
                return self._endpoint.post(encoded(self._body(request, names, known)))
            except ProviderError:
                if self._endpoint.refuses == known:
                    raise

    @override
    def _read(self, reading: Reading, chunks: Iterator[bytes]) -> Received:
        return read_completion(reading, chunks)

    @override
    def _check(self) -> None:
        """List the models; a server without that list is asked for an answer in a way that it refuses at no cost."""
        try:
            self._json_of(self._endpoint.get("/models"))
        except ProviderError as error:
            if error.code != "not_found":
                raise
            self._check_completions()

    def _check_completions(self) -> None:
        try:
            self._endpoint.post(b"{}").close()
        except ProviderError as error:
            if error.code != "refused":
                raise

    def _body(self, request: ModelRequest, names: WireNames, refused: frozenset[str]) -> dict[str, Any]:
        settings = self._config.settings
        limit = "max_completion_tokens" if "max_tokens" in refused else "max_tokens"
        wished = {"temperature": settings.temperature, limit: settings.max_tokens}
        ours: dict[str, Any] = {
            "model": request.model,
            "messages": names.messages(request.messages),
            "tools": [] if request.closing else names.definitions(request.tools),
            "stream": self._streams,
        }
        if self._streams and self._include_usage and "stream_options" not in refused:
            ours["stream_options"] = {"include_usage": True}
        given = {name: value for name, value in wished.items() if value is not None}
        return merged_body({**settings.body, **given}, ours)
