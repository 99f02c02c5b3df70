"""Streams end in different ways: with a finish reason, with only [DONE], or with late usage."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from agents.providers import late_usage
from agents.providers.base import ProviderError, Usage
from tests.model_server import Call, ModelServer, Response
from tests.providers.conftest import Asking

FINISH = {"choices": [{"index": 0, "delta": {"content": "All of it."}, "finish_reason": "stop"}]}
PADDING = {"choices": [], "padding": "x" * 400}
USAGE = {"choices": [], "usage": {"prompt_tokens": 700, "completion_tokens": 7}}


class TestStreamsWithoutAFinishReason:
    @pytest.mark.parametrize(
        "reply",
        [
            Response(text="All of it.", finish=None),
            Response(calls=(Call("utility.now"),), finish=None),
            Response(
                text="Two:",
                calls=(Call("utility.now"), Call("data.searchRecords", {"region": "EU"})),
                finish=None,
            ),
            Response(text="<think>Hm</think>Yes.", finish=None),
        ],
    )
    def test_are_accepted_with_a_complete_response(
        self, server: ModelServer, ask: Asking, reply: Response
    ) -> None:
        server.enqueue(reply)
        response = ask(max_retries=0)
        assert len(response.calls) == len(reply.calls)
        assert reply.text.endswith(response.text)
        assert response.usage == Usage(100, 10)
        assert len(server.requests) == 1

    @pytest.mark.parametrize(
        "response",
        [
            Response(text="Half of", finish=None, done=False),
            Response(calls=(Call("utility.now", arguments='{"zone": "Eu'),), finish=None),
            Response(text="And:", calls=(Call("utility.now", arguments='["EU"]'),), finish=None),
            Response(text="<think>Hm, hm", finish=None),
            Response(finish=None),
        ],
    )
    def test_are_refused_with_an_incomplete_response(
        self, server: ModelServer, ask: Asking, response: Response
    ) -> None:
        server.enqueue(response)
        with pytest.raises(ProviderError) as caught:
            ask(max_retries=0)
        assert (caught.value.code, caught.value.transient) == ("cut_stream", True)


class TestLateUsage:
    """The first half of the data contains the response; the second half is sent after the server is
    released."""

    @pytest.fixture(autouse=True)
    def late(self, server: ModelServer) -> None:
        server.enqueue(Response(events=(FINISH, PADDING, USAGE), hold="middle"))

    def test_does_not_delay_the_response(self, server: ModelServer, ask: Asking) -> None:
        started = time.monotonic()
        response = ask()
        assert time.monotonic() - started < 15
        assert response.text == "All of it."
        assert response.usage.is_estimated
        assert response.usage.input_tokens > 10
        assert response.late_usage is not None
        taken: list[Usage] = []
        response.late_usage.then(taken.append)
        server.release()
        assert response.late_usage.wait() == Usage(700, 7)
        wait_until(lambda: bool(taken))
        assert taken == [Usage(700, 7)]

    def test_is_passed_to_a_callback_added_after_it_arrived(
        self, server: ModelServer, ask: Asking
    ) -> None:
        response = ask()
        assert response.late_usage is not None
        server.release()
        response.late_usage.wait()
        taken: list[Usage] = []
        response.late_usage.then(taken.append)
        assert taken == [Usage(700, 7)]

    def test_is_abandoned_at_the_requests_deadline(self, ask: Asking) -> None:
        started = time.monotonic()
        response = ask(within=1.0)
        assert response.late_usage is not None
        assert response.late_usage.wait() is None
        assert time.monotonic() - started < 15

    def test_is_abandoned_when_the_run_is_stopped(self, ask: Asking) -> None:
        response = ask()
        assert response.late_usage is not None
        ask.stopped.set()
        assert response.late_usage.wait() is None

    def test_is_abandoned_when_no_thread_is_free(
        self, ask: Asking, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(late_usage, "_slots", threading.BoundedSemaphore(1))
        with late_usage._slots:
            response = ask()
        assert response.text == "All of it."
        assert response.usage.is_estimated
        assert response.late_usage is None

    def test_leaves_no_thread_behind(self, server: ModelServer, ask: Asking) -> None:
        ask()
        server.release()
        wait_until(lambda: all(thread.name != "tail" for thread in threading.enumerate()))


def test_text_after_an_early_finish_reason_belongs_to_the_response(
    server: ModelServer, ask: Asking
) -> None:
    more = {"choices": [{"index": 0, "delta": {"content": " And more."}, "finish_reason": "stop"}]}
    server.enqueue(Response(events=(FINISH, more, USAGE)))
    response = ask()
    assert (response.text, response.usage) == ("All of it. And more.", Usage(700, 7))
    assert "".join(ask.heard) == response.text


def test_usage_is_estimated_if_the_server_reports_none(server: ModelServer, ask: Asking) -> None:
    server.enqueue(Response(text="Hi", usage=None), Response(text="Hi", usage=None, streamed=False))
    for _ in range(2):
        usage = ask().usage
        assert usage.is_estimated
        assert 50 < usage.input_tokens < 1_000
        assert 0 < usage.output_tokens < 100


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)
