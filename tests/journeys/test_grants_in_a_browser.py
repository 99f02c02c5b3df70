"""In a browser: the pages of standing grants fit every width, are accessible, and work without
scripts."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from agents.accounts.models import Organization
from agents.standing_grants.making import make_grant
from agents.standing_grants.models import StandingGrant
from agents.web.views.pages import PAGE_SIZE
from tests.features import feature
from tests.journeys.office import Office
from tests.journeys.test_schedules_in_a_browser import WIDTHS, find_faults_at
from tests.journeys.visitor import Visit
from tests.standing_grants.granting import equals, propose_for
from tests.workshop import Workshop, asking, call

pytestmark = pytest.mark.once

LONG = "everything-that-was-ever-written-" * 20


def make_pages(workshop: Workshop) -> None:
    """Create more standing grants than fit on one page, the newest for a run that the
    grant's creator requested."""
    workshop.members["operator"] = workshop.approver
    run = workshop.submit()
    proposal = propose_for(workshop, "probe.effect", equals("name", LONG))
    made = [make_grant(workshop.approver, proposal) for _ in range(PAGE_SIZE + 1)]
    StandingGrant.objects.filter(pk=made[-1].pk).update(run=run)  # the run ends immediately
    Organization.objects.update(four_eyes=True)


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
@pytest.mark.every_commit
def test_the_pages_fit_every_width_and_link_to_each_other(
    office: Office, visit: Visit, scripts: bool
) -> None:
    make_pages(office.workshop)
    page = visit("approver", scripts=scripts).page
    page.goto("/grants/")
    expect(
        page.get_by_text("requested this run, so someone else must approve its calls.")
    ).to_have_count(1)
    expect(page.get_by_text("this standing grant never approves calls that")).to_have_count(
        PAGE_SIZE - 1
    )
    faults = find_faults_at(page, WIDTHS[0], "the list") if scripts else []
    page.get_by_role("link", name="Older standing grants").click()
    expect(page.locator("li[id^=grant-]")).to_have_count(1)
    page.get_by_role("button", name="Revoke").click()
    assert StandingGrant.objects.filter(revoked_at__isnull=False).count() == 1
    page.goto(f"/grants/new/?tool=data.updateRecord&employee={office.workshop.employee.pk}")
    expect(page.get_by_text("every call has the parameter changes")).to_be_visible()
    faults += find_faults_at(page, WIDTHS[0], "the form") if scripts else []
    assert not faults, "\n".join(faults)


@feature(
    "Pages",
    "The button of a standing grant's form is in view, also with forty params",
    "static/css/grants.css",
)
def test_the_button_is_in_view_with_forty_params(office: Office, visit: Visit) -> None:
    workshop = office.workshop
    attributes = {f"size{number}": "small" for number in range(40)}
    record = workshop.record()
    changes = {"attributes": attributes}
    workshop.play(asking(call("data.updateRecord", record_id=str(record.pk), changes=changes)))
    (card,) = workshop.cards(workshop.work("Set the sizes"))
    page = visit("approver").page
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/grants/new/?card={card.pk}")
    expect(page.get_by_role("button", name="Allow these calls")).to_be_in_viewport(ratio=1)
    expect(page.get_by_text("41 values stay as on this card · open")).to_be_visible()
    page.get_by_text("41 values stay as on this card · open").click()
    expect(page.get_by_role("button", name="Allow these calls")).to_be_in_viewport(ratio=1)
