"""A card on its own page: its result, lost responses, the two-person rule, and parts to review
before approving."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import WebSocketRoute, expect

from agents.approval_rules.models import ApprovalRule
from agents.runs.models import Approval, RunStatus
from tests.journeys.office import Office
from tests.journeys.test_cards_in_a_browser import decisions_sent, delete, update, waiting
from tests.journeys.visitor import Visit, Visitor
from tests.workshop import asking, call
from tools.office.records.models import Record

pytestmark = pytest.mark.once

# Lose the response to the next POST, or replace it with a proxy's error; `arrives` decides if the
# request itself reaches the server.
LOSE_A_RESPONSE = """([arrives, status]) => {
  const real = window.fetch;
  window.fetch = async (...sent) => {
    if (sent[1]?.method !== "POST") return real(...sent);
    window.fetch = real;
    if (arrives) await real(...sent);
    if (!status) throw new TypeError("The answer got lost.");
    return new Response("Bad gateway", { status });
  };
}"""


class TestACardOnItsOwnPage:
    def test_shows_the_result_of_its_call(self, office: Office, visit: Visit) -> None:
        record = office.workshop.record()
        run, (card,) = waiting(office, update(record))
        decider, reader = visit("approver"), visit("viewer", scripts=False)
        decider.page.goto(f"/approvals/{card.pk}/")
        decider.approve(decider.card(card.pk))
        expect(decider.card(card.pk)).to_contain_text("Approved by")
        office.end_grace()
        expect(decider.page.locator("[data-report]")).to_contain_text("Succeeded: ")
        expect(decider.card(card.pk).get_by_role("button", name="Undo")).to_have_count(0)
        reader.page.goto(f"/approvals/{card.pk}/")
        expect(reader.page.locator("[data-report]")).to_contain_text("Succeeded: ")
        office.await_end(run.pk)

    def test_links_to_its_replacement_if_its_target_drifted(
        self, office: Office, visit: Visit
    ) -> None:
        record = office.workshop.record()
        run, (card,) = waiting(office, update(record))
        visitor = visit("approver")
        visitor.page.goto(f"/approvals/{card.pk}/")
        visitor.approve(visitor.card(card.pk))
        expect(visitor.card(card.pk)).to_contain_text("Approved by")
        Record.objects.filter(pk=record.pk).update(status="pending", version=record.version + 1)
        office.end_grace()
        link = visitor.card(card.pk).get_by_role("link", name="Replaced by card")
        expect(link).to_be_visible()
        expect(visitor.card(card.pk)).to_contain_text("waiting for a decision")
        link.click()
        (fresh,) = office.workshop.cards(run)
        expect(visitor.card(fresh.pk).locator(".changed")).to_contain_text("pending")

    @pytest.mark.parametrize("page", ["/approvals/{card}/", "/approvals/"])
    def test_keeps_the_typed_values_if_it_is_decided_during_an_edit(
        self, office: Office, visit: Visit, page: str
    ) -> None:
        _, (card,) = waiting(office, update(office.workshop.record()))
        visitor = visit("approver")
        visitor.page.goto(page.format(card=card.pk))
        shown = visitor.card(card.pk)
        shown.get_by_text("Edit…").click()
        shown.locator("[name='param.changes.status']").select_option("pending")
        office.workshop.deny(card, by=office.member("admin"))
        expect(shown).to_contain_text("Denied by acme-admin")
        expect(shown.locator(".typed-values")).to_contain_text("Your edit was not applied")
        expect(shown.locator(".typed-values dd")).to_have_text("pending")

    @pytest.mark.parametrize("page", ["/approvals/{card}/", "/runs/{run}/"])
    def test_does_not_say_that_nothing_was_decided_if_its_call_was_lost(
        self, office: Office, visit: Visit, page: str
    ) -> None:
        """The call is lost while the page has no connection, so the call's newest card asks for the
        outcome."""
        run, (card,) = waiting(office, call("probe.shortEffect", name="pay"))
        visitor = visit("approver")
        sockets: list[WebSocketRoute] = []
        hears = [True]

        def connect(socket: WebSocketRoute) -> None:
            sockets.append(socket)
            socket.connect_to_server() if hears else socket.close(code=1001)

        visitor.page.route_web_socket(re.compile("/ws/"), connect)
        visitor.page.goto(page.format(card=card.pk, run=run.pk))
        expect(visitor.card(card.pk).locator(".approve-button")).to_be_enabled()
        hears.clear()
        for socket in sockets:
            socket.close(code=1001)
        office.recorder.hold("pay")
        office.workshop.approve(card)
        office.end_grace()
        office.await_status(run.pk, RunStatus.NEEDS_ATTENTION)
        asking_card = office.workshop.card(run)
        hears.append(True)
        if page.startswith("/runs/"):
            expect(visitor.card(asking_card.pk)).to_contain_text("OUTCOME UNKNOWN")
        else:
            expect(visitor.card(card.pk)).to_contain_text("Approved by")
        expect(visitor.page.get_by_text("Nothing was decided")).to_have_count(0)
        office.workshop.resolve(asking_card.tool_call)

    def test_is_shown_as_replaced_after_going_back_from_a_corrected_edit(
        self, office: Office, visit: Visit
    ) -> None:
        _, (card,) = waiting(office, update(office.workshop.record(phone="1")))
        visitor = visit("approver")
        visitor.page.goto(f"/approvals/{card.pk}/")
        shown = visitor.card(card.pk)
        shown.get_by_text("Edit…").click()
        shown.locator("[name='param.record_id']").fill("987654")
        visitor.await_stillness(shown)
        shown.get_by_role("button", name="Preview changes").click()
        expect(shown.locator(".problem")).to_contain_text("987654")
        shown.locator("[name='param.record_id']").fill(str(card.params["record_id"]))
        shown.locator("select[name='param.changes.status']").select_option("pending")
        visitor.await_stillness(shown)
        shown.get_by_role("button", name="Preview changes").click()
        expect(visitor.page.locator(".notice[role]")).to_contain_text("Nothing is approved yet")
        visitor.page.go_back()
        expect(visitor.card(card.pk)).to_contain_text("Replaced by card")
        assert sum(line.startswith("POST ") for line in visitor.requests) == 2


def open_card(visit: Visit, card: Approval) -> Visitor:
    """Open this card's page for an approver whose sockets are blocked."""
    visitor = visit("approver")
    visitor.block_sockets()
    visitor.page.goto(f"/approvals/{card.pk}/")
    return visitor


