"""A card in a browser protects people from haste and deception, and shows immediately what another
person decided."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from agents.runs.models import Approval, ApprovalStatus, CallStatus, Run, ToolCall
from tests.journeys.office import Office
from tests.journeys.visitor import Visit, Visitor
from tests.workshop import asking, call
from tools.office.records.models import Record

pytestmark = pytest.mark.once

# Presses Approve as soon as there is a card, faster than anybody can read it.
HASTY = """() => new Promise((resolve) => {
  const press = () => {
    const button = document.querySelector("#panel .approve-button");
    if (button) {
      watcher.disconnect();
      button.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, detail: 1 }));
      resolve(true);
    }
  };
  const watcher = new MutationObserver(press);
  watcher.observe(document.getElementById("panel"), { childList: true, subtree: true });
  press();
})"""


# The positions of the three buttons in their card.
PLACES = """(card) => {
  const top = card.getBoundingClientRect();
  return [".deny > summary", ".edit > summary", ".approve-button"].map((name) => {
    const place = card.querySelector(name).getBoundingClientRect();
    return [place.x - top.x, place.y - top.y, place.width, place.height].map(Math.round);
  });
}"""


def update(record: Record, status: str = "inactive") -> dict[str, Any]:
    return call("data.updateRecord", record_id=str(record.pk), changes={"status": status})


def delete(*records: Record) -> dict[str, Any]:
    return call("data.bulkDelete", record_ids=[str(record.pk) for record in records])


def waiting(office: Office, *calls: dict[str, Any]) -> tuple[Run, list[Approval]]:
    """Start a run that requests these calls; return it with its cards."""
    office.workshop.play(asking(*calls))
    run = office.submit()
    return run, office.await_cards(run.pk, len(calls))


def status(record: Record) -> str:
    return Record.objects.get(pk=record.pk).status


def decisions_sent(visitor: Visitor) -> list[str]:
    return [line for line in visitor.requests if line.startswith("POST /api/")]


def test_a_card_that_has_just_appeared_ignores_clicks(office: Office, visit: Visit) -> None:
    record = office.workshop.record()
    office.workshop.play(asking(update(record)))
    worker = office.installation.process("worker1")
    visitor = visit("approver")
    worker.pause()
    run_id = visitor.start("Dana", "Do the work")
    expect(visitor.page.locator("#panel > li")).to_have_count(1)
    worker.resume()
    assert visitor.page.evaluate(HASTY)
    card = office.await_cards(run_id)[0]
    visitor.await_stillness(visitor.card(card.pk))
    assert decisions_sent(visitor) == []
    visitor.approve(visitor.card(card.pk))
    expect(visitor.card(card.pk)).to_contain_text("Approved by acme-approver")
    assert len(decisions_sent(visitor)) == 1


def test_approve_never_gets_the_focus_automatically(office: Office, visit: Visit) -> None:
    run, cards = waiting(office, update(office.workshop.record()))
    visitor = visit("approver")
    visitor.open_run(run.pk)
    expect(visitor.card(cards[0].pk)).to_be_visible()
    assert visitor.page.evaluate("() => document.activeElement === document.body")


def test_an_approval_undone_within_its_grace_waits_again(office: Office, visit: Visit) -> None:
    record = office.workshop.record()
    run, (card,) = waiting(office, update(record))
    visitor = visit("approver")
    visitor.open_run(run.pk)
    visitor.approve(visitor.card(card.pk))
    decided = visitor.card(card.pk)
    expect(decided.get_by_role("button", name="Undo")).to_be_visible()
    visitor.await_stillness(decided)
    decided.get_by_role("button", name="Undo").click()
    expect(visitor.open_cards).to_have_count(1)
    expect(visitor.open_cards).to_contain_text("undid the approval")
    (again,) = office.workshop.cards(run)
    assert again.pk != card.pk
    assert ToolCall.objects.get(pk=card.tool_call_id).status == CallStatus.AWAITING_APPROVAL
    visitor.approve(visitor.card(again.pk))
    expect(visitor.card(again.pk)).to_contain_text("Approved by")
    office.end_grace()
    office.await_end(run.pk)
    expect(visitor.page.locator("#panel")).to_contain_text("acme-approver undid the approval.")
    assert (status(record), Record.objects.get(pk=record.pk).version) == (
        "inactive",
        record.version + 1,
    )
    visitor.assert_panel_is_whole(run.pk)


@pytest.mark.every_commit
def test_editing_a_card_creates_a_new_card_and_does_not_approve_it(
    office: Office, visit: Visit
) -> None:
    record = office.workshop.record(phone="1")
    run, (card,) = waiting(office, update(record))
    visitor = visit("approver")
    visitor.open_run(run.pk)
    shown = visitor.card(card.pk)
    shown.get_by_text("Edit…").click()
    shown.locator("select[name='param.changes.status']").select_option("pending")
    visitor.await_stillness(shown)
    shown.get_by_role("button", name="Preview changes").click()
    expect(visitor.page.locator(".notice[role]")).to_contain_text("Nothing is approved yet")
    (edited,) = office.workshop.cards(run)
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.SUPERSEDED
    expect(visitor.card(edited.pk).locator(".changed")).to_contain_text("pending")
    expect(visitor.card(edited.pk).locator(".why")).to_contain_text(
        "acme-approver edited the request"
    )
    assert status(record) == "active"
    visitor.approve(visitor.card(edited.pk))
    expect(visitor.card(edited.pk)).to_contain_text("Approved by")
    office.end_grace()
    office.await_end(run.pk)
    assert status(record) == "pending"


def test_approve_is_disabled_while_the_form_has_unsaved_edits(office: Office, visit: Visit) -> None:
    run, (card,) = waiting(office, update(office.workshop.record()))
    visitor = visit("approver")
    visitor.open_run(run.pk)
    shown = visitor.card(card.pk)
    approve = shown.locator(".approve-button")
    expect(approve).to_be_enabled()
    shown.get_by_text("Edit…").click()
    status_field = shown.locator("select[name='param.changes.status']")
    status_field.select_option("pending")
    expect(approve).to_be_disabled()
    expect(shown.locator("[data-unsaved]")).to_be_visible()
    shown.get_by_text("Edit…").click()
    expect(approve).to_be_enabled()
    shown.get_by_text("Edit…").click()
    expect(status_field).to_have_value("inactive")
    status_field.select_option("pending")
    shown.get_by_text("Deny…").click()
    expect(status_field).to_be_hidden()
    expect(approve).to_be_enabled()


def test_invalid_values_in_the_form_are_explained_and_the_card_stays_open(
    office: Office, visit: Visit
) -> None:
    _, (card,) = waiting(office, update(office.workshop.record()))
    visitor = visit("approver")
    for name, typed, words in (
        ("domain", "no domain", "It is not a bare domain such as example.com."),
        ("notes", "n" * 5001, "at most 5000 characters"),
    ):
        visitor.page.goto(f"/approvals/{card.pk}/")
        shown = visitor.card(card.pk)
        shown.get_by_text("Edit…").click()
        shown.get_by_text("More fields").click()
        field = shown.locator(f"[name='param.changes.{name}']")
        field.fill(typed)
        visitor.await_stillness(shown)
        shown.get_by_role("button", name="Preview changes").click()
        expect(shown.locator(f"label:has([name='param.changes.{name}']) .problem")).to_contain_text(
            words
        )
        expect(field).to_have_value(typed)
        expect(field).to_be_visible()
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING


def test_a_card_that_arrived_live_can_be_edited(office: Office, visit: Visit) -> None:
    record = office.workshop.record(phone="1")
    run, (card,) = waiting(office, update(record))
    visitor = visit("approver")
    visitor.open_run(run.pk)
    visitor.approve(visitor.card(card.pk))
    decided = visitor.card(card.pk)
    expect(decided.get_by_role("button", name="Undo")).to_be_visible()
    visitor.await_stillness(decided)
    decided.get_by_role("button", name="Undo").click()
    shown = visitor.open_cards
    shown.get_by_text("Edit…").click()
    shown.locator("select[name='param.changes.status']").select_option("pending")
    expect(shown.locator(".approve-button")).to_be_disabled()
    visitor.await_stillness(shown)
    shown.get_by_role("button", name="Preview changes").click()
    expect(visitor.page.locator(".notice[role]")).to_contain_text("Nothing is approved yet")
    (edited,) = office.workshop.cards(run)
    assert edited.params["changes"] == {"status": "pending"}


@pytest.mark.parametrize("width", [360, 1280])
def test_the_buttons_keep_their_place_when_a_form_opens(
    office: Office, visit: Visit, width: int
) -> None:
    _, (card,) = waiting(office, update(office.workshop.record()))
    visitor = visit("approver")
    visitor.page.set_viewport_size({"width": width, "height": 800})
    visitor.page.goto(f"/approvals/{card.pk}/")
    shown = visitor.card(card.pk)
    places = shown.evaluate(PLACES)
    for opened in ("Deny…", "Edit…", "Deny…"):
        shown.get_by_text(opened).click()
        expect(shown.locator(".actions > details[open]")).to_have_count(1)
        assert shown.evaluate(PLACES) == places
        expect(shown.locator(".actions > details[open] > form")).to_be_visible()


def test_old_and_new_values_fit_on_a_phone(office: Office, visit: Visit) -> None:
    _, (card,) = waiting(
        office,
        update(office.workshop.record(name="A rather long name of a company, Ltd. & Co. KG")),
    )
    visitor = visit("approver")
    visitor.page.set_viewport_size({"width": 360, "height": 800})
    visitor.page.goto(f"/approvals/{card.pk}/")
    for value in (
        visitor.card(card.pk).locator(".diff .before"),
        visitor.card(card.pk).locator(".diff .after"),
    ):
        box = value.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360
    assert visitor.page.evaluate("() => document.documentElement.scrollWidth") == 360


class TestADestructiveCard:
    def test_disables_approve_until_the_count_is_typed(self, office: Office, visit: Visit) -> None:
        records = [office.workshop.record(name=f"Lead {number}") for number in range(7)]
        run, (card,) = waiting(office, delete(*records))
        visitor = visit("approver")
        visitor.open_run(run.pk)
        shown = visitor.card(card.pk)
        expect(shown.locator(".strip")).to_contain_text("DESTRUCTIVE")
        expect(shown.get_by_text("Show all 7")).to_be_visible()
        expect(shown.locator("[data-unread]")).to_contain_text("Review all 7 records to continue.")
        approve, confirm = shown.locator(".approve-button"), shown.locator("[name=confirm]")
        expect(approve).to_be_disabled()
        for typed in ("6", "7 7", "seven"):
            confirm.fill(typed)
            expect(approve).to_be_disabled()
        confirm.fill(" 7 ")
        expect(approve).to_be_disabled()
        shown.get_by_text("Show all 7").click()
        expect(shown.locator(".rest").get_by_text("Lead 6").first).to_be_visible()
        expect(approve).to_be_enabled()
        visitor.approve(shown)
        expect(visitor.card(card.pk)).to_contain_text("Approved by")
        assert Record.objects.count() == 7, "it can be undone for ten seconds"
        office.end_grace()
        office.await_end(run.pk)
        assert Record.objects.count() == 0

    def test_shows_the_whole_list_and_every_shortened_value_on_request(
        self, office: Office, visit: Visit
    ) -> None:
        records = [
            office.workshop.record(name=f"Lead {n} {'x' * 180} {'y' * 10}") for n in range(7)
        ]
        run, (card,) = waiting(office, delete(*records))
        visitor = visit("approver")
        visitor.open_run(run.pk)
        shown = visitor.card(card.pk)
        shown.locator("[name=confirm]").fill("7")
        expect(shown.locator(".approve-button")).to_be_disabled()
        shown.get_by_role("button", name="Show all").click()
        expect(shown.get_by_text("Lead 6").first).to_be_visible()
        expect(shown.locator(".approve-button")).to_be_enabled()

    def test_hides_approve_without_scripts_until_the_list_is_open(
        self, office: Office, visit: Visit
    ) -> None:
        records = [office.workshop.record(name=f"Lead {number}") for number in range(7)]
        _, (card,) = waiting(office, delete(*records))
        visitor = visit("approver", scripts=False)
        visitor.page.goto(f"/approvals/{card.pk}/")
        shown = visitor.card(card.pk)
        expect(shown.get_by_text("Show all 7")).to_be_visible()
        expect(shown.locator(".approve-button")).to_be_hidden()
        expect(shown.locator("[name=confirm]")).to_be_hidden()
        expect(shown.locator(".unread-without-scripts")).to_be_visible()
        shown.get_by_text("Show all 7").click()
        shown.locator("[name=confirm]").fill("7")
        shown.locator(".approve-button").click()
        expect(visitor.page.locator(".notice[role]")).to_have_text("Approved.")
        office.workshop.undo(Approval.objects.get(pk=card.pk))

    def test_is_refused_by_the_server_without_the_right_confirmation(
        self, office: Office, visit: Visit
    ) -> None:
        record = office.workshop.record(name="Acme Corp")
        run, (card,) = waiting(office, delete(record))
        visitor = visit("approver")
        visitor.open_run(run.pk)
        shown = visitor.card(card.pk)
        confirm = shown.locator("[name=confirm]")
        confirm.fill("Acme Corp")
        confirm.evaluate("(field) => { field.value = 'Acme Group'; }")
        visitor.approve(shown)
        expect(shown.locator("[data-outcome]")).to_contain_text("type 'Acme Corp' to confirm")
        expect(shown.locator(".approve-button")).to_be_disabled()
        assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING
        confirm.fill("Acme Corp")
        visitor.approve(shown)
        expect(visitor.card(card.pk)).to_contain_text("Approved by")
        office.end_grace()
        office.await_end(run.pk)
        assert not Record.objects.filter(pk=record.pk).exists()


class TestACardOnSeveralScreens:
    def test_immediately_shows_who_decided_it_on_every_screen(
        self, office: Office, visit: Visit
    ) -> None:
        run, (card,) = waiting(office, update(office.workshop.record()))
        decider, on_the_run, in_the_inbox, on_its_page = (
            visit("approver"),
            visit("admin"),
            visit("admin"),
            visit("admin"),
        )
        for visitor in (decider, on_the_run):
            visitor.open_run(run.pk)
        in_the_inbox.page.goto("/approvals/")
        on_its_page.page.goto(f"/approvals/{card.pk}/")
        for visitor in (on_the_run, in_the_inbox, on_its_page):
            expect(visitor.card(card.pk).locator(".approve-button")).to_be_visible()
        decider.deny(decider.card(card.pk), "Not this one")
        for visitor in (decider, on_the_run, in_the_inbox, on_its_page):
            expect(visitor.card(card.pk)).to_contain_text("Denied by acme-approver")
            expect(visitor.card(card.pk)).to_contain_text("Not this one")
            expect(visitor.card(card.pk).locator(".approve-button")).to_have_count(0)
            expect(visitor.page.locator(".places [data-pending]")).to_be_hidden()

    def test_can_be_undone_only_by_the_approver(self, office: Office, visit: Visit) -> None:
        run, (card,) = waiting(office, delete(office.workshop.record()))
        decider, other = visit("approver"), visit("admin")
        for visitor in (decider, other):
            visitor.open_run(run.pk)
        decider.card(card.pk).locator("[name=confirm]").fill("Acme Corp")
        decider.approve(decider.card(card.pk))
        expect(decider.card(card.pk).get_by_role("button", name="Undo")).to_be_visible()
        expect(other.card(card.pk)).to_contain_text("Approved by acme-approver")
        expect(other.card(card.pk).get_by_role("button", name="Undo")).to_be_hidden()
        office.end_grace()
        office.await_end(run.pk)

    def test_shows_who_decided_first_after_a_decision_that_came_too_late(
        self, office: Office, visit: Visit
    ) -> None:
        _, (card,) = waiting(office, update(office.workshop.record()))
        visitor = visit("approver")
        visitor.block_sockets()
        visitor.page.goto(f"/approvals/{card.pk}/")
        office.workshop.deny(card, "Not this one", by=office.member("admin"))
        visitor.approve(visitor.card(card.pk))
        expect(visitor.card(card.pk)).to_contain_text("Denied by acme-admin")
        expect(visitor.page.locator("[data-announcer]")).to_contain_text(
            "already denied by acme-admin"
        )

    def test_is_locked_and_offers_the_new_card_if_edited_on_another_screen(
        self, office: Office, visit: Visit
    ) -> None:
        record = office.workshop.record()
        run, (card,) = waiting(office, update(record))
        visitor = visit("approver")
        visitor.block_sockets()
        visitor.page.goto(f"/approvals/{card.pk}/")
        shown = visitor.card(card.pk)
        params = {"record_id": str(record.pk), "changes": {"status": "pending"}}
        edited = office.workshop.edit(card, params, by=office.member("admin"))
        visitor.approve(shown)
        expect(shown).to_contain_text("Nothing was decided")
        expect(shown.locator(".approve-button")).to_be_disabled()
        shown.get_by_role("button", name="Show the new card").click()
        expect(visitor.card(edited.pk).locator(".changed")).to_contain_text("pending")
        assert office.workshop.cards(run) == [edited]

    def test_is_not_replaced_while_it_is_read_if_edited_on_another_screen(
        self, office: Office, visit: Visit
    ) -> None:
        record = office.workshop.record()
        run, (card,) = waiting(office, update(record))
        visitor = visit("approver")
        visitor.open_run(run.pk)
        shown = visitor.card(card.pk)
        expect(shown.locator(".approve-button")).to_be_enabled()
        params = {"record_id": str(record.pk), "changes": {"status": "pending"}}
        edited = office.workshop.edit(card, params, by=office.member("admin"))
        expect(shown).to_contain_text("This card has changed since it was shown")
        expect(shown.locator(".approve-button")).to_be_disabled()
        expect(visitor.card(edited.pk)).to_have_count(0)
        line = visitor.page.locator(f"#call-{edited.tool_call_id} .call-brief")
        expect(line).to_contain_text("inactive")
        shown.get_by_role("button", name="Show the new card").click()
        expect(visitor.card(edited.pk).locator(".changed")).to_contain_text("pending")
        expect(line).to_contain_text("pending")
        visitor.assert_panel_is_whole(run.pk)
        visitor.approve(visitor.card(edited.pk))
        expect(visitor.card(edited.pk)).to_contain_text("Approved by")

    def test_can_be_seen_but_not_decided_by_a_viewer(self, office: Office, visit: Visit) -> None:
        run, (card,) = waiting(office, update(office.workshop.record()))
        visitor = visit("viewer")
        visitor.open_run(run.pk)
        expect(visitor.card(card.pk).locator(".sentence")).to_be_visible()
        expect(visitor.card(card.pk).locator(".role-note")).to_be_visible()
        expect(visitor.card(card.pk).locator(".approve-button")).to_be_hidden()
        expect(visitor.page.get_by_role("button", name="Cancel run")).to_have_count(0)
