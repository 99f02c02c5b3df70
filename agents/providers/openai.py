"""The provider for OpenAI, and for all other servers that offer Chat Completions, through OpenAI's
SDK."""

import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
from openai import APIStatusError, OpenAI, Stream
from typing_extensions import override

from agents.providers.adaptations import MOST_AT_ONCE, Adaptation, find_adaptation
from agents.providers.base import ModelRequest, ProviderConfig, ProviderError
from agents.providers.http_provider import (
    HttpProvider,
    SentRequest,
    build_unreadable_error,
    check_address,
    encode_body,
    merge_body,
)
from agents.providers.openai_streams import read_completion
from agents.providers.response_reader import RawResponse, ResponseReader
from agents.providers.server_errors import ModelServerError, build_status_error
from agents.providers.transport import CancelScope, GuardedTransport
from agents.providers.wire_names import WireNames
from tools.caches import Cache
from tools.contract import PrivateHosts

DEFAULT_BASE_URL = "https://api.openai.com/v1"
_NO_KEY = "none"
MAX_MODELS = 500
"""The maximum number of models of one server for which a process remembers adaptations."""
NO_TOOLS = (
    "But the server says that its model's template does not support tools, so it silently drops them. "
    "Start it with a template that supports tools, or choose another model."
)


class OpenAIEndpoint:
    """A server, identified by its address and key, with the SDK's client and the adaptations that
    were learned for each model."""

    def __init__(self, base_url: str, api_key: str, private_hosts: PrivateHosts) -> None:
        self.api_key = api_key
        self._adaptations: Cache[str, tuple[Adaptation, ...]] = Cache(MAX_MODELS)
        self._lock = threading.Lock()
        self.client = OpenAI(
            base_url=base_url,
            api_key=api_key or _NO_KEY,
            max_retries=0,
            timeout=None,
            http_client=httpx2.Client(
                transport=GuardedTransport(base_url, private_hosts),
                timeout=None,
                follow_redirects=False,
            ),
        )

    def list_adaptations(self, model: str) -> tuple[Adaptation, ...]:
        """List the adaptations for requests to the model, in the order in which they were
        learned."""
        return self._adaptations.get(model) or ()

    def learn(self, model: str, adaptation: Adaptation) -> None:
        """Remember an adaptation for later requests to the model."""
        with self._lock:
            known = self.list_adaptations(model)
            if all(each.field != adaptation.field for each in known):
                self._adaptations.put(model, (*known, adaptation))

    def post(self, content: bytes) -> httpx2.Response:
        """Send the body; return the response, whose body has not been read yet.

        Raises:
            ProviderError: the status is not 2xx.
        """
        return self._send(
            lambda: self.client.post(
                "/chat/completions",
                content=content,
                cast_to=object,
                stream=True,
                stream_cls=Stream[object],
            )
        )

    def get(self, path: str) -> httpx2.Response:
        """Request the path; return the response, whose body has not been read yet. Errors are the
        same as in `post`."""
        return self._send(
            lambda: self.client.get(path, cast_to=object, stream=True, stream_cls=Stream[object])
        )

    def _send(self, send: Callable[[], Stream[object]]) -> httpx2.Response:
        try:
            return send().response
        except APIStatusError as error:
            body = error.body if error.body is not None else error.response.text
            raise build_status_error(
                error.status_code, body, error.response.headers, self.api_key
            ) from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise build_unreadable_error(error, self.api_key) from error


@functools.lru_cache(maxsize=64)
def get_endpoint(base_url: str, api_key: str, private_hosts: PrivateHosts) -> OpenAIEndpoint:
    """Return the endpoint of this address and key, shared by all threads.

    Raises:
        ProviderError: the address or key can never work.
    """
    check_address(base_url, api_key)
    return OpenAIEndpoint(base_url, api_key, private_hosts)


