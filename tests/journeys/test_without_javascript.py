"""Without JavaScript the pages can be read, and everything works with plain forms."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from agents.runs.models import Approval, ApprovalStatus, ToolCall
from tests.features import feature
from tests.journeys.office import Office, load_run
from tests.journeys.visitor import Visit
from tests.workshop import asking, call
from tools.office.records.models import Record

pytestmark = pytest.mark.once


@feature(
    "The inbox",
    "A denial has one field for the reason, and four reasons that deny at once, also without scripts",
    "templates/cards/decide.html",
)
@pytest.mark.every_commit
def test_a_card_is_approved_another_is_denied_and_the_answer_is_read(
    office: Office, visit: Visit
) -> None:
    records = [office.workshop.record(name=name) for name in ("Acme Corp", "Borealis Freight")]
    changes = [
        call("data.updateRecord", record_id=str(each.pk), changes={"status": "inactive"})
        for each in records
    ]
    office.workshop.play(
        asking(*changes, text="I *suggest* two changes."), answer="They are changed."
    )
    visitor = visit("approver", scripts=False)
    run_id = visitor.start("Dana", "Change two records")
    first, second = office.await_cards(run_id, 2)

    visitor.open_run(run_id)
    expect(visitor.page.locator(".model-text em")).to_have_text("suggest")
    expect(visitor.card(first.pk).locator(".sentence")).to_contain_text("Acme Corp")
    visitor.card(first.pk).locator(".approve-button").click()
    expect(visitor.page.locator(".notice[role]")).to_have_text("Approved.")
    expect(visitor.card(first.pk)).to_contain_text("Approved by acme-approver")
    expect(visitor.card(first.pk).get_by_role("button", name="Undo")).to_be_visible()

    shown = visitor.card(second.pk)
    shown.get_by_text("Deny…").click()
    shown.get_by_label("Reason (sent to Dana)").fill("take another")
    shown.get_by_role("button", name="Wrong target").click()
    expect(visitor.card(second.pk)).to_contain_text("Denied by acme-approver")
    assert Approval.objects.get(pk=second.pk).reason == "Wrong target. take another"

    office.end_grace()
    office.await_end(run_id)
    visitor.open_run(run_id)
    expect(visitor.answer).to_have_text("They are changed.")
    visitor.assert_static_panel_is_whole(run_id)
    assert [Record.objects.get(pk=record.pk).status for record in records] == ["inactive", "active"]


def test_a_card_can_be_edited_undone_and_confirmed(office: Office, visit: Visit) -> None:
    records = [office.workshop.record(name=f"Lead {number}") for number in range(3)]
    office.workshop.play(
        asking(call("data.bulkDelete", record_ids=[str(record.pk) for record in records]))
    )
    run_id = office.submit("Delete the leads").pk
    (card,) = office.await_cards(run_id)
    visitor = visit("approver", scripts=False)

    visitor.page.goto("/approvals/")
    shown = visitor.card(card.pk)
    shown.get_by_text("Edit…").click()
    shown.locator("textarea[name='param.record_ids']").fill(
        "\n".join(str(record.pk) for record in records[:2])
    )
    shown.get_by_role("button", name="Preview changes").click()
    (edited,) = office.workshop.cards(load_run(run_id))
    expect(visitor.card(edited.pk)).to_contain_text("What changed since the earlier card")

    visitor.card(edited.pk).locator("[name=confirm]").fill("3")
    visitor.card(edited.pk).locator(".approve-button").click()
    expect(visitor.page.get_by_role("alert")).to_contain_text("Type '2' to confirm")
    visitor.card(edited.pk).locator("[name=confirm]").fill("2")
    visitor.card(edited.pk).locator(".approve-button").click()
    expect(visitor.page.locator(".notice[role]")).to_have_text("Approved.")

    visitor.open_run(run_id)
    visitor.page.get_by_role("button", name="Undo").click()
    expect(visitor.page.locator(".notice[role]")).to_contain_text("Undone")
    (again,) = office.workshop.cards(load_run(run_id))
    assert Approval.objects.get(pk=edited.pk).status == ApprovalStatus.SUPERSEDED
    visitor.card(again.pk).locator("[name=confirm]").fill("2")
    visitor.card(again.pk).locator(".approve-button").click()
    expect(visitor.page.locator(".notice[role]")).to_have_text("Approved.")
    office.end_grace()
    office.await_end(run_id)
    assert list(Record.objects.values_list("name", flat=True)) == ["Lead 2"]
    assert ToolCall.objects.get(run_id=run_id).attempts == 1


@feature(
    "The inbox", "A card is snoozed and moved back without scripts", "templates/approvals/one.html"
)
def test_a_card_can_be_snoozed_and_moved_back(office: Office, visit: Visit) -> None:
    record = office.workshop.record(name="Acme Corp")
    office.workshop.play(
        asking(call("data.updateRecord", record_id=str(record.pk), changes={"status": "inactive"}))
    )
    (card,) = office.await_cards(office.submit("Change a record").pk)
    visitor = visit("approver", scripts=False)
    page, day = visitor.page, timezone.localdate() + timedelta(days=3)
    for button, until in (("For an hour", ""), ("Snooze until this date", day.isoformat())):
        page.goto(f"/approvals/{card.pk}/")
        page.get_by_text("Snooze…").click()
        if until:
            page.get_by_label("Until a date").fill(until)
        page.get_by_role("button", name=button).click()
        expect(page.locator(".notice[role]")).to_contain_text("Snoozed until")
        expect(page.locator("[data-row]")).to_have_count(0)
        page.get_by_role("link", name="Snoozed").click()
        page.get_by_role("button", name="Move back to my list").click()
        expect(visitor.card(card.pk)).to_be_visible()
        expect(page.locator("[data-row]")).to_have_count(1)


def test_a_run_can_receive_a_message_continue_and_be_cancelled(
    office: Office, visit: Visit
) -> None:
    office.workshop.allow_passes(1)
    office.workshop.play(asking(call("probe.sleep", ms=0)), answer="Here I am.")
    visitor = visit("operator", scripts=False)
    run_id = visitor.start("Dana", "Say something")
    office.await_end(run_id)
    visitor.open_run(run_id)
    visitor.page.locator("textarea[name=text]").fill("And once more")
    visitor.page.get_by_role("button", name="Send").click()
    office.await_end(run_id)
    visitor.open_run(run_id)
    expect(visitor.page.locator("#panel .message")).to_contain_text("And once more")
    visitor.page.get_by_role("button", name="Continue").click()
    office.await_end(run_id)

    office.recorder.hold("gate")
    office.workshop.play(asking(call("probe.gate", name="gate")))
    waiting = visitor.start("Dana", "Wait at a gate")
    office.recorder.await_arrival("gate")
    visitor.open_run(waiting)
    visitor.page.get_by_text("Cancel…").click()
    visitor.page.get_by_role("button", name="Cancel run").click()
    expect(visitor.page.locator("#panel")).to_contain_text("cancelled the run")
    office.recorder.release("gate")
    assert office.await_end(waiting).status == "cancelled"
    visitor.open_run(waiting)
    expect(visitor.page.locator("[data-badge]")).to_have_text("Cancelled")
