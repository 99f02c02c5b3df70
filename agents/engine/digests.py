"""The seal of a card: what was shown is what is decided and what is executed."""

from typing import Any

from agents.models import ToolCall
from tools.contract import Preview, fingerprint


def digest_of(call: ToolCall, preview: dict[str, Any]) -> str:
    """SHA-256 over organisation, run, call, tool, definition, level, params and effect."""
    return fingerprint(
        {
            "organization": call.organization_id,
            "run": call.run_id,
            "call": call.idempotency_key,
            "tool": f"{call.tool}@{call.version}",
            "definition": call.definition_hash,
            "level": call.level,
            "params": call.params_hash,
            "preview": fingerprint(preview),
        }
    )


def unforeseen(problem: str) -> dict[str, Any]:
    """The stored form of an effect that could not be previewed."""
    return Preview.impossible(problem).as_json()
