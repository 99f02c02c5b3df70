"""The words for a run's status, the same on its page, in lists and in live messages."""

from __future__ import annotations

from agents.runs.models import RunStatus

DELAYED = "delayed"
"""The reason of a queued run whose model is asked again later."""
WAITS = {"decision": "a decision", "answer": "an answer", "colleague": "a colleague"}
"""The reasons of a waiting run."""


def describe_status(status: str, reason: str = "") -> str:
    """Return `Running`, `Waiting for an answer`, `Waiting for the model`.

    Args:
        reason: `delayed`, or one of `WAITS`; any other changes nothing.
    """
    if status == RunStatus.QUEUED and reason == DELAYED:
        return "Waiting for the model"
    if status == RunStatus.WAITING and reason in WAITS:
        return f"Waiting for {WAITS[reason]}"
    return str(RunStatus(status).label)
