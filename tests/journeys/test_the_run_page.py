"""The run page in a browser: the bar, scrolling to the newest line, late viewers, and the playback
with its export."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models import F
from playwright.sync_api import Browser, expect

from agents.approvals import decisions
from agents.runs.models import EventType
from tests.journeys.office import Office
from tests.journeys.visitor import Visit, Visitor
from tests.model_server import ModelServer, Response
from tests.workshop import asking, call

pytestmark = pytest.mark.once

IS_NEWEST_IN_VIEW = """() => {
  const line = document.getElementById("panel").lastElementChild.getBoundingClientRect();
  return line.bottom > 0 && line.bottom <= document.querySelector(".run-bar").getBoundingClientRect().top;
}"""


def test_the_bar_shows_the_runs_state_and_links_to_the_card_that_it_waits_for(
    office: Office, visit: Visit
) -> None:
    record = office.workshop.record()
    office.recorder.hold("one")
    changed = {"record_id": str(record.pk), "changes": {"status": "inactive"}}
    office.workshop.play(
        asking(call("probe.gate", name="one")), asking(call("data.updateRecord", **changed))
    )
    visitor = visit("approver")
    run_id = visitor.start("Dana", "Set the record to inactive")
    office.recorder.await_arrival("one")
    bar = visitor.page.locator("#run-bar")
    expect(bar).to_contain_text("Dana is using “probe.gate”")
    office.recorder.release("one")
    (card,) = office.await_cards(run_id)
    expect(bar).to_contain_text("1 approval needed")
    bar.get_by_role("link", name="Review").click()
    expect(visitor.card(card.pk)).to_be_focused()
    expect(visitor.page.locator(f"#call-{card.tool_call_id} .call-brief")).to_contain_text(
        record.name
    )
    visitor.approve(visitor.card(card.pk))
    office.end_grace()
    office.await_end(run_id)
    expect(bar).to_contain_text("Finished")
    bar.get_by_role("link", name="Read the answer").click()
    expect(visitor.answer).to_be_in_viewport()
    expect(visitor.page.locator("#timeline > li")).to_have_count(3)
    expect(visitor.page.locator("#timeline-2 rect.wait")).to_have_count(1)


def play_gates(office: Office, *later: dict[str, Any]) -> list[str]:
    """Script four passes, each with a gate and three more lines, and then the `later` passes; hold
    the gates, and return the names of the gates."""
    gates = [f"gate {number}" for number in range(4)]
    reads = [call("utility.calculate", operation="add", a=1, b=number) for number in range(12)]
    for gate in gates:
        office.recorder.hold(gate)
    passes = [
        asking(call("probe.gate", name=gate), *reads[3 * at : 3 * at + 3])
        for at, gate in enumerate(gates)
    ]
    office.workshop.play(*passes, *later)
    office.workshop.allow_passes(10)
    return gates


def open_gate(office: Office, visitor: Visitor, gates: list[str], number: int) -> None:
    """Open the gate of this pass, and wait for the lines of the next one."""
    office.recorder.release(gates[number - 1])
    office.recorder.await_arrival(gates[number])
    expect(visitor.page.locator(f".call[data-pass='{number + 1}']")).to_have_count(4)


def test_the_page_follows_the_newest_line_until_the_reader_scrolls_up(
    office: Office, visit: Visit
) -> None:
    gates = play_gates(office)
    visitor = visit("operator")
    page = visitor.page
    page.set_viewport_size({"width": 900, "height": 420})
    run_id = visitor.start("Dana", "Pass four gates")
    newest = page.get_by_role("button", name="Newest")
    office.recorder.await_arrival(gates[0])
    page.wait_for_function(IS_NEWEST_IN_VIEW)
    for number in (1, 2):
        open_gate(office, visitor, gates, number)
        page.wait_for_function(IS_NEWEST_IN_VIEW)
    page.mouse.move(450, 200)
    page.mouse.wheel(0, -5000)
    expect(newest).to_be_visible()
    open_gate(office, visitor, gates, 3)
    assert page.evaluate("() => scrollY") == 0, "the page stays where the reader is"
    newest.click()
    page.wait_for_function(IS_NEWEST_IN_VIEW)
    expect(newest).to_be_hidden()
    office.recorder.release(gates[3])
    office.await_end(run_id)
    visitor.assert_panel_is_whole(run_id)
    page.wait_for_function(IS_NEWEST_IN_VIEW)


def test_a_live_run_opens_at_its_newest_line_unless_the_address_points_elsewhere(
    office: Office, visit: Visit
) -> None:
    gates = play_gates(office)
    run = office.submit("Pass four gates")
    visitor = visit("viewer")
    page = visitor.page
    page.set_viewport_size({"width": 900, "height": 420})
    for gate in gates[:2]:
        office.recorder.release(gate)
    office.recorder.await_arrival(gates[2])
    visitor.open_run(run.pk)
    page.wait_for_function(IS_NEWEST_IN_VIEW)
    open_gate(office, visitor, gates, 3)
    page.wait_for_function(IS_NEWEST_IN_VIEW)
    page.evaluate("() => scrollTo(0, 0)")
    page.reload()
    page.evaluate(ARE_DRAWN)
    assert page.evaluate("() => scrollY") == 0, "a reload leaves the reader where they were"
    page.goto("about:blank")
    page.goto(f"/runs/{run.pk}/#pass-1")
    expect(page.get_by_role("button", name="Newest")).to_be_visible()
    expect(page.locator("#pass-1")).to_be_in_viewport()
    office.recorder.release(gates[3])
    office.await_end(run.pk)
    visitor.open_run(run.pk)
    visitor.assert_panel_is_whole(run.pk)
    assert page.evaluate("() => scrollY") == 0, "a run that has ended shows its result"


SELECT_A_TEXT = "() => getSelection().selectAllChildren(document.getElementById('pass-1'))"
FOCUS_THE_MESSAGE = "() => document.getElementById('message').focus({ preventScroll: true })"
BE_IDLE = "() => { getSelection().removeAllRanges(); document.activeElement.blur(); }"
IS_CARD_IN_VIEW = """() => {
  const card = document.querySelector("[data-card][data-open]")?.getBoundingClientRect();
  return card && card.bottom > 0 && card.top < innerHeight;
}"""
ARE_DRAWN = """() => new Promise((done) => {
  let frames = 0;
  const count = () => (++frames > 20 ? done() : requestAnimationFrame(count));
  count();
})"""
"""Waits for 20 frames, because the page draws lines for up to ten before it follows them."""


def test_the_page_does_not_scroll_while_the_reader_selects_writes_or_decides(
    office: Office, visit: Visit
) -> None:
    changed = {"record_id": str(office.workshop.record().pk), "changes": {"status": "inactive"}}
    gates = play_gates(
        office, asking(call("data.updateRecord", **changed), call("probe.gate", name="last gate"))
    )
    office.recorder.hold("last gate")
    visitor = visit("approver")
    page = visitor.page
    page.set_viewport_size({"width": 900, "height": 420})
    run_id = visitor.start("Dana", "Pass the gates")
    office.recorder.await_arrival(gates[0])
    page.wait_for_function(IS_NEWEST_IN_VIEW)
    for number, keep_busy in ((1, SELECT_A_TEXT), (2, FOCUS_THE_MESSAGE)):
        page.evaluate(keep_busy)
        top = page.evaluate("() => scrollY")
        open_gate(office, visitor, gates, number)
        page.evaluate(ARE_DRAWN)
        assert page.evaluate("() => scrollY") == top, keep_busy
        page.evaluate(BE_IDLE)
    open_gate(office, visitor, gates, 3)
    page.wait_for_function(IS_NEWEST_IN_VIEW)
    office.recorder.release(gates[3])
    office.recorder.await_arrival("last gate")
    page.wait_for_function(IS_CARD_IN_VIEW)
    page.evaluate(ARE_DRAWN)
    top = page.evaluate("() => scrollY")
    office.recorder.release("last gate")
    office.await_cards(run_id)
    expect(page.locator("[data-slot='wait-5']")).to_be_attached()
    page.evaluate(ARE_DRAWN)
    assert page.evaluate("() => scrollY") == top
    expect(page.get_by_role("button", name="Newest")).to_be_visible()


def test_a_late_reader_sees_the_text_from_its_beginning(
    office: Office, visit: Visit, model: ModelServer
) -> None:
    office.workshop.connect(model.url)
    model.enqueue(
        Response(text="This is quite a long answer, written word by word.", hold="middle")
    )
    run = office.submit("Write an answer")
    model.wait_for_held()
    visitor = visit("viewer")
    visitor.open_run(run.pk)
    streaming = visitor.page.locator(".streaming")
    expect(streaming).to_contain_text("This is quite")
    visitor.page.reload()
    expect(streaming).to_contain_text("This is quite")
    expect(streaming).not_to_contain_text(re.compile("This is quite.*This is quite", re.DOTALL))
    model.release()
    office.await_end(run.pk)
    expect(visitor.answer).to_have_text("This is quite a long answer, written word by word.")


@pytest.mark.every_commit
def test_a_run_can_be_played_back_and_exported(
    office: Office, visit: Visit, chromium: Browser, tmp_path: Path
) -> None:
    office.workshop.play(
        asking(call("utility.calculate", operation="add", a=40, b=2), text="I add them.")
    )
    run = office.submit("Add 40 and 2")
    office.await_end(run.pk)
    visitor = visit("viewer")
    visitor.open_run(run.pk)
    visitor.page.get_by_role("link", name="Playback").click()
    entries, current = (
        visitor.page.locator("[data-at]:visible"),
        visitor.page.locator("[data-current]"),
    )
    expect(entries).to_have_count(1)
    for number in range(2, run.events.count() + 1):
        visitor.page.get_by_role("button", name="Next").click()
        expect(current).to_have_id(f"event-{number}")
    visitor.page.get_by_role("button", name="Back").click()
    expect(current).to_have_id(f"event-{number - 1}")
    visitor.page.get_by_label("Speed").select_option("16")
    visitor.page.get_by_role("button", name="Play").click()
    expect(visitor.page.get_by_text("40 + 2 = 42")).to_be_visible()
    expect(visitor.page.get_by_role("button", name="Play")).to_be_visible()
    visitor.page.locator("#timeline-2 a").click()
    expect(visitor.page.locator("[data-current]")).to_contain_text("Pass 2")
    visitor.page.locator(".playback-export > summary").click()
    with visitor.page.expect_download() as coming:
        visitor.page.get_by_role("button", name="Download playback").click()
    coming.value.save_as(tmp_path / "replay.html")
    page = chromium.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on(
        "request",
        lambda request: (
            complaints.append(request.url) if "replay.html" not in request.url else None
        ),
    )
    page.goto((tmp_path / "replay.html").as_uri())
    expect(page.locator("[data-at]:visible")).to_have_count(1)
    page.get_by_role("button", name="Next").click()
    expect(page.locator("[data-at]:visible")).to_have_count(2)
    expect(page.get_by_text("40 + 2 = 42")).to_have_count(0)
    assert complaints == []
    page.close()


def test_a_link_to_a_moment_opens_that_moment_whether_or_not_the_playback_skips_waiting(
    office: Office, visit: Visit
) -> None:
    changed = {"record_id": str(office.workshop.record().pk), "changes": {"status": "inactive"}}
    office.workshop.play(asking(call("data.updateRecord", **changed)))
    run = office.submit("Set the record to inactive")
    (card,) = office.await_cards(run.pk)
    decisions.approve(office.member("approver"), card.pk, decisions.Decision(digest=card.digest))
    office.end_grace()
    office.await_end(run.pk)
    decided = run.events.get(type=EventType.APPROVAL_DECIDED).seq
    run.events.filter(seq__gte=decided).update(created_at=F("created_at") + timedelta(minutes=65))
    page = visit("viewer").page
    page.goto(f"/runs/{run.pk}/replay/#event-{decided + 1}")
    current, clock, skip = (
        page.locator("[data-current]"),
        page.locator("[data-clock]"),
        page.get_by_label("Skip waiting"),
    )
    link = page.get_by_role("link", name="Link to this moment")
    expect(current).to_have_id(f"event-{decided + 1}")
    expect(clock).to_have_text(re.compile(r"^0:\d\d of 0:\d\d$"))
    page.get_by_role("button", name="Back").click()
    expect(current).to_have_id(f"event-{decided}")
    skip.uncheck()
    expect(current).to_have_id(f"event-{decided}")
    expect(clock).to_have_text(
        re.compile(rf"^{current.locator('time').inner_text()} of 1:05:\d\d$")
    )
    for is_skipped in (False, True):
        skip.set_checked(is_skipped)
        address = str(link.get_attribute("href"))
        page.goto("about:blank")
        page.goto(f"/runs/{run.pk}/replay/{address}")
        expect(skip).to_be_checked()
        expect(current).to_have_id(f"event-{decided}")
    page.get_by_label("Position").press("End")
    expect(current).to_have_id(f"event-{run.events.count()}")


def test_without_scripts_the_playback_lists_everything(office: Office, visit: Visit) -> None:
    office.workshop.play(asking(call("utility.calculate", operation="add", a=40, b=2)))
    run = office.submit("Add 40 and 2")
    office.await_end(run.pk)
    visitor = visit("viewer", scripts=False)
    visitor.page.goto(f"/runs/{run.pk}/replay/")
    expect(visitor.page.locator("[data-at]")).to_have_count(run.events.count())
    expect(visitor.page.locator("[data-controls]")).to_be_hidden()
    visitor.page.goto(f"/runs/{run.pk}/")
    expect(visitor.page.locator("#run-bar")).to_contain_text("Read the answer")
