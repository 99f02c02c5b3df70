"""GET /api/runs/{id}/events returns every event after a number, in order, without gaps."""

from __future__ import annotations

import pytest

from agents.runs.models import Event, Run
from tests.world import World, problem

pytestmark = pytest.mark.django_db


def run_with_events(world: World, count: int) -> Run:
    run = world.run()
    Event.objects.bulk_create(
        Event(run=run, seq=number, type="tool_progress", payload={"fraction": number})
        for number in range(1, count + 1)
    )
    return run


def test_all_events_are_returned_in_order(world: World) -> None:
    run = run_with_events(world, 300)
    events = world.client("viewer").get(f"/api/runs/{run.pk}/events").json()
    assert [event["seq"] for event in events] == list(range(1, 301))
    assert events[0].keys() == {"seq", "type", "payload", "marks", "created_at"}
    assert events[0]["payload"] == {"fraction": 1}
    assert events[0]["created_at"].endswith("Z")


def test_the_after_parameter_returns_only_later_events(world: World) -> None:
    run = run_with_events(world, 5)
    client = world.client("viewer")
    assert [event["seq"] for event in client.get(f"/api/runs/{run.pk}/events?after=3").json()] == [
        4,
        5,
    ]
    assert client.get(f"/api/runs/{run.pk}/events?after=5").json() == []


@pytest.mark.parametrize("after", ["-1", "x", str(2**31), "9" * 30, "%00", "1.5"])
def test_an_invalid_after_parameter_is_reported(world: World, after: str) -> None:
    run = run_with_events(world, 1)
    response = world.client("viewer").get(f"/api/runs/{run.pk}/events?after={after}")
    assert problem(response, 422)["field"] == "after"
