"""The live panel shows every line exactly once, no matter what happens to the page, its socket or
the web process."""

from __future__ import annotations

import re

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import expect

from agents.runs.models import RunStatus
from tests.awaiting import await_that
from tests.journeys.api_client import select_events
from tests.journeys.office import Office, list_event_numbers, load_run
from tests.journeys.visitor import Visit, Visitor
from tests.model_server import Call, ModelServer, Response, failing
from tests.workshop import asking, call
from tests.workshop.colleagues import ask, may_ask

pytestmark = pytest.mark.once


def gates_and_calls(*gates: str) -> list[dict[str, object]]:
    """Build a pass for each gate: two quick reads, and one that waits at the gate."""
    reads = [
        call("utility.calculate", operation="add", a=1, b=number)
        for number in range(2 * len(gates))
    ]
    return [
        asking(
            call("probe.gate", name=gate), *reads[2 * place : 2 * place + 2], text=f"Now *{gate}*."
        )
        for place, gate in enumerate(gates)
    ]


def await_gate(office: Office, gate: str) -> None:
    office.recorder.await_arrival(gate)


@pytest.mark.every_commit
def test_a_reload_in_the_middle_shows_every_line_once(office: Office, visit: Visit) -> None:
    office.workshop.play(*gates_and_calls("one", "two", "three"))
    for gate in ("one", "two", "three"):
        office.recorder.hold(gate)
    visitor = visit("operator")
    run_id = visitor.start("Dana", "Pass three gates")
    for gate in ("one", "two", "three"):
        await_gate(office, gate)
        visitor.page.reload()
        expect(visitor.page.locator(".call .spinner")).to_have_count(1)
        visitor.assert_panel_is_whole(run_id)
        office.recorder.release(gate)
    office.await_end(run_id)
    visitor.assert_panel_is_whole(run_id)
    expect(visitor.answer).to_have_text("Done.")


def test_a_page_open_through_1000_events_shows_every_line_once(
    office: Office, visit: Visit
) -> None:
    passes = [
        asking(
            *[call("utility.calculate", operation="add", a=number, b=place) for place in range(100)]
        )
        for number in range(5)
    ]
    office.workshop.play(*passes)
    office.workshop.allow_passes(10)
    worker = office.installation.process("worker1")
    visitor = visit("operator")
    worker.pause()
    run_id = visitor.start("Dana", "Calculate a lot")
    worker.resume()
    office.await_end(run_id)
    assert len(list_event_numbers(run_id)) > 1000
    expect(visitor.answer).to_have_text("Done.")
    visitor.assert_panel_is_whole(run_id)
    assert [message["seq"] for message in select_events(visitor.received)] == list_event_numbers(
        run_id
    )[1:]


FLOOD = """async (count) => {
  const panel = document.getElementById("panel");
  const model = panel.querySelector(".call").outerHTML;
  const socket = window.runSocket;
  const named = (id) => model.replaceAll(/call-\\d+/g, `call-${id}`);
  let seq = Number(panel.dataset.after);
  const send = (type, html) => {
    seq += 1;
    const line = html.replace(/data-seq="\\d+"/, `data-seq="${seq}"`);
    socket.onmessage({ data: JSON.stringify({ seq, type, payload: {}, html: line }) });
  };
  const costs = [];
  for (let id = 0; id < count; id += 1) {
    const begun = performance.now();
    send("tool_start", named(1e6 + id).replace(/data-status="\\w+"/, 'data-status="executing"'));
    send("tool_result", named(1e6 + id));
    costs.push((performance.now() - begun) / 2);
    if (id % 50 === 0) await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  }
  const middle = (some) => some.sort((one, other) => one - other)[some.length >> 1];
  return [middle(costs.slice(0, 300)), middle(costs.slice(-300)), panel.children.length];
}"""
KEPT_SOCKET = """const Plain = WebSocket;
window.WebSocket = class extends Plain {
  constructor(address) { super(address); if (address.includes("/ws/runs/")) window.runSocket = this; }
};"""


