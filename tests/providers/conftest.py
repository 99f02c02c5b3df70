"""Fake model servers for each test, and one function to query them."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agents.providers.base import (
    ModelRequest,
    ModelResponse,
    ModelSettings,
    Provider,
    ProviderConfig,
)
from agents.providers.registry import build_provider
from gadget_site.private_hosts import LOOPBACK
from tests.model_server import Call, ModelServer
from tests.ollama_server import OllamaServer

HISTORY = [
    {"role": "system", "content": "You are Dana."},
    {"role": "user", "content": "Find the EU records."},
]


def definition(name: str, description: str = "Does it.") -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": {"type": "object"}},
    }


TOOLS = [
    definition("data.searchRecords"),
    definition("data.updateRecord"),
    definition("utility.now"),
]
FIVE = tuple(
    Call("data.searchRecords", {"region": region, "limit": 5})
    for region in ("EU", "US", "UK", "AP", "CH")
)


class Asking:
    """A provider that is connected to the fake server, with the pieces that it has streamed and a
    flag to stop it."""

    def __init__(self, base_url: str, kind: str = "openai") -> None:
        self.base_url = base_url
        self.kind = kind
        self.settings = ModelSettings()
        self.models: tuple[str, ...] = ()
        self.private_hosts = LOOPBACK
        self.heard: list[str] = []
        self.stopped = threading.Event()

    def provider(
        self,
        *,
        api_key: str = "sk-secret-1234",
        timeout_s: float = 20,
        answer_timeout_s: float = 60,
        **options: Any,
    ) -> Provider:
        config = ProviderConfig(
            self.kind,
            base_url=self.base_url,
            api_key=api_key,
            timeout_s=timeout_s,
            answer_timeout_s=answer_timeout_s,
            settings=self.settings,
            models=self.models,
            private_hosts=self.private_hosts,
            options=options,
        )
        return build_provider(config)

    def __call__(
        self,
        messages: list[dict[str, Any]] | None = None,
        *,
        within: float = 20,
        closing: bool = False,
        **options: Any,
    ) -> ModelResponse:
        tools = options.pop("tools", TOOLS)
        provider = self.provider(**options)
        request = ModelRequest(
            model="fake-model",
            messages=HISTORY if messages is None else messages,
            tools=tools,
            deadline=time.monotonic() + within,
            closing=closing,
        )
        return provider.ask(request, self.heard.append, self.stopped)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
def ask(server: ModelServer) -> Asking:
    return Asking(server.url)


@pytest.fixture
def ollama() -> Iterator[OllamaServer]:
    with OllamaServer() as running:
        yield running


@pytest.fixture
def ask_ollama(ollama: OllamaServer) -> Asking:
    return Asking(ollama.url, "ollama")


def asked_for(response: ModelResponse) -> list[tuple[str, Any]]:
    return [(call.tool, json.loads(call.arguments)) for call in response.calls]


def with_results(response: ModelResponse) -> list[dict[str, Any]]:
    results = [
        {"role": "tool", "tool_call_id": call.provider_call_id, "content": "ok"}
        for call in response.calls
    ]
    return [*HISTORY, response.message, *results]


@contextmanager
def within(seconds: float) -> Iterator[None]:
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < seconds
