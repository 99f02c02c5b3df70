"""The outbox of notices: events are read and turned into notices, which workers send later."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import assert_never

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from agents.accounts.models.organization_event import OrganizationEvent
from agents.accounts.notice_facts import NoticeKind
from agents.notices.models import FollowedRun, Notice
from agents.platform import notify
from agents.readers.reading import Reader
from agents.runs.models import (
    Approval,
    ApprovalKind,
    ApprovalStatus,
    Event,
    EventType,
    ExitReason,
    Origin,
    Run,
    RunStatus,
)
from tools.contract import ErrorCode

MAX_DETAIL = 200
_ORIGINS_OF_PEOPLE = (Origin.TASK, Origin.SCHEDULE, Origin.TRIGGER, Origin.MCP)
"""The origins of runs whose end may be of interest to people."""
_CARD_COLUMNS = ("organization_id", "run_id", "tool_call_id", "standing_grant_id", "broke_glass")


@dataclass(frozen=True)
class EventRows:
    """The database rows to which some events refer.

    Attributes:
        cards: the cards that the events name, by id.
        unknown: the cards that ask for the outcome of a call, by the id of the call.
        followed: the ids of the followed runs.
    """

    cards: Mapping[int, Approval]
    unknown: Mapping[int, Approval]
    followed: frozenset[int]

    @classmethod
    def load(cls, events: Sequence[Event]) -> EventRows:
        """Load the rows with at most three queries, however many events there are."""
        card_ids = [
            int(event.payload["approval_id"]) for event in events if event.type in _CARD_TYPES
        ]
        call_ids = [
            int(event.payload["call_id"]) for event in events if event.type == EventType.TOOL_RESULT
        ]
        ended = [event.run_id for event in events if event.type == EventType.RUN_FINISHED]
        cards = Approval.objects.filter(run_id__in={event.run_id for event in events}).only(
            *_CARD_COLUMNS
        )
        unknown = cards.filter(tool_call_id__in=call_ids, kind=ApprovalKind.UNKNOWN).order_by("-pk")
        return cls(
            {card.pk: card for card in cards.filter(pk__in=card_ids)} if card_ids else {},
            # The newest cards come first, so the dict keeps the oldest card of each call.
            {card.tool_call_id: card for card in unknown} if call_ids else {},
            frozenset(
                FollowedRun.objects.filter(run_id__in=ended).values_list("run_id", flat=True)
                if ended
                else ()
            ),
        )

    def list_notices(self, event: Event) -> Iterator[Notice]:
        """List the notices to write for an event."""
        match event.type:
            case EventType.RUN_FINISHED:
                yield from self._list_ends(event)
            case EventType.TOOL_RESULT:
                card = self.unknown.get(int(event.payload["call_id"]))
                if card is not None:
                    yield build_card_notice(NoticeKind.UNKNOWN, card)
            case _:
                find_kind = _CARD_TYPES[EventType(event.type)]
                card = self.cards.get(int(event.payload["approval_id"]))
                if card is not None and (kind := find_kind(event, card)) is not None:
                    yield build_card_notice(kind, card)

    def _list_ends(self, event: Event) -> Iterator[Notice]:
        run, payload = event.run, event.payload
        if run.origin in _ORIGINS_OF_PEOPLE or run.pk in self.followed:
            has_failed = payload["status"] == RunStatus.FAILED
            kind = NoticeKind.RUN_FAILED if has_failed else NoticeKind.RUN_ENDED
            yield build_run_notice(kind, run, event.seq, payload["status"])
        if payload["exit_reason"] == ExitReason.BUDGET_EXHAUSTED:
            yield build_budget_notice(event)


def _find_decision_kind(event: Event, card: Approval) -> NoticeKind | None:
    """Find the kind of notice to write when a card is closed; None if nobody is notified."""
    status = ApprovalStatus(event.payload["status"])
    match status:
        case ApprovalStatus.EXPIRED:
            return NoticeKind.CARD_EXPIRED
        case ApprovalStatus.APPROVED:
            return NoticeKind.BREAK_GLASS if card.broke_glass else None
        case (
            ApprovalStatus.PENDING
            | ApprovalStatus.DENIED
            | ApprovalStatus.ANSWERED
            | ApprovalStatus.CANCELLED
            | ApprovalStatus.SUPERSEDED
            | ApprovalStatus.CONSUMED
        ):
            return None
        case _:
            assert_never(status)


_CARD_TYPES: Mapping[EventType, Callable[[Event, Approval], NoticeKind | None]] = {
    EventType.APPROVAL_REQUESTED: lambda _, card: (
        NoticeKind.CARD if card.standing_grant_id is None else None
    ),
    EventType.APPROVAL_DECIDED: _find_decision_kind,
    EventType.QUESTION_ASKED: lambda *_: NoticeKind.QUESTION,
    EventType.LATE_EFFECT: lambda *_: NoticeKind.UNKNOWN,
}
"""The types of events that name their card, each with a function that returns the kind of notice to
write, or None if nobody is notified."""


def select_events() -> QuerySet[Event]:
    """Select the events that may require notices, with their runs and employees."""
    unknown = Q(
        type=EventType.TOOL_RESULT, payload__result__error__code=ErrorCode.OUTCOME_UNKNOWN.value
    )
    events = Event.objects.filter(Q(type__in=(*_CARD_TYPES, EventType.RUN_FINISHED)) | unknown)
    return events.select_related("run__employee")


def write_notices(events: Sequence[Event]) -> None:
    """Write the notices of these events of runs."""
    rows = EventRows.load(events)
    add_notices([notice for event in events for notice in rows.list_notices(event)])


def write_organization_notices(events: Sequence[OrganizationEvent]) -> None:
    """Write the notices of these events of organizations, except for people whose account was
    removed or who ended their own standing grant."""
    for_one = {event.payload["user_id"] for event in events} - {None}
    users = {None, *User.objects.filter(pk__in=for_one).values_list("pk", flat=True)}
    add_notices(
        [
            build_organization_notice(event)
            for event in events
            if event.payload["user_id"] in users and not _is_own_end(event)
        ]
    )


def _is_own_end(event: OrganizationEvent) -> bool:
    return event.type == NoticeKind.GRANT_ENDED and event.payload["user_id"] is None


def add_notices(notices: Sequence[Notice]) -> None:
    """Write the missing notices, inside the caller's transaction, and ask the workers to send
    them."""
    if notices:
        Notice.objects.bulk_create(notices, ignore_conflicts=True)
        send_soon()


def build_card_notice(kind: NoticeKind, card: Approval) -> Notice:
    """Build the notice of a card; a card has only one notice of each kind."""
    about = {"run_id": card.run_id, "approval_id": card.pk}
    return Notice(organization_id=card.organization_id, kind=kind, key=f"{kind}:{card.pk}", **about)


def build_run_notice(kind: NoticeKind, run: Run, seq: int, status: str = "") -> Notice:
    """Build the notice that a run has ended with this status. Its key contains the event's number,
    because a continued run may end again."""
    return Notice(
        organization_id=run.organization_id,
        kind=kind,
        key=f"{kind}:{run.pk}:{seq + 1}",
        run_id=run.pk,
        detail=status,
    )


def build_budget_notice(end: Event) -> Notice:
    """Build the notice that a used-up budget ends the employee's runs; there is one such notice per
    month."""
    run, kind = end.run, NoticeKind.BUDGET
    key = f"{kind}:{run.employee_id}:{end.created_at:%Y-%m}"
    detail = f"runs of {run.employee.name}"[:MAX_DETAIL]
    return Notice(organization_id=run.organization_id, kind=kind, key=key, detail=detail)


def build_organization_notice(event: OrganizationEvent) -> Notice:
    """Build the notice of an organization's event."""
    payload = event.payload
    about = {"user_id": payload["user_id"], "detail": payload["detail"][:MAX_DETAIL]}
    key = f"{event.type}:{payload['key']}"
    return Notice(organization_id=event.organization_id, kind=event.type, key=key, **about)


def add_notice(notice: Notice) -> bool:
    """Write the notice unless it exists, in a separate transaction; return True if it was new."""
    try:
        with transaction.atomic():
            notice.save(force_insert=True)
    except IntegrityError:
        return False
    send_soon()
    return True


def send_soon() -> None:
    """Ask the workers to send due notices, after the commit. The workers also check every few
    seconds."""
    transaction.on_commit(partial(notify.request_delivery))


READERS = (
    Reader("notices", Event, select_events, write_notices),
    Reader(
        "notices of organizations",
        OrganizationEvent,
        OrganizationEvent.objects.all,
        write_organization_notices,
    ),
)
