"""Access to an employee's model: turns the provider's row into its adapter's configuration."""

from dataclasses import replace

from django.conf import settings

from agents.engine.compaction import num_ctx_of
from agents.engine.gate import Workplace
from agents.known_secrets import KNOWN_SECRETS
from agents.models import Employee, ModelProvider, ProviderKind
from agents.models.encrypted import Unreadable
from agents.providers.base import ModelSettings, ProviderConfig, ProviderError
from agents.providers.choice import provider_for
from tools.contract import SHORTEST_SECRET


def provider_config(place: Workplace) -> ProviderConfig:
    """Return the configuration of the employee's provider.

    Raises:
        ProviderError: the employee or its provider was switched off.
    """
    employee = place.run.employee
    provider = employee.provider
    if not employee.is_active or not provider.is_active:
        name = employee.name if not employee.is_active else f"the provider {provider.name!r}"
        raise ProviderError("bad_settings", f"{name} is switched off", transient=False)
    return replace(config_of(provider, float(provider.timeout_s)), settings=_settings_of(employee))


def _settings_of(employee: Employee) -> ModelSettings:
    return ModelSettings(employee.temperature, employee.max_tokens, num_ctx_of(employee), employee.extra_body)


def check_provider(provider: ModelProvider, timeout_s: float) -> None:
    """Ask the provider for something that costs nothing.

    Raises:
        ProviderError: it cannot be used, or says that it lacks the model of an employee.
    """
    named = provider.employees.filter(is_active=True).exclude(model="").order_by("model")
    models = tuple(named.values_list("model", flat=True).distinct())
    provider_for(replace(config_of(provider, timeout_s), models=models)).check()


def address_refusal(kind: str, base_url: str, seconds: float) -> str:
    """Say why this address of a provider is not allowed; empty if it is, or if its host is not found in time.

    Raises:
        ProviderError: the address can never work.
    """
    config = ProviderConfig(kind, _base_url(kind, base_url), private_hosts=settings.PRIVATE_PROVIDERS)
    return provider_for(config).refusal(seconds)


def _base_url(kind: str, base_url: str) -> str:
    return base_url or (settings.OLLAMA_HOST if kind == ProviderKind.OLLAMA else "")


def config_of(provider: ModelProvider, timeout_s: float) -> ProviderConfig:
    """Turn the provider's row into its adapter's configuration.

    Raises:
        ProviderError: its key was encrypted with a key that is gone.
    """
    if isinstance(provider.api_key, Unreadable):
        raise ProviderError("bad_key", f"the key of the provider {provider.name!r} cannot be read", transient=False)
    if len(provider.api_key) >= SHORTEST_SECRET:
        KNOWN_SECRETS.learn([provider.api_key], owner=provider.organization_id)
    return ProviderConfig(
        kind=provider.kind,
        base_url=_base_url(provider.kind, provider.base_url),
        api_key=provider.api_key,
        script=provider.script,
        timeout_s=timeout_s,
        private_hosts=settings.PRIVATE_PROVIDERS,
    )
