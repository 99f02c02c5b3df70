"""A repeated message does not start a second run, whatever its form and whenever it arrives."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now

from agents.runs.models import Run
from agents.triggers import receiving
from agents.triggers.models import ReceivedMessage, Trigger
from tests.triggers.conftest import DOWN, add_trigger, send
from tests.workshop import Workshop


class TestRepeats:
    def test_with_the_same_id_start_one_run(self, trigger: Trigger) -> None:
        runs = {send(trigger, DOWN, "d1") for _ in range(5)}
        assert len(runs) == 1
        assert (Run.objects.count(), ReceivedMessage.objects.count()) == (1, 1)

    def test_do_not_include_a_message_with_another_id(self, trigger: Trigger) -> None:
        assert send(trigger, DOWN, "d1") != send(trigger, DOWN, "d2")

    def test_with_the_same_id_are_recognized_without_a_time_limit(self, trigger: Trigger) -> None:
        run = send(trigger, DOWN, "d1")
        ReceivedMessage.objects.update(received_at=Now() - timedelta(days=400))
        assert send(trigger, DOWN, "d1") == run

    def test_without_an_id_are_recognized_by_their_body_for_the_triggers_number_of_hours(
        self, workshop: Workshop
    ) -> None:
        trigger = add_trigger(workshop, repeat_hours=2)
        run = send(trigger, DOWN)
        ReceivedMessage.objects.update(received_at=Now() - timedelta(minutes=119))
        assert send(trigger, DOWN) == run
        ReceivedMessage.objects.update(received_at=Now() - timedelta(minutes=121))
        later = send(trigger, DOWN)
        assert later not in (run, None)
        assert send(trigger, DOWN) == later

    def test_are_recognized_for_a_day_by_default(self, workshop: Workshop) -> None:
        trigger = add_trigger(workshop)
        run = send(trigger, DOWN)
        ReceivedMessage.objects.update(received_at=Now() - timedelta(hours=23, minutes=59))
        assert send(trigger, DOWN) == run
        ReceivedMessage.objects.update(received_at=Now() - timedelta(hours=24, minutes=1))
        assert send(trigger, DOWN) not in (run, None)

    def test_that_arrive_during_the_check_do_not_start_a_second_run(
        self, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        trigger = add_trigger(workshop)
        found: list[Run | None] = []

        def receive_another(*_: Any) -> None:
            monkeypatch.undo()
            found.append(send(trigger, DOWN))

        monkeypatch.setattr(receiving, "_find_filter", receive_another)
        assert send(trigger, DOWN) == found[0]
        assert Run.objects.count() == 1

    def test_at_another_trigger_are_treated_as_new_messages(
        self, workshop: Workshop, trigger: Trigger
    ) -> None:
        assert send(trigger, DOWN, "d1") != send(add_trigger(workshop), DOWN, "d1")

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize("delivery", ["d1", ""])
    def test_that_arrive_simultaneously_start_one_run(
        self, trigger: Trigger, delivery: str
    ) -> None:
        def send_here(_: int) -> int:
            try:
                run = send(trigger, DOWN, delivery)
                return run.pk if run else 0
            finally:
                connection.close()

        with ThreadPoolExecutor(8) as pool:
            runs = set(pool.map(send_here, range(16)))
        assert runs == {Run.objects.get().pk}
        assert ReceivedMessage.objects.count() == 1

    def test_of_a_message_that_failed_and_was_not_stored_start_a_run(
        self, trigger: Trigger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class LostError(Exception):
            pass

        def fail(*_: Any, **__: Any) -> None:
            raise LostError

        with monkeypatch.context() as patched:
            patched.setattr(ReceivedMessage, "save", fail)
            with pytest.raises(LostError):
                send(trigger, DOWN, "d1")
        assert not Run.objects.exists()
        assert send(trigger, DOWN, "d1") is not None
