"""A delegated task is a separate run, and its outcome is the result of the delegating call."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from agents.employees.models import Employee, Grant, ProviderKind
from agents.platform.refusals import Conflict
from agents.runs import actions
from agents.runs.engine.suspension import collect_delegate_results
from agents.runs.models import CallStatus, ExitReason, Origin, Run, RunStatus
from agents.worker.sweeper import sweep_once
from gadget_site.backup.restored import recover_runs
from tests.features import feature
from tests.model_server import Call, ModelServer, Response
from tests.recorder import Recorder
from tests.scripts import write_script
from tests.workshop import (
    Workshop,
    again,
    all_at_once,
    asking,
    build_workshop,
    call,
    calls,
    data_of,
    die_while_executing,
    error_code,
    event_types,
    lose_worker,
    payloads,
    statuses,
)
from tests.workshop.colleagues import (
    DELEGATE,
    answer,
    ask,
    child_of,
    delegate,
    drive_all,
    hire,
    may_delegate,
    question_of,
)
from tests.workshop.invariants import assert_invariants

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("conversation_cache_is_checked"),
]


@pytest.fixture
def kim(workshop: Workshop) -> Employee:
    """A colleague; the workshop's employee may delegate tasks to Kim, and its script delegates
    one.
    """
    colleague = hire(
        workshop,
        "Kim",
        asking(call("utility.calculate", operation="add", a=1, b=2)),
        answer="It is 3.",
    )
    may_delegate(workshop.employee, colleague)
    workshop.play(asking(delegate("Kim", "Add one and two")))
    return colleague


def find_refusal_code(workshop: Workshop) -> str:
    """Run the workshop's task, and return the error code with which its delegation was refused."""
    run = workshop.work()
    assert not Run.objects.filter(parent=run).exists()
    assert calls(run)[-1].status == CallStatus.FAILED
    return error_code(calls(run)[-1])


