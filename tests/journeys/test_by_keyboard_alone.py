"""The whole journey without a mouse: every Tab stop is visible, changes are announced, and nothing
takes the focus away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from agents.employees.models import Employee
from agents.runs.models import Approval, ApprovalStatus, Run, RunStatus
from tests.awaiting import await_that
from tests.journeys.office import Office, load_run
from tests.journeys.visitor import Visit, Visitor
from tests.workshop import asking, call

pytestmark = pytest.mark.once

MAX_STOPS = 80
PLACE_OF_NEXT = {"Tab": "FOLLOWING", "Shift+Tab": "PRECEDING"}
# Before each Tab, the focused element is stored with its style. Afterwards, the newly focused
# element must be in the window, uncovered and later in the document, and the stored one must look
# different without the focus. Only the selected card of the inbox keeps its frame while the focus
# moves inside it.
WATCH_FOCUS = """
window.said = [];
const looksOf = (element) => {
  const style = getComputedStyle(element);
  return [style.outline, style.boxShadow, style.borderColor, style.backgroundColor, style.left].join();
};
const shownFor = (element) => (getComputedStyle(element).opacity === "0" ? element.labels[0] : element);
const boxOf = (element) => [...element.getClientRects()].find((one) => one.width && one.height);
window.leave = () => {
  const element = document.activeElement;
  window.left = element === document.body ? null : { element, looks: looksOf(shownFor(element)) };
};
window.arrive = (way, wanted) => {
  const before = window.left;
  window.leave();
  return [faultOf(before, document.activeElement, way), document.activeElement === wanted];
};
const faultOf = (before, element, way) => {
  if (element === document.body) return "";
  const shown = shownFor(element);
  const box = boxOf(shown);
  if (!box) return "has no box";
  const [x, y] = [Math.max(box.left, 0) + Math.min(box.width, 12) / 2, (box.top + box.bottom) / 2];
  if (box.bottom <= 0 || box.top >= innerHeight || x > innerWidth) return "is outside the window";
  const top = document.elementFromPoint(x, Math.min(Math.max(y, 1), innerHeight - 1));
  const isOver = top && !shown.contains(top) && !top.contains(shown);
  if (isOver) return `is covered by ${top.outerHTML.slice(0, 80)}`;
  if (!before?.element.isConnected || before.element === element) return "";
  if (before.element.matches("[data-selected] > [data-card]")) return "";
  if (!(before.element.compareDocumentPosition(element) & way)) return "comes before the last stop";
  return looksOf(shownFor(before.element)) === before.looks ? `the last stop looks the same: ${before.looks}` : "";
};
addEventListener("DOMContentLoaded", () => {
  const place = document.querySelector("[role=status][aria-live=polite][data-announcer]");
  new MutationObserver(() => window.said.push(place.textContent)).observe(place, { childList: true });
});
"""
FOCUSED = "() => document.activeElement.outerHTML.slice(0, 160)"
IS_HELD = "() => document.activeElement === window.held && window.held.isConnected"


class Typist:
    """A visitor without a mouse."""

    def __init__(self, visitor: Visitor) -> None:
        self.visitor = visitor
        self.page = visitor.page
        self.page.emulate_media(reduced_motion="reduce")
        self.page.add_init_script(WATCH_FOCUS)

    def press(self, keys: str) -> None:
        for key in keys.split():
            self.page.keyboard.press(key)

    def write(self, text: str) -> None:
        self.page.keyboard.type(text)

    def tab_to(self, wanted: Locator, key: str = "Tab") -> None:
        """Press Tab until the element has the focus; check that every stop on the way is visible
        and in order."""
        arrive = f"(wanted) => window.arrive(Node.DOCUMENT_POSITION_{PLACE_OF_NEXT[key]}, wanted)"
        expect(wanted).to_have_count(1)
        self.page.evaluate("() => window.leave()")
        for _ in range(MAX_STOPS):
            self.page.keyboard.press(key)
            fault, is_there = wanted.evaluate(arrive)
            assert not fault, f"{self.page.evaluate(FOCUSED)} {fault}"
            if is_there:
                return
        raise AssertionError(
            f"{wanted} is not among {MAX_STOPS} stops; the last is {self.page.evaluate(FOCUSED)}"
        )

    def go(self, wanted: Locator, key: str = "Enter") -> None:
        """Move to the element with Tab, and press the key on it."""
        self.tab_to(wanted)
        self.page.keyboard.press(key)

    def decide(self, card: Locator, key: str = "Enter") -> None:
        """Press the key as soon as the card accepts it."""
        self.visitor.await_stillness(card)
        self.page.keyboard.press(key)

    def await_announcement(self, words: str) -> None:
        """Wait until the page has announced this text."""
        await_that(
            lambda: words in self.get_announcements(), f"{words!r} in {self.get_announcements()!r}"
        )

    def get_announcements(self) -> str:
        return str(self.page.evaluate("() => window.said.join(' | ')"))

    @contextmanager
    def focus_kept(self) -> Iterator[None]:
        """Check that nothing takes the focus during the block."""
        self.page.evaluate("() => { window.held = document.activeElement; }")
        yield
        assert self.page.evaluate(IS_HELD), f"the focus has gone to {self.page.evaluate(FOCUSED)}"

    def place(self, name: str) -> Locator:
        return self.page.get_by_role("navigation", name="Main").get_by_role("link", name=name)

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)


def start_run(typist: Typist, username: str, task: str) -> int:
    """Log in, choose Dana, the first employee, and assign the task."""
    page = typist.page
    page.goto("/login/")
    typist.tab_to(page.get_by_label("Username"))
    typist.write(username)
    typist.tab_to(page.get_by_label("Password"))
    typist.write("secret-enough")
    typist.go(typist.button("Log in"))
    page.wait_for_url("**/")
    typist.tab_to(page.get_by_role("radio", name="Dana"))
    typist.press("ArrowDown")
    expect(page.get_by_role("radio", name="Robin")).to_be_checked()
    typist.press("ArrowUp")
    expect(page.get_by_role("radio", name="Dana")).to_be_checked()
    typist.tab_to(page.get_by_role("textbox", name="Task"))
    typist.write(task)
    typist.go(typist.button("Start"))
    return typist.visitor.run_id()


def add(number: int) -> dict[str, Any]:
    return call("utility.calculate", operation="add", a=1, b=number)


@pytest.fixture
def robin(office: Office) -> Employee:
    """Create a second employee, so that there is a choice."""
    shop = office.workshop
    return Employee.objects.create(
        organization=shop.organization,
        name="Robin",
        job_title="Clerk",
        provider=shop.employee.provider,
    )


def test_a_task_can_be_assigned_followed_read_continued_and_cancelled_by_keyboard_alone(
    office: Office, visit: Visit, robin: Employee
) -> None:
    office.recorder.hold("one")
    office.workshop.play(asking(add(1), call("probe.gate", name="one")), answer="It is **2**.")
    typist = Typist(visit())
    page = typist.page
    run_id = start_run(typist, "acme-operator", "Add one to one")
    office.recorder.await_arrival("one")
    done = page.locator(".call[data-status=succeeded] .unfold > summary")
    expect(done).to_have_count(1)
    unfolded = page.locator(".call[data-status=succeeded] .unfolded")
    typist.tab_to(done)
    for key in ("Enter", "Space"):
        typist.press(key)
        expect(unfolded).to_contain_text("Operation")
        typist.tab_to(unfolded.get_by_role("link", name="Call details"))
        typist.tab_to(done, "Shift+Tab")
        typist.press(key)
        expect(unfolded).to_be_hidden()
    message = page.get_by_label("Message Dana")
    typist.tab_to(message)
    typist.write("And then")
    with typist.focus_kept():
        office.recorder.release("one")
        typist.await_announcement("Run ended: Answered")
        expect(typist.visitor.answer).to_have_text("It is 2.")
    typist.write(" once more")
    expect(message).to_have_value("And then once more")
    read_and_download(typist, run_id)
    continue_and_cancel(office, typist, run_id)


def read_and_download(typist: Typist, run_id: int) -> None:
    """Check that the answer is in the window, and download the transcript."""
    page = typist.page
    typist.tab_to(page.locator("summary", has_text="Transcript"), "Shift+Tab")
    expect(typist.visitor.answer).to_be_in_viewport()
    typist.press("Enter")
    typist.tab_to(page.get_by_role("link", name="Markdown, to read"))
    with page.expect_download() as coming:
        typist.press("Enter")
    assert "It is **2**." in coming.value.path().read_text()
    assert coming.value.suggested_filename == f"run-{run_id}.md"


def continue_and_cancel(office: Office, typist: Typist, run_id: int) -> None:
    """Send the message that was typed while the run ended; the run resumes, and is cancelled."""
    page = typist.page
    office.recorder.hold("two")
    office.workshop.play(asking(call("probe.gate", name="two")))
    typist.go(typist.button("Send"))
    office.recorder.await_arrival("two")
    expect(page.locator("#panel .message")).to_contain_text("And then once more")
    typist.go(page.locator("summary", has_text="Cancel…"))
    typist.go(typist.button("Cancel run"))
    expect(page.locator("#panel")).to_contain_text("cancelled the run")
    office.recorder.release("two")
    expect(page.locator("[data-badge]")).to_have_text("Cancelled")
    assert office.await_end(run_id).status == RunStatus.CANCELLED


def start_waiting_run(office: Office) -> tuple[Run, list[Approval]]:
    """Start a run with three cards: two changes of one record each, and the deletion of seven
    records."""
    shop = office.workshop
    changes = [
        call(
            "data.updateRecord",
            record_id=str(shop.record(name=f"Company {score}").pk),
            changes={"score": score},
        )
        for score in (1, 2)
    ]
    doomed = [str(shop.record(name=f"Lead {number}").pk) for number in range(7)]
    shop.play(
        asking(*changes, call("data.bulkDelete", record_ids=doomed)), answer="All of it is done."
    )
    run = office.submit("Tidy up")
    return run, office.await_cards(run.pk, 3)


def test_cards_can_be_denied_edited_approved_undone_and_confirmed_by_keyboard_alone(
    office: Office, visit: Visit
) -> None:
    run, (denied, edited, deletion) = start_waiting_run(office)
    typist = Typist(visit("approver"))
    typist.visitor.open_run(run.pk)
    typist.go(typist.page.get_by_role("link", name="Review"))
    expect(typist.visitor.card(denied.pk)).to_be_focused()
    deny(typist, denied)
    approve(typist, undo(typist, approve(typist, edit(typist, edited))))
    confirm(typist, deletion)
    typist.tab_to(typist.page.get_by_label("Message Dana"))
    with typist.focus_kept():
        office.end_grace()
        typist.await_announcement("Delete records started")
        typist.await_announcement("Run ended: Partly denied")
    expect(typist.visitor.answer).to_have_text("All of it is done.")
    assert load_run(run.pk).status == RunStatus.SUCCEEDED


def deny(typist: Typist, card: Approval) -> None:
    """Deny with a preset and a typed reason."""
    shown = typist.visitor.card(card.pk)
    typist.go(shown.locator(".deny > summary"))
    typist.tab_to(shown.get_by_label("Reason (sent to Dana)"))
    typist.write("ask me tomorrow")
    typist.tab_to(shown.get_by_role("button", name="Not needed"))
    typist.decide(shown)
    expect(shown).to_contain_text("Denied by acme-approver")
    expect(shown).to_be_focused()
    typist.await_announcement("denied by acme-approver")
    card.refresh_from_db()
    assert card.reason == "Not needed. ask me tomorrow"


def edit(typist: Typist, card: Approval) -> Approval:
    """Edit the score; the new card replaces the first."""
    shown = typist.visitor.card(card.pk)
    typist.go(shown.locator(".edit > summary"))
    typist.tab_to(shown.get_by_label("score"))
    typist.press("Control+a")
    typist.write("77")
    expect(shown.locator(".approve-button")).to_be_disabled()
    typist.tab_to(shown.get_by_role("button", name="Preview changes"))
    typist.decide(shown)
    waiting = Approval.objects.filter(
        tool_call=card.tool_call_id, status=ApprovalStatus.PENDING, pk__gt=card.pk
    )
    await_that(waiting.exists, "there is a changed card")
    fresh = waiting.get()
    assert "77" in fresh.sentence
    expect(typist.visitor.card(fresh.pk)).to_contain_text("What changed since the earlier card")
    return fresh


def approve(typist: Typist, card: Approval) -> Approval:
    """Approve with Tab and Enter; the button is never focused on its own."""
    shown = typist.visitor.card(card.pk)
    expect(shown).to_be_visible()
    assert not typist.page.evaluate("() => document.activeElement.matches('.approve-button')")
    typist.tab_to(shown.locator(".approve-button"))
    typist.decide(shown)
    expect(shown).to_contain_text("Approved by acme-approver")
    expect(shown).to_be_focused()
    return card


def undo(typist: Typist, card: Approval) -> Approval:
    """Undo the approval; the new card has the focus."""
    shown = typist.visitor.card(card.pk)
    typist.tab_to(shown.get_by_role("button", name="Undo"))
    typist.decide(shown)
    waiting = Approval.objects.filter(tool_call=card.tool_call_id, status=ApprovalStatus.PENDING)
    await_that(waiting.exists, "the card waits again")
    fresh = waiting.get()
    expect(typist.visitor.card(fresh.pk)).to_be_focused()
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.SUPERSEDED
    return fresh


def confirm(typist: Typist, card: Approval) -> None:
    """Approve a destructive card: open its list and type the confirmation."""
    shown = typist.visitor.card(card.pk)
    button = shown.locator(".approve-button")
    typist.go(shown.locator(".rest > summary"))
    typist.tab_to(shown.get_by_label("to confirm"))
    expect(button).to_be_disabled()
    typist.write(shown.locator(".phrase").inner_text())
    expect(button).to_be_enabled()
    typist.tab_to(button)
    typist.decide(shown)
    expect(shown).to_contain_text("Approved by acme-approver")
    expect(shown).to_be_focused()


def test_the_inbox_the_lists_and_the_logout_can_be_used_by_keyboard_alone(
    office: Office, visit: Visit
) -> None:
    run, (first, second, _) = start_waiting_run(office)
    typist = Typist(visit("approver"))
    page = typist.page
    page.goto("/")
    typist.go(typist.place("Approvals"))
    expect(page.locator("[data-keys-help]")).to_be_visible()
    use_the_inbox(office, typist, first, second)
    typist.go(typist.place("Runs"))
    search(typist, "nothing of the kind", "No matching runs.")
    search(typist, "Tidy", "Tidy up")
    typist.go(typist.place("Records"))
    search(typist, "Lead 3", "Lead 3")
    expect(page.locator("tbody tr")).to_have_count(1)
    typist.go(page.get_by_role("button", name="Account: acme-approver"))
    typist.go(typist.button("Log out"))
    expect(typist.button("Log in")).to_be_visible()
    assert load_run(run.pk).status == RunStatus.WAITING


def use_the_inbox(office: Office, typist: Typist, first: Approval, second: Approval) -> None:
    """Use shortcuts and Tab in turn: each continues where the other left the focus."""
    page = typist.page
    typist.tab_to(page.locator("[data-keys-help]"))
    for key in ("Enter", "?"):
        typist.press(key)
        typist.go(typist.button("Close"))
        expect(page.locator("[data-keys-help]")).to_be_focused()
    typist.press("j j k k")
    expect(typist.visitor.card(first.pk)).to_be_visible()
    typist.tab_to(typist.visitor.card(first.pk).get_by_role("link", name="Tidy up"))
    typist.press("j")
    expect(typist.visitor.card(second.pk)).to_be_focused()
    typist.press("e")
    typist.tab_to(typist.visitor.card(second.pk).get_by_label("score"))
    typist.press("Escape d")
    typist.write("half a rea")
    with typist.focus_kept():
        office.workshop.deny(first, "No")
        expect(page.locator(f"#row-{first.pk}")).to_have_count(0)
    typist.press("Escape o")
    page.wait_for_url(f"**/approvals/{second.pk}/")


def search(typist: Typist, text: str, found: str) -> None:
    """Type into the search field and filter."""
    page = typist.page
    field = page.get_by_role("searchbox")
    typist.tab_to(field)
    typist.press("Control+a")
    typist.write(text)
    typist.tab_to(page.get_by_label("Status"))
    typist.press("ArrowDown ArrowUp")
    typist.go(page.locator("main").get_by_role("button", name="Filter"))
    page.wait_for_url("**q=*")
    expect(field).to_have_value(text)
    expect(page.locator("main")).to_contain_text(found)