@pytest.mark.parametrize("status", [0, 502])
class TestALostResponse:
    def test_does_not_hide_a_decision_that_arrived(
        self, office: Office, visit: Visit, status: int
    ) -> None:
        _, (card,) = waiting(office, update(office.workshop.record()))
        visitor = open_card(visit, card)
        visitor.page.evaluate(LOSE_A_RESPONSE, [True, status])
        visitor.approve(visitor.card(card.pk))
        expect(visitor.card(card.pk)).to_contain_text("Approved by acme-approver")

    def test_does_not_hide_an_undo_that_arrived(
        self, office: Office, visit: Visit, status: int
    ) -> None:
        _, (card,) = waiting(office, update(office.workshop.record()))
        office.workshop.approve(card, by=office.member("approver"), grace_s=60)
        visitor = open_card(visit, card)
        visitor.await_stillness(visitor.card(card.pk))
        visitor.page.evaluate(LOSE_A_RESPONSE, [True, status])
        visitor.card(card.pk).get_by_role("button", name="Undo").click()
        expect(visitor.open_cards).to_have_count(1)

    def test_allows_resending_a_decision_that_did_not_arrive(
        self, office: Office, visit: Visit, status: int
    ) -> None:
        _, (card,) = waiting(office, update(office.workshop.record()))
        visitor = open_card(visit, card)
        visitor.page.evaluate(LOSE_A_RESPONSE, [False, status])
        visitor.approve(visitor.card(card.pk))
        expect(visitor.card(card.pk)).to_contain_text("Your decision may have arrived")
        visitor.approve(visitor.card(card.pk))
        expect(visitor.card(card.pk)).to_contain_text("Approved by acme-approver")
        assert len(decisions_sent(visitor)) == 1

    def test_does_not_say_that_nothing_was_decided_if_the_card_has_changed(
        self, office: Office, visit: Visit, status: int
    ) -> None:
        record = office.workshop.record()
        _, (card,) = waiting(office, update(record))
        visitor = open_card(visit, card)
        expect(visitor.card(card.pk).locator(".approve-button")).to_be_enabled()
        params = {"record_id": str(record.pk), "changes": {"status": "pending"}}
        office.workshop.edit(card, params, by=office.member("admin"))
        visitor.page.evaluate(LOSE_A_RESPONSE, [False, status])
        visitor.approve(visitor.card(card.pk))
        expect(visitor.page.get_by_role("button", name="Show the new card")).to_be_visible()
        expect(visitor.page.get_by_text("Nothing was decided")).to_have_count(0)


