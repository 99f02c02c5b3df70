"""A run's page explains everything unusual: it names the person, the reason and the next step."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from agents.approvals import decisions, resolutions
from agents.employees.models import Employee, ModelProvider, ProviderKind
from agents.providers.scripted import UNKNOWN_TASK
from agents.runs import stops
from agents.runs.actions import Submission, submit
from agents.runs.engine.ending import park
from agents.runs.engine.loop import advance
from agents.runs.engine.transaction import run_transaction
from agents.runs.events import RunResumed
from agents.runs.models import CallStatus, Event, EventType, Run, RunStatus
from agents.web.panel.lines import render_lines
from agents.web.panel.slots import fold_events
from tests.features import feature
from tests.scripts import write_script
from tests.web.asking import ask_question, delegate_task
from tests.web.pages import read_page
from tests.web.run_events import add_events
from tests.workshop import beside
from tests.world import World

pytestmark = pytest.mark.django_db

TIDY = json.dumps(
    {"scripts": [{"task": "(?i)tidy", "title": "Tidy up", "passes": [], "answer": "Tidied."}]}
)


def test_an_unknown_task_shows_the_known_tasks_instead_of_an_answer(world: World) -> None:
    ended = {"status": "succeeded", "exit_reason": "final_answer", "pass_number": 1}
    run = world.run(RunStatus.SUCCEEDED)
    (event,) = add_events(
        run, (EventType.RUN_FINISHED, {**ended, "answer": f"{UNKNOWN_TASK}\n\n- Tidy"})
    )
    known = f'href="/?employee={world.employee.pk}&amp;example=0#new-task"'
    page = (
        read_page(world.client("viewer"), f"/runs/{run.pk}/")
        .split('id="end"')[1]
        .split("</section>")[0]
    )
    live = render_lines(run.pk, [event])[0].html
    for html in (page, live):
        assert "No script matches this task" in html
        assert known in html
        assert " Answer</h2>" not in html
    ModelProvider.objects.update(kind=ProviderKind.OPENAI)
    assert "No script matches" not in render_lines(run.pk, [event])[0].html


@pytest.mark.django_db(transaction=True)
def test_the_answer_to_an_unknown_task_begins_by_saying_that_the_task_is_unknown(
    world: World,
) -> None:
    Employee.objects.update(model=write_script(TIDY))
    run, _ = submit(world.member("operator"), Submission(world.employee.pk, "Book a flight"))
    advance(run.pk)
    answered = world.client("viewer").get(f"/api/runs/{run.pk}").json()
    assert answered["status"] == "succeeded"
    first, *others = answered["answer"].splitlines()
    assert first == "I am a demo employee and don't know this task."
    assert "- Tidy up" in others
    top = (
        read_page(world.client("viewer"), f"/runs/{run.pk}/")
        .split('id="end"')[1]
        .split("</section>")[0]
    )
    assert "Dana is a demo employee and doesn’t know this task." in top
    assert top.index("is a demo employee") < top.index("Tidy up.")


@pytest.mark.django_db(transaction=True)
def test_a_run_that_ends_while_its_page_is_rendered_is_shown_as_unfinished(world: World) -> None:
    """The socket sends later events, but if the page already showed the run's end above its
    unfinished lines, the end would never disappear."""
    Employee.objects.update(model=write_script(TIDY))
    run, _ = submit(world.member("operator"), Submission(world.employee.pk, "Tidy"))
    path, client = f"/runs/{run.pk}/", world.client("viewer")
    read_page(client, path)
    ended: list[bool] = []

    def end_before_its_events_are_read(execute: Callable[..., Any], sql: str, *others: Any) -> Any:
        if sql.startswith('SELECT "runs_event"') and not ended:
            ended.append(True)
            with beside(lambda: advance(run.pk)):
                pass
        return execute(sql, *others)

    with connection.execute_wrapper(end_before_its_events_are_read):
        page = read_page(client, path)
    assert ended
    assert f'data-run-status="{RunStatus.QUEUED}"' in page
    assert f'data-after="{run.next_event_seq - 1}"' in page
    assert re.search(r'id="end"[^>]* hidden', page)
    assert f'data-run-status="{RunStatus.SUCCEEDED}"' in read_page(client, path)


def test_a_replaced_card_leaves_a_line_with_the_person_and_the_reason(world: World) -> None:
    card = world.card()
    requested = (
        EventType.APPROVAL_REQUESTED,
        {"call_id": str(card.tool_call_id), "approval_id": str(card.pk)},
    )
    decided = {"call_id": str(card.tool_call_id), "approval_id": "5", "decided_by": "approver"}
    undone = {
        **decided,
        "status": "superseded",
        "reason": "approver undid the approval.",
        "next_approval_id": "6",
    }
    events = add_events(
        card.run,
        requested,
        (
            EventType.APPROVAL_DECIDED,
            {**decided, "status": "approved", "reason": "", "next_approval_id": None},
        ),
        (EventType.APPROVAL_DECIDED, undone),
        requested,
    )
    assert [event.seq for event in fold_events(events)] == [4, 3]
    html = read_page(world.client("viewer"), f"/runs/{card.run_id}/")
    assert html.count("approver undid the approval.") == 2, "in the line, and for a screen reader"
    assert (
        '<a href="/approvals/5/">Card 5</a> was replaced by <a href="/approvals/6/">card 6</a>'
        in html
    )


def test_a_lost_worker_is_shown(world: World) -> None:
    run = world.run()
    add_events(
        run,
        (
            EventType.RUN_RESUMED,
            {"by": "gadget", "reason": "The worker was lost; another one continues."},
        ),
    )
    html = read_page(world.client("viewer"), f"/runs/{run.pk}/")
    assert '>The worker was lost; another one continues. <span class="small">' in html


def test_a_delayed_run_shows_the_reason_and_the_time_of_the_next_try(world: World) -> None:
    retry_at = timezone.now() + timedelta(seconds=90)
    run = world.run(RunStatus.QUEUED, patience_tries=2, next_wake_at=retry_at)
    delayed = {"code": "rate_limited", "reason": "http://a.example: Later", "tries": 2}
    delayed["retry_at"] = retry_at.isoformat()
    add_events(run, (EventType.PROVIDER_DELAYED, delayed))
    html = read_page(world.client("operator"), f"/runs/{run.pk}/")
    assert "data-badge>Waiting for the model</span>" in html
    head = html.split('class="delayed small"')[1].split("</p>")[0]
    assert "hidden" not in head.split(">")[0]
    assert re.search(r"Next attempt\s<time [^>]+>in (89|90) s</time>", head)
    assert html.count(": http://a.example: Later.") == 1
    assert "hidden" in html.split('class="continue"')[1].split(">")[0]
    Run.objects.filter(pk=run.pk).update(patience_tries=0, next_wake_at=None)
    assert "data-badge>Queued</span>" in read_page(world.client("operator"), f"/runs/{run.pk}/")


def test_each_change_of_a_request_after_a_refusal_by_the_model_server_is_shown(
    world: World,
) -> None:
    changes = ["without temperature", "with reasoning_effort none"]
    run = world.run()
    add_events(run, (EventType.REQUEST_ADAPTED, {"pass_number": 1, "changes": changes}))
    html = read_page(world.client("viewer"), f"/runs/{run.pk}/")
    refused = (
        "The model&#39;s server refused the request. "
        "Sent again without temperature and with reasoning_effort none."
    )
    assert refused in html


def test_an_interrupted_text_is_labeled(world: World) -> None:
    used = {
        "input_tokens": 1_200,
        "output_tokens": 80,
        "usage_estimated": True,
        "cost": None,
        "duration_ms": 5,
    }
    unusable = {"pass_number": 1, "code": "timeout", "reason": "Nothing more came.", **used}
    run = world.run()
    add_events(run, (EventType.ANSWER_UNUSABLE, {**unusable, "text": "The three largest are"}))
    html = read_page(world.client("viewer"), f"/runs/{run.pk}/")
    assert "The response was cut off: about 1,200 + 80 tokens." in html
    assert "The three largest are" in html


def test_a_failed_runs_error_is_shown_once(world: World) -> None:
    problem = "The model's server refused the key."
    run = world.run(
        RunStatus.FAILED,
        exit_reason="provider_error",
        problem=problem,
        answer=f"No answer. {problem}",
    )
    ended = {
        "status": "failed",
        "exit_reason": "provider_error",
        "answer": run.answer,
        "pass_number": 1,
    }
    add_events(run, (EventType.RUN_FINISHED, ended))
    assert read_page(world.client("viewer"), f"/runs/{run.pk}/").count("refused the key") == 1


def test_a_rejected_call_is_explained_in_plain_words(world: World) -> None:
    call = world.call(world.run(), status=CallStatus.REJECTED)
    reason = "The 'changes.code' parameter is invalid: String should match pattern '^[A-Z]{2}$' (given: 'x')."
    payload = {
        "call_id": str(call.pk),
        "tool": call.tool,
        "code": "INVALID_PARAMETER",
        "reason": reason,
    }
    (event,) = add_events(call.run, (EventType.TOOL_REJECTED, payload))
    html = render_lines(call.run_id, [event])[0].html
    assert "changes.code: It does not have the expected format." in html
    assert "^[A-Z]" not in html


def test_every_time_on_a_page_has_the_same_format(world: World) -> None:
    run = world.card().run
    for path in (
        f"/runs/{run.pk}/",
        "/approvals/",
        f"/approvals/{run.approvals.get().pk}/",
        "/runs/",
    ):
        html = read_page(world.client("approver"), path)
        titles = re.findall(r'<time datetime="[^"]+" title="([^"]+)"', html)
        assert titles
        for title in titles:
            assert re.fullmatch(r"\d{1,2} [A-Z][a-z]{2} \d{4}, \d\d:\d\d:\d\d UTC", title)


def read_badge(world: World, run: Run) -> str:
    return (
        read_page(world.client("viewer"), f"/runs/{run.pk}/").split("data-badge>")[1].split("<")[0]
    )


def list_badges(world: World, run: Run) -> set[str]:
    """List the badges of the run on the list of runs, the start page and the employee's page."""
    row = re.compile(
        rf'href="/runs/{run.pk}/">.*?<span class="badge[^>]*>(?:<svg.*?</svg>)?([^<]*)<', re.DOTALL
    )
    pages = [
        read_page(world.client("viewer"), path)
        for path in ("/runs/", "/", f"/employees/{world.employee.pk}/")
    ]
    return {found.strip() for page in pages for found in row.findall(page)}


