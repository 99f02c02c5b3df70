"""The provider for Ollama's own `/api/chat`. It does not use Ollama's version of Chat Completions,
because that version ignores settings."""

import functools
import json
from collections.abc import Iterator
from typing import Any

import httpx2
from typing_extensions import override

from agents.providers.base import ModelRequest, ModelSettings, ProviderConfig, ProviderError
from agents.providers.http_provider import (
    HttpProvider,
    SentRequest,
    build_unreadable_error,
    check_address,
    encode_body,
    merge_body,
)
from agents.providers.ollama_messages import convert_messages
from agents.providers.ollama_streams import read_chat
from agents.providers.response_reader import RawResponse, ResponseReader
from agents.providers.server_errors import build_response_error, build_status_error, quote
from agents.providers.transport import CancelScope, GuardedTransport
from agents.providers.wire_names import WireNames
from tools.contract import PrivateHosts
from tools.schemas.ollama import simplify_definition

DEFAULT_BASE_URL = "http://localhost:11434"
MAX_NAMED = 10


class OllamaEndpoint:
    """An Ollama server, identified by its address and key, with the connections to it."""

    def __init__(self, base_url: str, api_key: str, private_hosts: PrivateHosts) -> None:
        self._api_key = api_key
        self._client = httpx2.Client(
            base_url=base_url,
            headers={"Authorization": f"Bearer {api_key}"} if api_key else None,
            transport=GuardedTransport(base_url, private_hosts),
            timeout=None,
            follow_redirects=False,
        )

    def post(self, path: str, content: bytes) -> httpx2.Response:
        """Send the body; return the response, whose body has not been read yet.

        Raises:
            ProviderError: the status is not 2xx.
        """
        headers = {"Content-Type": "application/json"}
        return self._send_request(
            self._client.build_request("POST", path, content=content, headers=headers)
        )

    def get(self, path: str) -> httpx2.Response:
        """Request the path; return the response, whose body has not been read yet. Errors are the
        same as in `post`."""
        return self._send_request(self._client.build_request("GET", path))

    def _send_request(self, request: httpx2.Request) -> httpx2.Response:
        response = self._client.send(request, stream=True)
        if response.is_success:
            return response
        try:
            response.read()
        except httpx2.HTTPError as error:
            raise build_unreadable_error(error, self._api_key) from error
        finally:
            response.close()
        raise build_status_error(
            response.status_code, _decode(response.text), response.headers, self._api_key
        )


@functools.lru_cache(maxsize=64)
def get_endpoint(base_url: str, api_key: str, private_hosts: PrivateHosts) -> OllamaEndpoint:
    """Return the endpoint of this address and key, shared by all threads.

    Raises:
        ProviderError: the address or key can never work.
    """
    check_address(base_url, api_key)
    return OllamaEndpoint(base_url, api_key, private_hosts)


class OllamaProvider(HttpProvider):
    """The provider for Ollama's chat; only proxies and Ollama's cloud need a key."""

    def __init__(self, config: ProviderConfig) -> None:
        super().__init__(config, config.base_url or DEFAULT_BASE_URL)
        self._endpoint = get_endpoint(self._base_url, config.api_key, config.private_hosts)

    @override
    def _send(self, request: ModelRequest, names: WireNames, scope: CancelScope) -> SentRequest:
        scope.limit_silence(self._config.timeout_s)
        return SentRequest(
            self._endpoint.post("/api/chat", encode_body(self._build_body(request, names)))
        )

    @override
    def _read(self, reader: ResponseReader, chunks: Iterator[bytes]) -> RawResponse:
        return read_chat(reader, chunks)

    @override
    def _check(self) -> str:
        """Check that the server is Ollama, and that it has pulled the configured models."""
        try:
            pulled = _find_pulled_models(self._read_json(self._endpoint.get("/api/tags")))
        except ProviderError as error:
            if error.code == "not_found":
                raise ProviderError(
                    "not_found", self._describe_wrong_server(), transient=False
                ) from error
            raise
        if pulled is None:
            raise build_response_error(self._describe_wrong_server(), transient=False)
        missing = [
            model for model in self._config.models if _add_tag(model) not in map(_add_tag, pulled)
        ]
        if missing:
            raise ProviderError(
                "not_found", _describe_missing_model(missing[0], pulled), transient=False
            )
        return ""

    def _describe_wrong_server(self) -> str:
        return f"{self._base_url} does not respond like Ollama. Use an address like {DEFAULT_BASE_URL}, without /v1"

    def _build_body(self, request: ModelRequest, names: WireNames) -> dict[str, Any]:
        settings = self._config.settings
        tools = [] if request.closing else names.rename_definitions(request.tools)
        ours = {
            "model": request.model,
            "messages": convert_messages(names.rename_messages(request.messages)),
            "tools": [simplify_definition(tool) for tool in tools],
            "stream": True,
        }
        return merge_body({**settings.body, **_build_options(settings)}, ours)


def _build_options(settings: ModelSettings) -> dict[str, Any]:
    """Return the settings as Ollama's `options`, merged with the options in the configured body;
    empty if no setting is given."""
    settings_by_name = {
        "temperature": settings.temperature,
        "num_predict": settings.max_tokens,
        "num_ctx": settings.num_ctx,
    }
    given = {name: value for name, value in settings_by_name.items() if value is not None}
    others = settings.body.get("options")
    return {"options": {**others, **given} if isinstance(others, dict) else given} if given else {}


def _find_pulled_models(tags: Any) -> list[str] | None:
    """Return the names of models in a response of `/api/tags`; None if it is not such a
    response."""
    models = tags.get("models") if isinstance(tags, dict) else None
    if not isinstance(models, list):
        return None
    return [str(model["name"]) for model in models if isinstance(model, dict) and model.get("name")]


def _add_tag(model: str) -> str:
    """Return the model's name in lower case, with `:latest` if it has no tag. To Ollama, both names
    mean the same model."""
    name = model.lower()
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def _describe_missing_model(model: str, pulled: list[str]) -> str:
    others = quote(", ".join(pulled[:MAX_NAMED])) if pulled else "none"
    return f"Ollama has not pulled {quote(model)}: run `ollama pull`. Pulled so far: {others}"


def _decode(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