class TestADelegatedTask:
    def test_is_a_separate_run_while_its_parent_does_not_occupy_a_worker(
        self, workshop: Workshop, kim: Employee
    ) -> None:
        run = workshop.work()
        assert (run.status, run.lease_owner, statuses(run)) == (
            RunStatus.WAITING,
            "",
            [CallStatus.SUSPENDED],
        )
        child = child_of(run)
        assert (child.employee, child.origin, child.task, child.depth) == (
            kim,
            Origin.DELEGATE,
            "Add one and two",
            1,
        )
        assert (child.created_by, child.parent_call) == (run.created_by, calls(run)[0])
        assert (child.status, child.mode, child.max_passes) == (
            RunStatus.QUEUED,
            kim.mode,
            kim.max_passes,
        )
        assert payloads(child, "run_started") == [{"by": "Dana", "parent_run_id": str(run.pk)}]
        assert payloads(run, "tool_progress")[0]["run_id"] == str(child.pk)

    @feature(
        "Questions and delegation",
        "A delegated task is a run of its own, and its answer becomes the call's result",
        "agents/runs/engine/suspension.py",
    )
    def test_ends_with_the_answer_as_the_result(self, workshop: Workshop, kim: Employee) -> None:
        run = workshop.work()
        child = workshop.drive(child_of(run))
        assert (child.status, child.answer) == (RunStatus.SUCCEEDED, "It is 3.")
        assert workshop.drive(run).status == RunStatus.SUCCEEDED
        assert data_of(calls(run)[0]) == {
            "run_id": str(child.pk),
            "employee": "Kim",
            "answer": "It is 3.",
            "exit_reason": "final_answer",
        }
        assert event_types(run).count("tool_result") == 1

    def test_has_its_result_collected_by_the_sweeper_if_the_hint_is_lost(
        self, workshop: Workshop, kim: Employee
    ) -> None:
        run = workshop.work()
        workshop.drive(child_of(run))
        assert again(run).status == RunStatus.WAITING
        sweep_once()
        assert (again(run).status, statuses(run)) == (RunStatus.QUEUED, [CallStatus.SUCCEEDED])
        assert not collect_delegate_results(run.pk)

    def test_that_fails_makes_the_call_fail(self, workshop: Workshop, kim: Employee) -> None:
        kim.is_active = True
        kim.model = write_script("scripts: nonsense")
        kim.save()
        run = drive_all(workshop, workshop.submit())
        assert run.status == RunStatus.SUCCEEDED
        (row,) = calls(run)
        assert (row.status, error_code(row)) == (CallStatus.FAILED, "SUBAGENT_FAILED")
        assert "Kim did not finish the task" in row.content
        assert child_of(run).problem in row.content

    def test_that_runs_out_of_passes_without_an_answer_makes_the_call_fail(
        self, workshop: Workshop, kim: Employee
    ) -> None:
        kim.max_passes, kim.model = 1, "fake"
        kim.save()
        calculate = Call("utility.calculate", {"operation": "add", "a": 1, "b": 2})
        with ModelServer(script=(Response(calls=(calculate,)),)) as server:
            kim.provider.kind, kim.provider.base_url = ProviderKind.OPENAI, server.url
            kim.provider.save()
            run = drive_all(workshop, workshop.submit())
        child = child_of(run)
        assert (child.status, child.exit_reason) == (RunStatus.FAILED, ExitReason.MAX_PASSES)
        (row,) = calls(run)
        assert (row.status, error_code(row)) == (CallStatus.FAILED, "SUBAGENT_FAILED")
        assert "Kim did not finish the task: out of passes" in row.content

    def test_that_a_person_cancels_makes_the_call_fail(
        self, workshop: Workshop, kim: Employee
    ) -> None:
        run = workshop.work()
        workshop.cancel(child_of(run))
        assert workshop.drive(run).status == RunStatus.SUCCEEDED
        assert error_code(calls(run)[0]) == "SUBAGENT_FAILED"
        assert "cancelled" in calls(run)[0].content

    def test_can_write_once_a_card_of_its_own_run_is_approved(
        self, workshop: Workshop, kim: Employee, recorder: Recorder
    ) -> None:
        kim.model = hire(workshop, "Copy", asking(call("probe.effect", name="a"))).model
        kim.save()
        run = workshop.work()
        child = workshop.drive(child_of(run))
        assert (child.status, again(run).status) == (RunStatus.WAITING, RunStatus.WAITING)
        workshop.approve(workshop.card(child))
        assert workshop.drive(child).status == RunStatus.SUCCEEDED
        assert workshop.drive(run).status == RunStatus.SUCCEEDED
        assert list(recorder.effects.values()) == [1]

    def test_runs_in_parallel_with_a_read_and_a_question(
        self, workshop: Workshop, kim: Employee
    ) -> None:
        Grant.objects.create(employee=workshop.employee, tool="employee.askHuman")
        read = call("utility.calculate", operation="add", a=1, b=2)
        workshop.play(asking(delegate(), read, ask("Which?")))
        run = workshop.work()
        assert statuses(run) == [CallStatus.SUSPENDED, CallStatus.SUCCEEDED, CallStatus.SUSPENDED]
        workshop.drive(child_of(run))
        assert workshop.drive(run).status == RunStatus.WAITING
        assert statuses(run) == [CallStatus.SUCCEEDED, CallStatus.SUCCEEDED, CallStatus.SUSPENDED]
        answer(workshop, question_of(run))
        assert workshop.drive(run).status == RunStatus.SUCCEEDED

    def test_ends_at_its_parents_deadline(self, workshop: Workshop, kim: Employee) -> None:
        kim.run_minutes = 600
        kim.save()
        workshop.employee.run_minutes = 10
        workshop.employee.save()
        run = workshop.work()
        assert child_of(run).deadline_at == run.deadline_at
        Run.objects.filter(pk=run.pk).update(deadline_at=Now() - timedelta(seconds=1))
        sweep_once()
        assert (again(run).exit_reason, child_of(run).status) == (
            ExitReason.DEADLINE,
            RunStatus.CANCELLED,
        )

    def test_is_started_only_once_even_if_the_worker_is_lost(
        self, workshop: Workshop, kim: Employee
    ) -> None:
        run = workshop.submit()
        die_while_executing(run)
        lose_worker(run)
        assert workshop.drive(run).status == RunStatus.WAITING
        assert child_of(run).parent_call == calls(run)[0]

    def test_resumed_by_a_person_does_not_affect_its_parent(
        self, workshop: Workshop, kim: Employee
    ) -> None:
        run = drive_all(workshop, workshop.submit())
        child = child_of(run)
        assert workshop.say(child, "And two and two?").status == RunStatus.QUEUED
        sweep_once()
        assert workshop.drive(child).status == RunStatus.SUCCEEDED
        assert (again(run).status, statuses(run)) == (RunStatus.SUCCEEDED, [CallStatus.SUCCEEDED])

    def test_can_be_delegated_further(self, workshop: Workshop, kim: Employee) -> None:
        lee = hire(workshop, "Lee", answer="From Lee.")
        script = hire(
            workshop, "Copy", asking(delegate("Lee", "Yours")), answer="{{ calls[0].data.answer }}"
        )
        kim.model = script.model
        kim.save()
        may_delegate(kim, lee)
        run = drive_all(workshop, workshop.submit())
        assert data_of(calls(run)[0])["answer"] == "From Lee."
        assert Run.objects.get(employee=lee).depth == 2


