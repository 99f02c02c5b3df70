"""The outbox of webhooks: a reader of events that writes their deliveries, which workers send
later."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, assert_never

from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from agents.approvals.resolutions import ACKNOWLEDGED
from agents.gateway.models import Ask
from agents.platform import notify
from agents.readers.reading import Reader
from agents.runs.descriptions import describe
from agents.runs.event_facts import UNKNOWN_CARD, EventFact, FactKind
from agents.runs.models import Approval, ApprovalKind, ApprovalStatus, Event, EventType, Origin, Run
from agents.webhooks.models import Webhook, WebhookDelivery, WebhookDeliveryStatus, WebhookKind


@dataclass(frozen=True)
class WebhookFact:
    """A fact of a run.

    Attributes:
        payload: ids, kinds and times.
        values: everything else, for webhooks that send values.
        due_at: the time before which it is not sent; None for at once.
    """

    kind: WebhookKind
    payload: dict[str, Any]
    values: dict[str, Any] = field(default_factory=dict)
    due_at: datetime | None = None


@dataclass(frozen=True)
class ToldFact:
    """A fact with the event that it is from."""

    event: Event
    fact: WebhookFact


def select_events() -> QuerySet[Event]:
    """Select the events of organizations with an active webhook, with their runs."""
    active = Webhook.objects.filter(
        organization_id=OuterRef("run__organization_id"), is_active=True
    )
    return Event.objects.filter(Exists(active)).select_related("run")


def write_deliveries(events: Sequence[Event]) -> None:
    """Write the deliveries of these events, with a few statements for any number.

    A webhook gets no facts from before it was added or switched on. An event with deliveries is
    skipped: during an update, an older process may have written them.
    """
    undone = {
        event.run_id: event.seq
        for event in events
        if event.run.origin == Origin.ASK and _is_undone(event)
    }
    if undone:  # not sent yet: a response is due once it cannot be undone
        responses = WebhookDelivery.objects.filter(run_id__in=undone, kind=WebhookKind.ASK_ANSWERED)
        responses.filter(Q(tries=0) | Q(status=WebhookDeliveryStatus.DROPPED)).delete()
    told = [ToldFact(event, fact) for event in events for fact in _list_facts(event)]
    told = [
        each
        for each in told
        if each.fact.kind != WebhookKind.ASK_ANSWERED or not _is_before(each.event, undone)
    ]
    if rows := _build_deliveries(told) if told else []:
        WebhookDelivery.objects.bulk_create(rows)
        transaction.on_commit(notify.request_delivery)


def _is_before(event: Event, seqs: dict[int, int]) -> bool:
    return event.seq < seqs.get(event.run_id, 0)


def _build_deliveries(told: Sequence[ToldFact]) -> list[WebhookDelivery]:
    """Build the deliveries, each with the number of the run's preceding event sent to its
    webhook."""
    runs = {each.event.run_id: each.event.run for each in told}
    earlier = WebhookDelivery.objects.filter(run_id__in=runs).order_by()
    ends = earlier.values_list("run_id", "webhook_id").annotate(last=Max("seq"))
    last: dict[tuple[int, int], int] = {
        (run_id, webhook_id): seq for run_id, webhook_id, seq in ends
    }
    of_these = earlier.filter(seq__in={each.event.seq for each in told})
    written = set(of_these.values_list("run_id", "webhook_id", "seq"))
    previous: dict[tuple[int, int], int | None] = {}
    webhooks = _load_webhooks(run.organization_id for run in runs.values())
    rows = []
    for each in told:
        for webhook in webhooks[each.event.run.organization_id]:
            chain, seq = (each.event.run_id, webhook.pk), each.event.seq
            if not _is_told(webhook, each) or (*chain, seq) in written:
                continue
            if last.get(chain) != seq:
                previous[chain], last[chain] = last.get(chain), seq
            rows.append(_build_delivery(webhook, each, previous[chain]))
    return rows


def _load_webhooks(organization_ids: Iterable[int]) -> Mapping[int, list[Webhook]]:
    """Load the active webhooks of these organizations."""
    found = defaultdict[int, list[Webhook]](list)
    for webhook in Webhook.objects.filter(
        organization_id__in=set(organization_ids), is_active=True
    ).order_by("pk"):
        found[webhook.organization_id].append(webhook)
    return found


def _is_told(webhook: Webhook, told: ToldFact) -> bool:
    return told.fact.kind in webhook.kinds and told.event.created_at >= webhook.told_from


def _build_delivery(webhook: Webhook, told: ToldFact, previous_seq: int | None) -> WebhookDelivery:
    event, fact, run = told.event, told.fact, told.event.run
    return WebhookDelivery(
        webhook=webhook,
        kind=fact.kind,
        run_id=run.pk,
        seq=event.seq,
        previous_seq=previous_seq,
        payload={"run_id": str(run.pk), "employee_id": str(run.employee_id), **fact.payload},
        values=fact.values if webhook.sends_values else {},
        due_at=Now() if fact.due_at is None else fact.due_at,
        wanted_at=event.created_at,
        created_at=event.created_at,
    )


def _is_undone(event: Event) -> bool:
    return (
        event.type == EventType.APPROVAL_DECIDED
        and event.payload["status"] == ApprovalStatus.SUPERSEDED
    )


def _list_facts(event: Event) -> list[WebhookFact]:
    """List the facts that the event is about."""
    built = [_build_fact(event.run, fact) for fact in describe(event).facts]
    return [fact for fact in built if fact is not None]


def _build_fact(run: Run, fact: EventFact) -> WebhookFact | None:
    """Complete a fact with data outside the event; None if it is not sent."""
    kind = WebhookKind(fact.kind.value)
    match fact.kind:
        case FactKind.RUN_STARTED:
            return WebhookFact(kind, {"origin": str(run.origin)}, {"task": run.task, **fact.values})
        case FactKind.RUN_FINISHED | FactKind.RUN_FAILED:
            return WebhookFact(kind, fact.ids, {**fact.values, "problem": run.problem})
        case FactKind.ASK_ANSWERED:
            return _build_ask_decision(run, fact) if run.origin == Origin.ASK else None
        case FactKind.CARD_OPENED | FactKind.CARD_DECIDED if fact.ids["card"] == UNKNOWN_CARD:
            return _build_unknown_card(fact)
        case (
            FactKind.CARD_OPENED
            | FactKind.CARD_DECIDED
            | FactKind.CARD_EXPIRED
            | FactKind.CALL_EXECUTED
        ):
            return WebhookFact(kind, fact.ids, fact.values)
        case _:
            assert_never(fact.kind)


def _build_ask_decision(run: Run, fact: EventFact) -> WebhookFact:
    """Build the fact of a response to an ask, sent once it cannot be undone."""
    ask = Ask.objects.values_list("pk", flat=True).get(run_id=run.pk)
    card = Approval.objects.filter(pk=int(fact.ids["approval_id"]))
    start = card.values_list("start_after", flat=True).first()
    return WebhookFact(WebhookKind.ASK_ANSWERED, {"ask_id": str(ask), **fact.ids}, due_at=start)


def _build_unknown_card(fact: EventFact) -> WebhookFact | None:
    """Build the fact about the card of a call's unknown outcome, if it has one.

    A call has at most two: one for the unknown outcome, and one for a late effect, which people
    acknowledge. The event of the second one names it.
    """
    ids = {"card": UNKNOWN_CARD, **fact.ids}
    if "approval_id" not in ids:
        cards = Approval.objects.filter(tool_call_id=int(ids["call_id"]), kind=ApprovalKind.UNKNOWN)
        order = "-pk" if ids.get("status") == ACKNOWLEDGED else "pk"
        card = cards.order_by(order).values_list("pk", flat=True).first()
        if card is None:
            return None
        ids["approval_id"] = str(card)
    return WebhookFact(WebhookKind(fact.kind.value), ids)


READER = Reader("webhooks", Event, select_events, write_deliveries)
