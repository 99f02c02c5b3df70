"""The oversight page, which only admins can open: the figures of people and tools, a warning about
quick decisions, and CSV files."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents.accounts.models import Membership
from tests.features import feature
from tests.insight.decided import DENIED, Decided, Desk
from tests.world import World
from tools.contract.canonical import canonical_json

pytestmark = pytest.mark.django_db

FORMULA = "=cmd()"
WARNING = "Cards may be approved without being read."


def decide(world: World, count: int, by: str = "approver", **more: Any) -> None:
    """Store quick decisions of a person, a minute apart."""
    at = timezone.now() - timedelta(hours=3)
    times = [at + timedelta(minutes=number) for number in range(count)]
    rows = [
        Decided(by, at, at - timedelta(seconds=1), call=call, **more)
        for call, at in enumerate(times)
    ]
    Desk(world, world.run()).add(rows)


def read_page(client: Client, query: str = "") -> str:
    response = client.get(f"/oversight/{query}")
    assert response.status_code == 200, response.content
    return response.content.decode()


def read_csv(client: Client, query: str = "") -> list[list[str]]:
    response = client.get(f"/oversight/export/{query}")
    assert response.status_code == 200, response.content
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.reader(io.StringIO(response.content.decode("utf-8-sig"))))


@pytest.mark.parametrize("username", ["viewer", "operator", "approver"])
@pytest.mark.parametrize("address", ["/oversight/", "/oversight/export/"])
def test_only_admins_can_open_the_oversight_page(world: World, username: str, address: str) -> None:
    decide(world, 1, by="admin")
    assert world.client(username).get(address).status_code == 403
    assert "/oversight/" not in world.client(username).get("/runs/").content.decode()
    assert world.client("admin").get(address).status_code == 200
    assert 'href="/oversight/"' in world.client("admin").get("/runs/").content.decode()


def test_people_and_tools_are_listed_in_alphabetical_order(world: World) -> None:
    for person in ("operator", "approver", "admin"):
        decide(world, 2, by=person)
    page = read_page(world.client("admin"))
    people = [
        page.index(f'<th scope="row">{person}</th>') for person in ("admin", "approver", "operator")
    ]
    assert people == sorted(people)
    assert WARNING not in page


def test_a_warning_appears_once_a_person_has_made_50_quick_approvals(world: World) -> None:
    decide(world, 49)
    assert WARNING not in read_page(world.client("admin"))
    decide(world, 50, by="operator")
    page = read_page(world.client("admin"))
    assert page.count(WARNING) == 1
    assert "In 50 of 50\n  decisions, <b>operator</b> approved in under 2 seconds." in page


def test_the_period_can_be_chosen_by_links(world: World) -> None:
    decide(world, 1)
    Desk(world, world.run()).add([Decided("admin", at := timezone.now() - timedelta(days=20), at)])
    client = world.client("admin")
    assert '<th scope="row">admin</th>' not in read_page(client, "?days=7")
    for query in ("", "?days=30", "?days=90", "?days=31", "?days=x"):
        assert '<th scope="row">admin</th>' in read_page(client, query)
    assert 'days=90" aria-current="page"' in read_page(client, "?days=90")


def test_an_empty_page_says_what_will_appear(world: World) -> None:
    assert "No decisions in the last 30 days." in read_page(world.client("admin"))


@feature(
    "Figures and metrics",
    "CSV files of people and tools, without formulas",
    "agents/web/views/oversight.py",
)
def test_people_are_exported_without_formulas(world: World) -> None:
    user = User.objects.create_user(FORMULA)
    Membership.objects.create(organization=world.acme, user=user, role="approver")
    decide(world, 3, by=FORMULA)
    header, row = read_csv(world.client("admin"))
    assert dict(zip(header, row, strict=True)) == {
        "person": f"'{FORMULA}",
        "cards": "3",
        "decisions": "3",
        "decisions_in_bulk": "0",
        "median_ms": "1000",
        "approved_under_2_s": "3",
        "approved": "3",
        "edited": "0",
        "denied": "0",
    }


def test_tools_are_exported_without_formulas(world: World) -> None:
    decide(world, 2, outcome=DENIED, tool="@crm.find")
    assert read_csv(world.client("admin"), "?table=tools&days=7") == [
        ["tool", "calls", "approved", "edited", "denied", "calls_denied_or_edited"],
        ["'@crm.find", "2", "0", "0", "2", "2"],
    ]


def test_an_unknown_table_is_refused(world: World) -> None:
    response = world.client("admin").get("/oversight/export/?table=secrets")
    assert response.status_code == 422
    assert "is not a table" in response.content.decode()


def test_another_organization_sees_nothing(world: World) -> None:
    decide(world, 50)
    outsider = world.client("outsider")
    assert "approver" not in read_page(outsider).partition("<main")[2]
    assert read_csv(outsider) == read_csv(outsider)[:1]


def test_the_employee_page_shows_its_approval_rates(world: World) -> None:
    decide(world, 2, outcome=DENIED, reason="Not needed. We did it already")
    decide(world, 1, by="admin", outcome=DENIED, reason="No, thanks")
    page = world.client("viewer").get(f"/employees/{world.employee.pk}/trust/").content.decode()
    section = page.partition('id="trust-head"')[2].partition("</main>")[0]
    assert "<dt>Not needed</dt><dd>2</dd>" in section
    assert "<dt>Other reasons</dt><dd>1</dd>" in section
    assert "approver" not in section, "the section names no people"


def test_the_page_says_if_there_were_no_decisions_on_an_employees_cards(world: World) -> None:
    page = world.client("viewer").get(f"/employees/{world.employee.pk}/trust/").content.decode()
    assert "No decisions on Dana’s cards in the last 30 days." in page


def test_a_bulk_request_counts_as_one_decision(world: World) -> None:
    cards = [world.card() for _ in range(3)]
    rows = [{"approval_id": card.pk, "action": "approve", "digest": card.digest} for card in cards]
    response = world.client("approver").post(
        "/api/approvals/decide",
        canonical_json({"decisions": rows}),
        content_type="application/json",
    )
    assert [outcome["status"] for outcome in response.json()["outcomes"]] == [200, 200, 200]
    _, row = read_csv(world.client("admin"))
    assert row[:4] == ["approver", "3", "1", "1"]