class TestADelegationIsRefused:
    def test_if_the_colleague_is_not_listed(self, workshop: Workshop, kim: Employee) -> None:
        hire(workshop, "Lee")
        workshop.play(asking(delegate("Lee")))
        assert find_refusal_code(workshop) == "NOT_PERMITTED"

    def test_if_no_colleague_is_listed(self, workshop: Workshop, kim: Employee) -> None:
        may_delegate(workshop.employee)
        assert find_refusal_code(workshop) == "NOT_PERMITTED"

    def test_if_the_colleague_belongs_to_another_organization(
        self, workshop: Workshop, kim: Employee
    ) -> None:
        foreign = hire(build_workshop("globex"), "Zoe")
        may_delegate(workshop.employee, kim, foreign)
        workshop.play(asking(delegate("Zoe")))
        run = workshop.work()
        assert error_code(calls(run)[0]) == "NOT_PERMITTED"
        assert not Run.objects.filter(employee=foreign).exists()

    @pytest.mark.parametrize(
        "column", [{"is_active": False}, {"stopped_at": Now(), "stopped_by": "acme-admin"}]
    )
    def test_if_the_colleague_is_inactive_or_stopped(
        self, workshop: Workshop, kim: Employee, column: dict[str, object]
    ) -> None:
        Employee.objects.filter(pk=kim.pk).update(**column)
        assert find_refusal_code(workshop) == "OPERATION_NOT_ALLOWED"

    def test_if_an_employee_delegates_to_itself(self, workshop: Workshop, kim: Employee) -> None:
        may_delegate(workshop.employee, workshop.employee)
        workshop.play(asking(delegate("Dana")))
        assert find_refusal_code(workshop) == "NOT_PERMITTED"

    @feature(
        "Questions and delegation",
        "No circles, at most three levels, and at most five tasks at a time",
        "agents/runs/engine/suspension.py",
    )
    def test_if_it_is_circular(self, workshop: Workshop, kim: Employee) -> None:
        script = hire(workshop, "Copy", asking(delegate("Dana", "Back to you")))
        kim.model = script.model
        kim.save()
        may_delegate(kim, workshop.employee)
        run = drive_all(workshop, workshop.submit())
        (row,) = calls(child_of(run))
        assert error_code(row) == "OPERATION_NOT_ALLOWED"
        assert "waiting for this task" in row.content

    def test_if_it_is_more_than_three_levels_deep(self, workshop: Workshop, kim: Employee) -> None:
        chain = [kim, *[hire(workshop, name) for name in ("Lee", "Max", "Noa")]]
        for giver, taker in itertools.pairwise(chain):
            copy = hire(workshop, f"{giver.name}2", asking(delegate(taker.name)))
            giver.model = copy.model
            giver.save()
            may_delegate(giver, taker)
        run = drive_all(workshop, workshop.submit())
        assert run.status == RunStatus.SUCCEEDED
        assert Run.objects.order_by("-depth")[0].depth == 3
        (row,) = calls(Run.objects.get(employee=chain[2]))
        assert error_code(row) == "OPERATION_NOT_ALLOWED"

    def test_if_five_delegated_tasks_are_already_open(
        self, workshop: Workshop, kim: Employee
    ) -> None:
        workshop.play(asking(*[delegate("Kim", f"Number {number}") for number in range(6)]))
        run = workshop.work()
        assert sorted(statuses(run)) == [CallStatus.FAILED] + [CallStatus.SUSPENDED] * 5
        assert drive_all(workshop, run).status == RunStatus.SUCCEEDED

    def test_if_delegation_is_not_granted(self, workshop: Workshop, kim: Employee) -> None:
        Grant.objects.filter(employee=workshop.employee, tool=DELEGATE).delete()
        run = workshop.work()
        assert (statuses(run), error_code(calls(run)[0])) == (
            [CallStatus.REJECTED],
            "NOT_PERMITTED",
        )


