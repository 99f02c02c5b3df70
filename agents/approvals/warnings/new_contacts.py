"""Find contacts on cards that the organization has not used before."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.db.models import Case, F, JSONField, TextField, Value, When
from django.db.models.functions import Cast, Length, Lower

from agents.accounts.models import Membership
from agents.runs.models import Approval, ApprovalStatus
from tools.caches import Cache
from tools.contract.contacts import EMAIL, HOST, MAX_CONTACTS, Contact, list_contacts, walk_texts
from tools.contract.outside_text import quote_excerpt
from tools.registries.records import RECORD_STORE

MAX_CHECKED = 20
"""The most contacts that are checked for one card."""
MAX_EARLIER = 2_000
"""The number of approved cards that are searched, beginning with the newest."""
MAX_READ = 50
"""The most approved cards that are read for one contact; a contact that none of them contains
counts as new."""
MAX_LENGTH = 20_000
"""The most characters of an approved card's params; cards with longer params are not read."""
MAX_TOGETHER = 5_000
"""The most contacts in one query, because databases limit a query's size."""
USED = (ApprovalStatus.APPROVED, ApprovalStatus.CONSUMED)
_Key = tuple[str, str]
"""A contact's kind and value, which are the same for a host with and without `www.`."""
_TEXTS: Cache[tuple[int, str], str] = Cache(10_000_000, weigh=lambda text: len(text) + 100)
"""The texts in the params of approved cards, in lower case, by organization and digest."""
_KEYS: Cache[tuple[int, str], frozenset[_Key]] = Cache(4_000)
"""The contacts in the params of approved cards, by organization and digest."""


@dataclass(frozen=True)
class NewContacts:
    """The new contacts of one card.

    Attributes:
        contacts: the contacts that the organization has not used before.
        unchecked: the number of further contacts that were not checked.
        is_cut: True if the card has even more contacts than were counted.
    """

    contacts: tuple[Contact, ...] = ()
    unchecked: int = 0
    is_cut: bool = False

    @property
    def text(self) -> str:
        """The contacts in words: `host “new.example”, 2 more contacts not checked`."""
        parts = [f"{contact.kind} {quote_excerpt(contact.value)}" for contact in self.contacts]
        if self.unchecked:
            word = "contact" if self.unchecked == 1 else "contacts"
            least = "at least " if self.is_cut else ""
            parts.append(f"{least}{self.unchecked} more {word} not checked")
        return ", ".join(parts)


def find_new_contacts(
    organization_id: int, contacts: Mapping[int, Sequence[Contact]]
) -> dict[int, NewContacts]:
    """Find, by card id, the contacts that appear in no record, no approved card and no member's
    account. Cards without such contacts are left out.

    Costs at most five queries for 5,000 different contacts.

    Args:
        contacts: the contacts of waiting cards, by card id.
    """
    checked = {pk: tuple(each[:MAX_CHECKED]) for pk, each in contacts.items()}
    wanted = list(dict.fromkeys(contact for each in checked.values() for contact in each))
    known: set[str] = set()
    for start in range(0, len(wanted), MAX_TOGETHER):
        known |= _find_known(organization_id, wanted[start : start + MAX_TOGETHER])
    rest = {_get_key(contact) for contact in wanted if contact.value not in known}
    approved = _find_approved(organization_id, rest) if rest else set()
    found = {
        pk: NewContacts(
            tuple(
                contact
                for contact in each
                if contact.value not in known and _get_key(contact) not in approved
            ),
            unchecked=len(contacts[pk]) - len(each),
            is_cut=len(contacts[pk]) >= MAX_CONTACTS,
        )
        for pk, each in checked.items()
    }
    return {pk: new for pk, new in found.items() if new.contacts or new.unchecked}


def _find_known(organization_id: int, contacts: Collection[Contact]) -> set[str]:
    emails = {contact.value for contact in contacts if contact.kind == EMAIL}
    hosts = {contact.value for contact in contacts if contact.kind == HOST}
    # Not sorted, because a sorted query would not use the index on addresses.
    records = RECORD_STORE.get().get_records(organization_id).order_by()
    known: set[str] = set()
    if emails:
        with_email = records.annotate(lower=Lower("email")).filter(lower__in=emails)
        known.update(with_email.values_list("lower", flat=True).distinct())
        members = Membership.objects.filter(organization_id=organization_id).annotate(
            lower=Lower("user__email")
        )
        known.update(members.filter(lower__in=emails).values_list("lower", flat=True))
    if hosts:
        spelled = {host: {host, _cut_www(host), f"www.{host}"} for host in hosts}
        every = set().union(*spelled.values())
        with_domain = records.annotate(lower=Lower("domain")).filter(lower__in=every)
        domains = set(with_domain.values_list("lower", flat=True).distinct())
        known.update(host for host, names in spelled.items() if names & domains)
    return known


def _find_approved(organization_id: int, wanted: Collection[_Key]) -> set[_Key]:
    """Find which of these contacts are in the params of an approved card.

    A text that contains a contact's value may only be a part of a longer contact, so the card's own
    contacts are compared.
    """
    used = Approval.objects.filter(organization_id=organization_id, status__in=USED)
    newest = used.order_by("-pk").values_list("pk", "digest")[:MAX_EARLIER]
    digests = dict(newest)
    texts = {pk: _TEXTS.get((organization_id, digest)) for pk, digest in digests.items()}
    unread = [pk for pk, text in texts.items() if text is None]
    for pk, params in _load_params(unread) if unread else ():
        texts[pk] = "\n".join(text for _, text in walk_texts(params)).casefold()
        _TEXTS.put((organization_id, digests[pk]), texts[pk] or "")
    holding: dict[int, str] = {}
    for _, value in wanted:
        folded = value.casefold()
        having = (pk for pk, text in texts.items() if text and folded in text)
        holding |= {pk: digests[pk] for pk in islice(having, MAX_READ)}
    return _read_keys(organization_id, holding) if holding else set()


def _read_keys(organization_id: int, digests: Mapping[int, str]) -> set[_Key]:
    """Read the contacts of these approved cards, with one query for those that are not cached."""
    found = {pk: _KEYS.get((organization_id, digest)) for pk, digest in digests.items()}
    unread = [pk for pk, keys in found.items() if keys is None]
    for pk, params in _load_params(unread) if unread else ():
        found[pk] = frozenset(_list_keys(params))
        _KEYS.put((organization_id, digests[pk]), found[pk] or frozenset())
    return {key for keys in found.values() for key in keys or ()}


def _load_params(ids: Collection[int]) -> Iterator[tuple[int, Any]]:
    """Load the params of these cards by id; an empty object stands for params that are too long."""
    rows = Approval.objects.filter(pk__in=ids).annotate(length=Length(Cast("params", TextField())))
    short = Case(When(length__lte=MAX_LENGTH, then=F("params")), default=Value({}, JSONField()))
    return iter(rows.values_list("pk", short))


def _list_keys(params: Any) -> Iterator[_Key]:
    """Yield the key of each contact in the params, and of the host of each email address."""
    for contact in list_contacts(params):
        yield _get_key(contact)
        if contact.kind == EMAIL:
            yield HOST, _cut_www(contact.value.rpartition("@")[2])


def _get_key(contact: Contact) -> _Key:
    return contact.kind, _cut_www(contact.value) if contact.kind == HOST else contact.value


def _cut_www(host: str) -> str:
    return host.removeprefix("www.")