class OpenAIProvider(HttpProvider):
    """The provider for Chat Completions.

    Some servers and models refuse fields, streams or roles that others need. Then the request is
    repeated in another form, and the endpoint remembers this form for the model.
    """

    def __init__(self, config: ProviderConfig) -> None:
        super().__init__(config, config.base_url or DEFAULT_BASE_URL)
        self._endpoint = get_endpoint(self._base_url, config.api_key, config.private_hosts)
        self._streams = bool(config.options.get("stream", True))
        self._include_usage = bool(config.options.get("include_usage", True))

    @override
    def _send(self, request: ModelRequest, names: WireNames, scope: CancelScope) -> SentRequest:
        body, learned = self._build_body(request, names), list[Adaptation]()
        while True:
            known = self._endpoint.list_adaptations(request.model)
            adapted, changes = _adapt(body, known)
            scope.limit_silence(self._config.timeout_s if adapted.get("stream") else None)
            try:
                response = self._endpoint.post(encode_body(adapted))
            except ModelServerError as error:
                found = find_adaptation(error.status, error.body, adapted)
                is_new = found is not None and all(each.field != found.field for each in known)
                if found is None or not is_new or len(learned) >= MOST_AT_ONCE:
                    raise
                self._endpoint.learn(request.model, found)
                learned.append(found)
                continue
            return SentRequest(response, changes, tuple(each.words for each in learned))

    @override
    def _read(self, reader: ResponseReader, chunks: Iterator[bytes]) -> RawResponse:
        return read_completion(reader, chunks)

    @override
    def _check(self) -> str:
        """Request the list of models. If the server has no such list, send a request that it
        refuses without cost."""
        try:
            self._read_json(self._endpoint.get("/models"))
        except ProviderError as error:
            if error.code != "not_found":
                raise
            self._check_completions()
        return NO_TOOLS if self._drops_tools() else ""

    def _drops_tools(self) -> bool:
        """Return True if llama.cpp says in `/props` that it silently drops tools. Other servers
        have no such page."""
        try:
            props = self._read_json(self._endpoint.get(_find_root(self._base_url) + "/props"))
        except ProviderError:
            return False
        return _find_support(props) is False

    def _check_completions(self) -> None:
        try:
            self._endpoint.post(b"{}").close()
        except ProviderError as error:
            if error.code == "not_found" and not httpx2.URL(self._base_url).path.strip("/"):
                error.message = f"{error.message}. The address often ends in /v1"
            if error.code != "refused":
                raise

    def _build_body(self, request: ModelRequest, names: WireNames) -> dict[str, Any]:
        settings = self._config.settings
        settings_by_name = {"temperature": settings.temperature, "max_tokens": settings.max_tokens}
        ours: dict[str, Any] = {
            "model": request.model,
            "messages": names.rename_messages(request.messages),
            "tools": [] if request.closing else names.rename_definitions(request.tools),
            "stream": self._streams,
        }
        if self._streams and self._include_usage:
            ours["stream_options"] = {"include_usage": True}
        given = {name: value for name, value in settings_by_name.items() if value is not None}
        return merge_body({**settings.body, **given}, ours)


def _find_root(base_url: str) -> str:
    url = httpx2.URL(base_url)
    return f"{url.scheme}://{url.netloc.decode('ascii')}"


def _find_support(props: Any) -> Any:
    """Return `supports_tools` from llama.cpp's properties, or from their part `chat_template_caps`,
    where newer versions have it; None if it is missing."""
    abilities = props.get("chat_template_caps") if isinstance(props, dict) else None
    places = [
        place
        for place in (abilities, props)
        if isinstance(place, dict) and "supports_tools" in place
    ]
    return places[0]["supports_tools"] if places else None


def _adapt(
    body: dict[str, Any], known: tuple[Adaptation, ...]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Apply the known adaptations to the body; return the body, and the words of the adaptations
    that changed it."""
    changes: list[str] = []
    for adaptation in known:
        adapted = adaptation.apply(body)
        if adapted != body:
            changes.append(adaptation.words)
        body = adapted
    return body, tuple(changes)
