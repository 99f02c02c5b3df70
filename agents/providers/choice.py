"""The provider that a configuration names."""

import importlib
from collections.abc import Callable

from agents.providers.base import Provider, ProviderConfig, ProviderError
from agents.providers.scripted import ScriptedProvider

_OVER_HTTP = {
    "openai": ("agents.providers.openai", "OpenAIProvider"),
    "ollama": ("agents.providers.ollama", "OllamaProvider"),
}


def provider_for(config: ProviderConfig) -> Provider:
    """The provider of this kind; cheap, because connections and parsed scripts are kept in the process.

    Raises:
        ProviderError: there is no such kind, or what the configuration says can never work.
    """
    if config.kind == "scripted":
        return ScriptedProvider(config)
    if config.kind in _OVER_HTTP:
        return _loaded(config.kind)(config)
    kinds = ", ".join(map(repr, (*_OVER_HTTP, "scripted")))
    raise ProviderError(
        "bad_settings", f"provider kind {config.kind!r} is unknown: use one of {kinds}", transient=False
    )


def load_providers() -> None:
    """Load now what else the first run would wait for: the SDK and the certificates, which the web never needs."""
    for kind in _OVER_HTTP:
        _loaded(kind)
    importlib.import_module("agents.providers.transport").ssl_context()


def _loaded(kind: str) -> Callable[[ProviderConfig], Provider]:
    module, name = _OVER_HTTP[kind]
    provider: Callable[[ProviderConfig], Provider] = getattr(importlib.import_module(module), name)
    return provider
