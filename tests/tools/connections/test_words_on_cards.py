"""The card of an unknown outcome shows the other system's message: marked, escaped and
shortened."""

from __future__ import annotations

import sys

import pytest
from django.test import Client

from agents.runs.models import Approval
from tests.features import feature
from tests.tools.connections.api import Api
from tests.tools.connections.connecting import MISBEHAVING, connect_api, connect_program, offer
from tests.workshop import Workshop, asking, call, statuses
from tools.contract import Level

pytestmark = pytest.mark.django_db(transaction=True)

MARK = "The other system’s own words, <b>not verified</b>"


def approve_write(workshop: Workshop, tool: str, **params: object) -> Approval:
    """Approve a write whose outcome becomes unknown; return the card that asks about it."""
    workshop.play(asking(call(tool, **params)))
    run = workshop.work()
    workshop.approve(workshop.card(run))
    run = workshop.drive(run)
    assert statuses(run) == ["outcome_unknown"]
    return workshop.card(run)


def show(workshop: Workshop, card: Approval) -> str:
    client = Client()
    client.force_login(workshop.approver.user)
    return " ".join(client.get(f"/approvals/{card.pk}/").content.decode().split())


@feature(
    "Tools from API descriptions",
    "The card of an unknown outcome shows the other system's own words",
    "templates/cards/unknown.html",
)
def test_the_message_of_an_error_object_is_shown_on_the_card(workshop: Workshop) -> None:
    offer(
        workshop,
        connect_program(workshop, [sys.executable, str(MISBEHAVING)], "bank"),
        "bank.locked",
    )
    said = "Account <b>is</b> locked\u202e " + "x" * 5_000
    card = approve_write(workshop, "bank.locked", text=said)
    html = show(workshop, card)
    assert MARK in html
    assert "Account &lt;b&gt;is&lt;/b&gt; locked" in html
    assert (
        "responded with the error -32000, which does not say whether the call took effect." in html
    )
    assert "\u202e" not in html
    assert len(card.words) <= 1_000
    assert card.why.count("locked") == 0, "our own words and theirs are apart"


def test_the_message_of_an_api_is_shown_on_the_card(workshop: Workshop, api: Api) -> None:
    offer(workshop, connect_api(workshop, api), "crm.addContact", level=Level.WRITE)
    api.status, api.answer = 502, {"message": "The ledger is closed."}
    card = approve_write(workshop, "crm.addContact", name="Ada")
    assert card.words == "The ledger is closed."
    html = show(workshop, card)
    assert MARK in html
    assert html.count("The ledger is closed.") == 1


def test_a_card_does_not_show_a_quote_if_the_server_did_not_send_a_message(
    workshop: Workshop,
) -> None:
    offer(
        workshop,
        connect_program(workshop, [sys.executable, str(MISBEHAVING)], "bank"),
        "bank.crash",
    )
    card = approve_write(workshop, "bank.crash")
    assert (card.words, MARK in show(workshop, card)) == ("", False)


def test_the_message_is_available_over_rest(workshop: Workshop) -> None:
    offer(
        workshop,
        connect_program(workshop, [sys.executable, str(MISBEHAVING)], "bank"),
        "bank.locked",
    )
    card = approve_write(workshop, "bank.locked", text="Account is locked")
    client = Client()
    client.force_login(workshop.approver.user)
    assert client.get(f"/api/approvals/{card.pk}").json()["words"] == "Account is locked"
