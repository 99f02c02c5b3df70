"""The provider that a configuration names."""

import importlib
from collections.abc import Callable

from agents.providers.base import Provider, ProviderConfig, ProviderError
from agents.providers.scripted import ScriptedProvider


def provider_for(config: ProviderConfig) -> Provider:
    """The provider of this kind; cheap, because connections and parsed scripts are kept in the process.

    Raises:
        ProviderError: there is no such kind.
    """
    if config.kind == "openai":
        return _openai_provider()(config)
    if config.kind == "scripted":
        return ScriptedProvider(config)
    raise ProviderError(
        "bad_settings", f"provider kind {config.kind!r} is unknown: use 'openai' or 'scripted'", transient=False
    )


def load_providers() -> None:
    """Load now what else the first run would wait for: the SDK takes half a second, and the web never needs it."""
    _openai_provider()


def _openai_provider() -> Callable[[ProviderConfig], Provider]:
    provider: Callable[[ProviderConfig], Provider] = importlib.import_module("agents.providers.openai").OpenAIProvider
    return provider