class TestTheTwoPersonRule:
    def test_allows_the_person_who_started_the_run_only_to_deny_and_says_why(
        self, office: Office, visit: Visit
    ) -> None:
        office.workshop.organization.four_eyes = True
        office.workshop.organization.save()
        office.workshop.play(asking(update(office.workshop.record())))
        starter, other, in_the_inbox = visit("approver"), visit("admin"), visit("approver")
        in_the_inbox.page.goto("/approvals/")
        run_id = starter.start("Dana", "Do the work")
        (card,) = office.await_cards(run_id)
        other.open_run(run_id)
        for visitor in (starter, in_the_inbox, other):
            expect(visitor.card(card.pk).locator(".two-person-rule")).to_contain_text(
                "acme-approver started this run"
            )
        for visitor in (starter, in_the_inbox):
            expect(visitor.card(card.pk).locator(".approve-button")).to_be_hidden()
            expect(visitor.card(card.pk).get_by_text("Deny…")).to_be_visible()
        for key in "ja":
            in_the_inbox.page.keyboard.press(key)
        expect(in_the_inbox.page.locator("[data-announcer]")).to_contain_text(
            "someone else must approve"
        )
        assert decisions_sent(in_the_inbox) == []
        other.approve(other.card(card.pk))
        expect(other.card(card.pk)).to_contain_text("Approved by acme-admin")
        office.end_grace()
        office.await_end(run_id)


class TestTwoApprovers:
    def test_are_needed_and_the_first_approval_can_be_withdrawn(
        self, office: Office, visit: Visit
    ) -> None:
        ApprovalRule.objects.create(
            organization=office.workshop.organization, name="Two people", needed=2
        )
        office.workshop.play(asking(update(office.workshop.record())))
        run = office.submit()
        (card,) = office.await_cards(run.pk)
        first, second = visit("approver"), visit("admin")
        for visitor in (first, second):
            visitor.page.goto("/approvals/")
            expect(visitor.card(card.pk)).to_contain_text("Still needed: 0 of 2: an approver.")
        for is_first in (True, False):
            first.approve(first.card(card.pk))
            expect(first.card(card.pk)).to_contain_text(
                "1 of 2: an approver. Approved by acme-approver."
            )
            expect(first.card(card.pk).locator(".approve-button")).to_be_hidden()
            withdraw = first.card(card.pk).get_by_role("button", name="Withdraw my approval")
            if is_first:
                first.await_stillness(first.card(card.pk))
                withdraw.click()
                expect(first.card(card.pk)).to_contain_text("0 of 2: an approver.")
                first.await_stillness(first.card(card.pk))
        second.page.reload()
        expect(
            second.card(card.pk).get_by_role("button", name="Withdraw my approval")
        ).to_be_hidden()
        second.approve(second.card(card.pk))
        office.end_grace()
        office.await_end(run.pk)


@pytest.mark.parametrize(
    ("count", "what"), [(2, "the shortened values"), (7, "all 7 records and the shortened values")]
)
def test_the_hint_names_only_the_parts_that_need_review(
    office: Office, visit: Visit, count: int, what: str
) -> None:
    long = f"{'x' * 230}@example.com"
    records = [office.workshop.record(name=f"Lead {number}", email=long) for number in range(count)]
    run, (card,) = waiting(office, delete(*records))
    visitor = visit("approver")
    visitor.open_run(run.pk)
    expect(visitor.card(card.pk).locator("[data-unread]")).to_contain_text(
        f"Review {what} to continue."
    )
    visitor.card(card.pk).get_by_role("button", name="Show all").click()
    expect(visitor.card(card.pk).locator("[data-unread]")).to_be_hidden()
