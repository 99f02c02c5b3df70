"""In a browser: open pages show a stop, and its end, without a reload."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from agents.runs import stops
from agents.runs.models import Run, RunStatus
from tests.features import feature
from tests.journeys.office import Office
from tests.journeys.visitor import Visit
from tests.workshop import asking, call, eventually

pytestmark = pytest.mark.once

# Records what a screen reader would say: each new text of a visible live region.
LISTEN = """() => {
  window.said = [];
  const last = new Map();
  const listen = () => {
    for (const region of document.querySelectorAll("[role=status], [role=alert], [aria-live]")) {
      const text = region.closest("[hidden]") ? "" : region.textContent.trim();
      if (text && text !== last.get(region)) {
        window.said.push(text);
      }
      last.set(region, text);
    }
  };
  listen();
  window.said = [];
  const everything = { subtree: true, childList: true, characterData: true, attributes: true };
  new MutationObserver(listen).observe(document, everything);
}"""


def list_announcements(page: Page, part: str) -> list[str]:
    texts: list[str] = page.evaluate("window.said")
    return [text for text in texts if part in text]


def list_ends(page: Page) -> list[str]:
    return list_announcements(page, "The stop was lifted") + list_announcements(
        page, "The stop is lifted."
    )


def start_waiting_run(office: Office) -> Run:
    record = office.workshop.record()
    office.workshop.play(
        asking(
            call("data.updateRecord", record_id=str(record.pk), changes={"status": "inactive"}),
            text="I look.",
        )
    )
    return office.await_status(office.submit().pk, RunStatus.WAITING)


@feature(
    "The gate",
    "Open pages show at once when everything or the run's employee is stopped or resumed",
    "agents/web/sockets/inbox_feed.py",
    whole_file=True,
)
@pytest.mark.every_commit
def test_the_banner_appears_on_open_pages_and_disappears(office: Office, visit: Visit) -> None:
    run = start_waiting_run(office)
    start, watching = visit("operator").page, visit("approver").page
    start.goto("/")
    watching.goto(f"/runs/{run.pk}/")
    banners = [page.locator("[data-stopped]") for page in (start, watching)]
    for banner in banners:
        expect(banner).to_be_hidden()
    stops.stop_everything(office.member("operator"))
    for banner in banners:
        expect(banner).to_contain_text("acme-operator stopped everything")
        expect(banner.locator("time")).not_to_be_empty()
    expect(watching.locator("[data-run-stopped]")).to_be_hidden()
    stops.release_everything(office.member("admin"))
    for banner in banners:
        expect(banner).to_be_hidden()
    expect(watching.locator("[data-run-stopped]")).to_be_hidden()
    office.workshop.cancel(run)


@pytest.mark.parametrize("is_reachable", [True, False], ids=["", "while its requests fail"])
def test_an_open_page_of_a_run_reports_that_its_employee_was_stopped(
    office: Office, visit: Visit, is_reachable: bool
) -> None:
    run = start_waiting_run(office)
    page = visit("operator").page
    page.goto(f"/runs/{run.pk}/")
    if not is_reachable:
        page.route("**/runs/*/", lambda route: route.abort())
    notice = page.locator("[data-run-stopped]")
    expect(notice).to_be_hidden()
    stops.stop_employee(office.member("operator"), run.employee_id)
    expect(notice).to_contain_text("acme-operator stopped Dana. Nothing in this run starts")
    expect(page.locator("[data-stopped]")).to_be_hidden()
    stops.release_employee(office.member("admin"), run.employee_id)
    expect(notice).to_be_hidden()
    office.workshop.cancel(run)


def test_the_last_line_of_a_run_looks_the_same_on_live_and_reloaded_pages(
    office: Office, visit: Visit
) -> None:
    run = start_waiting_run(office)
    page = visit("operator").page
    page.goto(f"/runs/{run.pk}/")
    told = page.locator("#panel > .state")
    expect(told.last).to_contain_text("Waiting for a decision")
    stops.stop_everything(office.member("operator"))
    expect(told.last).to_contain_text("Nothing new starts")
    stops.release_everything(office.member("admin"))
    expect(told.last).to_contain_text("Waiting for a decision")
    live = told.all_inner_texts()
    assert ["The stop was lifted." in line for line in live[-2:]] == [True, False]
    page.reload()
    expect(told.last).to_contain_text("Waiting for a decision")
    assert told.all_inner_texts() == live
    office.workshop.cancel(run)


def test_the_banner_stays_when_a_card_is_decided_below_it(office: Office, visit: Visit) -> None:
    run = start_waiting_run(office)
    (card,) = office.await_cards(run.pk)
    stops.stop_everything(office.member("operator"))
    visitor = visit("approver")
    visitor.open_run(run.pk)
    visitor.deny(visitor.card(card.pk), "Not now")
    expect(visitor.page.locator("#panel")).to_contain_text("Denied")
    expect(visitor.page.locator("[data-badge]")).to_have_text("Queued")
    for banner in ("[data-stopped]", "[data-run-stopped]"):
        expect(visitor.page.locator(banner)).to_contain_text("acme-operator stopped everything")
    stops.release_everything(office.member("admin"))
    office.await_end(run.pk)


@feature(
    "The gate",
    "A stop and its end are announced once, and an open stop page shows stops by others",
    "static/js/page/live_sections.js",
)
def test_a_stop_and_its_end_are_announced_once_on_every_page(office: Office, visit: Visit) -> None:
    run = start_waiting_run(office)
    ended = office.submit()
    office.workshop.cancel(ended)
    pages = {
        path: visit("approver").page
        for path in ("/", f"/runs/{run.pk}/", f"/runs/{ended.pk}/", "/stop/")
    }
    for path, page in pages.items():
        page.goto(path)
        page.evaluate(LISTEN)
    stops.stop_everything(office.member("operator"))
    for path, page in pages.items():
        eventually(lambda page=page: bool(list_announcements(page, "stopped everything")))  # type: ignore[misc]
        page.wait_for_timeout(600)
        assert len(list_announcements(page, "stopped everything")) == 1, path
    stops.release_everything(office.member("admin"))
    for path, page in pages.items():
        eventually(lambda page=page: bool(list_ends(page)))  # type: ignore[misc]
        page.wait_for_timeout(600)
        assert len(list_ends(page)) == 1, path
    office.workshop.cancel(run)


def test_the_stops_page_shows_what_others_stop_and_resume(office: Office, visit: Visit) -> None:
    page = visit("admin").page
    page.goto("/stop/")
    all_, employees, tools = (page.locator(f"#{name}") for name in ("all", "employees", "tools"))
    stops.stop_everything(office.member("operator"))
    expect(all_).to_contain_text("acme-operator stopped everything")
    expect(all_.get_by_role("button", name="Resume everything")).to_be_visible()
    stops.release_everything(office.member("admin"))
    expect(all_.get_by_role("button", name="Stop everything")).to_be_visible()
    employee = office.workshop.employee
    stops.stop_employee(office.member("operator"), employee.pk)
    stops.stop_tool(office.member("operator"), "data.getStats")
    expect(employees).to_contain_text("stopped by acme-operator")
    expect(tools).to_contain_text("stopped by acme-operator")
    employees.get_by_role("button", name=f"Resume {employee.name}").click()
    expect(page.get_by_text("Resumed.")).to_be_visible()
    employee.refresh_from_db()
    assert employee.stopped_at is None
