"""/ws/runs/<id>/ sends every event once, in order, to whom it concerns and to nobody else."""

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
from agents.approvals.models import Approval
from agents.runs.engine.cards import publish_card
from agents.runs.engine.transaction import run_transaction
from agents.runs.events import RunTitled
from agents.runs.models import Event, EventType, Run
from agents.web.sockets.database import database_to_async
from tests.web.socket_client import SocketClient, in_loop
from tests.world import World, make_world

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]


@pytest.fixture
def world() -> World:
    return make_world()


def publish(run: Run, count: int, name: str = "Title") -> None:
    """Events as the engine writes them: committed, then the bell."""
    with run_transaction(run.pk) as tx:
        for number in range(count):
            tx.publish(RunTitled(0, 0, None, title=f"{name} {number}"))


def insert(run: Run, count: int) -> None:
    """Events whose bell got lost."""
    first = Run.objects.get(pk=run.pk).next_event_seq
    titled = {"input_tokens": 0, "output_tokens": 0, "cost": None}
    rows = [
        Event(run=run, seq=first + number, type=EventType.RUN_TITLED, payload={**titled, "title": f"Silent {number}"})
        for number in range(count)
    ]
    Event.objects.bulk_create(rows)
    Run.objects.filter(pk=run.pk).update(next_event_seq=first + count)


def path_of(run: Run, after: int = 0) -> str:
    return f"/ws/runs/{run.pk}/?after={after}"


def test_nobody_strangers_and_wrong_tokens_are_refused(world: World) -> None:
    run = world.run()
    outsider, stranger = world.client("outsider"), world.client("stranger")

    async def ask() -> list[int]:
        sockets = [
            SocketClient(path_of(run), token="gadget_wrong"),
            SocketClient(path_of(run), stranger),
            SocketClient(path_of(run), outsider),
            SocketClient("/ws/runs/999999/", outsider),
            SocketClient(f"/ws/runs/{10**30}/", outsider),
        ]
        codes = []
        for socket in sockets:
            async with socket:
                codes.append(await socket.close_code())
        return codes

    assert in_loop(ask()) == [4401, 4401, 4404, 4404, 4404]


def test_a_viewer_and_a_token_may_look(world: World) -> None:
    run = world.run()
    publish(run, 1)
    viewer, (_, secret) = world.client("viewer"), issue_token(world.member("viewer"), "bench")

    async def look() -> list[dict[str, Any]]:
        seen = []
        for socket in (SocketClient(path_of(run), viewer), SocketClient(path_of(run), token=secret)):
            async with socket:
                seen.append(await socket.message())
        return seen

    for message in in_loop(look()):
        assert message.keys() == {"seq", "type", "payload", "html"}
        assert (message["seq"], message["type"], message["payload"]["title"]) == (1, "run_titled", "Title 0")
        assert "Title 0" in message["html"]


def test_the_browser_resumes_where_it_was(world: World) -> None:
    run = world.run()
    publish(run, 5)
    client = world.client("viewer")

    async def resume() -> list[int]:
        async with SocketClient(path_of(run, after=3), client) as socket:
            seen = [message["seq"] for message in await socket.messages(2)]
            await socket.say(json.dumps({"after": 1}))
            return seen + [message["seq"] for message in await socket.messages(4)]

    assert in_loop(resume()) == [4, 5, 2, 3, 4, 5]


def test_a_thousand_events_reach_a_slow_reader_once_each(world: World) -> None:
    run = world.run()
    client = world.client("viewer")

    async def burst() -> tuple[list[int], list[int]]:
        async with SocketClient(path_of(run), client) as slow, SocketClient(path_of(run), client) as fast:
            slow.delay_s = 0.001
            writing = asyncio.gather(*(database_to_async(publish)(run, 20) for _ in range(50)))
            received = await asyncio.gather(slow.messages(1000), fast.messages(1000), writing)
            return [one["seq"] for one in received[0]], [one["seq"] for one in received[1]]

    slow, fast = in_loop(burst())
    stored = list(Event.objects.filter(run=run).order_by("seq").values_list("seq", flat=True))
    assert slow == fast == stored == list(range(1, 1001))


def test_an_event_without_its_bell_arrives_all_the_same(world: World) -> None:
    run = world.run()
    client = world.client("viewer")

    async def wait() -> int:
        async with SocketClient(path_of(run), client) as socket:
            await database_to_async(publish)(run, 1)
            await socket.message()
            await database_to_async(insert)(run, 1)
            return int((await socket.message(patience_s=4.5))["seq"])

    assert in_loop(wait()) == 2


def expelled_by(world: World, act: Callable[[], object], **how: Any) -> int:
    run = world.run()

    async def watch() -> int:
        async with SocketClient(path_of(run), **how) as socket:
            await database_to_async(publish)(run, 1)
            await socket.message()
            await database_to_async(act)()
            await database_to_async(publish)(run, 1)
            return await socket.close_code()

    return in_loop(watch())


def test_who_loses_the_membership_sees_no_further_event(world: World) -> None:
    client = world.client("viewer")
    assert expelled_by(world, Membership.objects.filter(user=world.users["viewer"]).delete, client=client) == 4401


def test_who_logs_out_sees_no_further_event(world: World) -> None:
    client = world.client("viewer")
    assert expelled_by(world, client.session.flush, client=client) == 4401


def test_who_gets_another_password_sees_no_further_event(world: World) -> None:
    def change_password() -> None:
        world.users["viewer"].set_password("something else")
        world.users["viewer"].save()

    assert expelled_by(world, change_password, client=world.client("viewer")) == 4401


def test_a_revoked_token_sees_no_further_event(world: World) -> None:
    _, secret = issue_token(world.member("viewer"), "bench")
    assert expelled_by(world, ApiToken.objects.all().delete, token=secret) == 4401


def test_the_html_is_for_everybody_and_an_old_event_brings_back_no_live_card(world: World) -> None:
    card = world.card()
    run = card.run
    with run_transaction(run.pk) as tx:
        publish_card(tx, card.tool_call, card, 7)
    client = world.client("approver")

    async def first() -> str:
        async with SocketClient(path_of(run), client) as socket:
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


def test_nonsense_is_ignored_and_too_much_of_it_ends_the_socket(world: World) -> None:
    run = world.run()
    publish(run, 1)
    client = world.client("viewer")

    async def babble() -> int:
        async with SocketClient(path_of(run), client) as socket:
            await socket.message()
            for text in ("", "{", "[]", '{"after": "x"}', '{"after": -1}', '{"after": true}', "null", "[" * 4000):
                await socket.say(text)
            await database_to_async(publish)(run, 1)
            assert (await socket.message())["seq"] == 2
            await socket.say("x" * 5000)
            return await socket.close_code()

    assert in_loop(babble()) == 4413
