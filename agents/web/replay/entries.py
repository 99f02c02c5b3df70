"""The entries of a replay: each event in words, from its payload alone, so that it shows what was true then."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from agents.approvals.models import ApprovalStatus
from agents.runs.models import Event, EventType
from agents.web.panel import sentences
from agents.web.replay.redaction import NOTHING_REDACTED, ReplayRedaction
from agents.web.text.run_status import label_status

WAITS_AFTER = frozenset(
    {EventType.RUN_WAITING, EventType.RUN_NEEDS_ATTENTION, EventType.PROVIDER_DELAYED, EventType.RUN_FINISHED}
)
"""Events after which nobody works; a replay may skip that time."""
STILL_WAITING = frozenset(
    {
        EventType.APPROVAL_REQUESTED,
        EventType.APPROVAL_VOTED,
        EventType.APPROVAL_DECIDED,
        EventType.QUESTION_ANSWERED,
        EventType.CALL_RESOLVED,
    }
)
"""Events of people during a wait, which alone start no work: other cards may still wait."""
DECISIONS = frozenset({ApprovalStatus.APPROVED, ApprovalStatus.DENIED, ApprovalStatus.ANSWERED})
"""The states of a card that a person chose; Gadget says the reason of the others."""
CARD_LOOKS = {
    ApprovalStatus.APPROVED: ("good", "check"),
    ApprovalStatus.ANSWERED: ("good", "check"),
    ApprovalStatus.SUPERSEDED: ("", "rotate-ccw"),
}
"""The look and icon of a card's states; others are bad."""
LEVEL_ICONS = {"read": "eye", "draft": "file-pen", "write": "pencil-line", "destructive": "triangle-alert"}


