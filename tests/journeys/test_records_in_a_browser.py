"""In a browser: an admin imports records and gets them back as a file; a reader follows a draft to
its run."""

from __future__ import annotations

import csv

import pytest
from playwright.sync_api import FilePayload, expect

from agents.employees.models import Grant
from tests.journeys.office import Office
from tests.journeys.visitor import Visit
from tests.workshop import asking, call
from tools.office.records.models import Draft, Record

pytestmark = pytest.mark.once

FILE = (
    "name,region,status,phone\nNorth & Co,EU,active,+49 1\nSouth,EU,dead,\nWest <i>,UK,pending,\n"
)


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
@pytest.mark.every_commit
def test_an_admin_imports_a_file_finds_its_records_and_exports_them(
    office: Office, visit: Visit, scripts: bool
) -> None:
    visitor = visit("admin", scripts=scripts)
    page = visitor.page
    page.goto("/records/")
    page.get_by_role("link", name="Import").first.click()
    page.get_by_label("CSV file").set_input_files(
        FilePayload(name="a.csv", mimeType="text/csv", buffer=FILE.encode())
    )
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("heading", name="2 records imported")).to_be_visible()
    expect(page.get_by_role("row", name="3 status")).to_be_visible()
    page.get_by_role("link", name="Show the newest records").click()
    page.get_by_label("Region").select_option("UK")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("tbody th a")).to_have_text(["West <i>"])
    page.get_by_role("link", name="Clear").click()
    page.get_by_label("Region").select_option("EU")
    page.get_by_role("button", name="Filter").click()
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Export these as CSV").click()
    with waiting.value.path().open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["name"] == "North & Co"]
    assert [(row["status"], row["phone"]) for row in rows] == [("active", "'+49 1")]
    page.get_by_role("link", name="North & Co").click()
    expect(page.locator(".step")).to_contain_text("acme-admin (CSV import)")


def test_a_reader_follows_a_record_to_the_run_that_changed_it_and_to_its_draft(
    office: Office, visit: Visit
) -> None:
    record = office.workshop.record()
    update = call("data.updateRecord", record_id=str(record.pk), changes={"status": "inactive"})
    Grant.objects.create(employee=office.workshop.employee, tool="content.generateSummary")
    draft = call(
        "content.generateSummary",
        title="What I did",
        body="I **changed** it.",
        record_ids=[str(record.pk)],
    )
    office.workshop.play(asking(draft, update))
    run = office.submit("Tidy up the record")
    (card,) = office.await_cards(run.pk)
    approver = visit("approver")
    approver.open_run(run.pk)
    approver.approve(approver.card(card.pk))
    expect(approver.card(card.pk)).to_contain_text("Approved by acme-approver")
    office.end_grace()
    office.await_end(run.pk)
    assert Record.objects.get(pk=record.pk).status == "inactive"
    page = visit("viewer").page
    page.goto(f"/records/{record.pk}/")
    step = page.locator(".step").first
    expect(step).to_contain_text("Dana")
    expect(step).to_contain_text("approved by acme-approver")
    expect(step.locator("td.after")).to_have_text("inactive")
    page.get_by_role("link", name="What I did").click()
    expect(page).to_have_url(f"{office.url}/drafts/{Draft.objects.get().pk}/")
    expect(page.locator(".paper strong")).to_have_text("changed")
    page.get_by_role("link", name="Tidy up the record").click()
    assert page.url == f"{office.url}/runs/{run.pk}/"
