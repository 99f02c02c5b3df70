"""POST /api/runs/{id}/continue gives an ended run more passes."""

from __future__ import annotations

from typing import Any

import pytest

from agents.runs.models import RunStatus
from tests.world import World, post, problem

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("body", "expected"), [({"max_passes": 3}, 4), ({}, 11), (None, 11)])
def test_continuing_adds_passes(world: World, body: dict[str, int] | None, expected: int) -> None:
    run = world.run(RunStatus.SUCCEEDED, exit_reason="max_passes")
    response = post(world.client("operator"), f"/api/runs/{run.pk}/continue", body)
    assert response.status_code == 200
    shown = response.json()
    assert (shown["status"], shown["max_passes"]) == ("queued", expected)


@pytest.mark.parametrize("wrong", [0, 101, -1, "many", 1.5])
def test_an_invalid_number_of_passes_is_reported(world: World, wrong: Any) -> None:
    run = world.run(RunStatus.SUCCEEDED)
    response = post(world.client("operator"), f"/api/runs/{run.pk}/continue", {"max_passes": wrong})
    assert problem(response, 422)["field"] == "max_passes"


@pytest.mark.parametrize("status", [RunStatus.CANCELLED, RunStatus.WAITING, RunStatus.QUEUED])
def test_only_a_run_that_ended_on_its_own_can_continue(world: World, status: RunStatus) -> None:
    run = world.run(status)
    problem(post(world.client("operator"), f"/api/runs/{run.pk}/continue"), 409)


def test_a_request_sent_again_does_not_continue_the_run_again(world: World) -> None:
    run, client = world.run(RunStatus.SUCCEEDED, exit_reason="max_passes"), world.client("operator")
    body = {"max_passes": 3, "client_message_id": "c-1"}
    responses = [post(client, f"/api/runs/{run.pk}/continue", body) for _ in range(3)]
    assert [(response.status_code, response.json()["max_passes"]) for response in responses] == [
        (200, 4)
    ] * 3
    assert run.messages.count() == 2
    problem(post(client, f"/api/runs/{run.pk}/continue", {**body, "client_message_id": ""}), 409)
    problem(
        post(
            client, f"/api/runs/{run.pk}/messages", {"text": "Hurry.", "client_message_id": "c-1"}
        ),
        409,
    )
