"""One reading of a run's new events serves every socket that is nearly up to date."""

from __future__ import annotations

import pytest

from agents.desk.feeds import Viewer, in_thread
from agents.desk.run_feed import RunFeed, RunSeat
from agents.events import recording
from agents.membership import issue_token
from agents.models import ApiToken, EventType, Run
from tests.web.socket_client import in_loop
from tests.web.world import World, make_world

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]


@pytest.fixture
def world() -> World:
    return make_world()


def begin_pass(run: Run, *numbers: int) -> None:
    """Lines that take each other's place if their numbers are equal."""
    with recording(run.pk) as record:
        for number in numbers:
            record.publish(EventType.PASS_STARTED, pass_number=number)


def viewer_of(world: World) -> Viewer:
    member = world.member("viewer")
    issue_token(member, "reader")
    return Viewer(member.pk, member.organization_id, token_hash=ApiToken.objects.get().hash)


def test_lines_of_one_reading_stay_good_and_older_ones_whose_place_they_take_do_not(world: World) -> None:
    run, viewer = world.run(), viewer_of(world)

    async def read() -> None:
        feed = RunFeed("nobody", run.pk)
        feed.seats.add(RunSeat(viewer, 0))
        await feed.read()
        await in_thread(begin_pass)(run, 1, 1, 2)
        await feed.read()
        assert [line.seq for line in feed.since(0) or ()] == [1, 2, 3]
        await in_thread(begin_pass)(run, 2, 3)
        await feed.read()
        assert feed.since(0) is None, "the third line is not true any more"
        assert [line.seq for line in feed.since(3) or ()] == [4, 5]
        assert feed.since(5) == []

    in_loop(read())
