"""The outbox of webhooks: deliveries are written together with their facts, and sent later by workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max, OuterRef, Subquery
from django.db.models.functions import Now

from agents.approvals.models import Approval, ApprovalKind, ApprovalStatus
from agents.gateway.models import Ask
from agents.platform import notify
from agents.runs.models import Event, EventType, Origin, Run, RunStatus
from agents.webhooks.models import Webhook, WebhookDelivery, WebhookKind
from tools.contract import ErrorCode

Fields = Mapping[str, Any]
_OUTCOMES = ("succeeded", "failed", "not_done")
"""The ways in which the outcome of a call becomes known late."""


@dataclass(frozen=True)
class WebhookFact:
    """Something that happened in a run.

    Attributes:
        payload: ids, kinds and times.
        values: everything else, for webhooks that send values.
        due_at: the time before which nobody is told; None for at once.
    """

    kind: WebhookKind
    payload: dict[str, Any]
    values: dict[str, Any] = field(default_factory=dict)
    due_at: datetime | None = None


def has_webhooks(organization_id: int) -> bool:
    """Return True if the organization has an active webhook."""
    return Webhook.objects.filter(organization_id=organization_id, is_active=True).exists()


def add_deliveries(run: Run, events: Iterable[Event]) -> None:
    """Write the deliveries of these events of the run, inside the transaction that writes them and holds its lock.

    The caller knows that the organization has webhooks; the rest costs two statements.
    """
    events = list(events)
    facts = [(event.seq, fact) for event in events for fact in _list_facts(run, event)]
    if not facts:
        return
    if run.origin == Origin.ASK and any(_is_undone(event) for event in events):
        # nobody was told yet: an answer is due once it cannot be undone
        WebhookDelivery.objects.filter(run_id=run.pk, kind=WebhookKind.ASK_ANSWERED, tries=0).delete()
    earlier = WebhookDelivery.objects.filter(run_id=run.pk, webhook=OuterRef("pk")).order_by().values("webhook")
    webhooks = Webhook.objects.filter(organization_id=run.organization_id, is_active=True)
    rows: list[WebhookDelivery] = []
    for webhook in webhooks.annotate(last_seq=Subquery(earlier.annotate(last=Max("seq")).values("last"))):
        rows += _build_deliveries(webhook, run, facts)
    if rows:
        WebhookDelivery.objects.bulk_create(rows)
        transaction.on_commit(notify.request_delivery)


def _build_deliveries(webhook: Any, run: Run, facts: list[tuple[int, WebhookFact]]) -> list[WebhookDelivery]:
    """Build the deliveries to one webhook; each names the one before it, so that a receiver notices a gap."""
    rows, previous, last = [], webhook.last_seq, webhook.last_seq
    for seq, fact in facts:
        if fact.kind not in webhook.kinds:
            continue
        if last != seq:
            previous, last = last, seq
        rows.append(
            WebhookDelivery(
                webhook=webhook,
                kind=fact.kind,
                run_id=run.pk,
                seq=seq,
                previous_seq=previous,
                payload={"run_id": str(run.pk), "employee_id": str(run.employee_id), **fact.payload},
                values=fact.values if webhook.sends_values else {},
                due_at=Now() if fact.due_at is None else fact.due_at,
            )
        )
    return rows


def _is_undone(event: Event) -> bool:
    return event.type == EventType.APPROVAL_DECIDED and event.payload["status"] == ApprovalStatus.SUPERSEDED


def _list_facts(run: Run, event: Event) -> list[WebhookFact]:
    """List the facts that the event is about."""
    build = _BUILDERS.get(event.type)
    return build(run, event.payload) if build else []


def _build_start(run: Run, payload: Fields) -> list[WebhookFact]:
    values = {"task": run.task, "by": payload["by"]}
    return [WebhookFact(WebhookKind.RUN_STARTED, {"origin": str(run.origin)}, values)]


def _build_end(run: Run, payload: Fields) -> list[WebhookFact]:
    is_failed = payload["status"] == RunStatus.FAILED
    names = ("status", "exit_reason", "outcome")
    values = {"answer": payload["answer"], "problem": run.problem}
    kind = WebhookKind.RUN_FAILED if is_failed else WebhookKind.RUN_FINISHED
    return [WebhookFact(kind, {name: payload[name] for name in names}, values)]


def _build_card(_run: Run, payload: Fields) -> list[WebhookFact]:
    return [
        WebhookFact(
            WebhookKind.CARD_OPENED,
            {
                "card": "approval",
                **_read_ids(payload),
                "level": payload["level"],
                "digest": payload["digest"],
                "expires_at": payload["expires_at"],
            },
            {name: payload[name] for name in ("tool", "sentence", "params")},
        )
    ]


def _build_question(_run: Run, payload: Fields) -> list[WebhookFact]:
    values = {name: payload[name] for name in ("text", "choices")}
    ids = {"card": "question", **_read_ids(payload), "expires_at": payload["expires_at"]}
    return [WebhookFact(WebhookKind.CARD_OPENED, ids, values)]


def _build_decision(run: Run, payload: Fields) -> list[WebhookFact]:
    kind = WebhookKind.CARD_EXPIRED if payload["status"] == "expired" else WebhookKind.CARD_DECIDED
    values = {"decided_by": payload["decided_by"], "reason": payload["reason"]}
    decided = {"card": "approval", **_read_ids(payload), "status": payload["status"]}
    facts = [WebhookFact(kind, decided, values)]
    if run.origin == Origin.ASK and payload["status"] != ApprovalStatus.SUPERSEDED:
        facts += _build_ask_answer(run, payload)
    return facts


def _build_ask_answer(run: Run, payload: Fields) -> list[WebhookFact]:
    """Build the answer to an ask; it is told once the time to undo it is over."""
    ask = Ask.objects.values_list("pk", flat=True).get(run_id=run.pk)
    start = Approval.objects.filter(pk=int(payload["approval_id"])).values_list("start_after", flat=True).first()
    ids = {"ask_id": str(ask), "approval_id": payload["approval_id"]}
    return [WebhookFact(WebhookKind.ASK_ANSWERED, ids, due_at=start)]


def _build_answer(_run: Run, payload: Fields) -> list[WebhookFact]:
    values = {"decided_by": payload["by"], "text": payload["text"]}
    decided = {"card": "question", **_read_ids(payload), "status": "answered"}
    return [WebhookFact(WebhookKind.CARD_DECIDED, decided, values)]


def _build_call_end(_run: Run, payload: Fields) -> list[WebhookFact]:
    result = payload["result"]
    error = result.get("error") or {}
    status = "succeeded" if result["success"] else "failed"
    if error.get("code") == ErrorCode.OUTCOME_UNKNOWN:
        status = "unknown"
    ids = {"call_id": payload["call_id"], "status": status, "duration_ms": payload["duration_ms"]}
    facts = [WebhookFact(WebhookKind.CALL_EXECUTED, ids, {"tool": payload["tool"], "result": result})]
    return facts + (_build_unknown_card(WebhookKind.CARD_OPENED, payload) if status == "unknown" else [])


def _build_resolution(_run: Run, payload: Fields) -> list[WebhookFact]:
    outcome = payload["outcome"]
    ids = {"call_id": payload["call_id"], "status": outcome}
    values = {"by": payload["by"], "reason": payload["reason"]}
    facts = [WebhookFact(WebhookKind.CALL_EXECUTED, ids, values)] if outcome in _OUTCOMES else []
    closes = outcome != "late_report"
    return facts + (_build_unknown_card(WebhookKind.CARD_DECIDED, payload, status=outcome) if closes else [])


def _build_late_effect(_run: Run, payload: Fields) -> list[WebhookFact]:
    ids = {"call_id": payload["call_id"], "status": "happened_after_all"}
    facts = [WebhookFact(WebhookKind.CALL_EXECUTED, ids, {"summary": payload["summary"]})]
    return facts + _build_unknown_card(WebhookKind.CARD_OPENED, payload)


def _build_unknown_card(kind: WebhookKind, payload: Fields, **more: str) -> list[WebhookFact]:
    """Build the fact about the card that asks what a call did, if the call has one."""
    cards = Approval.objects.filter(tool_call_id=int(payload["call_id"]), kind=ApprovalKind.UNKNOWN)
    card = cards.order_by("-pk").values_list("pk", flat=True).first()
    ids = {"card": "unknown_outcome", "approval_id": str(card), "call_id": payload["call_id"]}
    return [] if card is None else [WebhookFact(kind, {**ids, **more})]


def _read_ids(payload: Fields) -> dict[str, str]:
    return {name: payload[name] for name in ("approval_id", "call_id")}


_BUILDERS: dict[str, Callable[[Run, Fields], list[WebhookFact]]] = {
    EventType.RUN_STARTED: _build_start,
    EventType.RUN_FINISHED: _build_end,
    EventType.APPROVAL_REQUESTED: _build_card,
    EventType.QUESTION_ASKED: _build_question,
    EventType.APPROVAL_DECIDED: _build_decision,
    EventType.QUESTION_ANSWERED: _build_answer,
    EventType.TOOL_RESULT: _build_call_end,
    EventType.CALL_RESOLVED: _build_resolution,
    EventType.LATE_EFFECT: _build_late_effect,
}
"""By the type of an event, the function that builds its facts; events of other types are told to nobody."""
