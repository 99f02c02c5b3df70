"""Sockets of a real web process: no event is lost or repeated, even if the process is killed or the
reader is slow."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agents.runs import actions
from agents.runs.engine.transaction import run_transaction
from agents.runs.model_events import AssistantMessage
from agents.runs.models import Event, Run
from tests.awaiting import await_that
from tests.faults.follower import Follower, SocketOpener, next_event
from tests.faults.site import Site
from tests.processes import RealProcess

MANY = 1000
AT_ONCE = 50


def _ensure_web(site: Site) -> RealProcess:
    webs = [
        process
        for process in site.installation.processes
        if process.name == "web" and process.is_alive
    ]
    return webs[0] if webs else site.installation.start_web()


def _publish_events(run: Run, count: int) -> None:
    """Publish `count` events in one transaction."""
    with run_transaction(run.pk) as tx:
        for number in range(count):
            tx.publish(AssistantMessage(f"{number}: {'word ' * 40}", pass_number=1))


def _stored(run: Run) -> list[int]:
    return list(Event.objects.filter(run=run).order_by("seq").values_list("seq", flat=True))


@pytest.fixture
def run(site: Site) -> Iterator[Run]:
    """A run without a driver."""
    submitted = site.submit("Look at me")
    yield submitted
    actions.cancel(site.workshop.operator, submitted.pk)


@pytest.fixture
def opener(site: Site) -> SocketOpener:
    return SocketOpener(site.installation, site.workshop.operator)


def test_a_subscriber_resumes_by_number_after_the_web_process_was_killed(
    site: Site, run: Run, opener: SocketOpener
) -> None:
    web = _ensure_web(site)
    with Follower(opener, run) as follower:
        _publish_events(run, 30)
        await_that(lambda: len(follower.numbers) == 31, "the events before the kill", 20)
        _publish_events(run, 30)
        web.kill()
        _publish_events(run, 30)
        _ensure_web(site)
        _publish_events(run, 30)
        await_that(lambda: len(follower.numbers) >= 121, "the events before, during and after", 20)
        _publish_events(run, 1)
        await_that(lambda: len(follower.numbers) >= 122, "one more", 20)
        assert follower.numbers == _stored(run) == list(range(1, 123))
        assert follower.connections == 2


def test_a_slow_reader_gets_each_of_a_thousand_events_once(
    site: Site, run: Run, opener: SocketOpener
) -> None:
    _ensure_web(site)
    with opener.open(run) as socket:
        assert next_event(socket, 10)["seq"] == 1
        for _ in range(MANY // AT_ONCE):
            _publish_events(run, AT_ONCE)
        numbers = [next_event(socket, 20)["seq"] for _ in range(MANY)]
        assert [1, *numbers] == _stored(run)
        with pytest.raises(TimeoutError):
            next_event(socket, 0.5)
