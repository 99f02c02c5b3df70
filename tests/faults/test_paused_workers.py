"""SIGSTOP of a worker until another one has taken its run over, then SIGCONT: the paused worker
must not write anything after that."""

from __future__ import annotations

import pytest
from django.db import connection

from agents.accounts.models import AuditEntry
from agents.employees.models import Grant
from agents.runs.models import CallStatus, Run, RunStatus
from tests.awaiting import await_that
from tests.faults.site import Site, effect, read, reload, rename
from tests.processes import RealProcess
from tests.workshop import asking, call, calls, event_types, passes, statuses
from tools.office.records.models import Record

LEASE_LOST = "the lease was lost"


def _await_takeover(run: Run, epoch: int = 2) -> None:
    await_that(
        lambda: reload(run).lease_epoch >= epoch, f"run {run.pk} is driven by another worker"
    )


def _await_late_report() -> None:
    audited = AuditEntry.objects.filter(action="late_report")
    await_that(lambda: audited.all().exists(), "the late report is audited")


def test_a_worker_paused_during_a_model_call_does_not_record_a_second_pass(site: Site) -> None:
    site.have_workers(2)
    site.model.hold()
    run = site.submit_to_model()
    site.model.wait_for_held(1, timeout=30)
    paused_worker = site.pause_driver_of(run)
    _await_takeover(run)
    site.model.wait_for_held(2, timeout=30)
    paused_worker.resume()
    paused_worker.await_line(LEASE_LOST)
    site.model.release()
    site.await_status(run, RunStatus.SUCCEEDED)
    assert len(passes(run)) == 1
    assert event_types(run).count("assistant_message") == 1


def test_a_worker_paused_during_a_read_does_not_report_a_result_when_it_continues(
    site: Site,
) -> None:
    site.have_workers(2)
    site.recorder.hold("read")
    run = site.submit("Read", read("read"))
    site.recorder.await_arrival("read")
    paused_worker = site.pause_driver_of(run)
    site.recorder.await_arrival("read", 2)
    site.recorder.release("read")
    site.await_status(run, RunStatus.SUCCEEDED)
    paused_worker.resume()
    paused_worker.await_line(LEASE_LOST)
    assert event_types(run).count("tool_result") == 1
    assert event_types(run)[-1] == "run_finished"


class TestAWorkerInsideAnOutsideWrite:
    """The worker's report proves the outcome, so it settles the unknown outcome but changes nothing
    else."""

    def test_settles_the_unknown_outcome_with_its_late_report(self, site: Site) -> None:
        site.have_workers(2)
        site.recorder.hold("pay")
        run = site.submit("Pay", effect("pay"))
        site.approve_next(run)
        site.recorder.await_arrival("pay")
        paused_worker = site.pause_driver_of(run)
        site.await_status(run, RunStatus.NEEDS_ATTENTION)
        site.recorder.release("pay")
        paused_worker.resume()
        site.await_status(run, RunStatus.SUCCEEDED)
        (call,) = calls(run)
        assert (call.status, call.attempts) == (CallStatus.SUCCEEDED, 1)
        assert event_types(run).count("call_resolved") == 1
        assert site.recorder.effects[call.idempotency_key] == 1

    def test_changes_nothing_once_a_person_has_resolved_the_outcome(self, site: Site) -> None:
        site.have_workers(2)
        site.recorder.hold("pay")
        run = site.submit("Pay", effect("pay"))
        site.approve_next(run)
        site.recorder.await_arrival("pay")
        paused_worker = site.pause_driver_of(run)
        site.await_status(run, RunStatus.NEEDS_ATTENTION)
        site.resolve(run, "not_done")
        site.await_status(run, RunStatus.SUCCEEDED)
        (before,) = calls(run)
        site.recorder.release("pay")
        paused_worker.resume()
        _await_late_report()
        (after,) = calls(run)
        assert (after.status, after.result, after.finished_at) == (
            before.status,
            before.result,
            before.finished_at,
        )
        assert event_types(run).count("call_resolved") == 2


