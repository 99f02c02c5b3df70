"""The seal of a card: what was shown is what is decided and what is executed."""

from decimal import Decimal
from typing import Any

from agents.models import Approval, ToolCall
from tools.contract import Preview, fingerprint


def digest_of(call: ToolCall, preview: dict[str, Any]) -> str:
    """SHA-256 over organization, run, call, tool, definition, level, params and effect.

    Everything is computed from the values themselves: a stored hash could be out of date.
    """
    return fingerprint(
        {
            "organization": call.organization_id,
            "run": call.run_id,
            "call": call.idempotency_key,
            "tool": f"{call.tool}@{call.version}",
            "definition": call.definition_hash,
            "level": call.level,
            "params": params_hash_of(call.params),
            "preview": fingerprint(_as_stored(preview)),
        }
    )


def params_hash_of(params: dict[str, Any]) -> str:
    """Hash canonical params with SHA-256, equally before they are stored and after they are read back."""
    return fingerprint(_as_stored(params))


def is_sealed(card: Approval) -> bool:
    """Return True if the card's digest matches the params and effect it shows, and its current call."""
    call = card.tool_call
    shows_its_call = params_hash_of(card.params) == params_hash_of(call.params) and card.level == call.level
    return shows_its_call and digest_of(call, card.preview) == card.digest


def unforeseen(problem: str) -> dict[str, Any]:
    """The stored form of an effect that could not be previewed."""
    return Preview.impossible(problem).as_json()


def _as_stored(value: Any) -> Any:
    """Return the value as every database returns it: PostgreSQL writes 1e22 as an integer, and has no -0.0."""
    if isinstance(value, float):
        return int(Decimal(repr(value))) if "e+" in repr(value) else value + 0.0
    if isinstance(value, dict):
        return {str(key): _as_stored(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_as_stored(child) for child in value]
    return value
