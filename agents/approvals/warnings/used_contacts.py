"""The contacts that an organization has used, indexed in memory to find those that resemble a new
contact."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from agents.accounts.models import Membership
from tools.caches import Cache
from tools.contract.contacts import EMAIL, HOST
from tools.contract.known_contacts import KnownContacts, Likeness
from tools.registries.records import RECORD_STORE

MAX_RECORDS = 20_000
"""The maximum number of records whose addresses are read together, beginning with the records that
were changed last."""
MAX_INDEXED = 60_000
"""The maximum number of contacts in an index; a larger index is built again, without contacts that
are no longer used."""
MAX_INDEXES = 10
"""The maximum number of organizations whose indexes one process keeps."""
OVERLAP = timedelta(minutes=10)
"""The time before the last update from which changes are read again, because a long transaction
makes its changes visible late."""


class UsedContacts:
    """The contacts of one organization's records, members and approved cards.

    A contact stays when its record is deleted, because it was in use.

    Attributes:
        digests: the digests of the approved cards whose contacts were added.
    """

    def __init__(self, organization_id: int) -> None:
        self._organization_id = organization_id
        self._known = KnownContacts()
        self.digests: set[str] = set()
        self._changed_at: datetime | None = None
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._known)

    def update(self, approved: Iterable[tuple[str, frozenset[tuple[str, str]]]]) -> None:
        """Add the contacts that were changed since the last update, with two queries.

        Args:
            approved: the digests of approved cards, with the kinds and values of their contacts.
        """
        with self._lock:
            for digest, keys in approved:
                self.digests.add(digest)
                for kind, value in keys:
                    self._known.add(kind, value)
            for email, domain in (*self._load_records(), *self._load_members()):
                if email:
                    self._known.add(EMAIL, email.lower())
                if domain:
                    self._known.add(HOST, domain.lower())

    def describe(self, kind: str, value: str) -> Likeness | None:
        """Describe the used contact that a new contact resembles; None if there is none."""
        with self._lock:
            return self._known.describe(kind, value)

    def _load_records(self) -> Iterator[tuple[str, str]]:
        rows = RECORD_STORE.get().get_records(self._organization_id).order_by("-updated_at", "-pk")
        if self._changed_at is not None:
            rows = rows.filter(updated_at__gte=self._changed_at - OVERLAP)
        for email, domain, changed_at in rows.values_list("email", "domain", "updated_at")[
            :MAX_RECORDS
        ]:
            self._changed_at = max(changed_at, self._changed_at or changed_at)
            yield email, domain

    def _load_members(self) -> Iterator[tuple[str, str]]:
        members = Membership.objects.filter(organization_id=self._organization_id)
        emails = members.exclude(user__email="").values_list("user__email", flat=True)
        return ((email, "") for email in emails)


_INDEXES: Cache[int, UsedContacts] = Cache(MAX_INDEXES)
"""The index of each organization."""


def get_used_contacts(organization_id: int) -> UsedContacts:
    """Return the organization's index, as it was when it was last updated."""
    index = _INDEXES.get_or_load(organization_id, lambda: UsedContacts(organization_id))
    if len(index) > MAX_INDEXED:
        index = UsedContacts(organization_id)
        _INDEXES.put(organization_id, index)
    return index
