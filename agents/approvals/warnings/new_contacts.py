"""Find contacts on a card that the organization has not used before."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, TextField
from django.db.models.functions import Cast, Length, Lower

from agents.accounts.models import Membership
from agents.approvals.warnings.card_reading import read_card
from agents.runs.models import Approval, ApprovalStatus
from tools.contract.contacts import EMAIL, HOST, MAX_CONTACTS, Contact, list_contacts
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
USED = (ApprovalStatus.APPROVED, ApprovalStatus.CONSUMED)


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


def find_new_contacts(card: Approval) -> NewContacts:
    """Find the contacts of the card that appear in no record, no approved card and no member's
    account."""
    every = read_card(card).contacts
    contacts = every[:MAX_CHECKED]
    if not contacts:
        return NewContacts()
    known = _find_known(card.organization_id, contacts)
    rest = [contact for contact in contacts if contact.value not in known]
    approved = _find_approved(card, rest)
    return NewContacts(
        contacts=tuple(contact for contact in rest if _get_key(contact) not in approved),
        unchecked=len(every) - len(contacts),
        is_cut=len(every) >= MAX_CONTACTS,
    )


def _find_known(organization_id: int, contacts: Iterable[Contact]) -> set[str]:
    emails = [contact.value for contact in contacts if contact.kind == EMAIL]
    hosts = [contact.value for contact in contacts if contact.kind == HOST]
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
        spelled = {name: host for host in hosts for name in (host, _cut_www(host), f"www.{host}")}
        with_domain = records.annotate(lower=Lower("domain")).filter(lower__in=spelled)
        known.update(
            spelled[domain] for domain in with_domain.values_list("lower", flat=True).distinct()
        )
    return known


def _find_approved(card: Approval, contacts: Iterable[Contact]) -> set[tuple[str, str]]:
    """Find the kinds and values of all contacts in those approved cards whose params contain the
    text of one of the given contacts.

    The text may be only a part of a longer contact, so the caller compares whole contacts."""
    used = Approval.objects.filter(organization_id=card.organization_id, status__in=USED).exclude(
        pk=card.pk
    )
    newest = used.order_by("-pk").values("pk")[:MAX_EARLIER]
    earlier = (
        Approval.objects.filter(pk__in=newest)
        .annotate(text=Cast("params", TextField()))
        .order_by("-pk")
    )
    short = earlier.annotate(length=Length("text")).filter(length__lte=MAX_LENGTH)
    found: set[tuple[str, str]] = set()
    read: set[int] = set()
    for contact in contacts:
        kind, value = _get_key(contact)
        if (kind, value) in found:
            continue
        # Search for the escaped form too, because SQLite stores letters beyond ASCII as escapes.
        candidates = short.filter(
            Q(text__icontains=value) | Q(text__icontains=json.dumps(value)[1:-1])
        )
        for pk, params in candidates.values_list("pk", "params")[:MAX_READ]:
            if pk not in read:
                read.add(pk)
                found.update(_list_keys(params))
    return found


def _list_keys(params: Any) -> Iterator[tuple[str, str]]:
    """Yield the key of each contact in the params, and of the host of each email address."""
    for contact in list_contacts(params):
        yield _get_key(contact)
        if contact.kind == EMAIL:
            yield HOST, _cut_www(contact.value.rpartition("@")[2])


def _get_key(contact: Contact) -> tuple[str, str]:
    """Return the contact's kind and value, which are the same for a host with and without
    `www.`."""
    return contact.kind, _cut_www(contact.value) if contact.kind == HOST else contact.value


def _cut_www(host: str) -> str:
    return host.removeprefix("www.")
