"""The provider that a configuration names. Importing this loads the OpenAI SDK, which only workers and checks need."""

from agents.providers.base import Provider, ProviderConfig, ProviderError
from agents.providers.openai import OpenAIProvider
from agents.providers.scripted import ScriptedProvider


def provider_for(config: ProviderConfig) -> Provider:
    """The provider of this kind; cheap, because connections and parsed scripts are kept in the process.

    Raises:
        ProviderError: there is no such kind.
    """
    if config.kind == "openai":
        return OpenAIProvider(config)
    if config.kind == "scripted":
        return ScriptedProvider(config)
    raise ProviderError(
        "bad_settings", f"provider kind {config.kind!r} is unknown: use 'openai' or 'scripted'", transient=False
    )