@dataclass(frozen=True)
class ReplayEntry:
    """One event as the replay shows it.

    Attributes:
        at_ms: the time since the run's first event.
        slot: the entry takes the place of the earlier one with the same slot; empty if it takes none.
        look: `good`, `bad`, `wait`, `pass` or empty.
        note: plain text in the head's line.
        sentence: a card's sentence, with its bold parts.
        text, markdown: long texts, plain or formatted.
        values: inputs by name; data: the data of a result.
        waits_after: nobody works until the next event.
        left_out: the number of events between the previous entry and this one, which the replay leaves out.
    """

    seq: int
    at_ms: int
    created_at: datetime
    slot: str
    head: str
    icon: str = "circle-alert"
    look: str = ""
    level: str = ""
    note: str = ""
    sentence: str = ""
    text: str = ""
    markdown: str = ""
    values: dict[str, Any] | None = None
    data: Any = None
    pass_number: int = 0
    waits_after: bool = False
    left_out: int = 0

    @property
    def clock(self) -> str:
        """The time since the first event: `0:03`, `1:02:03`."""
        minutes, seconds = divmod(self.at_ms // 1000, 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def build_entries(events: Iterable[Event], redaction: ReplayRedaction = NOTHING_REDACTED) -> list[ReplayEntry]:
    """Build an entry for each event; the events begin with the run's first one, and may leave out later ones."""
    builder = _EntryBuilder(redaction)
    return [builder.build(event) for event in events]


def find_title(events: Iterable[Event]) -> str:
    """Find the last title that the run got; empty if there is none."""
    titles = [event.payload.get("title") or "" for event in events if event.type == EventType.RUN_TITLED]
    return next(filter(None, reversed(titles)), "")


class _EntryBuilder:
    """Builds entries in order, and remembers the titles of calls, which only their first events have."""

    def __init__(self, redaction: ReplayRedaction) -> None:
        self._redaction = redaction
        self._first: datetime | None = None
        self._last_seq = 0
        self._is_waiting = False
        self._titles: dict[str, str] = {}
        self._describe: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            EventType.RUN_STARTED: lambda payload: _state(f"Started by {payload.get('by') or 'a schedule'}", "play"),
            EventType.RUN_TITLED: self._describe_title,
            EventType.PASS_STARTED: _describe_pass,
            EventType.ASSISTANT_MESSAGE: lambda payload: {
                "head": "Employee", "icon": "bot", "markdown": self._redaction.redact_text(payload["text"]),
            },
            EventType.ASSISTANT_THOUGHT: lambda payload: self._tell("Thought", "bot", payload["text"]),
            EventType.TOOL_START: self._describe_start,
            EventType.TOOL_PROGRESS: lambda payload: self._call(
                payload, "loader-circle", self._redaction.redact_summary(payload.get("text", ""))
            ),
            EventType.TOOL_RESULT: self._describe_result,
            EventType.TOOL_SKIPPED: lambda payload: self._call(payload, "equal", "This repeats an earlier call"),
            EventType.TOOL_REJECTED: self._describe_rejection,
            EventType.APPROVAL_REQUESTED: self._describe_request,
            EventType.APPROVAL_VOTED: lambda payload: _state(
                f"{payload['by']} {'withdrew their approval' if payload.get('withdrawn') else 'approved'}", "users"
            ),
            EventType.APPROVAL_DECIDED: self._describe_decision,
            EventType.QUESTION_ASKED: lambda payload: self._ask(payload, "Question", payload["text"]),
            EventType.QUESTION_ANSWERED: lambda payload: self._ask(
                payload, f"Answered by {payload.get('by') or 'somebody'}", payload["text"]
            ),
            EventType.CALL_RESOLVED: self._describe_resolution,
            EventType.LATE_EFFECT: self._describe_late_effect,
            EventType.MESSAGE_ADDED: lambda payload: self._tell(
                f"Message from {payload.get('by') or 'somebody'}", "send", payload["text"]
            ),
            EventType.RUN_WAITING: self._describe_wait,
            EventType.RUN_NEEDS_ATTENTION: lambda _: _state("Needs attention: an outcome is unknown", look="bad"),
            EventType.RUN_RESUMED: lambda payload: _state(
                self._redaction.redact_text(payload.get("reason") or "") or "Resumed", "play"
            ),
            EventType.CANCEL_REQUESTED: lambda payload: _state(
                f"{payload.get('by') or 'Somebody'} cancelled the run", "ban"
            ),
            EventType.PROVIDER_DELAYED: lambda payload: {
                **_state(sentences.describe_delay(payload), "hourglass", "bad"),
                "text": self._redaction.redact_text(payload.get("reason", "")),
            },
            EventType.HISTORY_SHORTENED: lambda payload: _state(sentences.describe_shortening(payload)),
            EventType.ANSWER_CUT: lambda payload: _state(sentences.describe_cut(payload), look="bad"),
            EventType.USAGE_REPORTED: lambda payload: _state(sentences.describe_usage(payload)),
            EventType.RUN_FINISHED: self._describe_end,
        }  # fmt: skip

    def build(self, event: Event) -> ReplayEntry:
        self._first = self._first or event.created_at
        at_ms = max(0, round((event.created_at - self._first) / timedelta(milliseconds=1)))
        entry = ReplayEntry(event.seq, at_ms, event.created_at, _name_slot(event), head="")
        fields = self._describe[event.type](event.payload)
        left_out, self._last_seq = event.seq - self._last_seq - 1, event.seq
        self._is_waiting = event.type in WAITS_AFTER or (self._is_waiting and event.type in STILL_WAITING)
        return replace(entry, **fields, waits_after=self._is_waiting, left_out=left_out)

    def _describe_title(self, payload: dict[str, Any]) -> dict[str, Any]:
        title = payload.get("title")
        return _state(f"Named: {self._redaction.redact_text(title)}" if title else "No name was found", "file-text")

    def _describe_start(self, payload: dict[str, Any]) -> dict[str, Any]:
        self._titles[payload["call_id"]] = payload.get("display_name") or payload.get("tool") or "Call"
        note = "The inputs are too large for the log" if payload.get("truncated") else "started"
        values = self._redaction.redact_inputs(payload.get("tool", ""), payload.get("params") or {})
        return {**self._call(payload, LEVEL_ICONS.get(payload.get("level", ""), "wrench"), note), "values": values}

    def _describe_result(self, payload: dict[str, Any]) -> dict[str, Any]:
        result, redact = payload["result"], self._redaction
        is_good = bool(result.get("success"))
        note = redact.redact_summary(result.get("summary") or "") or ("Done" if is_good else "Failed")
        return {
            **self._call(payload, "check" if is_good else "x", note, look="good" if is_good else "bad"),
            "markdown": redact.redact_summary(result.get("markdown") or ""),
            "data": redact.redact_data(payload.get("tool", ""), result.get("data")),
        }

    def _describe_rejection(self, payload: dict[str, Any]) -> dict[str, Any]:
        reason = self._redaction.redact_summary(payload.get("reason") or "")
        return {**self._call(payload, "x", "Not carried out", look="bad"), "text": reason}

    def _describe_request(self, payload: dict[str, Any]) -> dict[str, Any]:
        values = self._redaction.redact_inputs(payload.get("tool", ""), payload.get("params") or {})
        sentence = "" if self._redaction.values else payload.get("sentence", "")
        return {**self._call(payload, "inbox", "Approval needed", look="wait"), "sentence": sentence, "values": values}

    def _describe_decision(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Describe the end of a card; Gadget's own reasons may repeat inputs, those of people are their texts."""
        by, status = payload.get("decided_by"), ApprovalStatus(payload["status"])
        look, icon = CARD_LOOKS.get(status, ("bad", "ban"))
        redact = self._redaction.redact_text if status in DECISIONS else self._redaction.redact_summary
        words = f"{status.label} by {by}" if by and status in DECISIONS else str(status.label)
        return {**self._call(payload, icon, words, look=look), "text": redact(payload.get("reason") or "")}

    def _describe_resolution(self, payload: dict[str, Any]) -> dict[str, Any]:
        reason = self._redaction.redact_text(payload.get("reason") or "")
        return {**self._call(payload, "circle-check", sentences.describe_resolution(payload)), "text": reason}

    def _describe_late_effect(self, payload: dict[str, Any]) -> dict[str, Any]:
        note = "This happened after all, although it was marked as not done"
        summary = self._redaction.redact_summary(payload.get("summary") or "")
        return {**self._call(payload, "triangle-alert", note, look="bad"), "text": summary}

    def _describe_wait(self, payload: dict[str, Any]) -> dict[str, Any]:
        if payload.get("reason"):
            return _state(self._redaction.redact_text(payload["reason"]), "ban", "wait")
        waits = sentences.describe_waits(payload)
        return _state(f"Waiting for {waits}" if waits else sentences.UNDOABLE, "clock", "wait")

    def _describe_end(self, payload: dict[str, Any]) -> dict[str, Any]:
        label = label_status(payload["status"], payload["exit_reason"], payload.get("outcome", ""))
        return {
            **_state(label.text, label.icon, label.look),
            "markdown": self._redaction.redact_text(payload.get("answer") or ""),
        }

    def _call(self, payload: dict[str, Any], icon: str, note: str, look: str = "") -> dict[str, Any]:
        """Describe an event of a call; its level is part of some events only."""
        title = self._titles.get(payload["call_id"]) or payload.get("tool") or "Call"
        return {"head": title, "icon": icon, "note": note, "look": look, "level": payload.get("level", "")}

    def _ask(self, payload: dict[str, Any], note: str, text: str) -> dict[str, Any]:
        fields = self._call(payload, "circle-question-mark", note, look="wait" if note == "Question" else "good")
        return {**fields, "text": self._redaction.redact_text(text)}

    def _tell(self, head: str, icon: str, text: str) -> dict[str, Any]:
        return {"head": head, "icon": icon, "text": self._redaction.redact_text(text)}


def _name_slot(event: Event) -> str:
    """Name the slot of a call's progress, which the next report and then the result replace."""
    has_slot = event.type in (EventType.TOOL_PROGRESS, EventType.TOOL_RESULT)
    return f"progress-{event.payload['call_id']}" if has_slot else ""


def _state(head: str, icon: str = "circle-alert", look: str = "") -> dict[str, Any]:
    return {"head": head, "icon": icon, "look": look}


def _describe_pass(payload: dict[str, Any]) -> dict[str, Any]:
    return {"head": f"Pass {payload['pass_number']}", "icon": "rotate-ccw", "look": "pass"} | {
        "pass_number": payload["pass_number"]
    }
