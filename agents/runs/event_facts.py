"""List the facts in events for other systems, such as receivers of webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agents.runs.models import ApprovalStatus, RunStatus
from tools.contract import ErrorCode

UNKNOWN_CARD = "unknown_outcome"
"""The name that facts use for cards about unknown outcomes."""
_OUTCOMES = ("succeeded", "failed", "not_done")
"""The outcomes of a call that can become known late."""


class FactKind(StrEnum):
    """The kinds of facts for other systems."""

    RUN_STARTED = "run.started"
    RUN_FINISHED = "run.finished"
    RUN_FAILED = "run.failed"
    CARD_OPENED = "card.opened"
    CARD_DECIDED = "card.decided"
    CARD_EXPIRED = "card.expired"
    CALL_EXECUTED = "call.executed"
    ASK_ANSWERED = "ask.answered"
    """Used only for runs that are an agent's ask."""
    WORK_STOPPED = "work.stopped"
    TOOLS_CHANGED = "tools.changed"
    SCHEDULE_MISSED = "schedule.missed"
    GRANT_ENDED = "grant.ended"
    TRIGGER_REFUSED = "trigger.refused"
    WEBHOOK_DISABLED = "webhook.disabled"


@dataclass(frozen=True)
class EventFact:
    """A fact for other systems.

    Attributes:
        ids: ids, kinds, statuses, times and the like, but no texts or data.
        values: everything else.
    """

    kind: FactKind
    ids: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)


Payload = Mapping[str, Any]
Facts = tuple[EventFact, ...]


def list_start(payload: Payload) -> Facts:
    """List the fact that a run started."""
    return (EventFact(FactKind.RUN_STARTED, values=_take(payload, "by")),)


def list_end(payload: Payload) -> Facts:
    """List the fact that a run ended."""
    kind = FactKind.RUN_FAILED if payload["status"] == RunStatus.FAILED else FactKind.RUN_FINISHED
    return (
        EventFact(
            kind,
            _take(payload, "status", "exit_reason", "outcome"),
            _take(payload, "answer", "problem"),
        ),
    )


def list_card(payload: Payload) -> Facts:
    """List the fact that a card waits for a decision, unless a standing grant approves it."""
    if payload.get("preapproved"):
        return ()
    ids = {
        "card": "approval",
        **_take(payload, "approval_id", "call_id", "level", "digest", "expires_at"),
    }
    return (EventFact(FactKind.CARD_OPENED, ids, _take(payload, "tool", "sentence", "params")),)


def list_question(payload: Payload) -> Facts:
    """List the fact that a question waits for an answer."""
    ids = {"card": "question", **_take(payload, "approval_id", "call_id", "expires_at")}
    return (EventFact(FactKind.CARD_OPENED, ids, _take(payload, "text", "choices")),)


def list_decision(payload: Payload) -> Facts:
    """List the facts about a closed card; if the card was replaced, its ask stays open.

    Answered questions are left out, because `list_reply` lists them, from the event that has the
    answer's text.
    """
    if payload["status"] == ApprovalStatus.ANSWERED and not is_dismissal(payload):
        return ()
    kind = (
        FactKind.CARD_EXPIRED
        if payload["status"] == ApprovalStatus.EXPIRED
        else FactKind.CARD_DECIDED
    )
    ids = {
        "card": payload.get("kind") or "approval",
        **_take(payload, "approval_id", "call_id", "status", "dismissed"),
    }
    closed = EventFact(kind, ids, _take(payload, "decided_by", "reason"))
    if payload["status"] == ApprovalStatus.SUPERSEDED:
        return (closed,)
    return (closed, EventFact(FactKind.ASK_ANSWERED, _take(payload, "approval_id")))


def is_dismissal(payload: Payload) -> bool:
    """Return True if a person dismissed the card.

    Older events lack the field `dismissed`. But only a dismissed card has a reason: a card that
    became ANSWERED by an answer has none.
    """
    is_answered = payload["status"] == ApprovalStatus.ANSWERED
    return is_answered and bool(payload.get("dismissed") or payload.get("reason"))


def list_reply(payload: Payload) -> Facts:
    """List the fact that a question was answered."""
    ids = {"card": "question", **_take(payload, "approval_id", "call_id"), "status": "answered"}
    values = {"decided_by": payload.get("by"), **_take(payload, "text")}
    return (EventFact(FactKind.CARD_DECIDED, ids, values),)


def list_call_end(payload: Payload) -> Facts:
    """List the facts about the end of a call; if the outcome is unknown, also the card about it."""
    result = payload["result"]
    is_unknown = (result.get("error") or {}).get("code") == ErrorCode.OUTCOME_UNKNOWN
    status = "unknown" if is_unknown else "succeeded" if result.get("success") else "failed"
    ids = {"call_id": payload["call_id"], "status": status, **_take(payload, "duration_ms")}
    ended = EventFact(FactKind.CALL_EXECUTED, ids, _take(payload, "tool", "result"))
    return (ended, _build_unknown_card(FactKind.CARD_OPENED, payload)) if is_unknown else (ended,)


def list_resolution(payload: Payload) -> Facts:
    """List the facts about an outcome that became known; a late report does not close a card."""
    outcome, facts = payload["outcome"], []
    if outcome in _OUTCOMES:
        ids = {"call_id": payload["call_id"], "status": outcome}
        facts.append(EventFact(FactKind.CALL_EXECUTED, ids, _take(payload, "by", "reason")))
    if outcome != "late_report":
        facts.append(_build_unknown_card(FactKind.CARD_DECIDED, payload, status=outcome))
    return tuple(facts)


def list_late_effect(payload: Payload) -> Facts:
    """List the facts about a call that has happened after all."""
    ids = {"call_id": payload["call_id"], "status": "happened_after_all"}
    happened = EventFact(FactKind.CALL_EXECUTED, ids, _take(payload, "summary"))
    return (
        happened,
        _build_unknown_card(FactKind.CARD_OPENED, payload, **_take(payload, "approval_id")),
    )


def list_organization_fact(kind: FactKind, payload: Payload, summary: str) -> Facts:
    """List a fact about an organization, which does not belong to a run."""
    reason = {"reason": payload["reason"]} if payload.get("reason") else {}
    return (EventFact(kind, dict(payload.get("ids", {})), {"summary": summary, **reason}),)


def _build_unknown_card(kind: FactKind, payload: Payload, **more: str) -> EventFact:
    """Build the fact about the card for an unknown outcome, without the card's id, which most
    events lack."""
    return EventFact(kind, {"card": UNKNOWN_CARD, "call_id": payload["call_id"], **more})


def _take(payload: Payload, *names: str) -> dict[str, Any]:
    """Take the fields that the payload has; older events may lack some."""
    return {name: payload[name] for name in names if name in payload}
