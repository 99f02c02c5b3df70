"""The text that a model is currently writing: viewers who join late get it from its beginning, and
nobody gets a piece twice."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from agents.platform import notify
from agents.platform.redis_client import connect_redis
from agents.platform.streamed_text import read_text
from agents.runs.engine.transaction import run_transaction
from agents.runs.model_events import AssistantMessage
from agents.runs.models import Run, RunStatus
from agents.web.sockets.database import database_to_async
from tests.features import feature
from tests.web.socket_client import SocketClient, in_loop
from tests.world import World

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]


@pytest.fixture
def run(world: World) -> Run:
    """A run whose model is writing its response in the first pass."""
    run = world.run(RunStatus.QUEUED)
    Run.objects.filter(pk=run.pk).update(
        status=RunStatus.RUNNING,
        pass_number=0,
        lease_owner="w",
        lease_expires_at=timezone.now(),
        lease_epoch=1,
    )
    return run


def write(run: Run, text: str, epoch: int = 1) -> None:
    notify.stream_text(notify.TextStream(run.pk, epoch, 1), text)
    notify.wait_until_sent()


async def read_piece(socket: SocketClient) -> dict[str, Any]:
    while True:
        message = await socket.message()
        if message["type"] == "assistant_delta":
            return dict(message["payload"])


@feature(
    "The gate",
    "Late viewers get, from its beginning, the text that the model is writing",
    "agents/web/sockets/run_feed.py",
    whole_file=True,
)
def test_a_viewer_who_joins_late_gets_the_text_so_far_and_then_its_further_pieces(
    world: World, run: Run
) -> None:
    client = world.client("viewer")
    write(run, "Über ")
    write(run, "long ")

    async def follow() -> None:
        path = f"/ws/runs/{run.pk}/?after=0"
        async with SocketClient(path, client) as first:
            assert (await read_piece(first))["text"] == "Über long "
            async with SocketClient(path, client) as second:
                assert (await read_piece(second)) == {
                    "pass_number": 1,
                    "epoch": 1,
                    "start": 0,
                    "text": "Über long ",
                }
                await database_to_async(write)(run, "words")
                for socket in (first, second):
                    piece = await read_piece(socket)
                    assert (piece["start"], piece["text"]) == (10, "words")

    in_loop(follow())


def test_another_driver_starts_the_text_again(world: World, run: Run) -> None:
    write(run, "Half of it")
    write(run, "Again", epoch=2)
    with connect_redis() as client:
        kept = read_text(client, run.pk)
    assert kept is not None
    assert (kept.key, kept.text) == ((2, 1), "Again")


def test_the_text_of_a_recorded_pass_is_not_sent_again(world: World, run: Run) -> None:
    client = world.client("viewer")
    write(run, "Done")

    def record() -> None:
        with run_transaction(run.pk) as tx:
            tx.run.pass_number = 1
            tx.publish(AssistantMessage("Done", 1))

    async def follow() -> None:
        path = f"/ws/runs/{run.pk}/?after=0"
        async with SocketClient(path, client) as first:
            await read_piece(first)
            await database_to_async(record)()
            assert (await first.message())["type"] == "assistant_message"
            await database_to_async(write)(run, " and late")
            async with SocketClient(path, client) as second:
                assert (await second.message())["type"] == "assistant_message"
                await database_to_async(write)(run, "New", epoch=2)
                assert (await read_piece(second))["text"] == "New"

    in_loop(follow())
