"""Find contacts on cards that the organization has not used before."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any, NamedTuple

from django.db.models import Case, F, JSONField, TextField, Value, When
from django.db.models.functions import Cast, Length, Lower, Right

from agents.accounts.models import Membership
from agents.approvals.warnings.used_contacts import get_used_contacts
from agents.runs.models import APPROVED_STATES, Approval
from tools.caches import Cache
from tools.contract.account_numbers import is_bank_code
from tools.contract.contacts import (
    ACCOUNT,
    EMAIL,
    HOST,
    MAX_CONTACTS,
    PHONE,
    Contact,
    list_contacts,
    walk_texts,
)
from tools.contract.outside_text import quote_excerpt
from tools.registries.records import RECORD_STORE

MAX_CHECKED = 20
"""The maximum number of contacts that are checked for one card."""
MAX_EARLIER = 2_000
"""The maximum number of approved cards that are searched, beginning with the newest."""
MAX_READ = 50
"""The maximum number of approved cards that are read for one contact; a contact that is not on any
of these cards is considered new."""
MAX_LENGTH = 20_000
"""The maximum length, in characters, of an approved card's params; cards with longer params are not
read."""
MAX_TOGETHER = 5_000
"""The maximum number of contacts in one query, because databases limit a query's size."""
_LAST_DIGITS, _LAST_JOINED_DIGITS = 2, 6
"""The number of last digits that are compared to find a phone number in records and in texts,
because phone numbers can be written in many ways."""
_SEPARATORS = str.maketrans("", "", " .,/_-()")
"""Characters that may group an account or phone number."""
_Key = tuple[str, str]
"""A contact's kind and value, which are the same for a host with and without `www.`."""
MAX_INDEXED = 1_000_000
"""The maximum number of characters of approved cards, beginning with the newest, whose contacts are
compared with new contacts."""
_TEXTS: Cache[tuple[int, str], str] = Cache(10_000_000, weigh=lambda text: len(text) + 100)
"""The texts in the params of approved cards, in lower case, by organization and digest."""
_KEYS: Cache[tuple[int, str], frozenset[_Key]] = Cache(4_000)
"""The contacts in the params of approved cards, by organization and digest."""


class _ApprovedCard(NamedTuple):
    """The digest of an approved card, and the texts in its params, in lower case."""

    digest: str
    text: str


class NewContact(NamedTuple):
    """A contact that the organization has not used before.

    Attributes:
        likeness: the similarity to `other`, as `describe_likeness` puts it; empty if the contact
            does not resemble a used one.
        other: the contact in use that it resembles.
    """

    kind: str
    value: str
    likeness: str = ""
    other: str = ""

    def __str__(self) -> str:
        like = f", which {self.likeness} {quote_excerpt(self.other)}" if self.other else ""
        return f"{self.kind} {quote_excerpt(self.value)}{like}"


@dataclass(frozen=True)
class NewContacts:
    """The new contacts of one card.

    Attributes:
        contacts: the contacts that the organization has not used before.
        unchecked: the number of further contacts that were not checked.
        is_cut: True if the card has even more contacts than were counted.
    """

    contacts: tuple[NewContact, ...] = ()
    unchecked: int = 0
    is_cut: bool = False

    @property
    def text(self) -> str:
        """The contacts in words: `host “new.example”, 2 more contacts not checked`."""
        parts = [str(contact) for contact in self.contacts]
        if self.unchecked:
            word = "contact" if self.unchecked == 1 else "contacts"
            least = "at least " if self.is_cut else ""
            parts.append(f"{least}{self.unchecked} more {word} not checked")
        return ", ".join(parts)


def find_new_contacts(
    organization_id: int, contacts: Mapping[int, Sequence[Contact]]
) -> dict[int, NewContacts]:
    """Find, by card id, the contacts that do not appear in any record, approved card or member's
    account, each with a used contact that it resembles. Cards without new contacts are left out.

    This takes at most nine queries for 5,000 different contacts.

    Args:
        contacts: the contacts of waiting cards, by card id.
    """
    checked = {pk: tuple(each[:MAX_CHECKED]) for pk, each in contacts.items()}
    wanted = list(dict.fromkeys(contact for each in checked.values() for contact in each))
    known: set[str] = set()
    for start in range(0, len(wanted), MAX_TOGETHER):
        known |= _find_known(organization_id, wanted[start : start + MAX_TOGETHER])
    rest = [contact for contact in wanted if contact.value not in known]
    new = _describe_new(organization_id, rest) if rest else {}
    found = {
        pk: NewContacts(
            tuple(new[contact] for contact in each if contact in new),
            unchecked=len(contacts[pk]) - len(each),
            is_cut=len(contacts[pk]) >= MAX_CONTACTS,
        )
        for pk, each in checked.items()
    }
    return {pk: one for pk, one in found.items() if one.contacts or one.unchecked}


