"""Asks Ollama through its own `/api/chat`, which takes what its imitation of Chat Completions drops."""

import functools
import json
from collections.abc import Iterator
from typing import Any

import httpx2
from typing_extensions import override

from agents.providers.base import ModelRequest, ModelSettings, ProviderConfig, ProviderError
from agents.providers.failures import bad_answer, from_status, quote
from agents.providers.ollama_messages import as_ollama
from agents.providers.ollama_schemas import plain_definition
from agents.providers.ollama_streams import read_chat
from agents.providers.over_http import HttpProvider, check_address, encoded, merged_body, unreadable
from agents.providers.reading import Reading, Received
from agents.providers.transport import WatchedTransport
from agents.providers.wire_names import WireNames
from tools.contract import PrivateHosts

DEFAULT_BASE_URL = "http://localhost:11434"
MOST_NAMED = 10


class Endpoint:
    """One address and key with its connections."""

    def __init__(self, base_url: str, api_key: str, private_hosts: PrivateHosts) -> None:
        self._api_key = api_key
        self._client = httpx2.Client(
            base_url=base_url,
            headers={"Authorization": f"Bearer {api_key}"} if api_key else None,
            transport=WatchedTransport(base_url, private_hosts),
            timeout=None,
            follow_redirects=False,
        )

    def post(self, path: str, content: bytes) -> httpx2.Response:
        """The response with its body still unread; raises ProviderError for every status but 2xx."""
        headers = {"Content-Type": "application/json"}
        return self._sent(self._client.build_request("POST", path, content=content, headers=headers))

    def get(self, path: str) -> httpx2.Response:
        return self._sent(self._client.build_request("GET", path))

    def _sent(self, request: httpx2.Request) -> httpx2.Response:
        response = self._client.send(request, stream=True)
        if response.is_success:
            return response
        try:
            response.read()
        except httpx2.HTTPError as error:
            raise unreadable(error, self._api_key) from error
        finally:
            response.close()
        raise from_status(response.status_code, _decoded(response.text), response.headers, self._api_key)


@functools.lru_cache(maxsize=64)
def endpoint_for(base_url: str, api_key: str, private_hosts: PrivateHosts) -> Endpoint:
    """The endpoint of this address and key, shared by all threads; raises ProviderError for what can never work."""
    check_address(base_url, api_key)
    return Endpoint(base_url, api_key, private_hosts)


class OllamaProvider(HttpProvider):
    """A Provider over Ollama's chat; a key is needed only where a proxy or Ollama's cloud asks for one."""

    def __init__(self, config: ProviderConfig) -> None:
        super().__init__(config, config.base_url or DEFAULT_BASE_URL)
        self._endpoint = endpoint_for(self._base_url, config.api_key, config.private_hosts)

    @override
    def _send(self, request: ModelRequest, names: WireNames) -> httpx2.Response:
        return self._endpoint.post("/api/chat", encoded(self._body(request, names)))

    @override
    def _read(self, reading: Reading, chunks: Iterator[bytes]) -> Received:
        return read_chat(reading, chunks)

    @override
    def _check(self) -> None:
        """List the models that are pulled, and miss those that are needed."""
        try:
            pulled = _pulled_models(self._json_of(self._endpoint.get("/api/tags")))
        except ProviderError as error:
            if error.code == "not_found":
                raise ProviderError("not_found", self._no_ollama(), transient=False) from error
            raise
        if pulled is None:
            raise bad_answer(self._no_ollama(), transient=False)
        missing = [model for model in self._config.models if _full_name(model) not in map(_full_name, pulled)]
        if missing:
            raise ProviderError("not_found", _not_pulled(missing[0], pulled), transient=False)

    def _no_ollama(self) -> str:
        return f"{self._base_url} does not answer like Ollama; its address is such as {DEFAULT_BASE_URL}, without /v1"

    def _body(self, request: ModelRequest, names: WireNames) -> dict[str, Any]:
        settings = self._config.settings
        tools = [] if request.closing else names.definitions(request.tools)
        ours = {
            "model": request.model,
            "messages": as_ollama(names.messages(request.messages)),
            "tools": [plain_definition(tool) for tool in tools],
            "stream": True,
        }
        return merged_body({**settings.body, **_options(settings)}, ours)


def _options(settings: ModelSettings) -> dict[str, Any]:
    """Where Ollama wants the settings, beside the options that the body has already; nothing if there are none."""
    wished = {
        "temperature": settings.temperature,
        "num_predict": settings.max_tokens,
        "num_ctx": settings.num_ctx,
    }
    given = {name: value for name, value in wished.items() if value is not None}
    others = settings.body.get("options")
    return {"options": {**others, **given} if isinstance(others, dict) else given} if given else {}


def _pulled_models(tags: Any) -> list[str] | None:
    """The names in what `/api/tags` answered; None if that is no such list."""
    models = tags.get("models") if isinstance(tags, dict) else None
    if not isinstance(models, list):
        return None
    return [str(model["name"]) for model in models if isinstance(model, dict) and model.get("name")]


def _full_name(model: str) -> str:
    """With the tag that Ollama adds; its names have no case."""
    name = model.lower()
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def _not_pulled(model: str, pulled: list[str]) -> str:
    others = quote(", ".join(pulled[:MOST_NAMED])) if pulled else "none"
    return f"Ollama answers, but has not pulled {quote(model)}: `ollama pull` it. Pulled so far: {others}"


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
