"""A surface that shows a planted value also shows its marks, and a bulk decision does not approve a
card that has a mark or that must be opened."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import unescape

import pytest
from django.test import Client

from agents.api import api
from agents.approvals import decisions
from agents.approvals.decisions import Decision
from agents.runs.engine.transaction import run_transaction
from agents.runs.events import ApprovalRequested
from agents.runs.models import Approval
from agents.urls import urlpatterns
from tests.deceptions.pairing import make_pair_office, planted
from tests.deceptions.pairs.corpus import KINDS, PAIRS
from tests.deceptions.pairs.unnoticed import APPROVED_IN_BULK, NOT_YET, OUT_OF_REACH
from tests.deceptions.planting import Make, create, update
from tests.web.pages import read_page
from tests.world import World, post, streamed

pytestmark = [pytest.mark.django_db, pytest.mark.once]

SENTINEL = "zq7marker"
WITHOUT_CARDS = ("/api/health", "/api/ready")
"""Resources about the state of the process; requests for them start checks."""
PLACEHOLDER = re.compile(r"<(?:\w+:)?(\w+)>|\{(\w+)\}")


@dataclass(frozen=True)
class Sample:
    """A planted card whose value contains the sentinel, and a pattern for the words that mark
    it."""

    name: str
    make: Make
    label: str


SAMPLES = (
    Sample("letters", update(notes=f"{SENTINEL}: pay Mi\u0441rosoft"), "Mixed alphabets"),
    Sample("a contact", update(notes=f"{SENTINEL}: bob@else.org"), "New here"),
    Sample("a name", create(name="Umbre11a", notes=SENTINEL), "looks like|Similar names"),
)


@pytest.fixture
def office() -> World:
    return make_pair_office()


def list_surfaces(card: Approval) -> Iterator[tuple[str, str]]:
    """Yield the route and the address of each page and each resource of the API that can be opened
    with the ids of this card."""
    ids = {"approval_id": card.pk, "run_id": card.run_id, "call_id": card.tool_call_id}
    routes = [f"/{pattern.pattern}" for pattern in urlpatterns]
    paths = api.get_openapi_schema()["paths"]
    routes += [path for path, operations in paths.items() if "get" in operations]
    routes = [route for route in routes if route not in WITHOUT_CARDS]
    for route in routes:
        names = {first or second for first, second in PLACEHOLDER.findall(route)}
        if names <= ids.keys():
            yield route, PLACEHOLDER.sub(lambda found: str(ids[found[1] or found[2]]), route)


def find_unmarked(client: Client, card: Approval, label: str) -> set[str]:
    """Return the routes of the surfaces that show the sentinel without a label that matches this
    pattern."""
    found = set()
    for route, address in list_surfaces(card):
        response = client.get(address)
        if response.status_code == 200:
            text = streamed(response) if response.streaming else response.content.decode()
            text = unescape(re.sub("<[^>]*>", "", text))
            if SENTINEL in text and not re.search(label, text):
                found.add(route)
    return found


def leave_open(world: World, card: Approval) -> None:
    """Leave the card as it is."""


def deny(world: World, card: Approval) -> None:
    decisions.deny(world.member("approver"), card.pk, Decision(card.digest))


def approve(world: World, card: Approval) -> None:
    """Approve the card, so its contact is no longer new, and delete the record whose name its value
    resembles."""
    decisions.approve(world.member("approver"), card.pk, Decision(card.digest))
    world.records[2].delete()


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
@pytest.mark.parametrize("decide", [leave_open, deny, approve])
def test_each_surface_that_shows_a_planted_value_shows_its_mark(
    office: World, decide: Callable[[World, Approval], None], sample: Sample
) -> None:
    card = sample.make(office)
    with run_transaction(card.run_id) as tx:
        tx.publish(ApprovalRequested.of(card, card.tool_call, card.expires_at))
    decide(office, card)
    assert not find_unmarked(office.client("approver"), card, sample.label)


def test_a_surface_without_marks_is_found(office: World) -> None:
    card = SAMPLES[0].make(office)
    routes = {route for route, _ in list_surfaces(card)}
    assert {"/approvals/", "/approvals/<int:approval_id>/", "/api/approvals"} <= routes
    client = office.client("approver")
    assert SENTINEL in read_page(client, f"/approvals/{card.pk}/")
    assert "/approvals/<int:approval_id>/" in find_unmarked(client, card, "Another label")


def approve_in_bulk(office: World, make: Make) -> bool:
    """Return True if a bulk decision approves this card."""
    with planted(office, make) as card:
        item = {"approval_id": str(card.pk), "action": "approve", "digest": card.digest}
        client = office.client("approver")
        response = post(client, "/api/approvals/decide", {"decisions": [item]})
        assert response.status_code == 200, response.content
        return bool(response.json()["outcomes"][0]["status"] == 200)


@pytest.mark.parametrize("kind", KINDS)
def test_a_bulk_decision_does_not_approve_a_card_with_a_noticed_deception(
    office: World, kind: str
) -> None:
    unnoticed = NOT_YET.get(kind, frozenset()) | OUT_OF_REACH.get(kind, frozenset())
    pairs = [pair for pair in PAIRS if pair.kind == kind]
    approved = {
        pair.name
        for pair in pairs
        if not pair.words and pair.name not in unnoticed and approve_in_bulk(office, pair.plant)
    }
    print(f"{kind}: approved in bulk: {sorted(approved)}")
    assert approved == APPROVED_IN_BULK.get(kind, frozenset())


def test_a_bulk_decision_approves_an_honest_card(office: World) -> None:
    assert approve_in_bulk(office, update(phone="+1 555 0123"))
