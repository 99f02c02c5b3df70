"""Describe each type of event in words and facts, for the panel, the playback, the transcript and
webhooks. Only webhooks show the events of organizations."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from agents.accounts.models.organization_event import OrganizationEvent
from agents.accounts.notice_facts import NoticeKind
from agents.runs import event_facts, event_words
from agents.runs.described import Description
from agents.runs.engine.transaction import MACHINE
from agents.runs.models import ApprovalStatus, Event, EventType, RunStatus
from agents.runs.redaction import NOTHING_REDACTED, EventRedaction
from agents.runs.status_labels import label_status

logger = logging.getLogger(__name__)

Payload = Mapping[str, Any]
Describer = Callable[[Payload, EventRedaction], "Description"]
_Fact = event_facts.FactKind

DECISIONS = frozenset({ApprovalStatus.APPROVED, ApprovalStatus.DENIED, ApprovalStatus.ANSWERED})
"""The states into which a person's decision puts a card; Gadget writes the reasons for all other
states."""
CARD_LOOKS = {
    ApprovalStatus.APPROVED: ("good", "check"),
    ApprovalStatus.ANSWERED: ("good", "check"),
    ApprovalStatus.SUPERSEDED: ("", "rotate-ccw"),
}
"""The look and icon of a card's states; all other states look bad."""
CALL_ENDING = frozenset({ApprovalStatus.DENIED, ApprovalStatus.EXPIRED})
"""The states of a card that end its call; a dismissal ends it too."""
TWICE = "It was requested again in between, so it probably happened twice"
LEVEL_ICONS = {
    "read": "eye",
    "draft": "file-pen",
    "write": "pencil-line",
    "destructive": "triangle-alert",
}


def describe(
    event: Event | OrganizationEvent, redaction: EventRedaction = NOTHING_REDACTED
) -> Description:
    """Describe the event; the redaction leaves out parts of its texts, inputs and results.

    For an unknown type, this returns a neutral line without facts: during an update, processes of
    the new version write events that this version does not know.
    """
    write = DESCRIBERS.get(event.type)
    if write is None:
        _log_unknown(str(event.type))
        return Description(
            f"Recorded by another version of Gadget: {event.type}", icon="circle-question-mark"
        )
    return write(event.payload, redaction)


@cache  # once for each type
def _log_unknown(type_: str) -> None:
    logger.warning("events of the type %r are from another version: they have no words here", type_)


# The run


def _describe_start(payload: Payload, _: EventRedaction) -> Description:
    by = payload.get("by") or ""
    facts = event_facts.list_start(payload)
    return Description(
        event_words.say_start(payload),
        f"Started by {by or 'a schedule'}",
        icon="play",
        by=by,
        facts=facts,
    )


def _describe_title(payload: Payload, redaction: EventRedaction) -> Description:
    title = redaction.redact_text(payload.get("title") or "")
    has_used = payload.get("input_tokens") or payload.get("output_tokens")
    return Description(
        event_words.say_title(payload, title),
        brief="" if title else "No name was found",
        icon="file-text",
        details=event_words.say_tokens(payload) if title and has_used else "",
    )


def _describe_wait(payload: Payload, redaction: EventRedaction) -> Description:
    if reason := redaction.redact_text(payload.get("reason") or ""):
        return Description(
            f"{reason} Nothing new starts", reason, spoken=reason, icon="ban", look="wait"
        )
    if waits := event_words.say_waits(payload):
        return Description(
            f"Waiting for {waits}", spoken=f"The run waits for {waits}", icon="clock", look="wait"
        )
    moment = "Waiting a moment: the approval can still be undone"
    return Description(moment, spoken=moment, icon="clock", look="wait")


def _describe_attention(_payload: Payload, _: EventRedaction) -> Description:
    return Description(
        "Needs attention: check whether the change happened, and report it on the card.",
        "Needs attention: an outcome is unknown",
        spoken="The run needs attention",
        look="bad",
    )


def _describe_resumption(payload: Payload, redaction: EventRedaction) -> Description:
    reason = redaction.redact_text(payload.get("reason") or "")
    by = "" if payload.get("by") == MACHINE else payload.get("by") or ""
    brief = reason or "Resumed"
    return Description(
        f"{brief} by {by}" if by else brief, brief, spoken=reason, icon="play", by=by
    )


def _describe_cancellation(payload: Payload, _: EventRedaction) -> Description:
    by = payload.get("by") or ""
    return Description(
        f"{by or 'Someone'} cancelled the run", spoken="Cancelling", icon="ban", by=by
    )


