"""An index of the contacts in use. It finds a contact that a new contact resembles, without
comparing the new contact with all of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from tools.contract.contacts import (
    ACCOUNT,
    EMAIL,
    HANDLE,
    HOST,
    LOOKS_LIKE,
    ONE_APART,
    PHONE,
    RECIPIENT,
    describe_likeness,
)
from tools.contract.host_endings import ENDINGS
from tools.contract.host_names import (
    SHORTEST_PIECE,
    HostName,
    list_edges,
    list_runs,
    list_words,
    split_host,
)
from tools.contract.look_alikes import compute_look, reduce_to_look, simplify_look
from tools.contract.name_likeness import (
    SHORTEST_NEAR,
    NameKeys,
    compute_keys,
    is_one_letter_apart,
    list_keys,
)

NUMBERS = (ACCOUNT, PHONE)
SHORTEST = {
    HOST: 4,
    EMAIL: SHORTEST_NEAR,
    ACCOUNT: 6,
    PHONE: 6,
    RECIPIENT: SHORTEST_NEAR,
    HANDLE: 5,
}
"""The minimum length for a comparison letter by letter: of a host, only the registered label is
counted; of an email address, the part before the host."""
MAX_COMPARED = 100
"""The maximum number of contacts with one key that are compared."""
MOST_NEAR = 2
"""If more contacts than this differ from a new contact by one character, as in a series, none of
them is named."""
COMMON = 3
"""A word that is in the hosts of this many owners is common, and does not connect a host to any
owner."""
SHORTEST_LABEL = 3
SHORTEST_JOINED = 6
"""The minimum length of a label that is recognized beside other letters without a hyphen, even if
other labels begin or end with it."""
SHORTEST_WITH_ENDS, START, END = 20, 6, 4
"""In accounts of 20 or more characters, people compare only the first 6 and the last 4
characters."""
OTHER_ENDING, CONTAINS = "has another ending than", "contains the name of"
SAME_ENDS = "begins and ends like"
LOOK, LABEL, ENDS = "look", "label", "ends"
_Key = tuple[str, ...]


class Likeness(NamedTuple):
    """A new contact's likeness to a contact in use, for example `differs by one character from`."""

    words: str
    other: str


