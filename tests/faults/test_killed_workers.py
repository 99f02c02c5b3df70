"""kill -9 of a worker, wherever it is: nothing is lost, no write starts twice, and what nobody can know is asked."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import pytest

from agents import runs
from agents.models import Approval, CallStatus, Run, RunStatus, ToolCall
from tests.engine.workshop import calls, event_types, passes, statuses
from tests.faults.awaiting import await_that
from tests.faults.site import Site, effect, fresh, has_ended, read, rename
from tools.records.models import Record

SETTLED_WITHIN_S = 60


@dataclass
class Spots:
    """Runs brought to the spots at which a worker may die; `check` says what must have become of them."""

    site: Site
    runs: dict[str, Run] = field(default_factory=dict)
    record: Record = field(default_factory=Record)
    card: Approval = field(default_factory=Approval)

    def bring(self, spot: str) -> None:
        getattr(self, f"_bring_{spot}")()

    def let_go(self) -> None:
        """Whoever takes over is not held any more."""
        self.site.model.release()
        for gate in ("read", "pay", "inside"):
            self.site.recorder.release(gate)

    def settle(self, spot: str) -> None:
        getattr(self, f"_settle_{spot}")(self.runs[spot])

    def _bring_asking(self) -> None:
        self.site.model.hold()
        self.runs["asking"] = self.site.submit_to_model()
        self.site.model.wait_for_held(1, timeout=30)

    def _settle_asking(self, run: Run) -> None:
        done = self.site.await_status(run, RunStatus.SUCCEEDED, seconds=SETTLED_WITHIN_S)
        assert done.answer == "Done."
        assert len(passes(run)) == 1
        assert len(self.site.model.requests) == 2

    def _bring_reading(self) -> None:
        self.site.recorder.hold("read")
        self.runs["reading"] = self.site.submit("Read", read("read"))
        self.site.recorder.await_arrival("read")

    def _settle_reading(self, run: Run) -> None:
        self.site.await_status(run, RunStatus.SUCCEEDED, seconds=SETTLED_WITHIN_S)
        (call,) = calls(run)
        assert (call.status, call.attempts) == (CallStatus.SUCCEEDED, 2)
        assert len(passes(run)) == 2

    def _bring_paying(self) -> None:
        self.site.recorder.hold("pay")
        self.runs["paying"] = run = self.site.submit("Pay", effect("pay"))
        self.site.approve_next(run)
        self.site.recorder.await_arrival("pay")

    def _settle_paying(self, run: Run) -> None:
        """The effect was taken, and nobody reported it: a person is asked, and the run goes on."""
        self.site.await_status(run, RunStatus.NEEDS_ATTENTION, seconds=SETTLED_WITHIN_S)
        assert statuses(run) == [CallStatus.OUTCOME_UNKNOWN]
        self.site.resolve(run, "succeeded")
        self.site.await_status(run, RunStatus.SUCCEEDED)
        (call,) = calls(run)
        assert (call.status, call.attempts) == (CallStatus.SUCCEEDED, 1)
        assert self.site.recorder.effects == {call.idempotency_key: 1}

    def _bring_renaming(self) -> None:
        self.site.recorder.hold("inside")
        self.record = self.site.workshop.record(name="Old")
        self.runs["renaming"] = run = self.site.submit("Rename", rename(self.record.pk, "New", "inside"))
        self.site.approve_next(run)
        self.site.recorder.await_arrival("inside")

    def _settle_renaming(self, run: Run) -> None:
        self.site.await_status(run, RunStatus.SUCCEEDED, seconds=SETTLED_WITHIN_S)
        (call,) = calls(run)
        assert (call.status, call.attempts) == (CallStatus.SUCCEEDED, 1)
        renamed = Record.objects.get(pk=self.record.pk)
        assert (renamed.name, renamed.version) == ("New", self.record.version + 1)
        assert event_types(run).count("tool_start") == 1

    def _bring_waiting(self) -> None:
        self.runs["waiting"] = run = self.site.submit("Wait", effect("later"))
        self.card = self.site.await_card(run)

    def _settle_waiting(self, run: Run) -> None:
        assert fresh(run).crash_count == 0
        self.site.workshop.approve(self.card)
        self.site.await_status(run, RunStatus.SUCCEEDED, seconds=SETTLED_WITHIN_S)
        (call,) = calls(run)
        assert call.attempts == 1
        assert self.site.recorder.effects[call.idempotency_key] == 1


@pytest.fixture
def spots(site: Site) -> Spots:
    return Spots(site)


@pytest.mark.parametrize("spot", ["asking", "reading", "paying", "renaming", "waiting"])
def test_a_killed_worker_is_replaced_and_the_run_ends_rightly(spots: Spots, spot: str) -> None:
    site = spots.site
    site.start_workers(1)
    spots.bring(spot)
    site.installation.process("worker1").kill()
    spots.let_go()
    if spot == "renaming":
        await_that(lambda: _name_of(spots.record) == "Old", "the half-done rename is rolled back", 5)
    site.start_another_worker()
    spots.settle(spot)


def test_a_worker_that_is_there_already_takes_over_what_a_killed_one_did(spots: Spots) -> None:
    """Everything at once: the worker that drives each run is killed as soon as all stand at their spots."""
    site = spots.site
    site.start_workers(2)
    for spot in ("asking", "reading", "paying"):
        spots.bring(spot)
    drivers = {site.driver_of(run).pid: site.driver_of(run) for run in spots.runs.values()}
    for driver in list(drivers.values())[:1]:
        driver.kill()
    if len(drivers) == 2:
        site.start_another_worker()
        for driver in list(drivers.values())[1:]:
            driver.kill()
    spots.let_go()
    for spot in spots.runs:
        spots.settle(spot)


@pytest.mark.alone
def test_at_real_settings_a_killed_worker_costs_less_than_a_minute(spots: Spots) -> None:
    site = spots.site
    site.installation.timing_scale = 1.0
    site.start_workers(1)
    for spot in ("waiting", "asking", "reading", "paying", "renaming"):
        spots.bring(spot)
    killed = time.monotonic()
    site.installation.process("worker1").kill()
    spots.let_go()
    site.start_another_worker()
    for spot in ("waiting", "renaming", "reading", "asking", "paying"):
        spots.settle(spot)
    took = time.monotonic() - killed
    print(f"all settled {took:.1f} s after the kill")
    assert took < SETTLED_WITHIN_S


def test_a_write_that_a_person_says_was_not_done_may_be_asked_for_again_on_a_new_card(site: Site) -> None:
    site.start_workers(1)
    site.recorder.hold("pay")
    run = site.submit("Pay", effect("pay"), effect("pay"))
    first = site.approve_next(run)
    site.recorder.await_arrival("pay")
    site.installation.process("worker1").kill()
    site.recorder.release("pay")
    site.start_another_worker()
    site.await_status(run, RunStatus.NEEDS_ATTENTION)
    site.resolve(run, "not_done")
    second = site.approve_next(run)
    assert second.tool_call_id != first.tool_call_id
    site.await_status(run, RunStatus.SUCCEEDED)
    assert [call.attempts for call in calls(run)] == [1, 1]
    assert sorted(site.recorder.effects.values()) == [1, 1]


class TestBetweenDecisionAndStart:
    """The worker hears nothing of the decision: it stands still from before it, and dies after it."""

    @pytest.mark.parametrize("grace_s", [0, 2])
    def test_the_next_worker_starts_the_call_once_and_not_before_its_grace_is_over(
        self, site: Site, grace_s: int
    ) -> None:
        site.start_workers(1)
        record = site.workshop.record(name="Old")
        outside = site.submit("Pay", effect("pay"))
        inside = site.submit("Rename", rename(record.pk, "New"))
        cards = [site.await_card(outside), site.await_card(inside)]
        worker = site.installation.process("worker1")
        worker.pause()
        for card in cards:
            site.workshop.approve(card, grace_s=grace_s)
        worker.kill()
        site.start_another_worker()
        for run in (outside, inside):
            site.await_status(run, RunStatus.SUCCEEDED)
        assert list(site.recorder.effects.values()) == [1]
        assert (_name_of(record), Record.objects.get(pk=record.pk).version) == ("New", record.version + 1)
        for card in cards:
            consumed = Approval.objects.get(pk=card.pk)
            call = ToolCall.objects.get(pk=card.tool_call_id)
            assert call.attempts == 1
            assert consumed.start_after and call.started_at and call.started_at >= consumed.start_after

    def test_an_approval_taken_back_while_no_worker_lived_starts_nothing(self, site: Site) -> None:
        site.start_workers(1)
        run = site.submit("Pay", effect("pay"))
        card = site.await_card(run)
        site.installation.process("worker1").kill()
        site.workshop.approve(card, grace_s=30)
        again = site.workshop.undo(card)
        site.start_another_worker()
        site.workshop.deny(again)
        site.await_status(run, RunStatus.SUCCEEDED)
        assert statuses(run) == [CallStatus.DENIED]
        assert not site.recorder.effects


def test_a_run_cancelled_while_its_worker_lies_dead_ends_cancelled_and_keeps_the_unknown_visible(site: Site) -> None:
    site.start_workers(1)
    site.recorder.hold("pay")
    run = site.submit("Pay", effect("pay"))
    site.approve_next(run)
    site.recorder.await_arrival("pay")
    site.installation.process("worker1").kill()
    runs.cancel(site.workshop.operator, run.pk)
    site.recorder.release("pay")
    await_that(lambda: has_ended(run), "the sweeper ends the run")
    assert fresh(run).status == RunStatus.CANCELLED
    assert statuses(run) == [CallStatus.OUTCOME_UNKNOWN]
    site.resolve(run, "succeeded")
    assert fresh(run).status == RunStatus.CANCELLED


def _name_of(record: Record) -> str:
    return Record.objects.get(pk=record.pk).name