def _describe_vote(payload: Payload, _: EventRedaction) -> Description:
    by, needed = payload.get("by") or "", payload.get("still_needed")
    brief = (
        f"{by or 'Someone'} {'withdrew their approval' if payload.get('withdrawn') else 'approved'}"
    )
    words = f"{brief}. Still needed: {needed}" if needed else brief
    return Description(
        words, brief, spoken=brief, icon="users", by=by, card_id=payload.get("approval_id") or ""
    )


def _describe_delay(payload: Payload, redaction: EventRedaction) -> Description:
    words, reason = event_words.say_delay(payload), redaction.redact_text(payload.get("reason", ""))
    spoken, until = f"{words}; trying again", datetime.fromisoformat(payload["retry_at"])
    return Description(
        words,
        spoken=spoken,
        icon="hourglass",
        look="bad",
        text=reason,
        details=f"Attempt {payload['tries']} failed." if "tries" in payload else "",
        code=payload["code"],
        until=until,
    )


def _describe_end(payload: Payload, redaction: EventRedaction) -> Description:
    label = label_status(payload["status"], payload["exit_reason"], payload.get("outcome", ""))
    return Description(
        label.text,
        spoken=f"Run ended: {label.text}",
        icon=label.icon,
        look=label.look,
        markdown=redaction.redact_text(payload.get("answer") or ""),
        details=event_words.say_use(payload),
        heading="Answer" if label.look == "good" else label.text.partition(":")[0],
        reason=event_words.say_exit_reason(payload),
        result_name="answer" if payload["status"] == RunStatus.SUCCEEDED else "result",
        facts=event_facts.list_end(payload),
    )


# Passes and texts


def _describe_pass(payload: Payload, _: EventRedaction) -> Description:
    number = payload["pass_number"]
    return Description(f"Pass {number}", icon="rotate-ccw", look="pass", pass_number=number)


def _describe_answer(payload: Payload, redaction: EventRedaction) -> Description:
    return Description("Employee", icon="bot", markdown=redaction.redact_text(payload["text"]))


def _describe_thought(payload: Payload, redaction: EventRedaction) -> Description:
    return Description(
        f"Reasoning in pass {payload['pass_number']}",
        "Thought",
        icon="bot",
        text=redaction.redact_text(payload["text"]),
        is_shortened=bool(payload.get("truncated")),
    )


def _describe_message(payload: Payload, redaction: EventRedaction) -> Description:
    by, text = payload.get("by") or "", redaction.redact_text(payload["text"])
    words = f"{by or 'Someone'} sent a message"
    return Description(
        words, f"Message from {by or 'someone'}", spoken=words, icon="send", by=by, text=text
    )


# Notes about requests and responses


def _describe_cut(payload: Payload, _: EventRedaction) -> Description:
    words = event_words.say_cut(payload)
    return Description(words, spoken=words, look="bad")


def _describe_unusable(payload: Payload, redaction: EventRedaction) -> Description:
    words = event_words.say_unusable(payload)
    return Description(
        words, spoken=words, look="bad", text=redaction.redact_text(payload.get("text") or "")
    )


def _describe_adaptation(payload: Payload, _: EventRedaction) -> Description:
    return Description(
        event_words.say_adaptation(payload), "The request was adapted to the model's server"
    )


# Calls and their cards


def _describe_call_start(payload: Payload, redaction: EventRedaction) -> Description:
    brief = "The inputs are too large for the log" if payload.get("truncated") else "started"
    icon = LEVEL_ICONS.get(payload.get("level", ""), "wrench")
    about = {
        **_name_call(payload),
        "title": payload.get("display_name") or payload.get("tool") or "Call",
    }
    words = redaction.redact_summary(payload.get("summary") or "")
    return Description(words, brief, icon=icon, values=_redact_params(payload, redaction), **about)


def _describe_progress(payload: Payload, redaction: EventRedaction) -> Description:
    words, fraction = redaction.redact_summary(payload.get("text") or ""), payload.get("fraction")
    return Description(words, icon="loader-circle", fraction=fraction, **_name_call(payload))


