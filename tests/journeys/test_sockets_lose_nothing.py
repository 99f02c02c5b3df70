"""A socket sends every event once and in order: to a slow reader, in a burst, and after a long
silence."""

from __future__ import annotations

import socket as sockets
from typing import Any

import pytest

from tests.journeys.api_client import Socket, select_events
from tests.journeys.office import Office, list_event_numbers, load_events
from tests.workshop import asking, call

SILENCE_S = 7.0


@pytest.fixture
def burst(office: Office) -> int:
    """Start a run with five passes of a hundred calls, which publish over 1,000 events; its worker
    is paused."""
    passes = [
        asking(
            *[call("utility.calculate", operation="add", a=number, b=place) for place in range(100)]
        )
        for number in range(5)
    ]
    office.workshop.play(*passes)
    office.workshop.allow_passes(10)
    office.installation.process("worker1").pause()
    return office.api_client("operator").start(office.workshop.employee.pk, "Calculate a lot")


def open_slow_connection(office: Office) -> sockets.socket:
    """Open a connection with a tiny receive buffer."""
    connection = sockets.socket()
    connection.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", office.installation.port))
    return connection


def assert_whole(heard: list[dict[str, Any]], run_id: int) -> None:
    stored = [(event.seq, event.type, event.payload) for event in load_events(run_id)]
    assert [(message["seq"], message["type"], message["payload"]) for message in heard] == stored


def test_1000_events_reach_fast_and_slow_readers_completely(office: Office, burst: int) -> None:
    outside = office.api_client("viewer")
    slow_options: dict[str, Any] = {
        "sock": open_slow_connection(office),
        "max_queue": 1,
        "compression": None,
    }
    with outside.socket(burst) as fast, outside.socket(burst, **slow_options) as slow:
        first = slow.next()
        assert fast.next() == first
        office.installation.process("worker1").resume()
        quickly = select_events(fast.receive_until("run_finished"))
        assert len(quickly) > 1000
        slowly = select_events(slow.receive_until("run_finished"))
        assert [message["seq"] for message in slowly] == [message["seq"] for message in quickly]
        assert_whole([first, *slowly], burst)


def test_a_reader_who_disconnects_repeatedly_misses_nothing(office: Office, burst: int) -> None:
    outside = office.api_client("viewer")
    office.installation.process("worker1").resume()
    heard: list[dict[str, Any]] = []
    while not heard or heard[-1]["type"] != "run_finished":
        with outside.socket(burst, after=len(heard), close_timeout=0) as socket:
            heard += receive_events(socket, 90)
    assert_whole(heard, burst)


def receive_events(socket: Socket, count: int) -> list[dict[str, Any]]:
    """Receive this number of events, or fewer if the run ends."""
    heard: list[dict[str, Any]] = []
    while len(heard) < count and not (heard and heard[-1]["type"] == "run_finished"):
        heard += select_events([socket.next()])
    return heard


def test_a_socket_stays_open_through_7_s_of_silence(office: Office) -> None:
    office.recorder.hold("gate")
    office.workshop.play(asking(call("probe.gate", name="gate")))
    operator = office.api_client("operator")
    run_id = operator.start(office.workshop.employee.pk, "Wait at a gate")
    with operator.socket(run_id) as socket:
        socket.receive_until("tool_start")
        with pytest.raises(TimeoutError):
            socket.next(SILENCE_S)
        office.recorder.release("gate")
        heard = socket.receive_until("run_finished")
    numbers = [message["seq"] for message in select_events(heard)]
    assert numbers == list_event_numbers(run_id)[-len(numbers) :]


def test_hints_arrive_again_when_redis_is_back(office: Office) -> None:
    """Check one socket that was open before Redis became unavailable, and one that was opened while
    it was unavailable."""
    office.recorder.hold("gate")
    office.workshop.play(asking(call("probe.gate", name="gate")))
    operator = office.api_client("operator")
    run_ids = [
        operator.start(office.workshop.employee.pk, f"Wait at a gate {place}") for place in range(2)
    ]
    with operator.socket(run_ids[0]) as before:
        before.receive_until("tool_start")
        office.await_bells(run_ids[0])
        with office.installation.without_redis(), operator.socket(run_ids[1]) as meanwhile:
            meanwhile.receive_until("run_started")
        office.await_bells(run_ids[0])
        with operator.socket(run_ids[1]) as meanwhile:
            office.await_bells(run_ids[1])
            office.recorder.release("gate")
            before.receive_until("run_finished")
            meanwhile.receive_until("run_finished")