class TestThePromptForDelegation:
    def test_lists_only_the_colleagues_to_whom_the_employee_may_delegate(
        self, workshop: Workshop, kim: Employee, model: ModelServer
    ) -> None:
        hire(workshop, "Lee")
        workshop.work()
        content = model.requests[0]["messages"][0]["content"]
        assert "Colleagues to whom you may hand a task:\n- Kim, Researcher" in content
        assert "Lee" not in content

    def test_lists_no_colleagues_if_delegation_is_not_granted(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        workshop.work()
        assert "Colleagues" not in model.requests[0]["messages"][0]["content"]


class TestACancelledParent:
    def test_cancels_its_children(self, workshop: Workshop, kim: Employee) -> None:
        run = workshop.work()
        workshop.cancel(run)
        assert (again(run).status, statuses(run)) == (RunStatus.CANCELLED, [CallStatus.CANCELLED])
        assert child_of(run).status == RunStatus.CANCELLED
        assert "Nobody is waiting for the answer" in calls(run)[0].content

    def test_cancels_the_children_of_its_children(self, workshop: Workshop, kim: Employee) -> None:
        lee = hire(workshop, "Lee", asking(ask("Which?")))
        kim.model = hire(workshop, "Copy", asking(delegate("Lee"))).model
        kim.save()
        may_delegate(kim, lee)
        run = drive_all(workshop, workshop.submit())
        card = question_of(Run.objects.get(employee=lee))
        workshop.cancel(run)
        assert set(Run.objects.values_list("status", flat=True)) == {RunStatus.CANCELLED}
        card.refresh_from_db()
        assert card.status == "cancelled"

    @feature(
        "Questions and delegation",
        "A delegated run is cancelled with the run that waits for it, even if a process dies in between",
        "agents/runs/engine/suspension.py",
    )
    def test_leaves_its_children_to_the_sweeper_if_the_process_is_killed(
        self, workshop: Workshop, kim: Employee
    ) -> None:
        run = workshop.work()
        with transaction.atomic():
            workshop.cancel(run)
            connection.run_on_commit.clear()  # the process is killed before the on-commit hooks
        assert child_of(run).status == RunStatus.QUEUED
        sweep_once()
        assert child_of(run).status == RunStatus.CANCELLED
        types = event_types(child_of(run))
        sweep_once()
        assert event_types(child_of(run)) == types

    def test_leaves_even_waiting_children_to_the_sweeper_if_the_process_is_killed(
        self, workshop: Workshop, kim: Employee, recorder: Recorder
    ) -> None:
        kim.model = hire(workshop, "Copy", asking(call("probe.effect", name="a"))).model
        kim.save()
        run = workshop.work()
        child = workshop.drive(child_of(run))
        with transaction.atomic():
            workshop.cancel(run)
            connection.run_on_commit.clear()
        assert again(child).status == RunStatus.WAITING
        sweep_once()
        assert again(child).status == RunStatus.CANCELLED
        assert not recorder.effects

    def test_does_not_cancel_a_child_that_had_ended_and_was_resumed(
        self, workshop: Workshop, kim: Employee
    ) -> None:
        run = workshop.work()
        child = workshop.drive(child_of(run))
        workshop.cancel(run)
        assert statuses(run) == [CallStatus.CANCELLED]
        workshop.say(child)
        sweep_once()
        assert again(child).status == RunStatus.QUEUED
        assert workshop.drive(child).status == RunStatus.SUCCEEDED

    def test_keeps_the_invariants_even_if_its_child_ends_at_the_same_moment(
        self, workshop: Workshop, kim: Employee
    ) -> None:
        for _ in range(5):
            run = workshop.work()
            child = child_of(run)
            all_at_once([lambda c=child: workshop.drive(c), lambda r=run: workshop.cancel(r)])  # type: ignore[misc]
            collect_delegate_results(run.pk)
            sweep_once()
            assert again(run).status == RunStatus.CANCELLED
            assert again(child).status in (
                RunStatus.CANCELLED,
                RunStatus.SUCCEEDED,
                RunStatus.RUNNING,
            )
            assert again(workshop.drive(child)).status in (RunStatus.CANCELLED, RunStatus.SUCCEEDED)
            assert_invariants()


def test_concurrent_collectors_and_drivers_end_the_call_of_an_answered_child_once(
    workshop: Workshop, kim: Employee
) -> None:
    run = workshop.work()
    workshop.drive(child_of(run))
    all_at_once(
        [
            lambda: collect_delegate_results(run.pk),
            lambda: workshop.drive(run),
            sweep_once,
            lambda: collect_delegate_results(run.pk),
        ]
    )
    workshop.drive(run)
    assert (again(run).status, event_types(run).count("tool_result")) == (RunStatus.SUCCEEDED, 1)


def test_a_restored_backup_leaves_suspended_calls_unchanged(
    workshop: Workshop, kim: Employee
) -> None:
    Grant.objects.create(employee=workshop.employee, tool="employee.askHuman")
    workshop.play(asking(delegate(), ask("Which?")))
    run = workshop.work()
    recover_runs()
    assert statuses(run) == [CallStatus.SUSPENDED, CallStatus.SUSPENDED]
    answer(workshop, question_of(run))
    workshop.drive(child_of(run))
    assert workshop.drive(run).status == RunStatus.SUCCEEDED


def test_a_cancelled_child_cannot_be_continued(workshop: Workshop, kim: Employee) -> None:
    run = workshop.work()
    child = child_of(run)
    actions.cancel(workshop.operator, child.pk)
    with pytest.raises(Conflict):
        workshop.say(child)
    workshop.cancel(run)
