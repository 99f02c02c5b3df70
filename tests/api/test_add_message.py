"""POST /api/runs/{id}/messages adds an instruction while a run works, waits or has ended."""

from __future__ import annotations

from typing import Any

import pytest

from agents.runs.models import Event, Message, RunStatus
from tests.world import World, make_world, post, problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    return make_world()


@pytest.mark.parametrize("status", [RunStatus.QUEUED, RunStatus.WAITING, RunStatus.SUCCEEDED, RunStatus.FAILED])
def test_a_message_is_kept_and_shown(world: World, status: RunStatus) -> None:
    run = world.run(status)
    if status == RunStatus.WAITING:
        world.card(run)
    answer = post(world.client("operator"), f"/api/runs/{run.pk}/messages", {"text": "Leave out Initech."})
    assert answer.status_code == 200
    last = Message.objects.filter(run=run).last()
    assert last is not None
    assert (last.number, last.text, last.author) == (2, "Leave out Initech.", world.users["operator"])
    assert Event.objects.get(run=run, type="message_added").payload["text"] == "Leave out Initech."


def test_a_run_that_has_ended_takes_up_its_work_again(world: World) -> None:
    run = world.run(RunStatus.SUCCEEDED)
    shown = post(world.client("operator"), f"/api/runs/{run.pk}/messages", {"text": "And the others?"}).json()
    assert (shown["status"], shown["exit_reason"], shown["finished_at"]) == ("queued", "", None)


def test_a_cancelled_run_takes_no_message(world: World) -> None:
    run = world.run(RunStatus.CANCELLED, exit_reason="cancelled")
    problem(post(world.client("operator"), f"/api/runs/{run.pk}/messages", {"text": "Go on."}), 409)


@pytest.mark.parametrize("text", ["", "  ", "x" * 20_001, "a\x00b", None, ["a"]])
def test_a_wrong_text_is_refused(world: World, text: Any) -> None:
    run = world.run()
    answer = post(world.client("operator"), f"/api/runs/{run.pk}/messages", {"text": text})
    assert problem(answer, 422)["field"] == "text"
    assert Message.objects.filter(run=run).count() == 1
