"""A read that needs approval has a card like any other call."""

from __future__ import annotations

from typing import Any

import pytest

from agents.approvals import decisions
from agents.employees.models import Employee, Grant, ToolRule
from agents.runs.actions import Submission, submit
from agents.runs.engine.loop import advance
from agents.runs.models import Approval, ApprovalStatus, Event, EventType
from agents.web.panel.lines import render_lines
from tests.features import feature
from tests.scripts import write_script
from tests.web.pages import read_page
from tests.world import SEARCH, World
from tools.toolbox import Condition, Rule

ASKS = """
scripts:
  - task: "Set the phone"
    passes:
      - calls: [{tool: data.searchRecords, params: {limit: 200}}]
    answer: "Done."
"""


@feature(
    "The gate",
    "Every call that needs approval shows its card in the panel, even a read because of a limit",
    "agents/web/panel/lines.py",
)
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("limits", "for_all"),
    [
        ({"conditions": [Condition("limit", Rule.MAXIMUM, 100).as_json()]}, ""),
        ({"level": "write"}, ""),
        ({}, "write"),
    ],
    ids=["a broken condition", "a level raised by the grant", "a level raised by a tool rule"],
)
def test_a_read_that_needs_approval_shows_its_card_on_every_page(
    world: World, limits: dict[str, Any], for_all: str
) -> None:
    Employee.objects.update(model=write_script(ASKS))
    Grant.objects.filter(employee=world.employee, tool=SEARCH).update(**limits)
    if for_all:
        ToolRule.objects.create(organization=world.acme, tool=SEARCH, level=for_all)
    run, _ = submit(world.member("operator"), Submission(world.employee.pk, "Set the phone"))
    advance(run.pk)
    card = Approval.objects.get(run=run, status=ApprovalStatus.PENDING)
    here = f'id="card-{card.pk}"'
    client = world.client("approver")
    events = list(Event.objects.filter(run=run))
    assert here in read_page(client, f"/runs/{run.pk}/"), "on the page as it is loaded"
    (asked,) = [event for event in events if event.type == EventType.APPROVAL_REQUESTED]
    assert here in render_lines(run.pk, [asked])[0].html, "in a live line"
    assert here in read_page(client, "/approvals/")
    listed = client.get(f"/api/approvals?status=pending&run_id={run.pk}").json()["items"]
    assert [each["id"] for each in listed] == [str(card.pk)]
    decisions.approve(world.member("approver"), card.pk, decisions.Decision(digest=card.digest))
    advance(run.pk)
    html = read_page(client, f"/runs/{run.pk}/")
    assert here in html
    assert "Approved" in html
