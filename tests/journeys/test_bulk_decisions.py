"""Bulk decisions in a browser: select, read the summary, confirm, undo; and snooze what can
wait."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from agents.runs.models import Approval, ApprovalStatus
from tests.awaiting import await_that
from tests.features import feature
from tests.journeys.office import Office
from tests.journeys.test_the_inbox_by_keyboard import (
    get_status,
    in_the_inbox,
    press,
    row,
    rows,
    toast,
)
from tests.journeys.visitor import Visit, Visitor
from tests.workshop import asking, call

pytestmark = pytest.mark.once


def await_group(office: Office, emails: list[str], deletes: int = 0) -> list[Approval]:
    """Create cards of one shape, each for the email address of a separate record, followed by
    deletions."""
    records = [
        office.workshop.record(name=f"Company {number}") for number in range(len(emails) + deletes)
    ]
    calls = [
        call("data.updateRecord", record_id=str(record.pk), changes={"email": email})
        for record, email in zip(records, emails, strict=False)
    ]
    calls += [
        call("data.bulkDelete", record_ids=[str(record.pk)]) for record in records[len(emails) :]
    ]
    office.workshop.play(asking(*calls))
    return office.await_cards(office.submit().pk, len(calls))


def summary(visitor: Visitor) -> Locator:
    return visitor.page.locator("[data-bulk-summary]")


def confirm(visitor: Visitor) -> None:
    """Confirm the summary after it has been open long enough to be read."""
    await_that(lambda: visitor.page.evaluate(READ), "the summary was open for a moment")
    press(visitor, "Enter")


READ = """() => {
  const dialog = document.querySelector("[data-bulk-summary][open]");
  dialog.seenAt ??= performance.now();
  return performance.now() - dialog.seenAt > 400;
}"""


@feature(
    "The inbox",
    "A group is approved with three keys and undone as a whole",
    "static/js/inbox/selection.js",
)
@pytest.mark.every_commit
def test_a_group_is_approved_with_three_keys_and_undone_as_a_whole(
    office: Office, visit: Visit
) -> None:
    *group, deletion = await_group(office, [f"{name}@acme.example" for name in "abcd"], deletes=1)
    visitor = in_the_inbox(visit)
    press(visitor, "Shift+X")
    expect(visitor.page.locator("[data-bulk]")).to_contain_text("4 selected")
    press(visitor, "Shift+A")
    expect(summary(visitor)).to_contain_text("Approve 4 cards?")
    expect(summary(visitor)).to_contain_text("Update a record")
    expect(summary(visitor)).to_contain_text("email address “a@acme.example”")
    confirm(visitor)
    expect(rows(visitor)).to_have_count(1)
    expect(toast(visitor)).to_contain_text("Approved: 4 cards.")
    assert {get_status(card) for card in group} == {ApprovalStatus.APPROVED}
    assert get_status(deletion) == ApprovalStatus.PENDING
    press(visitor, "u")
    expect(rows(visitor)).to_have_count(5)
    expect(visitor.page.locator("[data-toasts]")).to_contain_text("Undone: 4 are waiting again.")
    assert {get_status(card) for card in group} == {ApprovalStatus.SUPERSEDED}


@feature(
    "The inbox",
    "The summary before a bulk decision says what the cards share and where they differ",
    "static/js/inbox/bulk_summary.js",
)
def test_the_summary_of_a_bulk_denial_shows_the_number_of_cards_differences_and_the_reason(
    office: Office, visit: Visit
) -> None:
    addresses = [*[f"{name}@acme.example" for name in "abc"], "d@acme.example"]
    group = await_group(office, addresses)
    visitor = in_the_inbox(visit)
    press(visitor, "Shift+X Shift+D")
    expect(summary(visitor)).to_contain_text("Deny 4 cards?")
    expect(summary(visitor)).to_contain_text("email: 4 different values, all acme.example")
    expect(summary(visitor)).to_contain_text("All 4 are denied without a reason.")
    summary(visitor).get_by_role("button", name="Not needed").click()
    expect(summary(visitor)).to_contain_text("All 4 are denied with this reason: “Not needed”.")
    confirm(visitor)
    expect(toast(visitor)).to_contain_text("Denied: 4 cards.")
    assert {Approval.objects.get(pk=card.pk).reason for card in group} == {"Not needed"}


@feature(
    "The inbox",
    "The odd one out of a group comes first and is decided on its own",
    "agents/approvals/warnings/odd_values.py",
)
def test_an_odd_card_is_listed_first_and_not_selected_with_its_group(
    office: Office, visit: Visit
) -> None:
    *group, odd = await_group(
        office, ["a@acme.example", "b@acme.example", "c@acme.example", "d@acrne.example"]
    )
    visitor = in_the_inbox(visit)
    expect(rows(visitor).first).to_have_attribute("data-row", str(odd.pk))
    expect(rows(visitor).first).to_contain_text("different domain in “email”")
    press(visitor, "j Shift+X")
    expect(visitor.page.locator("[data-bulk]")).to_contain_text("3 selected")
    expect(visitor.page.locator("[data-announcer]")).to_have_text(
        "3 selected. 1 left to decide individually."
    )
    press(visitor, "Shift+D")
    visitor.page.get_by_role("dialog").get_by_role("button", name="Not needed").click()
    expect(visitor.page.get_by_label("Reason (sent to each employee)")).to_be_focused()
    visitor.page.keyboard.press("End")
    visitor.page.keyboard.type(" today")
    confirm(visitor)
    expect(rows(visitor)).to_have_count(1)
    outcomes = {(get_status(card), Approval.objects.get(pk=card.pk).reason) for card in group}
    assert outcomes == {("denied", "Not needed today")}
    assert get_status(odd) == ApprovalStatus.PENDING


def test_an_odd_card_that_arrives_is_listed_first_and_not_selected_with_its_group(
    office: Office, visit: Visit
) -> None:
    group = await_group(office, [f"{name}@acme.example" for name in "abc"])
    visitor = in_the_inbox(visit)
    (odd,) = await_group(office, ["d@acrne.example"])
    expect(rows(visitor)).to_have_count(4)
    expect(rows(visitor).first).to_have_attribute("data-row", str(odd.pk))
    expect(row(visitor, odd).locator(".line")).to_have_count(1)
    expect(row(visitor, odd).locator(".line")).to_contain_text("email d@acrne.example")
    expect(visitor.page.locator("[data-group-count]")).to_have_text("4")
    (plain,) = await_group(office, ["e@acme.example"])
    expect(rows(visitor).last).to_have_attribute("data-row", str(plain.pk))
    press(visitor, "Shift+X")
    expect(visitor.page.locator("[data-bulk]")).to_contain_text("4 selected")
    expect(visitor.page.locator("[data-announcer]")).to_have_text(
        "4 selected. 1 left to decide individually."
    )
    assert {get_status(card) for card in (*group, odd, plain)} == {ApprovalStatus.PENDING}


def test_a_new_odd_card_without_a_group_heading_shows_its_sentence_and_is_not_selected(
    office: Office, visit: Visit
) -> None:
    await_group(office, ["a@acme.example", "b@acme.example"])
    visitor = in_the_inbox(visit)
    _, odd = await_group(office, ["c@acme.example", "d@acrne.example"])
    expect(row(visitor, odd)).to_contain_text("different domain in “email”")
    expect(row(visitor, odd).locator(".line")).to_have_count(1)
    expect(row(visitor, odd).locator(".line")).to_contain_text("Update")
    press(visitor, "Shift+X")
    expect(visitor.page.locator("[data-bulk]")).to_contain_text("3 selected")


def test_a_destructive_card_cannot_be_selected(office: Office, visit: Visit) -> None:
    await_group(office, [], deletes=1)
    visitor = in_the_inbox(visit)
    press(visitor, "x")
    expect(toast(visitor)).to_contain_text("This card must be decided individually.")
    press(visitor, "Shift+A")
    expect(toast(visitor)).to_contain_text("Select cards first, with x.")
    expect(visitor.page.locator("[data-announcer]")).to_have_text("Select cards first, with x.")
    press(visitor, "Shift+X")
    expect(toast(visitor)).to_contain_text("This card must be decided individually.")
    expect(visitor.page.locator("[data-pick]")).to_have_count(0)


@feature(
    "The inbox",
    "A card that changed meanwhile is not decided in bulk",
    "static/js/inbox/selection.js",
)
def test_a_card_decided_elsewhere_is_left_out_of_a_bulk_approval_with_a_notice(
    office: Office, visit: Visit
) -> None:
    first, second, third = await_group(office, [f"{name}@acme.example" for name in "abc"])
    visitor = visit("approver")
    visitor.block_sockets()
    visitor.page.goto("/approvals/")
    expect(visitor.page.locator("[data-keys-help]")).to_be_visible()
    office.workshop.deny(second, "No")
    press(visitor, "Shift+X Shift+A")
    confirm(visitor)
    expect(toast(visitor)).to_contain_text("Approved: 2 cards. 1 not decided")
    expect(row(visitor, second)).to_have_attribute("data-refused", "")
    assert {get_status(card) for card in (first, third)} == {ApprovalStatus.APPROVED}
    for card in (first, third):
        office.workshop.undo(Approval.objects.get(pk=card.pk))


def test_a_snoozed_card_leaves_the_list_and_the_next_card_is_selected(
    office: Office, visit: Visit
) -> None:
    first, second = await_group(office, ["a@acme.example", "b@acme.example"])
    visitor = in_the_inbox(visit)
    press(visitor, "s")
    expect(visitor.page.get_by_role("dialog", name="Snooze this card")).to_be_visible()
    press(visitor, "1")
    expect(rows(visitor)).to_have_count(1)
    expect(visitor.card(second.pk)).to_be_visible()
    assert get_status(first) == ApprovalStatus.PENDING
    visitor.page.goto("/approvals/?snoozed=1")
    visitor.page.get_by_role("button", name="Move back to my list").click()
    expect(rows(visitor)).to_have_count(2)


def test_two_people_who_view_the_same_card_are_told_about_each_other(
    office: Office, visit: Visit
) -> None:
    await_group(office, ["a@acme.example", "b@acme.example"])
    approver, admin = in_the_inbox(visit), in_the_inbox(visit, "admin")
    expect(approver.page.locator("[data-presence]")).to_have_text(
        "acme-admin is looking at this card."
    )
    expect(admin.page.locator("[data-presence]")).to_have_text(
        "acme-approver is looking at this card."
    )
    press(admin, "j")
    expect(approver.page.locator("[data-presence]")).to_be_hidden()
    expect(admin.page.locator("[data-presence]")).to_be_hidden()