def _describe_result(payload: Payload, redaction: EventRedaction) -> Description:
    result = payload["result"]
    look, icon, brief = (
        ("good", "check", "Done") if result.get("success") else ("bad", "x", "Failed")
    )
    words = redaction.redact_summary(result.get("summary") or "")
    return Description(
        words,
        words or brief,
        icon=icon,
        look=look,
        markdown=redaction.redact_summary(result.get("markdown") or ""),
        data=redaction.redact_data(payload.get("tool", ""), result.get("data")),
        is_shortened=bool(result.get("truncated")),
        code=(result.get("error") or {}).get("code", ""),
        facts=event_facts.list_call_end(payload),
        **_name_call(payload),
    )


def _describe_skip(payload: Payload, _: EventRedaction) -> Description:
    brief = "This repeats an earlier call"
    return Description(
        f"{brief}, whose result is used again.", brief, icon="equal", **_name_call(payload)
    )


def _describe_rejection(payload: Payload, redaction: EventRedaction) -> Description:
    reason = redaction.redact_summary(payload.get("reason") or "")
    return Description(
        "Not carried out",
        icon="x",
        look="bad",
        text=reason,
        code=payload.get("code") or "",
        **_name_call(payload),
    )


def _describe_request(payload: Payload, redaction: EventRedaction) -> Description:
    return Description(
        "Approval needed",
        icon="inbox",
        look="wait",
        sentence="" if redaction.values else payload.get("sentence", ""),
        values=_redact_params(payload, redaction),
        facts=event_facts.list_card(payload),
        **_name_call(payload),
    )


def _describe_decision(payload: Payload, redaction: EventRedaction) -> Description:
    """Describe the end of a card. A person's reason is redacted as a text; Gadget's reason is
    redacted as inputs are, because it may repeat them."""
    by, status = payload.get("decided_by") or "", ApprovalStatus(payload["status"])
    look, icon = CARD_LOOKS.get(status, ("bad", "ban"))
    redact = redaction.redact_text if status in DECISIONS else redaction.redact_summary
    is_dismissed = event_facts.is_dismissal(payload)
    done = "Dismissed" if is_dismissed else str(status.label)
    decided = f"{done} by {by}" if by and status in DECISIONS else done
    return Description(
        f"{decided}: there was nothing to do" if is_dismissed else decided,
        spoken=f"{decided[:1].lower()}{decided[1:]}",
        icon=icon,
        look=look,
        by=by,
        text=redact(payload.get("reason") or ""),
        is_outcome=is_dismissed or status in CALL_ENDING,
        next_card_id=payload.get("next_approval_id") or "",
        facts=event_facts.list_decision(payload),
        **_name_call(payload),
    )


def _describe_question(payload: Payload, redaction: EventRedaction) -> Description:
    return Description(
        "Question",
        icon="circle-question-mark",
        look="wait",
        text=redaction.redact_text(payload["text"]),
        facts=event_facts.list_question(payload),
        **_name_call(payload),
    )


def _describe_reply(payload: Payload, redaction: EventRedaction) -> Description:
    by = payload.get("by") or ""
    return Description(
        f"Answered by {by or 'someone'}",
        icon="circle-question-mark",
        look="good",
        by=by,
        text=redaction.redact_text(payload["text"]),
        facts=event_facts.list_reply(payload),
        **_name_call(payload),
    )


def _describe_resolution(payload: Payload, redaction: EventRedaction) -> Description:
    """Describe how the unknown outcome of a call was resolved. For a late report, only the brief
    words are set, because its reason says everything."""
    words = "" if payload["outcome"] == "late_report" else event_words.say_resolution(payload)
    return Description(
        words,
        words or "Reported late",
        icon="circle-check",
        by=payload.get("by") or "",
        text=redaction.redact_text(payload.get("reason") or ""),
        facts=event_facts.list_resolution(payload),
        **_name_call(payload),
    )


def _describe_late_effect(payload: Payload, redaction: EventRedaction) -> Description:
    return Description(
        "Marked as not done, but the tool says it happened",
        spoken="it happened after all",
        icon="triangle-alert",
        look="bad",
        text=redaction.redact_summary(payload.get("summary") or ""),
        details=TWICE if payload.get("done_again_by") else "",
        repeated_by=tuple(payload.get("done_again_by") or ()),
        facts=event_facts.list_late_effect(payload),
        **_name_call(payload),
    )


def _name_call(payload: Payload) -> dict[str, Any]:
    """Return the fields that name the event's call and card; the level is empty if the event lacks
    it."""
    return {
        "call_id": payload["call_id"],
        "title": payload.get("tool") or "Call",
        "level": payload.get("level") or "",
        "card_id": payload.get("approval_id") or "",
    }


def _redact_params(payload: Payload, redaction: EventRedaction) -> Any:
    return redaction.redact_inputs(payload.get("tool", ""), payload.get("params") or {})


