"""/ws/inbox/ sends the number of waiting cards and the stop, immediately and after each change."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from agents.approvals import decisions
from agents.approvals.models import Approval
from agents.runs import stops
from agents.web.sockets import feeds
from agents.web.sockets.database import database_to_async
from tests.web.socket_client import SocketClient, in_loop
from tests.world import World, make_world

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]


@pytest.fixture
def world() -> World:
    return make_world()


def pending(message: dict[str, Any]) -> int:
    assert message["type"] == "inbox_changed"
    return int(message["payload"]["pending"])


def test_it_counts_the_organizations_own_waiting_cards(world: World) -> None:
    card = world.card()
    world.card()
    clients = world.client("viewer"), world.client("outsider")

    def deny() -> None:
        decisions.deny(world.member("approver"), card.pk, decisions.Decision(digest=card.digest))

    async def watch() -> list[int]:
        async with SocketClient("/ws/inbox/", clients[0]) as ours, SocketClient("/ws/inbox/", clients[1]) as theirs:
            seen = [pending(await ours.message()), pending(await theirs.message())]
            await database_to_async(deny)()
            return [*seen, pending(await ours.message())]

    assert in_loop(watch()) == [2, 0, 1]
    assert Approval.objects.filter(status="pending").count() == 1


def test_it_sends_a_stop_and_its_end(world: World) -> None:
    clients = world.client("viewer"), world.client("outsider")

    async def watch() -> list[Any]:
        async with SocketClient("/ws/inbox/", clients[0]) as ours, SocketClient("/ws/inbox/", clients[1]) as theirs:
            seen = [(await ours.message())["payload"], (await theirs.message())["payload"]]
            await database_to_async(lambda: stops.stop_everything(world.member("operator")))()
            seen.append((await ours.message())["payload"])
            await database_to_async(lambda: stops.release_everything(world.member("admin")))()
            seen.append((await ours.message())["payload"])
            with pytest.raises(TimeoutError):
                await theirs.message(patience_s=0.3)
            return seen

    ours, theirs, stopped, released = in_loop(watch())
    assert ours == theirs == released == {"pending": 0, "stopped": None}
    assert (stopped["pending"], stopped["stopped"]["by"]) == (0, "operator")
    assert abs((datetime.now(UTC) - datetime.fromisoformat(stopped["stopped"]["at"])).total_seconds()) < 60


def test_a_bell_announces_a_stop_without_waiting_for_the_poll(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "POLL_S", 3600.0)
    client, outsider = world.client("viewer"), world.client("outsider")

    async def watch() -> Any:
        async with SocketClient("/ws/inbox/", client) as ours:
            await ours.message()
            await database_to_async(lambda: stops.stop_everything(world.member("operator")))()
            return (await ours.message())["payload"]["stopped"]["by"]

    async def look_elsewhere() -> Any:
        async with SocketClient("/ws/inbox/", outsider) as theirs:
            return (await theirs.message())["payload"]["stopped"]

    assert in_loop(watch()) == "operator"
    assert in_loop(look_elsewhere()) is None


def test_people_without_access_are_refused(world: World) -> None:
    stranger = world.client("stranger")

    async def ask() -> list[int]:
        codes = []
        for socket in (SocketClient("/ws/inbox/", stranger), SocketClient("/ws/inbox/", token="nonsense")):
            async with socket:
                codes.append(await socket.close_code())
        return codes

    assert in_loop(ask()) == [4401, 4401]
