"""The model of events, which are the lines of the activity panel."""

from typing import Any

from django.db import models
from django.db.models.functions import Now

from agents.runs.models.run import Run
from tools.contract import canonical_json

MAX_DATA_BYTES = 4096
MAX_SUMMARY = 1000


class EventType(models.TextChoices):
    """The types of numbered events."""

    RUN_STARTED = "run_started"
    RUN_TITLED = "run_titled"
    PASS_STARTED = "pass_started"  # noqa: S105
    ASSISTANT_MESSAGE = "assistant_message"
    TOOL_START = "tool_start"
    TOOL_PROGRESS = "tool_progress"
    TOOL_RESULT = "tool_result"
    TOOL_SKIPPED = "tool_skipped"
    TOOL_REJECTED = "tool_rejected"
    APPROVAL_REQUESTED = "approval_requested"
    APPROVAL_VOTED = "approval_voted"
    APPROVAL_DECIDED = "approval_decided"
    QUESTION_ASKED = "question_asked"
    QUESTION_ANSWERED = "question_answered"
    MESSAGE_ADDED = "message_added"
    RUN_WAITING = "run_waiting"
    RUN_RESUMED = "run_resumed"
    RUN_NEEDS_ATTENTION = "run_needs_attention"
    CALL_RESOLVED = "call_resolved"
    CANCEL_REQUESTED = "cancel_requested"
    RUN_FINISHED = "run_finished"
    PROVIDER_DELAYED = "provider_delayed"
    HISTORY_SHORTENED = "history_shortened"
    LATE_EFFECT = "late_effect"
    ASSISTANT_THOUGHT = "assistant_thought"
    ANSWER_CUT = "answer_cut"
    USAGE_REPORTED = "usage_reported"
    ANSWER_UNUSABLE = "answer_unusable"
    REQUEST_ADAPTED = "request_adapted"


AWAITED = frozenset(
    {
        *(
            EventType.RUN_STARTED,
            EventType.RUN_FINISHED,
            EventType.APPROVAL_REQUESTED,
            EventType.APPROVAL_DECIDED,
        ),
        *(EventType.QUESTION_ASKED, EventType.QUESTION_ANSWERED, EventType.RUN_NEEDS_ATTENTION),
    }
)
"""The types that people and other systems wait for. Readers get a hint to read these events
immediately; they read other events within seconds."""


class Event(models.Model):
    """One line of the panel: numbered per run without gaps, committed together with its fact, and
    never changed."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events", db_index=False)
    seq = models.PositiveIntegerField("number")
    type = models.CharField(max_length=24, choices=EventType)
    payload = models.JSONField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("run", "seq")
        constraints = (models.UniqueConstraint(fields=("run", "seq"), name="event_seq_in_run"),)

    def __str__(self) -> str:
        return f"{self.seq} {self.type}"


def brief_params(params: dict[str, Any]) -> tuple[dict[str, Any], bool | None]:
    """Return the params for an event and None; if the params exceed 4 KB, return an empty dict and
    True instead."""
    return ({}, True) if len(canonical_json(params).encode()) > MAX_DATA_BYTES else (params, None)


def brief_result(result: dict[str, Any]) -> dict[str, Any]:
    """Return the result for an event: parts that are too large are cut or left out, and `truncated`
    is set."""
    shown = {
        key: result[key] for key in ("success", "summary", "data", "markdown", "error", "metadata")
    }
    if len(shown["summary"]) > MAX_SUMMARY:
        shown.update(summary=shown["summary"][:MAX_SUMMARY], truncated=True)
    if shown["error"] and len(shown["error"]["message"]) > MAX_SUMMARY:
        error = {**shown["error"], "message": shown["error"]["message"][:MAX_SUMMARY]}
        shown.update(error=error, truncated=True)
    if len(canonical_json(shown["metadata"]).encode()) > MAX_DATA_BYTES:
        shown.update(metadata={}, truncated=True)
    if len(canonical_json([shown["data"], shown["markdown"]]).encode()) > MAX_DATA_BYTES:
        shown.update(data=None, markdown="", truncated=True)
    return shown