# Facts of the organization


@dataclass(frozen=True)
class _OrganizationFact:
    """The words for a kind of fact about an organization.

    Attributes:
        kind: the kind of fact for other systems; None for a fact that concerns only one person.
    """

    words: str
    icon: str
    kind: _Fact | None

    def describe(self, payload: Payload, redaction: EventRedaction) -> Description:
        words = f"{self.words}: {payload['detail']}"
        return Description(
            words,
            self.words,
            icon=self.icon,
            look="bad",
            text=redaction.redact_summary(payload.get("reason") or ""),
            facts=event_facts.list_organization_fact(self.kind, payload, words)
            if self.kind
            else (),
        )


RUN_EVENTS: dict[str, Describer] = {
    EventType.RUN_STARTED: _describe_start,
    EventType.RUN_TITLED: _describe_title,
    EventType.RUN_WAITING: _describe_wait,
    EventType.RUN_NEEDS_ATTENTION: _describe_attention,
    EventType.RUN_RESUMED: _describe_resumption,
    EventType.CANCEL_REQUESTED: _describe_cancellation,
    EventType.APPROVAL_VOTED: _describe_vote,
    EventType.PROVIDER_DELAYED: _describe_delay,
    EventType.RUN_FINISHED: _describe_end,
}
"""The events about the state of a run, and the actions of people on it."""
TEXT_EVENTS: dict[str, Describer] = {
    EventType.PASS_STARTED: _describe_pass,
    EventType.ASSISTANT_MESSAGE: _describe_answer,
    EventType.ASSISTANT_THOUGHT: _describe_thought,
    EventType.MESSAGE_ADDED: _describe_message,
}
"""The events of passes, and of texts by people and the employee."""
NOTE_EVENTS: dict[str, Describer] = {
    EventType.ANSWER_CUT: _describe_cut,
    EventType.ANSWER_UNUSABLE: _describe_unusable,
    EventType.REQUEST_ADAPTED: _describe_adaptation,
    EventType.USAGE_REPORTED: lambda payload, _: Description(event_words.say_usage(payload)),
    EventType.HISTORY_SHORTENED: lambda payload, _: Description(
        event_words.say_shortening(payload)
    ),
}
"""The events that are notes about requests and responses; their words say everything."""
CALL_EVENTS: dict[str, Describer] = {
    EventType.TOOL_START: _describe_call_start,
    EventType.TOOL_PROGRESS: _describe_progress,
    EventType.TOOL_RESULT: _describe_result,
    EventType.TOOL_SKIPPED: _describe_skip,
    EventType.TOOL_REJECTED: _describe_rejection,
    EventType.APPROVAL_REQUESTED: _describe_request,
    EventType.APPROVAL_DECIDED: _describe_decision,
    EventType.CALL_RESOLVED: _describe_resolution,
    EventType.LATE_EFFECT: _describe_late_effect,
    EventType.QUESTION_ASKED: _describe_question,
    EventType.QUESTION_ANSWERED: _describe_reply,
}
"""The events of a call, which share one line of the panel."""
ORGANIZATION_EVENTS: dict[str, Describer] = {
    kind: _OrganizationFact(words, icon, fact).describe
    for kind, words, icon, fact in (
        (NoticeKind.STOPPED, "Work was stopped", "ban", _Fact.WORK_STOPPED),
        (NoticeKind.QUARANTINE, "Changed tools need review", "triangle-alert", _Fact.TOOLS_CHANGED),
        (NoticeKind.SCHEDULE, "A schedule did not start", "clock", _Fact.SCHEDULE_MISSED),
        (NoticeKind.GRANT_ENDED, "A standing grant ended", "clock", _Fact.GRANT_ENDED),
        (NoticeKind.TRIGGER_REFUSED, "A trigger refuses messages", "x", _Fact.TRIGGER_REFUSED),
        (NoticeKind.WEBHOOK_OFF, "A webhook was switched off", "ban", _Fact.WEBHOOK_DISABLED),
        (NoticeKind.CHANNEL_LOST, "A person's address no longer works", "x", None),
    )
}
"""The events of organizations: one for each of ORGANIZATION_KINDS."""
DESCRIBERS: dict[str, Describer] = {
    **RUN_EVENTS,
    **TEXT_EVENTS,
    **NOTE_EVENTS,
    **CALL_EVENTS,
    **ORGANIZATION_EVENTS,
}
"""The functions that describe events, by the event's type."""
