"""The readers of events that write the deliveries of webhooks, which workers send later."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, assert_never

from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from agents.accounts.models.organization_event import OrganizationEvent
from agents.approvals.resolutions import ACKNOWLEDGED
from agents.approvals.warnings.card_marks import load_marks
from agents.approvals.warnings.marks import Mark
from agents.gateway.models import Ask
from agents.platform import notify
from agents.readers.reading import Reader
from agents.runs.descriptions import describe
from agents.runs.event_facts import UNKNOWN_CARD, EventFact, FactKind
from agents.runs.models import Approval, ApprovalKind, ApprovalStatus, Event, EventType, Origin, Run
from agents.webhooks.models import Webhook, WebhookDelivery, WebhookDeliveryStatus, WebhookKind


@dataclass(frozen=True)
class WebhookFact:
    """A fact of a run or an organization, in the form in which webhooks send it.

    Attributes:
        payload: ids, kinds and times.
        values: everything else, for webhooks that send values.
        due_at: the time before which the fact is not sent; None to send it immediately.
    """

    kind: WebhookKind
    payload: dict[str, Any]
    values: dict[str, Any] = field(default_factory=dict)
    due_at: datetime | None = None

    def with_marks(self, marks: Sequence[Mark]) -> WebhookFact:
        """Return the fact with the marks of its card."""
        kinds = [{"kind": mark.kind, "label": mark.label} for mark in marks]
        return replace(
            self,
            payload={**self.payload, "marks": kinds},
            values={**self.values, "marks": [mark.as_json() for mark in marks]},
        )


@dataclass(frozen=True)
class ToldFact:
    """A fact with the event that contains it.

    Attributes:
        run_id: the run's id; None for a fact of the organization.
        seq: the number of the run's event, or the id of the organization's event.
        created_at: the time of the event.
    """

    fact: WebhookFact
    organization_id: int
    run_id: int | None
    seq: int
    created_at: datetime

    @classmethod
    def of_run(cls, event: Event, fact: WebhookFact) -> ToldFact:
        """Build a fact of a run, and add the ids of the run and the employee."""
        ids = {"run_id": str(event.run_id), "employee_id": str(event.run.employee_id)}
        told = replace(fact, payload={**ids, **fact.payload})
        return cls(told, event.run.organization_id, event.run_id, event.seq, event.created_at)


def select_events() -> QuerySet[Event]:
    """Select the events of organizations with an active webhook, with their runs."""
    return Event.objects.filter(_has_webhook("run__organization_id")).select_related("run")


def select_organization_events() -> QuerySet[OrganizationEvent]:
    """Select the events that do not belong to a run, for organizations with an active webhook."""
    return OrganizationEvent.objects.filter(_has_webhook("organization_id"))


def _has_webhook(organization_id: str) -> Exists:
    active = Webhook.objects.filter(organization_id=OuterRef(organization_id), is_active=True)
    return Exists(active)


def write_deliveries(events: Sequence[Event]) -> None:
    """Write the deliveries of these events, with a few statements, however many events there are.

    A webhook gets no facts from before it was added or switched on. An event that already has
    deliveries is skipped, because during an update an older process may have written them.
    """
    undone = {
        event.run_id: event.seq
        for event in events
        if event.run.origin == Origin.ASK and _is_undone(event)
    }
    # An undone decision's deliveries can still be deleted: they are due only when the decision can
    # no longer be undone.
    if undone:
        responses = WebhookDelivery.objects.filter(run_id__in=undone, kind=WebhookKind.ASK_ANSWERED)
        responses.filter(Q(tries=0) | Q(status=WebhookDeliveryStatus.DROPPED)).delete()
    told = [
        ToldFact.of_run(event, fact)
        for event in events
        for fact in _list_facts(event)
        if fact.kind != WebhookKind.ASK_ANSWERED or not _is_before(event, undone)
    ]
    _write_told(
        _add_marks(told),
        WebhookDelivery.objects.filter(run_id__in={event.run_id for event in events}),
    )


def _add_marks(told: Sequence[ToldFact]) -> list[ToldFact]:
    """Add the marks of opened cards; their details are only for webhooks that send values."""
    ids = {pk for each in told if (pk := _get_marked(each)) is not None}
    rows = Approval.objects.filter(pk__in=ids).select_related("tool_call", "run__organization")
    found = load_marks(rows) if ids else {}
    return [
        each
        if (card_id := _get_marked(each)) is None
        else replace(each, fact=each.fact.with_marks(found.get(card_id, ())))
        for each in told
    ]


def _get_marked(told: ToldFact) -> int | None:
    """Return the id of the approval if the fact is that its card was opened; None otherwise."""
    payload = told.fact.payload
    is_opened = told.fact.kind == WebhookKind.CARD_OPENED and payload.get("card") == "approval"
    return int(payload["approval_id"]) if is_opened else None


def _is_before(event: Event, seqs: dict[int, int]) -> bool:
    return event.seq < seqs.get(event.run_id, 0)


def write_organization_deliveries(events: Sequence[OrganizationEvent]) -> None:
    """Write the deliveries of these events, which do not belong to a run, as `write_deliveries`
    does."""
    told = []
    for event in events:
        for found in describe(event).facts:
            fact = WebhookFact(WebhookKind(found.kind.value), found.ids, found.values)
            told.append(ToldFact(fact, event.organization_id, None, event.pk, event.created_at))
    webhooks = Webhook.objects.filter(organization_id__in={each.organization_id for each in told})
    earlier = WebhookDelivery.objects.filter(run_id=None, webhook_id__in=webhooks.values("pk"))
    _write_told(told, earlier)


def _write_told(told: Sequence[ToldFact], earlier: QuerySet[WebhookDelivery]) -> None:
    """Write the deliveries of these facts.

    Args:
        earlier: the deliveries about the same runs; for facts of organizations, the deliveries to
            the same webhooks that are about no run.
    """
    if rows := _build_deliveries(told, earlier) if told else []:
        WebhookDelivery.objects.bulk_create(rows)
        transaction.on_commit(notify.request_delivery)


def _build_deliveries(
    told: Sequence[ToldFact], earlier: QuerySet[WebhookDelivery]
) -> list[WebhookDelivery]:
    """Build the deliveries, each with the number of the previous event sent to its webhook."""
    earlier = earlier.order_by()
    ends = earlier.values_list("run_id", "webhook_id").annotate(last=Max("seq"))
    last: dict[tuple[int | None, int], int] = {
        (run_id, webhook_id): seq for run_id, webhook_id, seq in ends
    }
    of_these = earlier.filter(seq__in={each.seq for each in told})
    written = set(of_these.values_list("run_id", "webhook_id", "seq"))
    previous: dict[tuple[int | None, int], int | None] = {}
    webhooks = _load_webhooks(each.organization_id for each in told)
    rows = []
    for each in told:
        for webhook in webhooks[each.organization_id]:
            chain = (each.run_id, webhook.pk)
            if not _is_told(webhook, each) or (*chain, each.seq) in written:
                continue
            if last.get(chain) != each.seq:
                previous[chain], last[chain] = last.get(chain), each.seq
            rows.append(_build_delivery(webhook, each, previous[chain]))
    return rows


def _load_webhooks(organization_ids: Iterable[int]) -> Mapping[int, list[Webhook]]:
    """Load the active webhooks of these organizations, by organization id."""
    found = defaultdict[int, list[Webhook]](list)
    for webhook in Webhook.objects.filter(
        organization_id__in=set(organization_ids), is_active=True
    ).order_by("pk"):
        found[webhook.organization_id].append(webhook)
    return found


def _is_told(webhook: Webhook, told: ToldFact) -> bool:
    return told.fact.kind in webhook.kinds and told.created_at >= webhook.told_from


def _build_delivery(webhook: Webhook, told: ToldFact, previous_seq: int | None) -> WebhookDelivery:
    fact = told.fact
    return WebhookDelivery(
        webhook=webhook,
        kind=fact.kind,
        run_id=told.run_id,
        seq=told.seq,
        previous_seq=previous_seq,
        payload=fact.payload,
        values=fact.values if webhook.sends_values else {},
        due_at=Now() if fact.due_at is None else fact.due_at,
        wanted_at=told.created_at,
        created_at=told.created_at,
    )


def _is_undone(event: Event) -> bool:
    return (
        event.type == EventType.APPROVAL_DECIDED
        and event.payload["status"] == ApprovalStatus.SUPERSEDED
    )


def _list_facts(event: Event) -> list[WebhookFact]:
    """List the facts in the event that webhooks send."""
    built = [_build_fact(event.run, fact) for fact in describe(event).facts]
    return [fact for fact in built if fact is not None]


def _build_fact(run: Run, fact: EventFact) -> WebhookFact | None:
    """Complete a fact with data that the event lacks; return None if webhooks do not send it."""
    kind = WebhookKind(fact.kind.value)
    match fact.kind:
        case FactKind.RUN_STARTED:
            return WebhookFact(kind, {"origin": str(run.origin)}, {"task": run.task, **fact.values})
        case FactKind.RUN_FINISHED | FactKind.RUN_FAILED:
            return WebhookFact(kind, fact.ids, {"problem": run.problem, **fact.values})
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
        case (
            FactKind.WORK_STOPPED
            | FactKind.TOOLS_CHANGED
            | FactKind.SCHEDULE_MISSED
            | FactKind.GRANT_ENDED
            | FactKind.TRIGGER_REFUSED
            | FactKind.WEBHOOK_DISABLED
        ):
            raise ValueError(f"{fact.kind} is not a fact about a run")
        case _:
            assert_never(fact.kind)


def _build_ask_decision(run: Run, fact: EventFact) -> WebhookFact:
    """Build the fact that an ask was decided, which is sent once the decision can no longer be
    undone."""
    ask = Ask.objects.values_list("pk", flat=True).get(run_id=run.pk)
    card = Approval.objects.filter(pk=int(fact.ids["approval_id"]))
    start = card.values_list("start_after", flat=True).first()
    return WebhookFact(WebhookKind.ASK_ANSWERED, {"ask_id": str(ask), **fact.ids}, due_at=start)


def _build_unknown_card(fact: EventFact) -> WebhookFact | None:
    """Build the fact about the card for a call's unknown outcome; None if the call has no such
    card.

    A call has at most two such cards: one for the unknown outcome, and one for a late effect, which
    people acknowledge. Only the event about a late effect names its card.
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


READERS = (
    Reader("webhooks", Event, select_events, write_deliveries),
    Reader(
        "webhooks of organizations",
        OrganizationEvent,
        select_organization_events,
        write_organization_deliveries,
    ),
)