def test_adding_a_line_to_5000_lines_is_about_as_fast_as_adding_the_first_lines(
    office: Office, visit: Visit
) -> None:
    office.workshop.play(asking(call("utility.calculate", operation="add", a=1, b=2)))
    run = office.submit("Calculate")
    office.await_end(run.pk)
    visitor = visit("viewer")
    visitor.page.add_init_script(KEPT_SOCKET)
    visitor.open_run(run.pk)
    expect(visitor.page.locator(".finished")).to_be_visible()
    visitor.page.wait_for_function("() => window.runSocket?.readyState === 1")
    first, last, lines = visitor.page.evaluate(FLOOD, 5000)
    assert lines > 5000
    assert last < max(4 * first, 2.0), f"{first:.2f} ms at the beginning, {last:.2f} ms at the end"


def test_an_updated_line_keeps_its_open_details_and_its_focus(office: Office, visit: Visit) -> None:
    office.workshop.play(
        asking(call("probe.gate", name="one"), call("utility.calculate", operation="add", a=1, b=2))
    )
    office.recorder.hold("one")
    visitor = visit("operator")
    run_id = visitor.start("Dana", "Pass a gate")
    await_gate(office, "one")
    line = visitor.page.locator(".call:has(.spinner)")
    expect(line).to_have_count(1)
    place = line.get_attribute("id")
    line.locator("summary").first.focus()
    visitor.page.keyboard.press("Enter")
    moving = visitor.page.locator(f"#{place}")
    expect(moving.locator(".unfolded")).to_be_visible()
    office.recorder.release("one")
    office.await_end(run_id)
    expect(moving.locator(".spinner")).to_have_count(0)
    expect(moving.locator(".unfolded")).to_be_visible()
    expect(moving.locator("summary").first).to_be_focused()
    expect(visitor.page.locator("#timeline-1 rect")).to_have_count(3)
    expect(visitor.page.locator("#pass-1-figures")).not_to_be_empty()


PASS_HEADS = "(all) => all.map((line) => line.innerHTML)"


def test_a_pass_looks_the_same_on_live_and_reloaded_pages(office: Office, visit: Visit) -> None:
    """The server draws the figures of a pass and its part of the timeline only once, for live and
    loaded pages."""
    reads = [call("utility.calculate", operation="add", a=1, b=number) for number in range(14)]
    office.workshop.play(
        asking(call("probe.gate", name="one"), call("probe.gate", name="two"), *reads),
        asking(
            call("probe.gate", name="three"), call("utility.calculate", operation="add", a=2, b=2)
        ),
    )
    for gate in ("one", "two", "three"):
        office.recorder.hold(gate)
    visitor = visit("operator")
    run_id = visitor.start("Dana", "Pass three gates")
    passes = visitor.page.locator("#panel > .pass, #timeline > li")
    await_gate(office, "one")
    await_gate(office, "two")
    expect(visitor.page.locator("#timeline-1 rect.read.running")).to_have_count(2)
    office.recorder.release("one")
    expect(visitor.page.locator("#timeline-1 rect.read.running")).to_have_count(1)
    office.recorder.release("two")
    await_gate(office, "three")
    expect(visitor.page.locator("#timeline-1 rect.model")).to_have_count(1)
    expect(visitor.page.locator("#timeline-1")).to_contain_text("5 more")
    expect(visitor.page.locator("#timeline-2 rect")).to_have_count(3)
    assert (
        len(
            set(
                visitor.page.locator("#timeline-1 rect").evaluate_all(
                    "(all) => all.map((one) => one.outerHTML)"
                )
            )
        )
        > 2
    )
    office.recorder.release("three")
    office.await_end(run_id)
    visitor.assert_panel_is_whole(run_id)
    live = passes.evaluate_all(PASS_HEADS)
    assert "tokens" in live[-1] or " s" in live[-1]
    visitor.page.reload()
    expect(visitor.answer).to_be_visible()
    assert passes.evaluate_all(PASS_HEADS) == live


