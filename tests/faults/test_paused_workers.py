"""SIGSTOP of a worker until another has taken its run over, then SIGCONT: the zombie writes nothing more."""

from __future__ import annotations

import pytest
from django.db import connection

from agents.accounts.models import AuditEntry
from agents.employees.models import Grant
from agents.runs.models import CallStatus, Run, RunStatus
from tests.faults.awaiting import await_that
from tests.faults.site import Site, effect, fresh, read, rename
from tests.processes import RealProcess
from tests.workshop import asking, call, calls, event_types, passes, statuses
from tools.records.models import Record

LEASE_LOST = "the lease was lost"


def _await_takeover(run: Run, epoch: int = 2) -> None:
    await_that(lambda: fresh(run).lease_epoch >= epoch, f"run {run.pk} is driven by somebody else")


def test_one_that_asked_the_model_records_no_second_pass(site: Site) -> None:
    site.have_workers(2)
    site.model.hold()
    run = site.submit_to_model()
    site.model.wait_for_held(1, timeout=30)
    zombie = site.pause_driver_of(run)
    _await_takeover(run)
    site.model.wait_for_held(2, timeout=30)
    zombie.resume()
    zombie.await_line(LEASE_LOST)
    site.model.release()
    site.await_status(run, RunStatus.SUCCEEDED)
    assert len(passes(run)) == 1
    assert event_types(run).count("assistant_message") == 1


def test_one_that_executed_a_read_reports_nothing(site: Site) -> None:
    site.have_workers(2)
    site.recorder.hold("read")
    run = site.submit("Read", read("read"))
    site.recorder.await_arrival("read")
    zombie = site.pause_driver_of(run)
    site.recorder.await_arrival("read", 2)
    site.recorder.release("read")
    site.await_status(run, RunStatus.SUCCEEDED)
    zombie.resume()
    zombie.await_line(LEASE_LOST)
    assert event_types(run).count("tool_result") == 1
    assert event_types(run)[-1] == "run_finished"


class TestOneThatExecutedAWriteOutside:
    """Its report is the proof of what happened, so it settles the unknown call, and nothing else."""

    def test_settles_the_unknown_outcome_by_its_late_report(self, site: Site) -> None:
        site.have_workers(2)
        site.recorder.hold("pay")
        run = site.submit("Pay", effect("pay"))
        site.approve_next(run)
        site.recorder.await_arrival("pay")
        zombie = site.pause_driver_of(run)
        site.await_status(run, RunStatus.NEEDS_ATTENTION)
        site.recorder.release("pay")
        zombie.resume()
        site.await_status(run, RunStatus.SUCCEEDED)
        (call,) = calls(run)
        assert (call.status, call.attempts) == (CallStatus.SUCCEEDED, 1)
        assert event_types(run).count("call_resolved") == 1
        assert site.recorder.effects[call.idempotency_key] == 1

    def test_changes_nothing_that_a_person_has_settled_before(self, site: Site) -> None:
        site.have_workers(2)
        site.recorder.hold("pay")
        run = site.submit("Pay", effect("pay"))
        site.approve_next(run)
        site.recorder.await_arrival("pay")
        zombie = site.pause_driver_of(run)
        site.await_status(run, RunStatus.NEEDS_ATTENTION)
        site.resolve(run, "not_done")
        site.await_status(run, RunStatus.SUCCEEDED)
        (before,) = calls(run)
        site.recorder.release("pay")
        zombie.resume()
        audited = AuditEntry.objects.filter(action="late_report")
        await_that(lambda: audited.all().exists(), "the late report is audited")
        (after,) = calls(run)
        assert (after.status, after.result, after.finished_at) == (before.status, before.result, before.finished_at)
        assert event_types(run).count("call_resolved") == 2