def park_run(run: Run) -> str:
    """Park the run with the engine's function, and return the HTML of the newest line that says why
    it waits."""
    Run.objects.filter(pk=run.pk).update(
        status=RunStatus.RUNNING, lease_owner="w", lease_expires_at=timezone.now()
    )
    with run_transaction(run.pk) as tx:
        park(tx, needs_attention=False)
    return render_lines(
        run.pk, [Event.objects.filter(run=run, type=EventType.RUN_WAITING).latest("seq")]
    )[0].html


@feature(
    "Questions and delegation",
    "A waiting run's line and every list say what it waits for, once per pass",
    "agents/web/lists/run_pages.py",
)
def test_a_waiting_run_shows_its_reason_in_its_line_and_in_lists(world: World) -> None:
    decision, answer = world.card().run, ask_question(world).run
    child = delegate_task(world, "Kim <b>")
    assert child.parent is not None
    for run, state, line in (
        (decision, "Waiting for a decision", "Waiting for a decision <"),
        (answer, "Waiting for an answer", "Waiting for an answer <"),
        (child.parent, "Waiting for a colleague", "Waiting for Kim &lt;b&gt; <"),
        (world.run(), "Waiting", "Waiting a moment: the approval can still be undone <"),
    ):
        assert line in park_run(run)
        assert read_badge(world, run) == state
        assert list_badges(world, run) == {state}
    ask_question(world, run=decision)
    world.card(decision)
    assert "Waiting for 2 decisions and an answer <" in park_run(decision)


