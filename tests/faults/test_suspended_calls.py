"""kill -9 of a worker around suspended calls: no question is asked twice, and no task is delegated
twice or lost."""

from __future__ import annotations

import pytest

from agents.approvals import questions
from agents.employees.models import Employee
from agents.runs import actions
from agents.runs.models import Approval, CallStatus, Run, RunStatus
from tests.awaiting import await_that
from tests.faults.site import Site, has_ended, reload
from tests.features import feature
from tests.workshop import asking, call, calls, event_types, statuses
from tests.workshop.colleagues import (
    ask,
    child_of,
    delegate,
    hire,
    may_ask,
    may_delegate,
    question_of,
)


@pytest.fixture
def kim(site: Site) -> Employee:
    """A colleague whose work waits at a gate, and to whom the workshop's employee may delegate
    tasks."""
    colleague = hire(
        site.workshop, "Kim", asking(call("probe.gate", name="kim")), answer="From Kim."
    )
    may_delegate(site.workshop.employee, colleague)
    may_ask(site.workshop.employee)
    return colleague


def submit_delegation(site: Site) -> tuple[Run, Run]:
    """Submit a run that waits for a colleague; return this run and the colleague's run, which waits
    at its gate."""
    site.recorder.hold("kim")
    run = site.submit("Hand over", asking(delegate()))
    site.await_status(run, RunStatus.WAITING)
    site.recorder.await_arrival("kim")
    return run, child_of(run)


def test_a_question_survives_the_loss_of_every_worker(site: Site, kim: Employee) -> None:
    site.have_workers(1)
    run = site.submit("Ask", asking(ask()))
    site.await_status(run, RunStatus.WAITING)
    site.workers()[0].kill()
    card = question_of(run)
    questions.answer(site.workshop.operator, card.pk, questions.Answer("That one."))
    site.start_another_worker()
    site.await_status(run, RunStatus.SUCCEEDED)
    assert Approval.objects.filter(run=run).count() == 1
    assert (reload(run).crash_count, statuses(run)) == (0, [CallStatus.SUCCEEDED])


def test_a_question_is_asked_once_even_if_its_worker_is_killed_during_a_parallel_read(
    site: Site, kim: Employee
) -> None:
    site.have_workers(2)
    site.recorder.hold("read")
    run = site.submit("Ask and read", asking(ask(), call("probe.gate", name="read")))
    site.recorder.await_arrival("read")
    await_that(
        lambda: CallStatus.SUSPENDED in statuses(run), "the question is asked while the read runs"
    )
    questions.answer(
        site.workshop.operator, question_of(run).pk, questions.Answer("While it runs.")
    )
    site.driver_of(run).kill()
    site.recorder.release("read")
    site.await_status(run, RunStatus.SUCCEEDED)
    assert statuses(run) == [CallStatus.SUCCEEDED, CallStatus.SUCCEEDED]
    assert event_types(run).count("question_asked") == 1


@feature(
    "Questions and delegation",
    "A task is never delegated twice, even if processes are killed",
    "agents/runs/engine/suspension.py",
)
def test_a_parent_run_gets_the_answer_even_if_the_worker_of_its_child_was_killed(
    site: Site, kim: Employee
) -> None:
    site.have_workers(2)
    run, child = submit_delegation(site)
    site.driver_of(child).kill()
    site.recorder.release("kim")
    site.await_status(run, RunStatus.SUCCEEDED)
    assert (reload(child).status, Run.objects.filter(parent=run).count()) == (
        RunStatus.SUCCEEDED,
        1,
    )
    (row,) = calls(run)
    assert row.status == CallStatus.SUCCEEDED
    assert event_types(run).count("tool_result") == 1


def test_a_cancelled_parent_run_cancels_a_child_run_whose_worker_was_killed(
    site: Site, kim: Employee
) -> None:
    site.have_workers(1)
    run, child = submit_delegation(site)
    site.workers()[0].kill()
    actions.cancel(site.workshop.operator, run.pk)
    site.recorder.release("kim")
    await_that(lambda: has_ended(child), "the sweeper ends the child")
    assert (reload(run).status, reload(child).status) == (RunStatus.CANCELLED, RunStatus.CANCELLED)