def _describe_new(organization_id: int, contacts: Collection[Contact]) -> dict[Contact, NewContact]:
    """Find the contacts that are not in any approved card, and the used contact that each of them
    resembles."""
    cards = _load_approved(organization_id)
    approved = _find_approved(organization_id, set(map(_get_key, contacts)), cards)
    new = [contact for contact in contacts if _get_key(contact) not in approved]
    if not new:
        return {}
    used = get_used_contacts(organization_id)
    lengths = accumulate(len(card.text) for card in cards.values())
    indexed = {
        pk: card
        for (pk, card), length in zip(cards.items(), lengths, strict=True)
        if length <= MAX_INDEXED and card.digest not in used.digests
    }
    used.update(_read_keys(organization_id, indexed).items())
    likeness = {each: used.describe(each.kind, each.value) or ("", "") for each in new}
    return {each: NewContact(each.kind, each.value, *likeness[each]) for each in new}


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
    if phones := {contact.value for contact in contacts if contact.kind == PHONE}:
        ends = {phone[-_LAST_DIGITS:] for phone in phones}
        alike = records.annotate(end=Right("phone", _LAST_DIGITS)).filter(end__in=ends)
        stored = alike.values_list("phone", flat=True).distinct()
        known.update(contact.value for phone in stored for contact in list_contacts(phone))
    return known


def _load_approved(organization_id: int) -> dict[int, _ApprovedCard]:
    """Load the newest approved cards, by id, in one query, and in a second one the texts that are
    not cached."""
    used = Approval.objects.filter(organization_id=organization_id, status__in=APPROVED_STATES)
    newest = used.order_by("-pk").values_list("pk", "digest")[:MAX_EARLIER]
    digests = dict(newest)
    texts = {pk: _TEXTS.get((organization_id, digest)) for pk, digest in digests.items()}
    unread = [pk for pk, text in texts.items() if text is None]
    for pk, params in _load_params(unread) if unread else ():
        texts[pk] = "\n".join(text for _, text in walk_texts(params)).casefold()
        _TEXTS.put((organization_id, digests[pk]), texts[pk] or "")
    return {pk: _ApprovedCard(digest, texts[pk] or "") for pk, digest in digests.items()}


def _find_approved(
    organization_id: int, wanted: Collection[_Key], cards: Mapping[int, _ApprovedCard]
) -> set[_Key]:
    """Find which of these contacts are in the params of an approved card.

    A text that contains a contact's value may only be a part of a longer contact, so the card's own
    contacts are compared.
    """
    grouped = {key for key in wanted if key[0] in (ACCOUNT, PHONE)}
    texts = {pk: card.text for pk, card in cards.items()}
    joined = {pk: text.translate(_SEPARATORS) for pk, text in texts.items() if grouped}
    holding: dict[int, _ApprovedCard] = {}
    found: set[_Key] = set()
    for key in wanted:
        kind, value = key[0], key[1].casefold()
        if kind == ACCOUNT and is_bank_code(key[1]):  # recognized only by the word before it
            word = re.compile(rf"\b{value}\b")
            if any(map(word.search, texts.values())):
                found.add(key)
        searched = texts
        if key in grouped:
            searched, value = joined, value.translate(_SEPARATORS)
        part = value[-_LAST_JOINED_DIGITS:] if kind == PHONE else value
        having = (pk for pk, text in searched.items() if part in text)
        holding |= {pk: cards[pk] for pk in islice(having, MAX_READ)}
    return found.union(*_read_keys(organization_id, holding).values()) if holding else found


def _read_keys(
    organization_id: int, cards: Mapping[int, _ApprovedCard]
) -> dict[str, frozenset[_Key]]:
    """Read the contacts of these approved cards, by digest, with one query for those that are not
    cached."""
    found = {card.digest: _KEYS.get((organization_id, card.digest)) for card in cards.values()}
    unread = [pk for pk, card in cards.items() if found[card.digest] is None]
    for pk, params in _load_params(unread) if unread else ():
        digest = cards[pk].digest
        found[digest] = frozenset(_list_keys(params))
        _KEYS.put((organization_id, digest), found[digest] or frozenset())
    return {digest: keys or frozenset() for digest, keys in found.items()}


def _load_params(ids: Collection[int]) -> Iterator[tuple[int, Any]]:
    """Load the params of these cards by id; an empty object replaces params that are too long."""
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
