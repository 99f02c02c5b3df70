"""The outbox of webhooks: deliveries are written together with their facts, and sent later by workers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, assert_never

from django.db import transaction
from django.db.models import Max, OuterRef, QuerySet, Subquery
from django.db.models.functions import Now

from agents.gateway.models import Ask
from agents.platform import notify
from agents.runs.descriptions import describe
from agents.runs.event_facts import UNKNOWN_CARD, EventFact, FactKind
from agents.runs.models import Approval, ApprovalKind, ApprovalStatus, Event, EventType, Origin, Run
from agents.webhooks.models import Webhook, WebhookDelivery, WebhookKind


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


def select_webhooks(organization_id: int | OuterRef) -> QuerySet[Any]:
    """Select the organization's active webhooks."""
    return Webhook.objects.filter(organization_id=organization_id, is_active=True)


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
    webhooks = select_webhooks(run.organization_id)
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
    built = [_build_fact(run, fact) for fact in describe(event).facts]
    return [fact for fact in built if fact is not None]


def _build_fact(run: Run, fact: EventFact) -> WebhookFact | None:
    """Add to a fact what the event does not know; None if nobody is told."""
    kind = WebhookKind(fact.kind.value)
    match fact.kind:
        case FactKind.RUN_STARTED:
            return WebhookFact(kind, {"origin": str(run.origin)}, {"task": run.task, **fact.values})
        case FactKind.RUN_FINISHED | FactKind.RUN_FAILED:
            return WebhookFact(kind, fact.ids, {**fact.values, "problem": run.problem})
        case FactKind.ASK_ANSWERED:
            return _build_ask_answer(run, fact) if run.origin == Origin.ASK else None
        case FactKind.CARD_OPENED | FactKind.CARD_DECIDED if fact.ids["card"] == UNKNOWN_CARD:
            return _build_unknown_card(fact)
        case FactKind.CARD_OPENED | FactKind.CARD_DECIDED | FactKind.CARD_EXPIRED | FactKind.CALL_EXECUTED:
            return WebhookFact(kind, fact.ids, fact.values)
        case _:
            assert_never(fact.kind)


def _build_ask_answer(run: Run, fact: EventFact) -> WebhookFact:
    """Build the answer to an ask; it is told once the time to undo it is over."""
    ask = Ask.objects.values_list("pk", flat=True).get(run_id=run.pk)
    card = Approval.objects.filter(pk=int(fact.ids["approval_id"]))
    start = card.values_list("start_after", flat=True).first()
    return WebhookFact(WebhookKind.ASK_ANSWERED, {"ask_id": str(ask), **fact.ids}, due_at=start)


def _build_unknown_card(fact: EventFact) -> WebhookFact | None:
    """Build the fact about the card that asks what a call did, if the call has one."""
    cards = Approval.objects.filter(tool_call_id=int(fact.ids["call_id"]), kind=ApprovalKind.UNKNOWN)
    card = cards.order_by("-pk").values_list("pk", flat=True).first()
    ids = {"card": UNKNOWN_CARD, "approval_id": str(card), **fact.ids}
    return None if card is None else WebhookFact(WebhookKind(fact.kind.value), ids)
