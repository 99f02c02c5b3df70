"""Providers run the model; `provider_for` makes the one that a configuration names."""

from agents.providers.base import (
    CallOutcome,
    ModelRequest,
    ModelResponse,
    Provider,
    ProviderConfig,
    ProviderError,
    ProviderStopped,
    RequestedCall,
    Usage,
)
from agents.providers.openai import OpenAIProvider
from agents.providers.scripted import ScriptedProvider
from agents.providers.scripts import validate_script

__all__ = [
    "CallOutcome",
    "ModelRequest",
    "ModelResponse",
    "Provider",
    "ProviderConfig",
    "ProviderError",
    "ProviderStopped",
    "RequestedCall",
    "Usage",
    "provider_for",
    "validate_script",
]


def provider_for(config: ProviderConfig) -> Provider:
    """The provider of this kind; cheap, because connections and parsed scripts are kept in the process."""
    if config.kind == "openai":
        return OpenAIProvider(config)
    if config.kind == "scripted":
        return ScriptedProvider(config)
    raise ProviderError(
        "bad_settings", f"provider kind {config.kind!r} is unknown: use 'openai' or 'scripted'", transient=False
    )