class KnownContacts:
    """Contacts in use, each stored under several keys; a similar contact has at least one of these
    keys."""

    def __init__(self) -> None:
        self._known: set[_Key] = set()
        self._hosts: set[str] = set()
        self._by_key: dict[_Key, list[str]] = {}
        self._owners: dict[str, set[str]] = {}
        self._edges: set[str] = set()
        self._described: dict[_Key, Likeness | None] = {}

    def __len__(self) -> int:
        return len(self._known)

    def add(self, kind: str, value: str) -> None:
        """Add a contact: a host is added by its registered domain, and an email address together
        with its host."""
        if kind in (HOST, EMAIL):
            self._add_host(value.rpartition("@")[2])
        if kind != HOST and (kind, value) not in self._known:
            scope, text = _split(kind, value)
            keys = [(LOOK, kind, scope, _look(text)), *_list_ends(kind, text)]
            self._put((kind, scope), text, value, keys)

    def _add_host(self, value: str) -> None:
        if value in self._hosts:
            return
        self._hosts.add(value)
        if (host := split_host(value)) is None:
            return
        parts = {*host.before, *(host.label.split("-") if "-" in host.label else ())}
        for word in map(_look, parts):
            owners = self._owners.setdefault(word, set())
            if len(owners) < COMMON:
                owners.add(host.label)
        if (HOST, host.domain) not in self._known:
            look = _look(host.label)
            self._edges.update(each for each in list_edges(look) if len(each) < SHORTEST_JOINED)
            self._put((HOST, host.ending), host.label, host.domain, [(LABEL, look)])

    def _put(self, scope: _Key, text: str, value: str, keys: list[_Key]) -> None:
        self._known.add((scope[0], value))
        self._described.clear()
        if len(text) >= SHORTEST[scope[0]]:
            keys += [(*scope, *part) for part in _name(compute_keys(text))]
        for key in keys:
            self._by_key.setdefault(key, []).append(value)

    def describe(self, kind: str, value: str) -> Likeness | None:
        """Describe the contact in use that this contact resembles; None if there is none."""
        if (kind, value) not in self._described:
            self._described[kind, value] = self._find(kind, value)
        return self._described[kind, value]

    def _find(self, kind: str, value: str) -> Likeness | None:
        if kind in (HOST, EMAIL):
            host = split_host(value.rpartition("@")[2])
            if host is not None and (HOST, host.domain) not in self._known:
                return self._find_host(host)
            if kind == HOST:
                return None
        scope, text = _split(kind, value)
        return (
            self._pick(LOOKS_LIKE, value, [(LOOK, kind, scope, _look(text))])
            or self._find_near((kind, scope), text, value)
            or self._pick(SAME_ENDS, value, _list_ends(kind, text))
        )

    def _find_host(self, host: HostName) -> Likeness | None:
        look = _look(host.label)
        if len(host.label) >= SHORTEST_LABEL and (found := next(self._list((LABEL, look)), None)):
            is_same = found.partition(".")[0] == host.label
            return Likeness(OTHER_ENDING if is_same else LOOKS_LIKE, found)
        return (
            self._find_near((HOST, host.ending), host.label, host.domain)
            or self._find_whole(host)
            or self._find_piece(host, look)
        )

    def _find_near(self, scope: _Key, text: str, value: str) -> Likeness | None:
        """Find a contact that differs by one character, unless more than MOST_NEAR contacts do."""
        kind = scope[0]
        if len(text) < SHORTEST[kind]:
            return None
        keys = [(*scope, *part) for each in list_keys(text) for part in _name(each)]
        others = dict.fromkeys(other for key in keys for other in self._list(key))
        found = (Likeness(_compare(kind, value, other), other) for other in others)
        near = list(islice((each for each in found if each.words), MOST_NEAR + 1))
        return near[0] if 0 < len(near) <= MOST_NEAR else None

    def _find_whole(self, host: HostName) -> Likeness | None:
        """Find a known domain within the labels of this host, as in `acme.com.other.example`."""
        labels = (*host.before, host.label)
        domains = (".".join(run) for run in list_runs(labels, fewest=2))
        known = (Likeness(CONTAINS, each) for each in domains if (HOST, each) in self._known)
        return next(known, None)

    def _find_piece(self, host: HostName, look: str) -> Likeness | None:
        """Find a known domain whose label is a part of this host, as in `acme-pay.example`.

        This ignores words in hosts of several owners, endings such as *shop* before the registered
        label, and short parts without a hyphen that other known labels begin or end with, too.
        """
        before = (label for label in host.before if label not in ENDINGS)
        words = map(_look, list_words((host.label, *before)))
        edges = (each for each in list_edges(look) if self._is_rare(each))
        pieces = (each for each in (*words, *edges) if len(each) >= SHORTEST_PIECE)
        known = (each for each in pieces if len(self._owners.get(each, ())) < COMMON)
        found = (Likeness(CONTAINS, each) for piece in known for each in self._list((LABEL, piece)))
        return next(found, None)

    def _is_rare(self, edge: str) -> bool:
        return len(edge) >= SHORTEST_JOINED or edge not in self._edges

    def _pick(self, words: str, value: str, keys: list[_Key]) -> Likeness | None:
        others = (other for key in keys for other in self._list(key))
        own = value.casefold()
        return next((Likeness(words, each) for each in others if each.casefold() != own), None)

    def _list(self, key: _Key) -> Iterator[str]:
        return islice(self._by_key.get(key, ()), MAX_COMPARED)


def _split(kind: str, value: str) -> tuple[str, str]:
    """Divide a contact into the part that must be equal and the part that is compared letter by
    letter."""
    if kind == HOST:
        label, _, ending = value.partition(".")
        return ending, label
    if kind == EMAIL:
        local, _, host = value.rpartition("@")
        return host, local
    return "", compute_look(value) if kind == RECIPIENT else value.casefold().removeprefix("@")


def _compare(kind: str, value: str, other: str) -> str:
    """Describe how a contact resembles another; empty if it does not."""
    if kind == RECIPIENT:
        return ONE_APART if is_one_letter_apart(value, other) else ""
    text, near = _split(kind, value)[1], _split(kind, other)[1]
    if min(len(text), len(near)) < SHORTEST[kind]:
        return ""
    return describe_likeness(text, near, is_number=kind in NUMBERS)


def _name(keys: NameKeys) -> Iterator[tuple[str, str]]:
    return zip(NameKeys._fields, keys, strict=True)


def _list_ends(kind: str, text: str) -> list[_Key]:
    if kind not in NUMBERS or len(text) < SHORTEST_WITH_ENDS:
        return []
    return [(ENDS, str(len(text)), text[:START], text[-END:])]


def _look(text: str) -> str:
    return simplify_look(reduce_to_look(text.replace("-", "")))