class TestAWorkerBeforeAnEffect:
    """When the worker continues, its lease has ended and a person may have resolved the outcome as
    not done, so the worker must not perform the effect."""

    def _pause_before_the_effect(self, site: Site, tool: str) -> tuple[Run, RealProcess]:
        site.have_workers(2)
        Grant.objects.create(employee=site.workshop.employee, tool=tool)
        site.recorder.hold("pay-begin")
        run = site.submit("Pay", asking(call(tool, name="pay")))
        site.approve_next(run)
        site.recorder.await_arrival("pay-begin")
        paused_worker = site.pause_driver_of(run)
        site.await_status(run, RunStatus.NEEDS_ATTENTION)
        return run, paused_worker

    def _resume(self, site: Site, paused_worker: RealProcess) -> None:
        site.recorder.release("pay-begin")
        paused_worker.resume()
        _await_late_report()

    @pytest.mark.parametrize("tool", ["probe.dawdle", "probe.dawdlingRead"])
    def test_does_nothing_after_a_person_resolved_the_call_as_not_done(
        self, site: Site, tool: str
    ) -> None:
        run, paused_worker = self._pause_before_the_effect(site, tool)
        site.resolve(run, "not_done")
        site.await_status(run, RunStatus.SUCCEEDED)
        (before,) = calls(run)
        self._resume(site, paused_worker)
        (after,) = calls(run)
        assert not site.recorder.effects
        assert (after.status, after.result) == (before.status, before.result)

    def test_reports_that_nothing_was_done_if_no_person_has_resolved_the_call(
        self, site: Site
    ) -> None:
        run, paused_worker = self._pause_before_the_effect(site, "probe.throughTheDoor")
        self._resume(site, paused_worker)
        assert not site.recorder.effects
        (call,) = calls(run)
        assert call.status == CallStatus.FAILED
        assert "nothing was done" in call.content
        site.await_status(run, RunStatus.SUCCEEDED)


def test_a_transactional_write_happens_once_if_its_worker_is_paused_inside_it(site: Site) -> None:
    """PostgreSQL ends the paused worker's idle transaction, and another worker makes the change; on
    SQLite, the paused worker blocks all other writes."""
    site.have_workers(2)
    site.recorder.hold("inside")
    record = site.workshop.record(name="Old")
    run = site.submit("Rename", rename(record.pk, "New", "inside"))
    site.approve_next(run)
    site.recorder.await_arrival("inside")
    paused_worker = site.driver_of(run)
    paused_worker.pause()
    site.recorder.release("inside")
    if connection.vendor == "postgresql":
        site.await_status(run, RunStatus.SUCCEEDED)
        paused_worker.resume()
        paused_worker.await_line(LEASE_LOST)
    else:
        paused_worker.resume()
    site.await_status(run, RunStatus.SUCCEEDED)
    renamed = Record.objects.get(pk=record.pk)
    assert (renamed.name, renamed.version) == ("New", record.version + 1)
    assert event_types(run).count("tool_start") == event_types(run).count("tool_result") == 1
    assert statuses(run) == [CallStatus.SUCCEEDED]


def test_a_worker_renews_the_new_lease_of_a_run_in_which_its_old_thread_still_hangs(
    site: Site,
) -> None:
    """The only worker was paused until its run was requeued; then two of its threads work on the
    run."""
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
    first_end, epoch = _lease_end(run), reload(run).lease_epoch
    await_that(
        lambda: _lease_end(run) > first_end + 5, "the new lease is renewed again and again", 20
    )
    site.recorder.release("read")
    done = site.await_status(run, RunStatus.SUCCEEDED)
    assert (done.lease_epoch, calls(run)[1].attempts) == (epoch, 1)
    site.recorder.release("pay")
    _await_late_report()
    assert calls(run)[0].status == CallStatus.FAILED


def _lease_end(run: Run) -> float:
    end = reload(run).lease_expires_at
    return end.timestamp() if end else 0.0
