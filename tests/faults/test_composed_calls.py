"""kill -9 of a worker inside a call that makes other calls: finished calls keep their results, and
nothing is done twice."""

from __future__ import annotations

import pytest

from agents.employees.models import Grant
from agents.runs.models import CallStatus, Run, RunStatus
from tests.faults.site import Site, reload
from tests.features import feature
from tests.workshop import asking, call, calls, error_code, event_types, statuses
from tools.office.records.models import Record

DONE = CallStatus.SUCCEEDED


@pytest.fixture
def composing(site: Site) -> Site:
    """A site with two workers, and an employee that may use tools made of other tools."""
    names = ["probe.composed", "probe.relay"]
    Grant.objects.bulk_create([Grant(employee=site.workshop.employee, tool=name) for name in names])
    site.have_workers(2)
    return site


def submit_inner(site: Site, tool: str) -> Run:
    """Submit a run whose only call makes an inner call to `tool`, which waits at the gate
    "inner"."""
    site.recorder.hold("inner")
    params = {"inner": tool, "params": {"name": "inner"}, "gate": "outer"}
    run = site.submit("Compose", asking(call("probe.composed", **params)))
    site.recorder.await_arrival("inner")
    return run


def submit_relay(site: Site, *gates: str) -> tuple[Run, Record]:
    """Hold these gates, and submit a run whose one call is a recipe; return the run, and the record
    that the recipe renames."""
    for gate in gates:
        site.recorder.hold(gate)
    record = site.workshop.record(name="Old")
    return site.submit("Relay", asking(call("probe.relay", record_id=record.pk))), record


def kill_driver(site: Site, run: Run, *gates: str) -> None:
    """Kill the worker that drives the run, and release these gates for the next worker."""
    site.driver_of(run).kill()
    for gate in gates:
        site.recorder.release(gate)


def assert_renamed_once(record: Record) -> None:
    renamed = Record.objects.get(pk=record.pk)
    assert (renamed.name, renamed.version) == ("New", record.version + 1)


def attempts(run: Run) -> list[int]:
    return [row.attempts for row in calls(run)]


class TestAnInnerCall:
    @pytest.mark.parametrize("tool", ["probe.gate", "probe.draw"])
    def test_fails_if_its_worker_is_killed_and_is_repeated_by_its_caller(
        self, composing: Site, tool: str
    ) -> None:
        run = submit_inner(composing, tool)
        assert statuses(run) == [CallStatus.EXECUTING, CallStatus.EXECUTING]
        kill_driver(composing, run, "inner")
        composing.await_status(run, RunStatus.SUCCEEDED)
        parent, lost, repeated = calls(run)
        assert (parent.status, parent.attempts) == (DONE, 2)
        assert (lost.status, error_code(lost), lost.attempts) == (
            CallStatus.FAILED,
            "WORKER_LOST",
            1,
        )
        assert (repeated.status, repeated.attempts, repeated.parent_call_id) == (DONE, 1, parent.pk)
        assert (
            event_types(run).count("tool_start") == event_types(run).count("tool_result") + 1 == 4
        )

    def test_keeps_its_result_if_its_caller_is_lost_after_the_inner_call_has_ended(
        self, composing: Site
    ) -> None:
        composing.recorder.hold("outer")
        run = submit_inner(composing, "probe.gate")
        composing.recorder.release("inner")
        composing.recorder.await_arrival("outer")
        _, first = calls(run)
        kill_driver(composing, run, "outer")
        composing.await_status(run, RunStatus.SUCCEEDED)
        parent, same, repeated = calls(run)
        assert (parent.status, parent.attempts, repeated.status) == (DONE, 2, DONE)
        assert (same.status, same.result, same.finished_at) == (
            DONE,
            first.result,
            first.finished_at,
        )


class TestARecipe:
    def test_repeats_a_read_that_was_lost_with_its_worker(self, composing: Site) -> None:
        run, record = submit_relay(composing, "first")
        composing.recorder.await_arrival("first")
        kill_driver(composing, run, "first")
        composing.approve_next(run)
        composing.await_status(run, RunStatus.SUCCEEDED)
        assert (statuses(run), attempts(run)) == ([DONE] * 4, [1, 2, 1, 1])
        assert_renamed_once(record)

    def test_completes_a_rolled_back_transactional_step_once(self, composing: Site) -> None:
        run, record = submit_relay(composing, "second")
        composing.approve_next(run)
        composing.recorder.await_arrival("second")
        kill_driver(composing, run, "second")
        composing.await_status(run, RunStatus.SUCCEEDED)
        assert (statuses(run), attempts(run)) == ([DONE] * 4, [1, 1, 1, 1])
        assert composing.recorder.arrivals["second"] == 2
        assert event_types(run).count("approval_requested") == 1
        assert_renamed_once(record)

    def test_continues_after_a_decision_even_if_all_workers_were_killed_before_it(
        self, composing: Site
    ) -> None:
        run, record = submit_relay(composing)
        card = composing.await_card(run)
        for worker in composing.workers():
            worker.kill()
        composing.workshop.approve(card)
        composing.start_another_worker()
        composing.await_status(run, RunStatus.SUCCEEDED)
        assert (statuses(run), attempts(run)) == ([DONE] * 4, [1, 1, 1, 1])
        assert (reload(run).crash_count, composing.recorder.arrivals["first"]) == (0, 1)
        assert_renamed_once(record)

    def test_waits_at_the_card_of_its_step_after_its_worker_was_killed(
        self, composing: Site
    ) -> None:
        run, record = submit_relay(composing, "between first and second")
        composing.recorder.await_arrival("between first and second")
        kill_driver(composing, run, "between first and second")
        composing.await_card(run)
        composing.await_status(run, RunStatus.WAITING)
        assert statuses(run) == [CallStatus.SUSPENDED, DONE, CallStatus.AWAITING_APPROVAL]
        assert Record.objects.get(pk=record.pk).name == "Old"

    def test_repeats_only_the_step_in_which_its_worker_was_killed(self, composing: Site) -> None:
        run, record = submit_relay(composing, "third")
        composing.approve_next(run)
        composing.recorder.await_arrival("third")
        kill_driver(composing, run, "third")
        composing.await_status(run, RunStatus.SUCCEEDED)
        assert (statuses(run), attempts(run)) == ([DONE] * 4, [1, 1, 1, 2])
        assert_renamed_once(record)

    @feature(
        "Tool contract",
        "A worker that dies in an inner call, in a recipe's step or between two steps "
        "loses nothing and repeats nothing",
        "agents/runs/engine/ending.py",
    )
    @pytest.mark.parametrize("place", ["between first and second", "between second and third"])
    def test_continues_after_a_kill_between_two_steps(self, composing: Site, place: str) -> None:
        """The worker is killed when one step has ended and the next does not exist yet."""
        run, record = submit_relay(composing, place)
        if place == "between second and third":
            composing.approve_next(run)
        composing.recorder.await_arrival(place)
        before = calls(run)
        assert {row.status for row in before[1:]} == {DONE}
        kill_driver(composing, run, place)
        if place == "between first and second":
            composing.approve_next(run)
        composing.await_status(run, RunStatus.SUCCEEDED)
        assert (statuses(run), attempts(run)) == ([DONE] * 4, [1, 1, 1, 1])
        assert [row.finished_at for row in calls(run)[1 : len(before)]] == [
            row.finished_at for row in before[1:]
        ]
        assert_renamed_once(record)
