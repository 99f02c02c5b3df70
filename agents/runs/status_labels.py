"""Labels for the status of a run, which its page, lists and live messages share.

A run is green only if it did something; otherwise its label says that it changed nothing, was
denied or ran out of passes.
"""

from __future__ import annotations

from dataclasses import dataclass

from agents.runs.models import ExitReason, Outcome, RunStatus

DELAYED = "delayed"
"""The reason that is shown for a queued run that will call its model again later."""
WAITS = {
    "decision": "a decision",
    "answer": "an answer",
    "colleague": "a colleague",
    "agent": "the agent",
}
"""The reasons why a run waits, with the words for them."""


@dataclass(frozen=True)
class StatusLabel:
    """The label of a status, such as `Denied`.

    Attributes:
        look: the color: `good`, `bad`, `wait` (people should look), `plain` or `active`.
        icon: the name of the icon for lists.
    """

    text: str
    look: str
    icon: str


ACTIVE = {
    RunStatus.QUEUED.value: ("active", "clock"),
    RunStatus.RUNNING.value: ("active", "loader-circle"),
    RunStatus.WAITING.value: ("wait", "hourglass"),
    RunStatus.NEEDS_ATTENTION.value: ("wait", "triangle-alert"),
}
"""The look and icon of each status of an unfinished run."""
STOPPED = {
    ExitReason.MAX_PASSES.value: "out of passes",
    ExitReason.BUDGET_EXHAUSTED.value: "budget used up",
    ExitReason.DEADLINE.value: "time limit reached",
    ExitReason.ANSWER_CUT.value: "answer cut off",
    ExitReason.ANSWER_FILTERED.value: "answer withheld",
}
"""The limits that end a run early, with the words for them."""
FAILED = {
    ExitReason.PROVIDER_ERROR.value: "the model did not respond",
    ExitReason.CRASH_LOOP.value: "the worker crashed repeatedly",
    ExitReason.INTERNAL_ERROR.value: "internal error",
}
OUTCOME_LOOKS = {
    Outcome.DONE.value: ("good", "circle-check"),
    Outcome.ANSWERED.value: ("good", "circle-check"),
    Outcome.UNCHANGED.value: ("plain", "minus"),
    Outcome.PARTLY_DENIED.value: ("wait", "ban"),
    Outcome.DENIED.value: ("wait", "ban"),
}


def label_status(status: str, reason: str = "", outcome: str = "") -> StatusLabel:
    """Return the label of a status, such as `Running`, `Waiting for an answer`, `Stopped: out of
    passes` or `Finished without changes`.

    Args:
        reason: the exit reason of an ended run; otherwise `delayed` or one of `WAITS` (others are
            ignored).
        outcome: the outcome of an ended run; empty if unknown.
    """
    if status in ACTIVE:
        look, icon = ACTIVE[status]
        return StatusLabel(
            _describe_active(status, reason), "plain" if reason == "agent" else look, icon
        )
    if status == RunStatus.CANCELLED:
        return StatusLabel(RunStatus.CANCELLED.label, "plain", "ban")
    if reason in STOPPED:
        return StatusLabel(
            f"Stopped: {STOPPED[reason]}",
            "wait" if status == RunStatus.SUCCEEDED else "bad",
            "square",
        )
    if reason == ExitReason.DENIED_REPEATEDLY:
        return StatusLabel(Outcome.DENIED.label, *OUTCOME_LOOKS[Outcome.DENIED])
    if status == RunStatus.FAILED:
        return StatusLabel(
            f"Failed: {FAILED[reason]}" if reason in FAILED else "Failed", "bad", "circle-x"
        )
    return StatusLabel(
        Outcome(outcome or Outcome.DONE).label, *OUTCOME_LOOKS[outcome or Outcome.DONE]
    )


def describe_status(status: str, reason: str = "", outcome: str = "") -> str:
    """Return the text of the label that `label_status` gives."""
    return label_status(status, reason, outcome).text


def _describe_active(status: str, reason: str) -> str:
    if status == RunStatus.QUEUED and reason == DELAYED:
        return "Waiting for the model"
    if status == RunStatus.WAITING and reason in WAITS:
        return f"Waiting for {WAITS[reason]}"
    return str(RunStatus(status).label)