def test_the_badge_looks_the_same_on_live_and_reloaded_pages(office: Office, visit: Visit) -> None:
    may_ask(office.workshop.employee)
    office.recorder.hold("one")
    changed = {"record_id": str(office.workshop.record().pk), "changes": {"status": "inactive"}}
    office.workshop.play(
        asking(call("probe.gate", name="one")),
        asking(call("data.updateRecord", **changed)),
        asking(ask("Which region?")),
    )
    visitor, other = visit("operator"), visit("operator")
    run_id = visitor.start("Dana", "Do three things")
    badge = visitor.page.locator("[data-badge]")

    def assert_same(words: str) -> None:
        expect(badge).to_have_text(words)
        other.open_run(run_id)
        loaded = other.page.locator("[data-badge]")
        expect(loaded).to_have_text(words)
        assert loaded.get_attribute("class") == badge.get_attribute("class")
        shown = "(all) => all.map((one) => [one.dataset.when, one.hidden])"
        assert [
            page.locator("[data-when]").evaluate_all(shown) for page in (visitor.page, other.page)
        ] == ([visitor.page.locator("[data-when]").evaluate_all(shown)] * 2)

    await_gate(office, "one")
    assert_same("Running")
    office.recorder.release("one")
    (card,) = office.await_cards(run_id)
    assert_same("Waiting for a decision")
    office.workshop.deny(card)
    expect(badge).to_have_text("Waiting for an answer")
    assert_same("Waiting for an answer")
    office.workshop.cancel(load_run(run_id))
    assert_same(RunStatus.CANCELLED.label)


def test_an_answer_moves_into_the_panel_when_the_next_answer_comes(
    office: Office, visit: Visit
) -> None:
    office.workshop.play(answer="First answer.")
    visitor = visit("operator")
    run_id = visitor.start("Dana", "Answer")
    expect(visitor.page.locator("#end .answer")).to_have_text("First answer.")
    office.await_end(run_id)
    office.workshop.play(answer="Second answer.")
    visitor.page.get_by_label("Message Dana").fill("And again")
    visitor.page.get_by_role("button", name="Send").click()
    expect(visitor.page.locator("#end .answer")).to_have_text("Second answer.")
    expect(visitor.page.locator("#panel .answer")).to_have_text("First answer.")
    office.await_end(run_id)
    visitor.assert_panel_is_whole(run_id)
    visitor.page.reload()
    expect(visitor.page.locator("#end .answer")).to_have_text("Second answer.")
    expect(visitor.page.locator("#panel .answer")).to_have_text("First answer.")


def test_the_transcript_can_be_downloaded_from_the_page(office: Office, visit: Visit) -> None:
    office.workshop.play(
        asking(call("utility.calculate", operation="add", a=1, b=2)), answer="It is 3."
    )
    run = office.submit("Calculate")
    office.await_end(run.pk)
    visitor = visit("viewer")
    visitor.open_run(run.pk)
    visitor.page.get_by_text("Transcript").click()
    with visitor.page.expect_download() as coming:
        visitor.page.get_by_role("link", name="Markdown").click()
    text = coming.value.path().read_text()
    assert "It is 3." in text
    assert coming.value.suggested_filename == f"run-{run.pk}.md"


def start_writing(
    office: Office, visitor: Visitor, model: ModelServer, task: str, *answers: Response
) -> int:
    """Start a run whose model writes these answers once the page is connected."""
    office.workshop.connect(model.url)
    office.recorder.hold("one")
    model.enqueue(Response(calls=(Call("probe.gate", {"name": "one"}),)), *answers)
    run_id = visitor.start("Dana", task)
    await_gate(office, "one")
    office.await_bells(run_id)
    office.recorder.release("one")
    return run_id


def test_streamed_text_is_shown_only_once_after_it_has_ended(
    office: Office, visit: Visit, model: ModelServer
) -> None:
    visitor = visit("operator")
    task = "Write an answer that is long enough to be named by a model. " * 5
    answer = Response(text="This is *quite* a long answer, written word by word.", hold="middle")
    run_id = start_writing(office, visitor, model, task, answer)
    model.wait_for_held()
    expect(visitor.page.locator(".model-text.streaming")).to_contain_text("This is *quite*")
    model.release()
    office.await_end(run_id)
    expect(visitor.answer.locator("em")).to_have_text("quite")
    expect(visitor.page.locator(".streaming")).to_have_count(0)
    expect(visitor.page.locator("h1")).to_have_text("Named by its model")
    expect(visitor.page).to_have_title("“Named by its model” · Gadget")
    visitor.assert_panel_is_whole(run_id)


