"""A run's feed reads each new event once for all sockets that are nearly up to date."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from agents.accounts.membership import issue_token
from agents.accounts.models import ApiToken
from agents.platform import notify
from agents.runs.engine.transaction import run_transaction
from agents.runs.events import PassStarted
from agents.runs.models import Run, RunStatus
from agents.runs.status_labels import describe_status
from agents.web.sockets import feeds
from agents.web.sockets.database import database_to_async
from agents.web.sockets.run_feed import RunFeed, RunSubscriber
from agents.web.sockets.viewers import Viewer
from tests.web.socket_client import SocketClient, in_loop
from tests.world import World

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]


def begin_pass(run: Run, *numbers: int) -> None:
    """Publish an event for the beginning of each of these passes. The lines of events with the same
    number share a slot."""
    with run_transaction(run.pk) as tx:
        for number in numbers:
            tx.publish(PassStarted(number))


@transaction.atomic
def wait_for_decision(world: World, run: Run) -> None:
    """Create a card and let the run wait for it in one transaction, so that no feed reads one
    change without the other."""
    world.card(run)
    Run.objects.filter(pk=run.pk).update(status=RunStatus.WAITING)


def create_viewer(world: World) -> Viewer:
    member = world.member("viewer")
    issue_token(member, "reader")
    return Viewer(
        member.pk,
        member.organization_id,
        member.user.get_username(),
        token_hash=ApiToken.objects.get().hash,
    )


def test_a_line_makes_earlier_lines_in_the_same_slot_outdated(world: World) -> None:
    run, viewer = world.run(), create_viewer(world)

    async def read() -> None:
        feed = RunFeed("nobody", run.pk)
        feed.subscribers.add(RunSubscriber(viewer, 0))
        await feed.read()
        await database_to_async(begin_pass)(run, 1, 1, 2)
        await feed.read()
        assert [line.seq for line in feed.find_messages(0) or ()] == [1, 2, 3]
        await database_to_async(begin_pass)(run, 2, 3)
        await feed.read()
        assert feed.find_messages(0) is None, "the third line is outdated"
        assert [line.seq for line in feed.find_messages(3) or ()] == [4, 5]
        assert feed.find_messages(5) == []

    in_loop(read())


def test_a_status_change_without_an_event_is_sent_to_sockets_that_request_states(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "POLL_S", 0.05)
    run, client = world.run(RunStatus.QUEUED), world.client("viewer")
    Run.objects.filter(pk=run.pk).update(patience_tries=1, next_wake_at="2030-01-01T00:00:00Z")
    silently = database_to_async(lambda **columns: Run.objects.filter(pk=run.pk).update(**columns))

    async def follow() -> None:
        path = f"/ws/runs/{run.pk}/?after=0"
        async with (
            SocketClient(f"{path}&status=1", client) as page,
            SocketClient(path, client) as other,
        ):
            assert await receive_state(page) == build_status(
                "queued", "delayed", 0, "2030-01-01T00:00:00+00:00"
            )
            await silently(patience_tries=0, next_wake_at=None)
            assert await receive_state(page) == build_status("queued", "", 0)
            await database_to_async(wait_for_decision)(world, run)
            assert await receive_state(page) == build_status("waiting", "decision", 0)
            await database_to_async(begin_pass)(run, 1)
            assert [(await socket.message())["type"] for socket in (page, other)] == [
                "pass_started"
            ] * 2
            assert await receive_state(page) == build_status("waiting", "decision", 1)
            await silently(
                status=RunStatus.FAILED, exit_reason="deadline", finished_at="2026-01-01T00:00:00Z"
            )
            assert await receive_state(page) == build_status("failed", "deadline", 1)
            await silently(stopped_because="Ada stopped Dana.")
            assert await receive_state(page) == build_status(
                "failed", "deadline", 1, stopped="Ada stopped Dana."
            )
            await database_to_async(begin_pass)(run, 2)
            assert (await other.message())["seq"] == 2, "it received only events"

    in_loop(follow())


def test_one_feed_serves_all_sockets_of_a_run_and_stops_when_the_last_socket_closes(
    world: World,
) -> None:
    run, client = world.run(), world.client("viewer")

    def running() -> list[feeds.Feed]:
        return [
            feed
            for (_, group, _), feed in feeds._feeds.items()
            if group == notify.get_run_group(run.pk)
        ]

    async def come_and_go() -> None:
        path = f"/ws/runs/{run.pk}/?after=0"
        async with SocketClient(path, client) as first:
            async with SocketClient(path, client) as second:
                await database_to_async(begin_pass)(run, 1)
                assert [(await socket.message())["seq"] for socket in (first, second)] == [1, 1]
                (feed,) = running()
                assert len(feed.subscribers) == 2
            assert running() == [feed]
            assert len(feed.subscribers) == 1
            await first.say("x" * 5000)
            assert await first.close_code() == 4413
            assert running() == []

    in_loop(come_and_go())


async def receive_state(socket: SocketClient) -> dict[str, Any]:
    """Receive the next message; its HTML must show the badge for the same state."""
    message = await socket.message()
    payload = message["payload"]
    assert describe_status(payload["status"], payload["reason"]) in message.pop("html")
    return message


def build_status(
    name: str, reason: str, after: int, next_try: str | None = None, stopped: str = ""
) -> dict[str, Any]:
    payload = {
        "status": name,
        "reason": reason,
        "stopped": stopped,
        "next_try": next_try,
        "after": after,
    }
    return {"seq": None, "type": "run_status", "payload": payload}
