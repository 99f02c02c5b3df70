"""Late effects on pages: a late effect is shown wherever its call is shown, and people can only
acknowledge it."""

from __future__ import annotations

import pytest

from agents.runs.models import Approval
from tests.web.pages import read_page
from tests.world import World

pytestmark = pytest.mark.django_db


def test_a_late_effect_can_only_be_acknowledged_with_a_reason(world: World) -> None:
    call = world.late_call()
    card = Approval.objects.get(tool_call=call, kind="unknown")
    client, page = world.client("approver"), f"/approvals/{card.pk}/"
    html = read_page(client, page)
    assert "Marked as not done, but" in html
    assert "Updated Acme Corp" in html
    assert 'value="acknowledged"' in html
    assert 'value="succeeded"' not in html
    assert (
        client.post(f"{page}resolve/", {"outcome": "acknowledged", "reason": ""}).status_code == 422
    )
    assert (
        client.post(
            f"{page}resolve/", {"outcome": "acknowledged", "reason": "I called them."}
        ).status_code
        == 302
    )
    html = read_page(client, page)
    assert "<b>Acknowledged</b> by approver" in html
    assert "I called them." in html


def test_a_repeated_call_is_linked(world: World) -> None:
    call = world.late_call(is_repeated=True)
    again = call.run.tool_calls.latest("pk")
    card = Approval.objects.get(tool_call=call, kind="unknown")
    client = world.client("approver")
    assert f'<a href="/runs/{call.run_id}/calls/{again.pk}/">Call {again.pk}</a>' in read_page(
        client, f"/approvals/{card.pk}/"
    )
    assert f'<a href="#call-{again.pk}">call {again.pk}</a>' in read_page(
        client, f"/runs/{call.run_id}/"
    )


def test_a_late_effect_is_shown_on_every_page_about_its_call_and_in_the_audit(world: World) -> None:
    call = world.late_call()
    client = world.client("approver")
    assert "LATE EFFECT" in read_page(client, "/approvals/")
    assert "<b>Late effect:</b>" in read_page(client, "/")
    assert "<b>Marked as not done,</b> but" in read_page(
        client, f"/runs/{call.run_id}/calls/{call.pk}/"
    )
    assert "Marked as not done, but" in read_page(client, f"/runs/{call.run_id}/")
    assert "reported that a call had happened, although it was marked as not done" in read_page(
        world.client("admin"), "/audit/"
    )