def test_interrupted_text_is_replaced_by_the_next_answer(
    office: Office, visit: Visit, model: ModelServer
) -> None:
    visitor = visit("operator")
    answers = (
        Response(text="A first answer, which is never finished because it is cut.", fault="cut"),
        Response(text="Now another one, which is whole and longer than before.", hold="middle"),
    )
    run_id = start_writing(office, visitor, model, "Write an answer", *answers)
    streaming = visitor.page.locator(".model-text.streaming")
    expect(streaming).to_contain_text("Now another")
    pieces = [
        message["payload"]["text"]
        for message in visitor.received
        if message["type"] == "assistant_delta"
    ]
    assert pieces[0].startswith("A first")
    expect(streaming).not_to_contain_text("A first")
    model.wait_for_held()
    model.release()
    office.await_end(run_id)
    expect(visitor.page.locator(".streaming")).to_have_count(0)
    visitor.assert_panel_is_whole(run_id)


def test_text_is_replaced_when_another_worker_takes_over(
    office: Office, visit: Visit, model: ModelServer
) -> None:
    visitor = visit("operator")
    answer = Response(text="A first answer, of which the half is written.", hold="middle")
    run_id = start_writing(office, visitor, model, "Write an answer", answer)
    streaming = visitor.page.locator(".model-text.streaming")
    expect(streaming).to_contain_text("A first")
    model.wait_for_held()
    epoch = load_run(run_id).lease_epoch
    for later, text, start in ((1, "Anot", 0), (0, " of the first one", 0), (1, "her one", 4)):
        office.stream(run_id, epoch + later, text, start)
    expect(streaming).to_have_text("Another one")
    model.release()
    office.await_end(run_id)
    visitor.assert_panel_is_whole(run_id)


def test_a_pause_requested_by_the_model_server_is_shown_with_its_remaining_time(
    office: Office, visit: Visit, model: ModelServer
) -> None:
    office.workshop.connect(model.url)
    model.enqueue(failing(429, "slow down", Retry_After="100"), Response(text="Done."))
    visitor = visit("operator")
    run_id = visitor.start("Dana", "Answer")
    expect(visitor.page.locator("[data-badge]")).to_have_text("Waiting for the model")
    expect(visitor.page.locator(".delayed")).to_contain_text(
        re.compile(r"server\. Next attempt in \d+ s")
    )
    expect(visitor.page.locator(".continue")).to_be_hidden()
    visitor.page.reload()
    expect(visitor.page.locator(".delayed")).to_contain_text(
        re.compile(r"server\. Next attempt in \d+ s")
    )
    office.await_end(run_id)
    expect(visitor.page.locator("[data-badge]")).to_have_text("Finished without changes")
    expect(visitor.page.locator(".delayed")).to_be_hidden()


def test_a_page_reports_that_its_login_has_ended(office: Office, visit: Visit) -> None:
    run = office.submit()
    office.await_end(run.pk)
    visitor = visit("viewer")
    visitor.open_run(run.pk)
    expect(visitor.page.locator(".finished")).to_be_visible()
    Session.objects.all().delete()
    expect(visitor.lost_bar).to_contain_text("You are logged out")
    visitor.page.reload()
    expect(visitor.page.get_by_role("button", name="Log in")).to_be_visible()


def test_the_lists_of_the_start_page_update_live(office: Office, visit: Visit) -> None:
    visitor = visit("approver")
    visitor.page.goto("/")
    expect(visitor.page.get_by_text("all caught up.")).to_be_visible()
    office.workshop.play(
        asking(
            call(
                "data.updateRecord",
                record_id=str(office.workshop.record().pk),
                changes={"score": 5},
            )
        )
    )
    run = office.submit("Set the score")
    (card,) = office.await_cards(run.pk)
    expect(visitor.page.locator("#waiting")).to_contain_text("Update record Acme Corp")
    expect(visitor.page.locator(".places [data-pending]")).to_have_text("1")
    await_that(
        lambda: visitor.page.title().startswith("(1) "),
        "the title carries the number of waiting cards",
    )
    office.workshop.deny(card)
    expect(visitor.page.get_by_text("all caught up.")).to_be_visible()
    expect(visitor.page.locator(".places [data-pending]")).to_be_hidden()
    office.await_end(run.pk)
    expect(visitor.page.locator("#recent")).to_contain_text("Set the score")
