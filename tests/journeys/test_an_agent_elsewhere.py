"""In a browser: a key is created, an external agent works with it, and a person approves its
change."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import expect

from agents.runs.models import Origin, Run
from tests.awaiting import await_that
from tests.features import feature
from tests.journeys.office import Office
from tests.journeys.visitor import Visit
from tests.mcp_caller import call

pytestmark = pytest.mark.once


@feature(
    "Agents elsewhere",
    "A key is made in the browser, an agent connects, and its change is approved",
    "templates/agents/agents.html",
)
@pytest.mark.every_commit
def test_an_agent_connects_and_its_change_is_approved(office: Office, visit: Visit) -> None:
    record = office.workshop.record(name="Acme Corp", region="EU")
    owner = visit("operator").page
    owner.context.grant_permissions(["clipboard-read", "clipboard-write"])
    owner.goto("/agents/")
    owner.get_by_label("Name", exact=True).fill("Assistant on my laptop")
    owner.get_by_role("button", name="Create key").click()
    owner.get_by_role("button", name="Copy key").click()
    expect(owner.get_by_role("button", name="Copied key")).to_be_visible()
    secret = owner.evaluate("() => navigator.clipboard.readText()")
    owner.get_by_role("button", name="Copy configuration").click()
    expect(owner.get_by_role("button", name="Copied configuration")).to_be_visible()
    configuration = owner.evaluate("async () => JSON.parse(await navigator.clipboard.readText())")
    server = configuration["mcpServers"]["gadget"]
    assert server == {
        "type": "http",
        "url": f"{office.url}/mcp",
        "headers": {"Authorization": f"Bearer {secret}"},
    }

    found = call(office.url, secret, "data.searchRecords", region="EU")["result"]
    assert "Acme Corp" in str(found)
    run = Run.objects.get(origin=Origin.MCP)
    owner.goto(f"/runs/{run.pk}/")
    expect(owner.locator("#panel .line.call")).to_have_count(1)
    asked = call(
        office.url,
        secret,
        "data.updateRecord",
        record_id=str(record.pk),
        changes={"status": "inactive"},
    )
    ticket = asked["result"]["structuredContent"]
    assert ticket["status"] == "waiting_for_approval"
    expect(owner.locator("#panel .line.call")).to_have_count(2)

    approver = visit("approver")
    approver.page.goto(ticket["url"])
    expect(approver.open_cards).to_have_count(1)
    with ThreadPoolExecutor(1) as beside:
        waiting = beside.submit(
            call, office.url, secret, "gadget__ticket", ticket=ticket["ticket"], wait_s=30
        )
        approver.approve(approver.open_cards.first)
        expect(approver.page.get_by_role("button", name="Undo")).to_be_visible()
        office.end_grace()
        assert not waiting.result()["result"]["isError"]
    record.refresh_from_db()
    assert record.status == "inactive"
    await_that(
        lambda: owner.locator("#panel").inner_text().count("inactive") > 0,
        "the panel shows what changed",
    )
