"""Labels for the status of a run, shared by its page, lists and live messages."""

from __future__ import annotations

from agents.runs.models import RunStatus

DELAYED = "delayed"
"""The reason of a queued run that asks its model again later."""
WAITS = {"decision": "a decision", "answer": "an answer", "colleague": "a colleague"}
"""The reasons of a waiting run, with their words."""


def describe_status(status: str, reason: str = "") -> str:
    """Describe the status: `Running`, `Waiting for an answer`, `Waiting for the model`.

    Args:
        reason: `delayed` or one of `WAITS`; any other reason is ignored.
    """
    if status == RunStatus.QUEUED and reason == DELAYED:
        return "Waiting for the model"
    if status == RunStatus.WAITING and reason in WAITS:
        return f"Waiting for {WAITS[reason]}"
    return str(RunStatus(status).label)
