"""A response ends at its deadline and at a stop, even while a read waits or the server only keeps
the connection open."""

import threading

import pytest

from agents.providers.base import ProviderError, ProviderStopped
from agents.providers.late_usage import GRACE_S
from tests.model_server import Call, ModelServer, Response, failing
from tests.providers.conftest import Asking, within

SOON = 8.0


@pytest.mark.parametrize(
    "response",
    [Response(hold="start"), Response(text="a b c d", hold="middle"), Response(fault="drip")],
)
def test_the_request_ends_at_its_deadline(
    server: ModelServer, ask: Asking, response: Response
) -> None:
    server.enqueue(response)
    with within(SOON), pytest.raises(ProviderError) as caught:
        ask(within=0.2)
    assert (caught.value.code, caught.value.transient) == ("timeout", True)


def test_the_request_ends_at_the_providers_timeout(server: ModelServer, ask: Asking) -> None:
    server.enqueue(Response(fault="drip"))
    with within(SOON), pytest.raises(ProviderError, match="timeout"):
        ask(timeout_s=0.2)


@pytest.mark.parametrize(
    "response",
    [
        Response(hold="start"),
        Response(text="a b c d", calls=(Call("utility.now"),), hold="middle"),
        Response(fault="drip"),
    ],
)
def test_a_stop_from_another_thread_ends_a_waiting_read(
    server: ModelServer, ask: Asking, response: Response
) -> None:
    def stop() -> None:
        if response.hold:
            server.wait_for_held()
        else:
            server.wait_for_requests(1)
        ask.stopped.set()

    server.enqueue(response)
    stopper = threading.Thread(target=stop)
    stopper.start()
    with within(SOON), pytest.raises(ProviderStopped):
        ask()
    stopper.join()


def test_a_stop_closes_the_connection(server: ModelServer, ask: Asking) -> None:
    server.enqueue(Response(fault="drip"))
    threading.Timer(0.1, ask.stopped.set).start()
    with pytest.raises(ProviderStopped):
        ask()
    server.wait_for_dropped()


def test_nothing_is_sent_after_a_stop(server: ModelServer, ask: Asking) -> None:
    ask.stopped.set()
    with pytest.raises(ProviderStopped):
        ask()
    assert server.requests == []


def test_the_pause_before_a_retry_can_be_stopped(server: ModelServer, ask: Asking) -> None:
    server.respond_with(lambda body: failing(500))

    def stop() -> None:
        server.wait_for_requests(1)
        ask.stopped.set()

    stopper = threading.Thread(target=stop)
    stopper.start()
    with within(SOON), pytest.raises(ProviderStopped):
        ask(max_retries=1000)
    stopper.join()


def test_stopping_one_request_does_not_interrupt_other_requests(
    server: ModelServer, ask: Asking
) -> None:
    server.hold()
    others = [Asking(server.url) for _ in range(8)]
    responses: list[str] = []
    threads = [
        threading.Thread(target=lambda each=each: responses.append(each().text)) for each in others
    ]
    for thread in threads:
        thread.start()
    server.wait_for_held(8)
    threading.Timer(0.1, ask.stopped.set).start()
    with pytest.raises(ProviderStopped):
        ask()
    server.release()
    for thread in threads:
        thread.join(5)
    assert responses == ["Done."] * 8


def test_a_finished_response_is_accepted_even_if_the_stream_never_ends(
    server: ModelServer, ask: Asking
) -> None:
    server.enqueue(Response(text="All of it.", fault="no_end"))
    with within(SOON):
        assert ask().text == "All of it."


def test_a_finished_response_is_accepted_without_a_done_line(
    server: ModelServer, ask: Asking
) -> None:
    server.enqueue(Response(text="All of it.", usage=None, done=False, fault="no_end"))
    with within(GRACE_S + SOON):
        assert ask().text == "All of it."
