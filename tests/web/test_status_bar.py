"""The status bar of a run's page says what the run is doing and what it needs from people, both
when the page loads and while it is open."""

from __future__ import annotations

import re

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from agents.runs.models import (
    Approval,
    ApprovalStatus,
    CallStatus,
    Origin,
    Run,
    RunStatus,
    ToolCall,
)
from agents.web.panel.run_state import read_state
from agents.web.panel.status_bar import describe_needs
from tests.features import feature
from tests.web.asking import ask_question, delegate_task
from tests.web.pages import read_page
from tests.world import SEARCH, World

pytestmark = pytest.mark.django_db


def read_bar(world: World, run: Run) -> str:
    """Return the text of the status bar, after checking that it is the same on the page and in a
    live message."""
    page = (
        read_page(world.client("viewer"), f"/runs/{run.pk}/")
        .split('id="run-bar">')[1]
        .split("</p>")[0]
    )
    state = read_state(run.pk)
    assert state is not None
    live = state.parts.render().split('<template data-into="run-bar">')[1].split("</template>")[0]
    texts = [" ".join(re.sub(r"<[^>]+>", " ", html).split()) for html in (page, live)]
    assert texts[0] == texts[1]
    return texts[0]


def execute(run: Run, count: int) -> None:
    at = {
        "started_at": timezone.now(),
        "deadline_at": Now(),
        "exec_epoch": 1,
        "finished_at": None,
        "content": "",
    }
    for number in range(count):
        ToolCall.objects.create(
            organization=run.organization, run=run, pass_number=1, index=number, provider_call_id=str(number),
            tool=SEARCH, params_hash="0" * 64, signature="0" * 64, level="read", status=CallStatus.EXECUTING, **at,
        )  # fmt: skip


def run_it(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(
        status=RunStatus.RUNNING, lease_owner="w", lease_expires_at=timezone.now(), lease_epoch=1
    )


@feature(
    "The gate",
    "A bar says what the run does or needs, at load and live",
    "agents/web/panel/status_bar.py",
    whole_file=True,
)
def test_the_bar_names_the_running_call_and_its_duration(world: World) -> None:
    run = world.run(RunStatus.QUEUED)
    run_it(run)
    assert read_bar(world, run).startswith("Dana is thinking")
    execute(run, 1)
    assert read_bar(world, run) == "Dana is searching records 0 s"


def test_an_idle_session_waits_for_its_agent_unless_an_approval_can_still_be_undone(
    world: World,
) -> None:
    run = world.run(RunStatus.WAITING)
    Run.objects.filter(pk=run.pk).update(origin=Origin.MCP)
    assert read_bar(world, run).startswith("Waiting for the agent")
    world.card(run)
    decided = {
        "decided_by": world.users["approver"],
        "decided_at": Now(),
        "start_after": Now(),
        "valid_until": Now(),
    }
    Approval.objects.filter(run=run).update(status=ApprovalStatus.APPROVED, **decided)
    assert read_bar(world, run).startswith("Starting in a moment")


def test_the_bar_counts_parallel_calls(world: World) -> None:
    run = world.run(RunStatus.QUEUED)
    run_it(run)
    execute(run, 3)
    assert re.fullmatch(r"Dana is running 3 calls \d+ s", read_bar(world, run))


def test_the_bar_counts_pending_decisions_of_people(world: World) -> None:
    run = world.run()
    world.card(run)
    assert read_bar(world, run).startswith("1 approval needed")
    world.card(run)
    bar = read_bar(world, run)
    assert bar.startswith("2 approvals needed")
    assert bar.endswith("Review")
    assert read_bar(world, ask_question(world).run).startswith("1 answer needed")


def test_the_bar_names_the_colleague_and_links_to_their_run(world: World) -> None:
    child = delegate_task(world)
    assert child.parent is not None
    Run.objects.filter(pk=child.parent.pk).update(status=RunStatus.WAITING)
    bar = read_bar(world, child.parent)
    assert bar.startswith(f"Waiting for {child.employee.name}")
    assert bar.endswith("View")


def test_an_ended_run_shows_its_outcome_and_links_to_the_answer(world: World) -> None:
    done = world.run(RunStatus.SUCCEEDED, outcome="done")
    assert read_bar(world, done) == "Finished Read the answer ↑"
    nothing = world.run(RunStatus.SUCCEEDED, outcome="unchanged")
    assert read_bar(world, nothing) == "Finished without changes Read the answer ↑"
    stopped = world.run(RunStatus.FAILED, exit_reason="max_passes")
    assert read_bar(world, stopped) == "Stopped: out of passes Read the result ↑"
    page = read_page(world.client("viewer"), "/runs/")
    for label in ("Succeeded", "Finished without changes", "Stopped: out of passes"):
        assert page.count(f"{label}</span>") == 1


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((0, 0, 0), ""),
        ((1, 0, 0), "1 approval needed"),
        ((2, 1, 0), "2 approvals and 1 answer needed"),
        ((0, 0, 2), "2 outcome checks needed"),
        ((1, 1, 1), "1 approval, 1 answer and 1 outcome check needed"),
    ],
)
def test_decisions_are_counted_in_words(counts: tuple[int, int, int], words: str) -> None:
    assert describe_needs(*counts) == words
