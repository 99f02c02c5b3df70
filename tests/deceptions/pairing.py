"""Pairs of cards: a card with a planted deception, and its honest twin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.db import transaction
from django.db.models.functions import Now
from django.test import override_settings

from agents.gateway.asks import AskedRequest, submit
from agents.gateway.keys import authenticate_key, issue_key
from agents.runs.models import Approval, ApprovalStatus
from tests.deceptions.planting import Make, call, make_office, update
from tests.world import World
from tools.office.records.models import Record

Maker = Callable[[Any], Make]
Row = tuple[str, Maker, Any, Any]
"""A name, the maker of both cards, the planted value, and the honest value."""

KNOWN = (
    "bob@goldenharbor.com https://goldenharbor.com golden-harbor.com www.goldenharbor.com "
    "https://acme.com git@goldenharbor.com @goldenharbor 198.51.100.7 2001:db8::7 "
    "DE89370400440532013000 GB29NWBK60161331926819 FR1420041010050500013M02606 "
    "NL91ABNA0417164300 4111111111111111 5555555555554444 55779911 021000021 DEUTDEFF "
    "0xde0B295669a9FD93d5F28D9Ec85E40f4cb697BAe bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq "
    "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2 harbor.eth +44 20 7946 0000"
)
KNOWN_PARAMS = {"account": "55779911", "routing": "021000021", "recipient": "harbor.eth"}
"""Contacts that the organization has used in approved cards."""


@dataclass(frozen=True)
class Pair:
    """A planted deception beside its honest twin: the same card with an ordinary value.

    Attributes:
        kind: the class of deception.
        name: the thing that is planted.
        plant, twin: create the two cards.
        words: words of the plant that pose as Gadget's; quoting each of them is sufficient
            protection. Empty if the plant needs a mark.
    """

    kind: str
    name: str
    plant: Make = field(repr=False)
    twin: Make = field(repr=False)
    words: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}"


def pair_up(kind: str, *rows: Row) -> tuple[Pair, ...]:
    """Return the pairs of one class."""
    return tuple(Pair(kind, name, make(bad), make(good)) for name, make, bad, good in rows)


def pair_up_words(kind: str, *rows: Row) -> tuple[Pair, ...]:
    """Return the pairs of one class whose planted texts pose as Gadget's words.

    The last line of a planted text contains these words.
    """
    return tuple(
        Pair(kind, name, make(bad), make(good), words=bad.splitlines()[-1])
        for name, make, bad, good in rows
    )


def make_pair_office() -> World:
    """Create the office of `planting`, which has also used the contacts of `KNOWN`."""
    office = make_office()
    decided = {"decided_by": office.users["approver"], "decided_at": Now(), "consumed_at": Now()}
    for make in (update(notes=KNOWN), call(**KNOWN_PARAMS)):
        used = Approval.objects.filter(pk=make(office).pk)
        used.update(status=ApprovalStatus.CONSUMED, **decided)
    return office


@contextmanager
def planted(office: World, make: Make) -> Iterator[Approval]:
    """Create a card, and afterwards remove the card and all rows and files created with it: a
    rollback alone would leave the files for the next card."""
    with (
        TemporaryDirectory() as folder,
        override_settings(GADGET_FILES_DIR=Path(folder)),
        transaction.atomic(),
    ):
        yield make(office)
        transaction.set_rollback(True)


def in_param(name: str) -> Maker:
    """Plant a value in a param of a call without preview."""
    return lambda value: call(**{name: value})


def in_params(values: dict[str, Any]) -> Make:
    return call(**values)


def in_field(name: str) -> Maker:
    """Plant a value in a field of the record Acme Corp."""
    return lambda value: update(**{name: value})


def in_fields(values: dict[str, Any]) -> Make:
    return update(**values)


def in_ask(name: str) -> Maker:
    """Plant words in a coding agent's request for approval of an action."""

    def choose(words: str) -> Make:
        def make(world: World) -> Approval:
            _, secret = issue_key(world.member("operator"), world.employee.pk, "Laptop", 30)
            key = authenticate_key(secret)
            assert key is not None
            said: dict[str, Any] = {
                "action": "deploy",
                "params": {"version": "1"},
                "level": "write",
            }
            submit(key, AskedRequest(**{**said, name: words}))
            return Approval.objects.latest("pk")

        return make

    return choose


def in_task(words: str) -> Make:
    """Plant words in the task of a run, which a received message can also do."""
    return lambda world: world.card(world.run(task=words))


def in_before(words: str) -> Make:
    """Plant words in the current value of a field that the card replaces."""

    def make(world: World) -> Approval:
        Record.objects.filter(pk=world.records[0].pk).update(notes=words)
        return update(notes="Call again in May.")(world)

    return make
