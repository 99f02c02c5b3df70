"""In a browser: pages that are open hear of a stop, and of its end, without being loaded again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from agents import stops
from agents.models import RunStatus
from tests.engine.workshop import asking, call
from tests.journeys.office import Office
from tests.journeys.visitor import Visitor

pytestmark = pytest.mark.once

Visit = Callable[..., Visitor]


def test_the_banner_comes_to_open_pages_and_goes(office: Office, visit: Visit) -> None:
    record = office.workshop.record()
    office.workshop.play(
        asking(call("data.updateRecord", record_id=str(record.pk), changes={"status": "inactive"}), text="I look.")
    )
    run = office.submit()
    office.await_status(run.pk, RunStatus.WAITING)
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


def test_a_stopped_employees_run_says_so_while_it_is_looked_at(office: Office, visit: Visit) -> None:
    record = office.workshop.record()
    office.workshop.play(
        asking(call("data.updateRecord", record_id=str(record.pk), changes={"status": "inactive"}), text="I look.")
    )
    run = office.submit()
    office.await_status(run.pk, RunStatus.WAITING)
    page = visit("operator").page
    page.goto(f"/runs/{run.pk}/")
    notice = page.locator("[data-run-stopped]")
    expect(notice).to_be_hidden()
    stops.stop_employee(office.member("operator"), run.employee_id)
    expect(notice).to_contain_text("acme-operator stopped Dana. Nothing of this run starts")
    expect(page.locator("[data-stopped]")).to_be_hidden()
    stops.release_employee(office.member("admin"), run.employee_id)
    expect(notice).to_be_hidden()
    office.workshop.cancel(run)
