"""POST /api/runs/{id}/messages adds an instruction while a run works, waits or has ended."""

from __future__ import annotations

from typing import Any

import pytest

from agents.runs.models import Event, Message, RunStatus
from tests.workshop import all_at_once
from tests.world import World, post, problem

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "status", [RunStatus.QUEUED, RunStatus.WAITING, RunStatus.SUCCEEDED, RunStatus.FAILED]
)
def test_a_message_is_stored_and_recorded_as_an_event_in_every_run_that_accepts_messages(
    world: World, status: RunStatus
) -> None:
    run = world.run(status)
    if status == RunStatus.WAITING:
        world.card(run)
    response = post(
        world.client("operator"), f"/api/runs/{run.pk}/messages", {"text": "Leave out Initech."}
    )
    assert response.status_code == 200
    last = Message.objects.filter(run=run).last()
    assert last is not None
    assert (last.number, last.text, last.author) == (
        2,
        "Leave out Initech.",
        world.users["operator"],
    )
    assert Event.objects.get(run=run, type="message_added").payload["text"] == "Leave out Initech."


def test_a_message_resumes_an_ended_run(world: World) -> None:
    run = world.run(RunStatus.SUCCEEDED)
    shown = post(
        world.client("operator"), f"/api/runs/{run.pk}/messages", {"text": "And the others?"}
    ).json()
    assert (shown["status"], shown["exit_reason"], shown["finished_at"]) == ("queued", "", None)


def test_a_cancelled_run_refuses_messages(world: World) -> None:
    run = world.run(RunStatus.CANCELLED, exit_reason="cancelled")
    problem(post(world.client("operator"), f"/api/runs/{run.pk}/messages", {"text": "Go on."}), 409)


@pytest.mark.parametrize("text", ["", "  ", "x" * 20_001, "a\x00b", None, ["a"]])
def test_an_invalid_text_is_refused(world: World, text: Any) -> None:
    run = world.run()
    response = post(world.client("operator"), f"/api/runs/{run.pk}/messages", {"text": text})
    assert problem(response, 422)["field"] == "text"
    assert Message.objects.filter(run=run).count() == 1


class TestClientMessageId:
    def test_sent_twice_adds_the_message_once(self, world: World) -> None:
        run, client = world.run(RunStatus.SUCCEEDED), world.client("operator")
        message = {"text": "And the others?", "client_message_id": "m-1"}
        responses = [post(client, f"/api/runs/{run.pk}/messages", message) for _ in range(3)]
        assert [response.status_code for response in responses] == [200, 200, 200]
        assert Message.objects.filter(run=run).count() == 2
        assert Event.objects.filter(run=run, type="run_resumed").count() == 1

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize(
        ("action", "status"), [("messages", RunStatus.SUCCEEDED), ("continue", RunStatus.FAILED)]
    )
    def test_sent_twelve_times_simultaneously_adds_the_message_once(
        self, world: World, action: str, status: RunStatus
    ) -> None:
        run, codes = world.run(status), list[int]()
        message = {"text": "And the others?"} if action == "messages" else {}

        def send() -> None:
            path = f"/api/runs/{run.pk}/{action}"
            codes.append(
                post(
                    world.client("operator"), path, message | {"client_message_id": "m-1"}
                ).status_code
            )

        all_at_once([send] * 12)
        assert codes == [200] * 12
        assert Message.objects.filter(run=run).count() == 2

    def test_that_is_omitted_makes_each_request_add_a_message(self, world: World) -> None:
        run, client = world.run(), world.client("operator")
        for _ in range(2):
            post(client, f"/api/runs/{run.pk}/messages", {"text": "Hurry."})
        assert Message.objects.filter(run=run).count() == 3

    def test_sent_again_after_the_cancellation_returns_the_first_response(
        self, world: World
    ) -> None:
        run, client = world.run(), world.client("operator")
        message = {"text": "Hurry.", "client_message_id": "m-1"}
        post(client, f"/api/runs/{run.pk}/messages", message)
        post(client, f"/api/runs/{run.pk}/cancel")
        assert post(client, f"/api/runs/{run.pk}/messages", message).status_code == 200

    def test_is_bound_to_its_text_its_author_and_its_run(self, world: World) -> None:
        run, other, client = world.run(), world.run(), world.client("operator")
        message = {"text": "Hurry.", "client_message_id": "m-1"}
        post(client, f"/api/runs/{run.pk}/messages", message)
        problem(post(client, f"/api/runs/{run.pk}/messages", {**message, "text": "Stop."}), 409)
        problem(post(world.client("approver"), f"/api/runs/{run.pk}/messages", message), 409)
        assert post(client, f"/api/runs/{other.pk}/messages", message).status_code == 200
        assert [each.text for each in Message.objects.filter(run=run)[1:]] == ["Hurry."]

    @pytest.mark.parametrize("wrong", ["x" * 201, "a\x00", "\ud800", None, 7])
    def test_that_is_invalid_is_reported(self, world: World, wrong: Any) -> None:
        run = world.run()
        message = {"text": "Hurry.", "client_message_id": wrong}
        response = post(world.client("operator"), f"/api/runs/{run.pk}/messages", message)
        assert problem(response, 422)["field"] == "client_message_id"
