"""Nothing on a page jumps while a run is in progress, and unchanged lines stay the same
elements."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from agents.runs.models import Run
from tests.awaiting import await_that
from tests.journeys.office import Office
from tests.journeys.visitor import Visit, Visitor
from tests.model_server import Call, ModelServer, Response
from tests.workshop import asking, call

pytestmark = pytest.mark.once

STILL = 0.02
"""The maximum sum of a page's layout shifts; browsers call 0.1 good."""
WITH_A_LINE_MORE = 0.05
"""The maximum on a phone, which shows the content below, if a result needs one more line than its
placeholder."""
SIZES = pytest.mark.parametrize(
    ("width", "height"), [(1440, 900), (360, 740)], ids=["wide", "narrow"]
)

# Every layout shift without recent input, with the elements that moved.
WATCH = """window.shifts = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    if (!entry.hadRecentInput) {
      const moved = entry.sources.map(({ node, previousRect: was, currentRect: is }) =>
        `${node?.nodeName}#${node?.id}.${node?.className} ${was.y}+${was.height} -> ${is.y}+${is.height}`);
      window.shifts.push({ value: entry.value, moved });
    }
  }
}).observe({ type: "layout-shift", buffered: true });"""
SETTLED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))"
MARK = "(all) => { for (const one of all) one.seenBefore = true; }"
ARE_MARKED = "(all) => all.map((one) => one.seenBefore === true)"


def watch_shifts(visitor: Visitor, width: int, height: int) -> Page:
    """Set the size of the window, and record layout shifts on all later pages."""
    visitor.page.set_viewport_size({"width": width, "height": height})
    visitor.page.add_init_script(WATCH)
    return visitor.page


def assert_still(page: Page, at_most: float = STILL) -> None:
    """Assert that nothing has moved since the page was opened, or since the last call."""
    page.evaluate(SETTLED)
    shifts: list[dict[str, Any]] = page.evaluate("() => window.shifts.splice(0)")
    report = "\n".join(f"{shift['value']:.4f} {shift['moved']}" for shift in shifts)
    assert sum(shift["value"] for shift in shifts) < at_most, report


GATES = ("one", "two", "three")


def queue_three_gates_and_a_card(office: Office, model: ModelServer) -> None:
    """Set the model's responses: three parallel calls, a change in parallel with another call, and
    a held response."""
    office.workshop.connect(model.url)
    changed = {"record_id": str(office.workshop.record().pk), "changes": {"status": "inactive"}}
    for gate in (*GATES, "four"):
        office.recorder.hold(gate)
    calls = tuple(Call("probe.gate", {"name": gate}) for gate in GATES)
    update = (Call("data.updateRecord", changed), Call("probe.gate", {"name": "four"}))
    model.enqueue(
        Response(text="I pass *three* gates, one beside the other.", calls=calls, hold="middle"),
        Response(text="Now I ask for a change.", calls=update),
        Response(text="Done.", hold="start"),
    )


@SIZES
def test_a_running_run_does_not_shift_its_page_and_keeps_its_lines(
    office: Office, visit: Visit, model: ModelServer, width: int, height: int
) -> None:
    queue_three_gates_and_a_card(office, model)
    model.hold()
    visitor = visit("approver")
    page = watch_shifts(visitor, width, height)
    run_id = visitor.start("Dana", "Pass three gates")
    office.await_bells(run_id)
    model.wait_for_held()
    model.release()
    expect(page.locator(".model-text.streaming")).to_be_visible()
    model.wait_for_held()
    model.release()

    running = page.locator(".call:has(.spinner)")
    expect(running).to_have_count(len(GATES))
    for gate, left in zip(GATES, (2, 1), strict=False):
        running.evaluate_all(MARK)
        office.recorder.release(gate)
        expect(running).to_have_count(left)
        assert all(running.evaluate_all(ARE_MARKED)), (
            "a line whose call still runs is another element"
        )
    office.recorder.release(GATES[-1])

    expect(visitor.open_cards).to_have_count(1)
    office.recorder.await_arrival("four")
    others = page.locator("#panel > li:not(:has(.spinner))")
    others.evaluate_all(MARK)
    office.recorder.release("four")
    (card,) = office.await_cards(run_id)
    expect(page.locator("[data-badge]")).to_have_text("Waiting for a decision")
    assert others.evaluate_all(ARE_MARKED).count(False) == 2, (
        "only the call that has ended and the wait are new"
    )
    assert_still(page)

    visitor.approve(visitor.card(card.pk))
    expect(visitor.card(card.pk)).to_contain_text("Approved by")
    before = page.locator(f"#panel > li:not(:has(#card-{card.pk}))")
    before.evaluate_all(MARK)
    office.end_grace()
    model.wait_for_held()
    expect(page.locator("#pass-3")).to_be_visible()
    assert before.evaluate_all(ARE_MARKED).index(False) == before.evaluate_all(ARE_MARKED).count(
        True
    )
    assert_still(page, WITH_A_LINE_MORE)
    model.release()
    office.await_end(run_id)


def start_another(office: Office, task: str) -> Run:
    """Start a run that has a card and is still running, at a gate."""
    run = office.submit(task)
    await_that(lambda: bool(office.workshop.cards(run)), f"{task} has a card")
    return run


def play_a_gate_and_a_card(office: Office, name: str = "Acme Corp") -> None:
    office.recorder.hold("one")
    record = office.workshop.record(name=name)
    changed = {"record_id": str(record.pk), "changes": {"status": "inactive"}}
    office.workshop.play(
        asking(call("probe.gate", name="one"), call("data.updateRecord", **changed))
    )


@SIZES
def test_new_runs_and_cards_do_not_shift_the_start_page(
    office: Office, visit: Visit, width: int, height: int
) -> None:
    play_a_gate_and_a_card(office)
    start_another(office, "The first task")
    visitor = visit("approver")
    page = watch_shifts(visitor, width, height)
    page.goto("/")
    rows, cards = page.locator("#at-work .run-row"), page.locator("#waiting .waiting-card")
    for shown in (rows, cards):
        expect(shown).to_have_count(1)
        shown.evaluate_all(MARK)
    play_a_gate_and_a_card(office, "Harbor Cloud")  # a second card for the same record marks both
    start_another(office, "The second task")
    for shown in (rows, cards):
        expect(shown).to_have_count(2)
        assert sorted(shown.evaluate_all(ARE_MARKED)) == [False, True]
    assert_still(page)


@SIZES
def test_a_new_card_does_not_shift_the_inbox(
    office: Office, visit: Visit, width: int, height: int
) -> None:
    play_a_gate_and_a_card(office)
    visitor = visit("approver")
    page = watch_shifts(visitor, width, height)
    start_another(office, "The first task")
    page.goto("/approvals/")
    expect(visitor.open_cards).to_have_count(1)
    visitor.open_cards.evaluate_all(MARK)
    start_another(office, "The second task")
    expect(page.locator("[data-row]")).to_have_count(2)
    assert visitor.open_cards.evaluate_all(ARE_MARKED) == [True]
    assert_still(page)
