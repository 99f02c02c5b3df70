"""The threads that send notices and webhooks end when they are asked to, whatever they are doing at
that moment."""

from __future__ import annotations

import threading

import pytest

from agents.worker.notice_sender import RepeatingThread
from tests.awaiting import await_that

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_thread_that_is_stopped_just_after_waking_up_ends_immediately() -> None:
    thread = RepeatingThread("test", lambda: False, lambda: None, poll_s=600)

    class Woken(threading.Event):
        def clear(self) -> None:
            thread.stop()
            super().clear()

    thread._woken = Woken()
    thread._woken.set()
    thread.start()
    thread.join(20)
    assert not thread.is_alive()


def test_a_thread_that_is_asked_to_finish_does_not_start_further_work() -> None:
    begun, go_on, done = threading.Event(), threading.Event(), []

    def work() -> bool:
        begun.set()
        go_on.wait(20)
        done.append(1)
        return True

    thread = RepeatingThread("test", work, lambda: None)
    thread.start()
    assert begun.wait(20)
    thread.finish()
    go_on.set()
    thread.stop()
    thread.join(20)
    await_that(lambda: not thread.is_alive(), "it has ended")
    assert len(done) == 1
