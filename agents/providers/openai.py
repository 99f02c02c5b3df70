"""The provider for OpenAI and every server that offers Chat Completions, through the official SDK."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
from openai import APIStatusError, OpenAI, Stream
from typing_extensions import override

from agents.providers.answer_reader import AnswerReader, ReceivedAnswer
from agents.providers.base import ModelRequest, ProviderConfig, ProviderError
from agents.providers.http_provider import HttpProvider, build_unreadable_error, check_address, encode_body, merge_body
from agents.providers.openai_streams import read_completion
from agents.providers.server_errors import build_status_error
from agents.providers.transport import GuardedTransport
from agents.providers.wire_names import WireNames
from tools.contract import PrivateHosts

DEFAULT_BASE_URL = "https://api.openai.com/v1"
_NO_KEY = "none"


class OpenAIEndpoint:
    """An address and key: the SDK's client with its connections, and the fields that the server has refused."""

    def __init__(self, base_url: str, api_key: str, private_hosts: PrivateHosts) -> None:
        self.api_key = api_key
        self.refused_fields: frozenset[str] = frozenset()
        self.client = OpenAI(
            base_url=base_url,
            api_key=api_key or _NO_KEY,
            max_retries=0,
            timeout=None,
            http_client=httpx2.Client(
                transport=GuardedTransport(base_url, private_hosts), timeout=None, follow_redirects=False
            ),
        )

    def post(self, content: bytes) -> httpx2.Response:
        """Send the body; return the response with its body still unread.

        Raises:
            ProviderError: the status is not 2xx.
        """
        return self._send(
            lambda: self.client.post(
                "/chat/completions", content=content, cast_to=object, stream=True, stream_cls=Stream[object]
            )
        )

    def get(self, path: str) -> httpx2.Response:
        """Request the path; return the response with its body still unread."""
        return self._send(lambda: self.client.get(path, cast_to=object, stream=True, stream_cls=Stream[object]))

    def _send(self, send: Callable[[], Stream[object]]) -> httpx2.Response:
        try:
            return send().response
        except APIStatusError as error:
            body = error.body if error.body is not None else error.response.text
            self._learn(error.status_code, error.response.text)
            raise build_status_error(error.status_code, body, error.response.headers, self.api_key) from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise build_unreadable_error(error, self.api_key) from error

    def _learn(self, status: int, text: str) -> None:
        if status not in (400, 422):
            return
        if "stream_options" in text or "include_usage" in text:
            self.refused_fields |= {"stream_options"}
        if "max_tokens" in text and "max_completion_tokens" in text:
            self.refused_fields |= {"max_tokens"}


@functools.lru_cache(maxsize=64)
def get_endpoint(base_url: str, api_key: str, private_hosts: PrivateHosts) -> OpenAIEndpoint:
    """Return the endpoint of this address and key, shared by all threads.

    Raises:
        ProviderError: the address or key can never work.
    """
    check_address(base_url, api_key)
    return OpenAIEndpoint(base_url, api_key, private_hosts)


class OpenAIProvider(HttpProvider):
    """A provider over Chat Completions.

    A few servers refuse `stream_options`, which asks for the usage of a stream, and some models the older `max_tokens`.
    Then the request is repeated in another form, and the endpoint remembers that.
    """

    def __init__(self, config: ProviderConfig) -> None:
        super().__init__(config, config.base_url or DEFAULT_BASE_URL)
        self._endpoint = get_endpoint(self._base_url, config.api_key, config.private_hosts)
        self._streams = bool(config.options.get("stream", True))
        self._include_usage = bool(config.options.get("include_usage", True))

    @override
    def _send(self, request: ModelRequest, names: WireNames) -> httpx2.Response:
        while True:
            known = self._endpoint.refused_fields
            try:
                return self._endpoint.post(encode_body(self._build_body(request, names, known)))
            except ProviderError:
                if self._endpoint.refused_fields == known:
                    raise

    @override
    def _read(self, reader: AnswerReader, chunks: Iterator[bytes]) -> ReceivedAnswer:
        return read_completion(reader, chunks)

    @override
    def _check(self) -> None:
        """List the models; if the server has no such list, send a request that it refuses without cost."""
        try:
            self._read_json(self._endpoint.get("/models"))
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

    def _build_body(self, request: ModelRequest, names: WireNames, refused: frozenset[str]) -> dict[str, Any]:
        settings = self._config.settings
        limit = "max_completion_tokens" if "max_tokens" in refused else "max_tokens"
        settings_by_name = {"temperature": settings.temperature, limit: settings.max_tokens}
        ours: dict[str, Any] = {
            "model": request.model,
            "messages": names.rename_messages(request.messages),
            "tools": [] if request.closing else names.rename_definitions(request.tools),
            "stream": self._streams,
        }
        if self._streams and self._include_usage and "stream_options" not in refused:
            ours["stream_options"] = {"include_usage": True}
        given = {name: value for name, value in settings_by_name.items() if value is not None}
        return merge_body({**settings.body, **given}, ours)
