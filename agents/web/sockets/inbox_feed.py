"""The feed of an organization's inbox: the number of pending cards, the stop of the organization,
and changed cards.

A page with the list of waiting cards gets the rows of new cards, as HTML, and the ids of cards that
no longer wait. A page that missed changes notices this by the numbers in each message, and reloads
its list. Other sockets get one message for each card that is new or no longer waits, with its
status.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.template.loader import get_template

from agents.accounts.models import Organization
from agents.approvals.attention import LOOKS, Look, find_claims
from agents.approvals.votes import HAS_VOTES, list_voters
from agents.runs.models import IS_PENDING, Approval, ApprovalStatus
from agents.web.jinja_environment import JINJA
from agents.web.lists.inbox_rows import load_new_rows, render_rows
from agents.web.sockets.database import database_to_async
from agents.web.sockets.feeds import Feed, Subscriber
from agents.web.sockets.viewers import Viewer, filter_allowed
from tools.toolbox import ProcessRateLimiter

MAX_KEPT_CHANGES = 100
MAX_KEPT_PRESENCE = 20
MAX_NEW_ROWS = 50
"""The maximum number of new rows in one message; a page reloads its list if there are more."""


@dataclass(frozen=True)
class InboxChange:
    """The cards that are new, or no longer wait, since the previous reading.

    Attributes:
        html: the rows of the new cards; empty if no page shows rows, or if there are too many.
        gone: the ids of the cards that no longer wait.
        statuses: the current status of each of these cards, by its id; empty if every subscriber
            shows rows.
        voters: the people who have approved a waiting card that needs more approvals, for each card
            on which approvals were added or withdrawn.
    """

    html: str
    gone: tuple[int, ...]
    statuses: Mapping[int, str]
    voters: Mapping[int, Sequence[str]] = field(default_factory=dict)

    def build_messages(self, *, has_rows: bool) -> list[str]:
        """Build a message for each card: `{"type": "card_changed", "payload": {"approval_id": "7",
        "status"}}`.

        After a vote or its withdrawal, the payload also has the usernames in `approved_by`.

        Args:
            has_rows: True if the page gets these cards in another message.
        """
        pending = ApprovalStatus.PENDING.value
        statuses = {} if has_rows else self.statuses
        payloads: list[dict[str, Any]] = [
            {"approval_id": str(pk), "status": each} for pk, each in statuses.items()
        ]
        for pk, names in self.voters.items():
            payloads.append({"approval_id": str(pk), "status": pending, "approved_by": list(names)})
        return [
            json.dumps({"type": "card_changed", "payload": each}, ensure_ascii=False)
            for each in payloads
        ]


@dataclass(frozen=True)
class SeenInbox:
    """The findings of a reading: the ids of waiting cards, and the people who have approved cards
    that need more approvals."""

    ids: frozenset[int]
    voters: Mapping[int, tuple[str, ...]]

    def find_changed_voters(self, known: SeenInbox) -> dict[int, tuple[str, ...]]:
        """Find the cards that still wait and whose approvals have changed, with the people who
        approved."""
        still = self.ids & known.ids & (self.voters.keys() | known.voters.keys())
        changed = (
            pk for pk in sorted(still) if self.voters.get(pk, ()) != known.voters.get(pk, ())
        )
        return {pk: self.voters.get(pk, ()) for pk in changed}


@dataclass(frozen=True)
class InboxState:
    """The state of the inbox, which sockets send whenever it changes.

    Attributes:
        newest: the id of the newest pending card, so that replacing a card also counts as a change.
        claims: the claims on cards, each with the id of the call, the username and the end in
            seconds since 1970.
        stopped_by: the person who stopped the organization; empty if it is not stopped.
    """

    pending: int
    newest: int
    stopped_by: str = ""
    stopped_at: datetime | None = None
    claims: tuple[tuple[int, str, float], ...] = ()

    def to_json(self, changes: Sequence[InboxChange] | None) -> str:
        """Build the message: `{"type": "inbox_changed", "payload": {"pending": 2, "stopped": {"by",
        "at"}}, "html"}`.

        The HTML is the banner of the stop. For a page with the list, the payload also has `newest`,
        the ids that are `gone` and the `claims`, and `rows` has the new rows as HTML.

        Args:
            changes: the changes of the list; None for pages without the list.
        """
        stopped, html = None, ""
        if self.stopped_at is not None:
            stopped = {"by": self.stopped_by, "at": self.stopped_at.isoformat()}
            banner = get_template("parts/stop_banner.html", using=JINJA)
            html = banner.render({"stopped_by": self.stopped_by, "stopped_at": self.stopped_at})
        payload: dict[str, Any] = {"pending": self.pending, "stopped": stopped}
        message = {"type": "inbox_changed", "payload": payload, "html": html}
        if changes is not None:
            payload |= {
                "newest": self.newest,
                "gone": [str(pk) for change in changes for pk in change.gone],
            }
            payload["claims"] = [
                {"call": str(call), "by": by, "until": until} for call, by, until in self.claims
            ]
            message["rows"] = "".join(change.html for change in changes)
        return json.dumps(message, ensure_ascii=False)


class InboxSubscriber(Subscriber):
    """A socket that watches the inbox.

    Attributes:
        wants_rows: True if its page shows the list of waiting cards.
        sent_state: the state that it sent last.
        sent_changes: the number of the feed's changes that it has sent; None before the first
            message.
    """

    sent_state: InboxState | None = None
    sent_changes: int | None = None

    def __init__(self, viewer: Viewer, wants_rows: bool = False) -> None:
        super().__init__(viewer)
        self.wants_rows = wants_rows
        self.presence: deque[str] = deque(maxlen=MAX_KEPT_PRESENCE)
        self._limiter = ProcessRateLimiter()

    def may_show_itself(self) -> bool:
        """Return True if the viewer may be shown to others now, which is at most as often as LOOKS
        allows."""
        return not self._limiter.seconds_to_wait("looks", LOOKS)


class InboxFeed(Feed):
    """The feed that reads one organization's inbox: its state, and the changes that its subscribers
    need."""

    def __init__(self, group: str, organization_id: int) -> None:
        super().__init__(group)
        self.organization_id = organization_id
        self.state: InboxState | None = None
        self.change_count = 0
        self._changes: deque[InboxChange] = deque(maxlen=MAX_KEPT_CHANGES)
        self._known: SeenInbox | None = None

    async def read(self) -> None:
        viewers = {subscriber.viewer for subscriber in self.subscribers}
        wanted = frozenset(
            each.wants_rows for each in self.subscribers if isinstance(each, InboxSubscriber)
        )
        found = await _read_inbox(self.organization_id, viewers, wanted, self._known)
        allowed, self.state, self._known, change = found
        if change is not None:
            self._changes.append(change)
            self.change_count += 1
        self.revoke_lost_access(viewers, allowed)
        self.wake_subscribers()

    def receive(self, message: dict[str, Any]) -> None:
        """Notify the pages with the list that a person is viewing a card."""
        look = Look.from_hint(message)
        if look is None:
            return
        text = json.dumps(look.to_json(), ensure_ascii=False)
        for each in self.subscribers:
            if isinstance(each, InboxSubscriber) and each.wants_rows:
                each.presence.append(text)
                each.news.set()

    def take_messages(self, subscriber: InboxSubscriber) -> list[str]:
        """Return the messages about the state and the changes that the subscriber has not sent."""
        if self.state is None:
            return []
        changes = self._take_changes(subscriber)
        has_news = subscriber.wants_rows and any(change.html or change.gone for change in changes)
        is_new = self.state != subscriber.sent_state or has_news
        subscriber.sent_state = self.state
        has_rows = subscriber.wants_rows
        messages = [text for change in changes for text in change.build_messages(has_rows=has_rows)]
        return (
            [*messages, self.state.to_json(changes if subscriber.wants_rows else None)]
            if is_new
            else messages
        )

    def _take_changes(self, subscriber: InboxSubscriber) -> list[InboxChange]:
        """Return the changes that the subscriber's socket has not sent yet, and count them as sent.

        The list is empty if some of these changes are no longer kept.
        """
        sent = self.change_count if subscriber.sent_changes is None else subscriber.sent_changes
        subscriber.sent_changes = self.change_count
        unsent = self.change_count - sent
        return list(self._changes)[-unsent:] if 0 < unsent <= len(self._changes) else []


@database_to_async
def _read_inbox(
    organization_id: int, viewers: set[Viewer], wanted: frozenset[bool], known: SeenInbox | None
) -> tuple[set[Viewer], InboxState, SeenInbox, InboxChange | None]:
    """Read the state, the waiting cards with their voters, and the differences from the known
    cards.

    The state is computed from the same ids as the differences, so that a page can tell by its
    numbers whether it has missed a change.

    Args:
        wanted: contains True if a subscriber shows rows, and False if a subscriber does not.
    """
    cards = Approval.objects.filter(organization_id=organization_id)
    waiting = cards.filter(IS_PENDING).order_by().annotate(has_votes=HAS_VOTES)
    has_votes = dict(waiting.values_list("pk", "has_votes"))
    ids = frozenset(has_votes)
    seen = SeenInbox(ids, list_voters(organization_id) if any(has_votes.values()) else {})
    change = None
    if known is not None and seen != known:
        html = _render_new_rows(organization_id, ids - known.ids) if True in wanted else ""
        changed = (
            cards.filter(pk__in=ids ^ known.ids).order_by("pk") if False in wanted else cards.none()
        )
        statuses = dict(changed.values_list("pk", "status")) if ids != known.ids else {}
        change = InboxChange(
            html, tuple(sorted(known.ids - ids)), statuses, seen.find_changed_voters(known)
        )
    stops = Organization.objects.filter(pk=organization_id, stopped_at__isnull=False)
    stopped_by, stopped_at = stops.values_list("stopped_by", "stopped_at").first() or ("", None)
    claims = find_claims(organization_id)
    taken = tuple(
        (call, each.user.get_username(), each.until.timestamp()) for call, each in claims.items()
    )
    state = InboxState(len(ids), max(ids, default=0), stopped_by, stopped_at, taken)
    return filter_allowed(viewers), state, seen, change


def _render_new_rows(organization_id: int, ids: frozenset[int]) -> str:
    if not 0 < len(ids) <= MAX_NEW_ROWS:
        return ""
    return render_rows(load_new_rows(Organization.objects.get(pk=organization_id), ids))