def test_a_pass_still_has_only_one_waiting_line_after_several_decisions(world: World) -> None:
    run = world.run()
    cards = [world.card(run) for _ in range(3)]
    park_run(run)
    for card in cards[:2]:
        decisions.deny(world.member("approver"), card.pk, decisions.Decision(digest=card.digest))
        with run_transaction(run.pk) as tx:
            tx.publish(RunResumed("approver", pass_number=1))
        park_run(run)
    html = read_page(world.client("viewer"), f"/runs/{run.pk}/")
    assert html.count('data-slot="wait-1"') == 1
    assert "Waiting for a decision <" in html
    assert "Resumed by" not in html
    with run_transaction(run.pk) as tx:
        tx.publish(RunResumed("approver", pass_number=1))
    html = read_page(world.client("viewer"), f"/runs/{run.pk}/")
    assert html.count('data-slot="wait-1"') == 1
    assert "Resumed by approver <" in html
    assert "Waiting for a decision <" not in html


def test_a_stop_and_its_end_have_separate_lines(world: World) -> None:
    run = world.run(RunStatus.QUEUED)
    stops.stop_everything(world.member("operator"))
    stops.release_everything(world.member("admin"))
    html = read_page(world.client("viewer"), f"/runs/{run.pk}/")
    assert "operator stopped everything. Nothing new starts <" in html
    assert "The stop was lifted." in html
    assert "wait-" not in html