class TestOneThatStoodBeforeItsEffect:
    """The lease may be over when it wakes, and a person may have said that nothing was done: so nothing is done."""

    def _stand_before_the_effect(self, site: Site, tool: str) -> tuple[Run, RealProcess]:
        site.have_workers(2)
        Grant.objects.create(employee=site.workshop.employee, tool=tool)
        site.recorder.hold("pay-begin")
        run = site.submit("Pay", asking(call(tool, name="pay")))
        site.approve_next(run)
        site.recorder.await_arrival("pay-begin")
        zombie = site.pause_driver_of(run)
        site.await_status(run, RunStatus.NEEDS_ATTENTION)
        return run, zombie

    def _wake(self, site: Site, zombie: RealProcess) -> None:
        site.recorder.release("pay-begin")
        zombie.resume()
        audited = AuditEntry.objects.filter(action="late_report")
        await_that(lambda: audited.all().exists(), "the late report is audited")

    @pytest.mark.parametrize("tool", ["probe.dawdle", "probe.dawdlingRead"])
    def test_does_not_contradict_the_person_who_said_not_done(self, site: Site, tool: str) -> None:
        run, zombie = self._stand_before_the_effect(site, tool)
        site.resolve(run, "not_done")
        site.await_status(run, RunStatus.SUCCEEDED)
        (before,) = calls(run)
        self._wake(site, zombie)
        (after,) = calls(run)
        assert not site.recorder.effects
        assert (after.status, after.result) == (before.status, before.result)

    def test_says_that_nothing_was_done_before_anybody_has_looked(self, site: Site) -> None:
        run, zombie = self._stand_before_the_effect(site, "probe.throughTheDoor")
        self._wake(site, zombie)
        assert not site.recorder.effects
        (call,) = calls(run)
        assert call.status == CallStatus.FAILED
        assert "nothing was done" in call.content
        site.await_status(run, RunStatus.SUCCEEDED)


def test_one_that_stood_inside_a_transactional_write_changes_nothing_twice(site: Site) -> None:
    """PostgreSQL ends its idle transaction and another worker does it; SQLite lets nobody else write meanwhile."""
    site.have_workers(2)
    site.recorder.hold("inside")
    record = site.workshop.record(name="Old")
    run = site.submit("Rename", rename(record.pk, "New", "inside"))
    site.approve_next(run)
    site.recorder.await_arrival("inside")
    zombie = site.driver_of(run)
    zombie.pause()
    site.recorder.release("inside")
    if connection.vendor == "postgresql":
        site.await_status(run, RunStatus.SUCCEEDED)
        zombie.resume()
        zombie.await_line(LEASE_LOST)
    else:
        zombie.resume()
    site.await_status(run, RunStatus.SUCCEEDED)
    renamed = Record.objects.get(pk=record.pk)
    assert (renamed.name, renamed.version) == ("New", record.version + 1)
    assert event_types(run).count("tool_start") == event_types(run).count("tool_result") == 1
    assert statuses(run) == [CallStatus.SUCCEEDED]


def test_one_that_takes_its_own_run_up_again_renews_the_new_lease_while_its_old_thread_still_hangs(site: Site) -> None:
    """The only worker stood still for so long that its run was queued again: two of its threads know the run now."""
    site.have_workers(1)
    site.recorder.hold("pay")
    site.recorder.hold("read")
    run = site.submit("Pay and read", effect("pay"), read("read"))
    site.approve_next(run)
    site.recorder.await_arrival("pay")
    worker = site.pause_driver_of(run)
    site.await_status(run, RunStatus.QUEUED)
    worker.resume()
    site.await_status(run, RunStatus.NEEDS_ATTENTION)
    site.resolve(run, "not_done")
    site.recorder.await_arrival("read")
    first_end, epoch = _lease_end(run), fresh(run).lease_epoch
    await_that(lambda: _lease_end(run) > first_end + 5, "the new lease is renewed again and again", 20)
    site.recorder.release("read")
    done = site.await_status(run, RunStatus.SUCCEEDED)
    assert (done.lease_epoch, calls(run)[1].attempts) == (epoch, 1)
    site.recorder.release("pay")
    worker.await_line(LEASE_LOST)


def _lease_end(run: Run) -> float:
    end = fresh(run).lease_expires_at
    return end.timestamp() if end else 0.0
