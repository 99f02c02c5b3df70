"""Cards warn of names and addresses that resemble a member's."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.approvals.warnings.card_reading import read_card
from agents.approvals.warnings.similar_people import find_similar_people
from tests.deceptions.planting import call
from tests.features import feature
from tests.world import World

pytestmark = pytest.mark.django_db
NAMED = {
    "username": "jsmith",
    "first_name": "Jonathan",
    "last_name": "Smith",
    "email": "jonathan@acme.com",
}


@pytest.fixture
def named(world: World) -> World:
    """Give the approver a name and an address."""
    user = world.users["approver"]
    for field, value in NAMED.items():
        setattr(user, field, value)
    user.save()
    return world


def find(world: World, **params: Any) -> list[str]:
    """Describe the values in a call with these params that resemble a member."""
    card = call(**params)(world)
    return find_similar_people(world.acme.pk, {card.pk: read_card(card)}).get(card.pk, [])


@feature(
    "The gate",
    "A name or an address that almost equals a member's is marked, and the mark names the member's",
    "agents/approvals/warnings/similar_people.py",
)
@pytest.mark.parametrize(
    ("field", "value", "other"),
    [
        *(
            ("payee", "Jonathan Smiht", "Jonathan Smith"),
            ("note", "Jonatan Smith", "Jonathan Smith"),
        ),
        *(("to", "jsmyth", "jsmith"), ("to", "jonathan@acme.co", NAMED["email"])),
        *(("to", "jonathon@acme.com", NAMED["email"]), ("to", "jonathan@acrne.com", "acme")),
        *(("assignee", "jsmiht", "jsmith"), ("reviewers", "jsmitth", "jsmith")),
    ],
)
def test_a_value_that_almost_equals_a_members_name_or_address_is_described(
    named: World, field: str, value: str, other: str
) -> None:
    (text, *_) = find(named, **{field: value})
    assert text.startswith(f"“{value}”")
    assert text.endswith(", a member")
    assert other in text


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("payee", "Jonathan Smith"), ("to", "jsmith"), ("to", "jonathan@acme.com")),
        *(("to", "someone@acme.com"), ("payee", "Maria Jones"), ("note", "jsmyth")),
        *(("assignee", "jsmith"), ("assignee", "mjones"), ("status", "jsmiht")),
    ],
)
def test_a_members_exact_values_dissimilar_values_and_other_fields_are_not_described(
    named: World, field: str, value: str
) -> None:
    assert find(named, **{field: value}) == []


def test_addresses_with_short_names_at_the_same_host_are_not_similar(named: World) -> None:
    user = named.users["approver"]
    user.email = "ann@acme.com"
    user.save()
    assert find(named, to="anna@acme.com") == []
    assert find(named, to="ann@acme.co") == [
        "“ann@acme.co” differs by one character from “ann@acme.com”, a member"
    ]


def test_a_member_of_another_organization_is_not_found(named: World) -> None:
    outsider = named.users["outsider"]
    outsider.first_name, outsider.last_name = "Priscilla", "Hargreaves"
    outsider.save()
    assert find(named, payee="Priscilla Hargreave") == []
    outsider.memberships.update(organization=named.acme)
    assert find(named, payee="Priscilla Hargreave") != []


def test_the_card_and_the_list_show_the_resemblance(named: World) -> None:
    card = call(payee="Jonathan Smiht")(named)
    client = named.client("approver")
    assert (
        "“Jonathan Smith”</bdi>, a member"
        in client.get(f"/approvals/{card.pk}/card/").content.decode()
    )
    assert '<b class="odd">Almost the same' in client.get("/approvals/").content.decode()


def test_the_members_are_loaded_with_one_query(named: World) -> None:
    cards = [call(payee=name)(named) for name in ("Jonathan Smiht", "Else", "Jonatan Smith")]
    readings = {card.pk: read_card(card) for card in cards}
    with CaptureQueriesContext(connection) as queries:
        assert len(find_similar_people(named.acme.pk, readings)) == 2
    assert len(queries) == 1
