"""Submitting a task starts one run for each client_request_id; an error names the invalid field."""

from collections import Counter

import pytest

from agents.employees.models import Employee
from agents.platform.refusals import Conflict, Forbidden, Invalid, NotFound
from agents.runs import actions
from agents.runs.models import Message, Origin, Run, RunStatus
from tests.features import feature
from tests.tools.toolbox.sample_tools import Echo
from tests.workshop import Workshop, all_at_once, build_workshop, event_types, payloads
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)


class TestANewRun:
    def test_is_queued_with_its_task_as_the_first_message(self, workshop: Workshop) -> None:
        run = workshop.submit("  Find all of them.  \nAnd count.")
        assert (run.status, run.task, run.title) == (
            RunStatus.QUEUED,
            "Find all of them.  \nAnd count.",
            "Find all of them.",
        )
        assert (run.origin, run.created_by, run.lease_epoch) == (
            Origin.TASK,
            workshop.operator.user,
            0,
        )
        message = Message.objects.get(run=run)
        assert (message.number, message.text, message.author) == (
            1,
            run.task,
            workshop.operator.user,
        )
        assert event_types(run) == ["run_started"]
        assert payloads(run, "run_started")[0]["by"] == "acme-operator"

    def test_takes_its_mode_and_pass_limit_from_the_employee_by_default(
        self, workshop: Workshop
    ) -> None:
        workshop.employee.mode, workshop.employee.max_passes = "research", 7
        workshop.employee.save()
        run = workshop.submit()
        assert (run.mode, run.max_passes) == ("research", 7)
        assert workshop.submit(mode="code").mode == "code"

    def test_has_a_deadline_only_if_the_employee_has_a_time_limit(self, workshop: Workshop) -> None:
        assert workshop.submit().deadline_at is None
        workshop.employee.run_minutes = 5
        workshop.employee.save()
        run = workshop.submit()
        assert run.deadline_at is not None
        assert 290 < (run.deadline_at - run.created_at).total_seconds() < 310

    def test_can_have_a_task_of_20_000_characters(self, workshop: Workshop) -> None:
        assert len(workshop.submit("x" * 20_000).task) == 20_000

    def test_has_a_title_of_one_short_line(self, workshop: Workshop) -> None:
        assert len(workshop.submit("word " * 100).title) == 80


class TestARepeatedSubmission:
    def test_does_not_start_another_run(self, workshop: Workshop) -> None:
        submission = actions.Submission(workshop.employee.pk, "Work", client_request_id="r-1")
        first, is_new = actions.submit(workshop.operator, submission)
        second, is_new_too = actions.submit(workshop.operator, submission)
        assert (first, is_new, is_new_too) == (second, True, False)
        assert event_types(first) == ["run_started"]

    def test_made_twenty_times_at_the_same_moment_starts_one_run(self, workshop: Workshop) -> None:
        submission = actions.Submission(workshop.employee.pk, "Work", client_request_id="r-1")
        outcomes: Counter[tuple[int, bool]] = Counter()

        def submit() -> None:
            run, is_new = actions.submit(workshop.operator, submission)
            outcomes[run.pk, is_new] += 1

        all_at_once([submit] * 20)
        run = Run.objects.get()
        assert outcomes == {(run.pk, True): 1, (run.pk, False): 19}
        assert event_types(run) == ["run_started"]

    def test_from_another_organization_starts_another_run(self, workshop: Workshop) -> None:
        other = build_workshop("other")
        mine, _ = actions.submit(
            workshop.operator, actions.Submission(workshop.employee.pk, "W", client_request_id="r")
        )
        theirs, is_new = actions.submit(
            other.operator, actions.Submission(other.employee.pk, "W", client_request_id="r")
        )
        assert is_new
        assert mine != theirs

    def test_without_an_id_always_starts_a_new_run(self, workshop: Workshop) -> None:
        assert workshop.submit() != workshop.submit()


class TestATask:
    @pytest.mark.parametrize("task", ["", " \n\t ", "x" * 20_001, "x" * 100_000, "a\0b"])
    def test_that_is_empty_too_long_or_unstorable_is_refused(
        self, workshop: Workshop, task: str
    ) -> None:
        with pytest.raises(Invalid) as refused:
            workshop.submit(task)
        assert refused.value.extra["field"] == "task"
        assert not Run.objects.exists()

    @pytest.mark.parametrize("request_id", ["x" * 201, "a\0b"])
    def test_whose_request_id_cannot_be_stored_is_refused(
        self, workshop: Workshop, request_id: str
    ) -> None:
        with pytest.raises(Invalid) as refused:
            workshop.submit(client_request_id=request_id)
        assert refused.value.extra["field"] == "client_request_id"

    @feature(
        "Costs, budgets, long runs",
        "Request ids of schedules are reserved, so nobody can block a schedule",
        "agents/runs/actions.py",
    )
    def test_whose_request_id_is_reserved_for_schedules_is_refused(
        self, workshop: Workshop
    ) -> None:
        with pytest.raises(
            Invalid, match="'schedule:7:tomorrow', but ids that begin with 'schedule:' are"
        ) as refused:
            workshop.submit(client_request_id="schedule:7:tomorrow")
        assert refused.value.extra["field"] == "client_request_id"
        assert not Run.objects.exists()

    def test_in_an_unknown_mode_is_refused(self, workshop: Workshop) -> None:
        with pytest.raises(Invalid) as refused:
            workshop.submit(mode="party")
        assert refused.value.extra["field"] == "mode"

    def test_in_a_mode_that_a_tool_names_is_accepted(
        self, workshop: Workshop, toolbox: Toolbox
    ) -> None:
        toolbox.register(Echo(name="sample.sell"), modes={"party"})
        assert workshop.submit(mode="party").mode == "party"

    def test_for_a_missing_employee_or_another_organizations_employee_is_refused(
        self, workshop: Workshop
    ) -> None:
        foreign = build_workshop("other").employee
        for employee_id in (999_999_999, foreign.pk):
            with pytest.raises(NotFound):
                actions.submit(workshop.operator, actions.Submission(employee_id, "Work"))
        assert not Run.objects.exists()

    def test_for_an_inactive_employee_is_refused(self, workshop: Workshop) -> None:
        Employee.objects.update(is_active=False)
        with pytest.raises(Conflict):
            workshop.submit()

    def test_from_a_viewer_is_refused(self, workshop: Workshop) -> None:
        with pytest.raises(Forbidden):
            actions.submit(
                workshop.members["viewer"], actions.Submission(workshop.employee.pk, "Work")
            )
