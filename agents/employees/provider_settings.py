"""Build the configuration of model providers from their rows, and check providers."""

from dataclasses import replace

from django.conf import settings

from agents.employees.context_windows import choose_num_ctx
from agents.employees.models import Employee, ModelProvider, ProviderKind
from agents.platform.encrypted_fields import UndecryptableText
from agents.platform.known_secrets import KNOWN_SECRETS
from agents.providers.base import ModelSettings, ProviderConfig, ProviderError
from agents.providers.registry import build_provider
from tools.contract import SHORTEST_SECRET


def load_provider_config(employee: Employee) -> ProviderConfig:
    """Return the configuration of the employee's provider.

    Raises:
        ProviderError: the employee or its provider was switched off.
    """
    provider = employee.provider
    if not employee.is_active or not provider.is_active:
        name = employee.name if not employee.is_active else f"the provider {provider.name!r}"
        raise ProviderError("bad_settings", f"{name} is switched off", transient=False)
    num_ctx = choose_num_ctx(employee)
    model_settings = ModelSettings(
        employee.temperature, employee.max_tokens, num_ctx, employee.extra_body
    )
    return replace(
        build_provider_config(provider, float(provider.timeout_s)), settings=model_settings
    )


def check_provider(provider: ModelProvider, timeout_s: float) -> str:
    """Check the provider with a request that is free of charge; return a warning if its models
    cannot work properly, else an empty text.

    Raises:
        ProviderError: the provider cannot be used, or lacks the model of an employee.
    """
    employees = provider.employees.filter(is_active=True).order_by("model")
    if provider.kind != ProviderKind.SCRIPTED:
        employees = employees.exclude(model="")
    models = tuple(employees.values_list("model", flat=True).distinct())
    return build_provider(
        replace(build_provider_config(provider, timeout_s), models=models)
    ).check()


def check_script(name: str) -> None:
    """Check that this installation has a script with this name, without faults.

    Raises:
        ProviderError: the text explains the fault and lists existing scripts.
    """
    config = ProviderConfig(
        ProviderKind.SCRIPTED, scripts_dir=settings.GADGET_SCRIPTS_DIR, models=(name,)
    )
    build_provider(config).check()


def explain_refused_address(kind: str, base_url: str, seconds: float) -> str | None:
    """Explain why this address of a provider is not allowed; return None if it is allowed, or if
    its host is not found within `seconds`.

    Raises:
        ProviderError: the address can never work.
    """
    config = ProviderConfig(
        kind, _find_base_url(kind, base_url), private_hosts=settings.PRIVATE_PROVIDERS
    )
    return build_provider(config).explain_refusal(seconds)


def find_address_problem(kind: str, base_url: str, timeout_s: float) -> None:
    """Check that a model server responds at the address, with a request that does not need a key
    and is free of charge.

    Raises:
        ProviderError: no model server responds there, or it requires a key.
    """
    config = ProviderConfig(
        kind, base_url, private_hosts=settings.PRIVATE_PROVIDERS, timeout_s=timeout_s
    )
    build_provider(config).check()


def _find_base_url(kind: str, base_url: str) -> str:
    return base_url or (settings.OLLAMA_HOST if kind == ProviderKind.OLLAMA else "")


def build_provider_config(provider: ModelProvider, timeout_s: float) -> ProviderConfig:
    """Build the configuration of the provider's adapter from its row.

    Raises:
        ProviderError: the stored key cannot be decrypted.
    """
    if isinstance(provider.api_key, UndecryptableText):
        raise ProviderError(
            "bad_key", f"the key of the provider {provider.name!r} cannot be read", transient=False
        )
    if len(provider.api_key) >= SHORTEST_SECRET:
        KNOWN_SECRETS.learn([provider.api_key], owner=provider.organization_id)
    return ProviderConfig(
        kind=provider.kind,
        base_url=_find_base_url(provider.kind, provider.base_url),
        api_key=provider.api_key,
        scripts_dir=settings.GADGET_SCRIPTS_DIR,
        timeout_s=timeout_s,
        answer_timeout_s=float(provider.answer_timeout_s),
        private_hosts=settings.PRIVATE_PROVIDERS,
    )
