"""In a browser: a card points out a value from outside, and its link leads to the line of the call
that returned this value."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from agents.employees.models import Grant
from agents.runs.models import Run
from tests.journeys.office import Office
from tests.journeys.test_accessibility import find_faults
from tests.journeys.visitor import Visit
from tests.outside_probes import PAGE_HOST, SAMPLE_PATH, SAMPLE_VALUE, ReadPage
from tests.workshop import asking, call, calls
from tools.connections.changes import bump_tools_version
from tools.connections.models import AllowedHost

pytestmark = pytest.mark.once


@pytest.fixture
def run(office: Office) -> Run:
    """Start a run that reads a page and asks to store an address from it."""
    workshop = office.workshop
    AllowedHost.objects.create(organization=workshop.organization, host=PAGE_HOST)
    bump_tools_version(workshop.organization.pk)
    Grant.objects.create(employee=workshop.employee, tool=ReadPage.name)
    changes = {
        "email": SAMPLE_VALUE,
        "notes": "Invoices moved. Account DE89370400440532013000.",
        "region": "Benelux",
    }
    workshop.play(
        asking(call(ReadPage.name, url=f"https://{PAGE_HOST}{SAMPLE_PATH}")),
        asking(call("data.updateRecord", record_id=workshop.record().pk, changes=changes)),
    )
    return office.submit("Check the invoices of Acme Corp")


@pytest.mark.parametrize("scripts", [True, False])
def test_the_link_opens_the_call_that_returned_the_value(
    office: Office, visit: Visit, run: Run, scripts: bool
) -> None:
    (card,) = office.await_cards(run.pk)
    visitor = visit("approver", scripts=scripts)
    visitor.page.goto(f"/approvals/{card.pk}/")
    origins = visitor.card(card.pk).get_by_role("list", name="Values from outside")
    expect(origins.locator(".stands-out")).to_contain_text(
        f"From outside: {SAMPLE_VALUE} in changes.email was first seen"
    )
    expect(origins).to_contain_text("DE89370400440532013000 in changes.notes")
    origins.get_by_role("link", name="Read a test page").first.click()
    pk = calls(run)[0].pk
    expect(visitor.page).to_have_url(re.compile(rf"/runs/{run.pk}/\?call={pk}#call-{pk}$"))
    expect(visitor.page.locator(f"#call-{pk}")).to_be_in_viewport()


def test_the_origins_on_a_card_pass_axe_and_fit_narrow_screens(
    office: Office, visit: Visit, run: Run
) -> None:
    (card,) = office.await_cards(run.pk)
    visitor = visit("approver")
    for width in (1440, 360):
        visitor.page.set_viewport_size({"width": width, "height": 900})
        visitor.page.goto(f"/approvals/{card.pk}/")
        visitor.card(card.pk).locator(".all-origins > summary").click()
        expect(visitor.card(card.pk).get_by_text("not seen before").first).to_be_visible()
        assert not list(find_faults(visitor.page, f"{width}"))
        assert visitor.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
