"""Context windows: the number of tokens that an employee's model reads at once."""

from typing import Any

from agents.employees.models import Employee, ModelProvider, ProviderKind

USUAL_CONTEXT = 128_000
OLLAMA_CONTEXT = 16_384
"""The context window, in tokens, that is requested from Ollama by default. Ollama's own default is
too small for tools, and Ollama silently drops what does not fit."""

_KNOWN = {
    "gpt-5": 272_000,
    "gpt-4.1": 1_000_000,
    "gpt-4o": 128_000,
    "gpt-4-turbo": 128_000,
    "gpt-4": 8_192,
    "gpt-3.5-turbo": 16_385,
    "o1": 200_000,
    "o3": 200_000,
    "o4-mini": 200_000,
    "claude-": 200_000,
    "gemini-": 1_000_000,
}
"""The context windows of known models, by the first characters of the model's name."""


def find_context_tokens(employee: Employee, provider: ModelProvider) -> int:
    """Return the model's context window in tokens: the size requested from Ollama, the employee's
    setting, the known size of the model, or 128,000."""
    if provider.kind == ProviderKind.OLLAMA:
        requested = choose_num_ctx(employee)
        return min(requested, employee.context_tokens or requested)
    if employee.context_tokens:
        return employee.context_tokens
    name = employee.model.rpartition("/")[2].lower()
    beginning = max((each for each in _KNOWN if name.startswith(each)), key=len, default="")
    return _KNOWN.get(beginning, USUAL_CONTEXT)


def choose_num_ctx(employee: Employee) -> int:
    """Return the context window to request from Ollama, in tokens. Ollama silently drops the oldest
    part of a request that does not fit."""
    return (
        employee.num_ctx
        or _find_in_options(employee.extra_body)
        or employee.context_tokens
        or OLLAMA_CONTEXT
    )


def _find_in_options(body: dict[str, Any]) -> int | None:
    options = body.get("options")
    num_ctx = options.get("num_ctx") if isinstance(options, dict) else None
    return num_ctx if isinstance(num_ctx, int) and num_ctx > 0 else None
