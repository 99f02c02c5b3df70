"""/ws/runs/<id>/ sends every event once and in order, only to viewers with access."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from agents.accounts.membership import issue_token
from agents.accounts.models import ApiToken, Membership
from agents.approvals import decisions
from agents.runs.engine.cards import publish_card
from agents.runs.engine.transaction import run_transaction
from agents.runs.events import RunTitled
from agents.runs.models import Approval, Event, EventType, Run
from agents.web.sockets.database import database_to_async
from tests.web.socket_client import SocketClient, in_loop
from tests.world import World

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]


def publish(run: Run, count: int, name: str = "Title") -> None:
    """Publish events as the engine does: commit them and send the hint."""
    with run_transaction(run.pk) as tx:
        for number in range(count):
            tx.publish(RunTitled(0, 0, None, title=f"{name} {number}"))


def insert_silently(run: Run, count: int) -> None:
    """Insert events without sending the hint."""
    first = Run.objects.get(pk=run.pk).next_event_seq
    titled = {"input_tokens": 0, "output_tokens": 0, "cost": None}
    rows = [
        Event(
            run=run,
            seq=first + number,
            type=EventType.RUN_TITLED,
            payload={**titled, "title": f"Silent {number}"},
        )
        for number in range(count)
    ]
    Event.objects.bulk_create(rows)
    Run.objects.filter(pk=run.pk).update(next_event_seq=first + count)


def build_path(run: Run, after: int = 0) -> str:
    return f"/ws/runs/{run.pk}/?after={after}"


def test_people_without_access_are_refused(world: World) -> None:
    run = world.run()
    outsider, stranger = world.client("outsider"), world.client("stranger")

    async def ask() -> list[int]:
        sockets = [
            SocketClient(build_path(run), token="gadget_wrong"),
            SocketClient(build_path(run), stranger),
            SocketClient(build_path(run), outsider),
            SocketClient("/ws/runs/999999/", outsider),
            SocketClient(f"/ws/runs/{10**30}/", outsider),
        ]
        codes = []
        for socket in sockets:
            async with socket:
                codes.append(await socket.close_code())
        return codes

    assert in_loop(ask()) == [4401, 4401, 4404, 4404, 4404]


def test_a_viewer_and_a_token_can_watch_a_run(world: World) -> None:
    run = world.run()
    publish(run, 1)
    viewer, (_, secret) = world.client("viewer"), issue_token(world.member("viewer"), "bench")

    async def look() -> list[dict[str, Any]]:
        seen = []
        for socket in (
            SocketClient(build_path(run), viewer),
            SocketClient(build_path(run), token=secret),
        ):
            async with socket:
                seen.append(await socket.message())
        return seen

    for message in in_loop(look()):
        assert message.keys() == {"seq", "type", "payload", "html"}
        assert (message["seq"], message["type"], message["payload"]["title"]) == (
            1,
            "run_titled",
            "Title 0",
        )
        assert "Title 0" in message["html"]


def test_the_browser_resumes_after_its_last_event(world: World) -> None:
    run = world.run()
    publish(run, 5)
    client = world.client("viewer")

    async def resume() -> list[int]:
        async with SocketClient(build_path(run, after=3), client) as socket:
            seen = [message["seq"] for message in await socket.messages(2)]
            await socket.say(json.dumps({"after": 1}))
            return seen + [message["seq"] for message in await socket.messages(4)]

    assert in_loop(resume()) == [4, 5, 2, 3, 4, 5]


def test_a_slow_reader_gets_each_of_a_thousand_events_once(world: World) -> None:
    run = world.run()
    client = world.client("viewer")

    async def burst() -> tuple[list[int], list[int]]:
        async with (
            SocketClient(build_path(run), client) as slow,
            SocketClient(build_path(run), client) as fast,
        ):
            slow.delay_s = 0.001
            writing = asyncio.gather(*(database_to_async(publish)(run, 20) for _ in range(50)))
            received = await asyncio.gather(slow.messages(1000), fast.messages(1000), writing)
            return [one["seq"] for one in received[0]], [one["seq"] for one in received[1]]

    slow, fast = in_loop(burst())
    stored = list(Event.objects.filter(run=run).order_by("seq").values_list("seq", flat=True))
    assert slow == fast == stored == list(range(1, 1001))


def test_an_event_without_a_hint_arrives(world: World) -> None:
    run = world.run()
    client = world.client("viewer")

    async def wait() -> int:
        async with SocketClient(build_path(run), client) as socket:
            await database_to_async(publish)(run, 1)
            await socket.message()
            await database_to_async(insert_silently)(run, 1)
            return int((await socket.message(patience_s=4.5))["seq"])

    assert in_loop(wait()) == 2


def watch_until_expelled(world: World, act: Callable[[], object], **how: Any) -> int:
    run = world.run()

    async def watch() -> int:
        async with SocketClient(build_path(run), **how) as socket:
            await database_to_async(publish)(run, 1)
            await socket.message()
            await database_to_async(act)()
            await database_to_async(publish)(run, 1)
            return await socket.close_code()

    return in_loop(watch())


def test_a_removed_member_gets_no_more_events(world: World) -> None:
    client = world.client("viewer")
    assert (
        watch_until_expelled(
            world, Membership.objects.filter(user=world.users["viewer"]).delete, client=client
        )
        == 4401
    )


def test_a_logged_out_viewer_gets_no_more_events(world: World) -> None:
    client = world.client("viewer")
    assert watch_until_expelled(world, client.session.flush, client=client) == 4401


def test_a_changed_password_ends_the_socket(world: World) -> None:
    def change_password() -> None:
        world.users["viewer"].set_password("something else")
        world.users["viewer"].save()

    assert watch_until_expelled(world, change_password, client=world.client("viewer")) == 4401


def test_a_revoked_token_gets_no_more_events(world: World) -> None:
    _, secret = issue_token(world.member("viewer"), "bench")
    assert watch_until_expelled(world, ApiToken.objects.all().delete, token=secret) == 4401


def test_the_html_does_not_name_the_viewer_and_a_decided_card_has_no_buttons(world: World) -> None:
    card = world.card()
    run = card.run
    with run_transaction(run.pk) as tx:
        publish_card(tx, card.tool_call, card, 7)
    client = world.client("approver")

    async def first() -> str:
        async with SocketClient(build_path(run), client) as socket:
            return str((await socket.message())["html"])

    live = in_loop(first())
    assert "data-action" in live
    assert "csrf" not in live
    assert not re.search(r"\bapprover\b", live)
    decisions.deny(world.member("approver"), card.pk, decisions.Decision(digest=card.digest))
    stale = in_loop(first())
    assert "data-action" not in stale
    assert "Denied" in stale
    assert Approval.objects.get(pk=card.pk).status == "denied"


def test_invalid_messages_are_ignored_and_a_message_that_is_too_long_closes_the_socket(
    world: World,
) -> None:
    run = world.run()
    publish(run, 1)
    client = world.client("viewer")

    async def babble() -> int:
        async with SocketClient(build_path(run), client) as socket:
            await socket.message()
            for text in (
                "",
                "{",
                "[]",
                '{"after": "x"}',
                '{"after": -1}',
                '{"after": true}',
                "null",
                "[" * 4000,
            ):
                await socket.say(text)
            await database_to_async(publish)(run, 1)
            assert (await socket.message())["seq"] == 2
            await socket.say("x" * 5000)
            return await socket.close_code()

    assert in_loop(babble()) == 4413
