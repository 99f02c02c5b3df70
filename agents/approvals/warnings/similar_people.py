"""Find values on a card that resemble the name or the address of a member of the organization."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from agents.accounts.models import Membership
from agents.approvals.warnings.card_reading import CardReading
from agents.approvals.warnings.similar_names import NameOnCard
from tools.contract.contacts import (
    EMAIL,
    HANDLE,
    LOOKS_LIKE,
    ONE_APART,
    RECIPIENT,
    Contact,
    describe_likeness,
)
from tools.contract.look_alikes import compute_look
from tools.contract.name_likeness import (
    SHORTEST_NEAR,
    NameKeys,
    compute_keys,
    is_one_letter_apart,
)
from tools.contract.outside_text import quote_excerpt

MAX_MEMBERS = 2_000
MAX_SIMILAR = 5
A_MEMBER = ", a member"


class _Member(NamedTuple):
    name: str
    username: str
    email: str


class _Members:
    """The members of an organization, and their names by the keys of their looks."""

    def __init__(self, members: Sequence[_Member]) -> None:
        self.members = members
        self.known = {text.casefold() for member in members for text in member if text}
        self.names = _index(member.name for member in members)
        self.usernames = _index(member.username for member in members)

    def describe_name(self, one: NameOnCard) -> Iterator[str]:
        """Describe the members' names that a value resembles; for a param that names people, also
        their usernames."""
        if one.value.casefold() in self.known:
            return
        indexes = (self.names, self.usernames) if one.is_person else (self.names,)
        near = {name for key in one.keys for index in indexes for name in index.get(key, ())}
        for name in sorted(near):
            if compute_look(name) == one.look:
                yield _describe_pair(one.value, LOOKS_LIKE, name)
            elif is_one_letter_apart(one.value, name):
                yield _describe_pair(one.value, ONE_APART, name)

    def describe_contact(self, contact: Contact) -> Iterator[str]:
        """Describe the members' addresses or usernames that a contact resembles."""
        value = contact.value.removeprefix("@")
        if value.casefold() in self.known:
            return
        for member in self.members:
            other = member.email if contact.kind == EMAIL else member.username
            if other and _is_alike(contact.kind, value, other):
                yield _describe_pair(value, describe_likeness(value, other), other)


def _index(names: Iterable[str]) -> dict[tuple[str, str], set[str]]:
    """Index names by the keys of their looks."""
    by_key: dict[tuple[str, str], set[str]] = {}
    for name in filter(None, names):
        look = compute_look(name)
        parts = zip(NameKeys._fields, compute_keys(look), strict=True)
        for key in (("look", look), *parts):
            by_key.setdefault(key, set()).add(name)
    return by_key


def _describe_pair(value: str, likeness: str, other: str) -> str:
    return f"{quote_excerpt(value)} {likeness} {quote_excerpt(other)}{A_MEMBER}"


def find_similar_people(
    organization_id: int, readings: Mapping[int, CardReading]
) -> dict[int, list[str]]:
    """Describe at most 5 values of each card that resemble a member, by card id, with one query if
    any of the cards has a value that could be a name or an address."""
    if not any(reading.names.names or reading.contacts for reading in readings.values()):
        return {}
    members = _Members(_load_members(organization_id))
    found = {
        pk: list(dict.fromkeys(_describe(reading, members)))[:MAX_SIMILAR]
        for pk, reading in readings.items()
    }
    return {pk: likeness for pk, likeness in found.items() if likeness}


def _load_members(organization_id: int) -> list[_Member]:
    rows = Membership.objects.filter(organization_id=organization_id).order_by("pk")
    columns = (
        "user__first_name",
        "user__last_name",
        "user__username",
        "user__email",
    )
    return [
        _Member(f"{first} {last}".strip(), username, email.lower())
        for first, last, username, email in rows.values_list(*columns)[:MAX_MEMBERS]
    ]


def _describe(reading: CardReading, members: _Members) -> Iterator[str]:
    for one in reading.names.names:
        yield from members.describe_name(one)
    for contact in reading.contacts:
        if contact.kind in (EMAIL, RECIPIENT, HANDLE):
            yield from members.describe_contact(contact)


def _is_alike(kind: str, value: str, other: str) -> bool:
    """Return True if an address or a username resembles a member's; short names at the same host
    do not."""
    if not describe_likeness(value, other):
        return False
    local, _, host = value.rpartition("@")
    other_local, _, other_host = other.rpartition("@")
    if kind != EMAIL or host != other_host:
        return True
    return min(len(local), len(other_local)) >= SHORTEST_NEAR
