"""Build a provider from its configuration."""

import importlib
from collections.abc import Callable

from agents.providers.base import Provider, ProviderConfig, ProviderError
from agents.providers.scripted import ScriptedProvider
from tools.network.transport import load_system_trust

_HTTP_PROVIDERS = {
    "openai": ("agents.providers.openai", "OpenAIProvider"),
    "ollama": ("agents.providers.ollama", "OllamaProvider"),
}


def build_provider(config: ProviderConfig) -> Provider:
    """Build the provider of this kind. This is cheap, because connections and parsed scripts are
    cached.

    Raises:
        ProviderError: the kind does not exist, or the configuration can never work.
    """
    if config.kind == "scripted":
        return ScriptedProvider(config)
    if config.kind in _HTTP_PROVIDERS:
        return _load_class(config.kind)(config)
    kinds = ", ".join(map(repr, (*_HTTP_PROVIDERS, "scripted")))
    raise ProviderError(
        "bad_settings",
        f"provider kind {config.kind!r} is unknown: use one of {kinds}",
        transient=False,
    )


def preload_providers() -> None:
    """Load the SDK and the certificates now, so that a worker's first run does not wait for them.
    Web processes do not need them."""
    for kind in _HTTP_PROVIDERS:
        _load_class(kind)
    load_system_trust()


def _load_class(kind: str) -> Callable[[ProviderConfig], Provider]:
    module, name = _HTTP_PROVIDERS[kind]
    provider: Callable[[ProviderConfig], Provider] = getattr(importlib.import_module(module), name)
    return provider