def read_last_line(world: World, run: Run) -> str:
    """Read the text of the newest status line in the run's panel."""
    *_, line = read_page(world.client("viewer"), f"/runs/{run.pk}/").split('class="line state')
    return " ".join(re.sub(r"<[^>]+>", " ", line.split("</li>")[0].partition(">")[2]).split())


@feature(
    "The gate",
    "The panel's last line shows the state of the run, also after a stop and a resolved outcome",
    "agents/web/panel/slots.py",
)
def test_the_status_line_changes_with_a_stop_and_with_its_end(world: World) -> None:
    run = world.card().run
    park_run(run)
    stops.stop_everything(world.member("operator"))
    assert read_last_line(world, run).startswith("operator stopped everything. Nothing new starts")
    stops.release_everything(world.member("admin"))
    assert read_last_line(world, run).startswith("Waiting for a decision")
    html = read_page(world.client("viewer"), f"/runs/{run.pk}/")
    assert html.index("Nothing new starts <") < html.index("The stop was lifted. <")
    with run_transaction(run.pk) as tx:
        tx.publish(RunResumed("approver", pass_number=1))
    assert read_last_line(world, run).startswith("Resumed by approver")


@pytest.mark.parametrize("has_more", [False, True])
def test_a_run_no_longer_needs_attention_once_its_outcome_is_settled(
    world: World, has_more: bool
) -> None:
    call = world.unknown_call()
    run = call.run
    if has_more:
        world.card(run)
    with run_transaction(run.pk) as tx:
        park(tx, needs_attention=True)
    assert read_last_line(world, run).startswith("Needs attention")
    resolutions.resolve(world.member("approver"), call.pk, "succeeded", "I looked.")
    assert read_last_line(world, run).startswith(
        "Waiting for a decision" if has_more else "Resumed by approver"
    )
    assert "Please look" not in read_page(world.client("viewer"), f"/runs/{run.pk}/")


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        ({"title": "Tidy up"}, "Named: Tidy up"),
        (
            {"title": "Tidy up", "input_tokens": 1200, "output_tokens": 9},
            "Named: Tidy up 1,200 + 9 tokens",
        ),
        ({"input_tokens": 1200, "output_tokens": 9}, "Naming the run used 1,200 + 9 tokens"),
    ],
)
def test_the_title_line_names_the_run_only_if_it_has_a_title(
    world: World, payload: dict[str, Any], told: str
) -> None:
    run = world.run()
    add_events(run, (EventType.RUN_TITLED, payload))
    assert read_last_line(world, run) == told


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("max_passes", "Out of passes"),
        ("answer_cut", "Answer cut off"),
        ("answer_filtered", "Answer withheld"),
    ],
)
def test_a_run_without_a_complete_answer_says_so_and_can_be_continued(
    world: World, reason: str, words: str
) -> None:
    run = world.run(RunStatus.FAILED, exit_reason=reason, estimated_tokens=7)
    ending = {"status": "failed", "exit_reason": reason, "answer": "Half of", "pass_number": 1}
    add_events(run, (EventType.RUN_FINISHED, ending))
    client = world.client("operator")
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert f'<p class="reason">{words}' in page
    form = page[page.index('class="continue"') :]
    assert " hidden" not in form[: form.index(">")]
    assert f"Stopped: {words.lower()}" in client.get("/runs/").content.decode()
    shown = client.get(f"/api/runs/{run.pk}").json()
    assert (shown["status"], shown["exit_reason"], shown["usage_estimated"]) == (
        "failed",
        reason,
        True,
    )
