"""One engine sends through all channels: each test runs for every channel, with the channel's own
server and tables."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from agents.deliveries.channels import CHANNELS
from agents.deliveries.engine import _send_batch, _take_batch, send_next
from agents.deliveries.outboxes import OUTBOXES
from agents.deliveries.receivers import MAX_AT_ONE_HOST, Receivers
from agents.platform import notify
from agents.platform.refusals import Conflict
from agents.runs.engine.timing import timing
from tests.awaiting import await_that
from tests.deliveries.rigs import Rig
from tests.features import feature
from tests.queued_jobs import take_jobs
from tests.workshop import all_at_once, beside

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]


class TestEveryChannel:
    @feature(
        "Agents elsewhere",
        "One engine sends by mail, push, chat and webhook, and records each try before it begins",
        "agents/deliveries/engine.py",
    )
    def test_records_an_attempt_before_sending(self, rig: Rig) -> None:
        rig.write()
        assert rig.delivery.tries == 0, "control"
        rig.hold()
        with beside(lambda: send_next(rig.kind)):
            await_that(lambda: rig.count() == 1, "the message is on its way")
            begun = rig.delivery
            assert (begun.status, begun.tries) == ("waiting", 1)
            assert begun.due_at > timezone.now()
            assert not send_next(rig.kind), "nobody else sends it meanwhile"
            rig.release()
        assert (rig.delivery.status, rig.delivery.tries) == ("sent", 1)

    def test_sends_a_killed_senders_delivery_after_the_attempt_times_out(self, rig: Rig) -> None:
        rig.write()
        assert _take_batch(rig.kind) is not None  # the sender is killed before it sends
        over = rig.delivery.due_at - timezone.now()
        wanted = timedelta(seconds=rig.outbox.try_s * timing().scale)
        assert timedelta() < over <= wanted
        assert not send_next(rig.kind), "its attempt has not ended"
        assert rig.count() == 0
        rig.let_all_be_due()
        assert send_next(rig.kind)
        assert rig.count() == 1
        assert (rig.delivery.status, rig.delivery.tries) == ("sent", 2)

    def test_allows_30_seconds_for_an_attempt_and_60_seconds_for_a_webhooks_attempt(
        self, rig: Rig
    ) -> None:
        assert rig.outbox.try_s == (60 if rig.kind == "webhook" else 30)

    def test_retries_a_failed_delivery_after_a_pause(self, rig: Rig) -> None:
        rig.write()
        rig.answer(rig.bad)
        assert send_next(rig.kind)
        failed = rig.delivery
        assert (failed.status, failed.tries, bool(failed.problem)) == ("waiting", 1, True)
        assert failed.due_at > timezone.now()
        assert rig.receivers.objects.get().failing_since is not None
        rig.answer(rig.good)
        before = rig.count()
        assert not send_next(rig.kind), "the delivery is pausing"
        rig.let_all_be_due()
        assert send_next(rig.kind)
        assert rig.count() == before + 1
        receiver = rig.receivers.objects.get()
        assert (rig.delivery.status, receiver.failing_since, receiver.problem) == ("sent", None, "")

    @pytest.mark.parametrize("is_last", [True, False])
    def test_gives_up_a_delivery_only_after_its_last_attempt(self, rig: Rig, is_last: bool) -> None:
        rig.write()
        rig.answer(rig.bad)
        if is_last:
            rig.use_up()
        assert send_next(rig.kind)
        assert rig.delivery.status == ("failed" if is_last else "waiting")
        assert (rig.delivery.ended_at is not None) == is_last

    @feature(
        "Agents elsewhere",
        "A delivery by an unknown kind of channel is refused, and never sent by another",
        "agents/deliveries/channels/__init__.py",
    )
    def test_refuses_a_delivery_of_an_unknown_kind(
        self, rig: Rig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rig.write()
        with monkeypatch.context() as patched:
            patched.delitem(CHANNELS, rig.kind)
            assert send_next(rig.kind)
        problem = f"this version of Gadget cannot send by '{rig.kind}'"
        assert (rig.delivery.status, rig.delivery.problem) == ("failed", problem)
        assert rig.count() == 0
        rig.send_again()
        rig.let_all_be_due()
        assert send_next(rig.kind), "control"
        assert rig.count() == 1

    def test_refuses_a_kind_without_an_outbox(self, rig: Rig) -> None:
        rig.write()
        with pytest.raises(KeyError):
            send_next("pigeon")
        assert rig.delivery.tries == 0
        assert send_next(rig.kind), "control"

    def test_resets_the_attempts_of_a_delivery_that_is_sent_again(self, rig: Rig) -> None:
        rig.write()
        with pytest.raises(Conflict):
            rig.send_again()  # the delivery is still waiting
        rig.use_up()
        rig.answer(rig.bad)
        assert send_next(rig.kind)
        rig.answer(rig.good)
        before = rig.count()
        assert not send_next(rig.kind), "a failed message is not due"
        rig.send_again()
        assert (rig.delivery.status, rig.delivery.tries, rig.delivery.ended_at) == (
            "waiting",
            0,
            None,
        )
        rig.let_all_be_due()
        assert send_next(rig.kind)
        assert rig.count() == before + 1
        assert (rig.delivery.status, rig.delivery.tries) == ("sent", 1)

    def test_queues_a_job_if_a_delivery_is_sent_again(self, rig: Rig, redis_url: str) -> None:
        rig.write()
        rig.use_up()
        rig.answer(rig.bad)
        assert send_next(rig.kind)
        take_jobs(redis_url)
        rig.send_again()
        assert [job.task for job in take_jobs(redis_url)] == [notify.DELIVERY_JOB]

    def test_limits_simultaneous_deliveries_per_host_without_delaying_other_hosts(
        self, rig: Rig
    ) -> None:
        added = [rig.add_receiver() for _ in range(MAX_AT_ONE_HOST + 1)]
        rig.move(added[-1])
        rig.write()
        here = rig.model.objects.exclude(**{rig.outbox.receiver: added[-1]})
        here.update(due_at=timezone.now() - timedelta(hours=1))
        busy = Receivers()
        taken = [_take_batch(rig.kind, busy) for _ in range(MAX_AT_ONE_HOST + 1)]
        assert all(taken)
        assert added[-1].pk in {batch.receiver.pk for batch in taken if batch}
        assert _take_batch(rig.kind, busy) is None, "the host is busy"
        assert taken[0] is not None
        busy.leave(taken[0])
        assert _take_batch(rig.kind, busy) is not None

    def test_sends_only_one_delivery_to_a_receiver_at_a_time(self, rig: Rig) -> None:
        rig.write()
        busy = Receivers()
        first = _take_batch(rig.kind, busy)
        assert first is not None
        rig.write()
        assert _take_batch(rig.kind, busy) is None
        assert not busy.enter(first), "another thread has just begun"
        busy.leave(first)
        rig.outbox.release(first)
        second = _take_batch(rig.kind, busy)
        assert second is not None
        assert second.ids != first.ids

    def test_serves_healthy_receivers_first(self, rig: Rig) -> None:
        added = rig.add_receiver()
        rig.write()
        rig.receivers.objects.exclude(pk=added.pk).update(failing_since=timezone.now())
        rig.model.objects.exclude(**{rig.outbox.receiver: added}).update(
            due_at=timezone.now() - timedelta(hours=1)
        )
        first = _take_batch(rig.kind)
        assert first is not None
        assert first.receiver.pk == added.pk
        assert _take_batch(rig.kind, only_healthy=True) is None
        assert _take_batch(rig.kind) is not None, "control"

    def test_retries_after_an_internal_failure(
        self, rig: Rig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rig.write()
        with monkeypatch.context() as patched:
            patched.setattr(type(CHANNELS[rig.kind]), "send", lambda *_: 1 / 0)
            assert send_next(rig.kind)
        assert (rig.delivery.status, rig.delivery.tries) == ("waiting", 1)
        assert rig.delivery.problem == "it could not be sent; the log of the workers says why"
        rig.let_all_be_due()
        assert send_next(rig.kind)
        assert rig.delivery.status == "sent"

    def test_sends_each_delivery_once_if_many_senders_work_at_the_same_time(self, rig: Rig) -> None:
        for _ in range(2):
            rig.add_receiver()
        for _ in range(4):
            rig.write()

        def send_all() -> None:
            while rig.model.objects.filter(status="waiting").exists():
                # Act like a separate process, which does not know the busy receivers of this one.
                batch = _take_batch(rig.kind)
                if batch is not None:
                    _send_batch(batch)
                    rig.outbox.release(batch)

        all_at_once([send_all] * 4)
        ended = rig.model.objects.values_list("status", "tries")
        assert len(ended) >= 4
        assert set(ended) == {("sent", 1)}


def test_outboxes_and_channels_have_the_same_kinds() -> None:
    assert {kind: outbox.kind for kind, outbox in OUTBOXES.items()} == {
        kind: kind for kind in CHANNELS
    }
