"""Schedules fire once at each of their times, with any number of sweepers, and only if the person
behind the schedule may start runs."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from agents.accounts.models import AuditEntry, Membership, Role
from agents.accounts.notice_facts import NoticeKind
from agents.employees.models import Employee
from agents.notices.models import Notice
from agents.platform.refusals import Forbidden, NotFound
from agents.runs import schedules, stops
from agents.runs.models import Origin, Run, RunStatus
from agents.worker.sweeper import sweep_once
from tests.features import feature
from tests.gadget_site.backups.confirmed import confirm_all
from tests.workshop import Workshop, all_at_once, build_workshop, payloads, read_everything
from tools.schedules.cron_times import parse_cron
from tools.schedules.models import Schedule

pytestmark = pytest.mark.django_db(transaction=True)

EVERY_DAY = ("0 9 * * *", "Europe/Berlin")
PAST = timedelta(minutes=1)


def create(
    workshop: Workshop, task: str = "Look around", when: tuple[str, str] = EVERY_DAY
) -> Schedule:
    return schedules.create(workshop.operator, workshop.employee.pk, task, when)


def make_due(schedule: Schedule, ago: timedelta = PAST) -> datetime:
    """Set the schedule's next time to this long ago, and return it."""
    Schedule.objects.filter(pk=schedule.pk).update(next_at=Now() - ago)
    time = reload(schedule).next_at
    assert time is not None
    return time


def reload(schedule: Schedule) -> Schedule:
    """Reload the schedule."""
    return Schedule.objects.get(pk=schedule.pk)


def list_audited_actions() -> list[str]:
    rows = AuditEntry.objects.filter(action__startswith="schedule_").order_by("seq")
    return list(rows.values_list("action", flat=True))


def fire_and_die(schedule: Schedule) -> None:
    with transaction.atomic():
        assert schedules.fire(schedule.pk)
        raise KeyboardInterrupt


class TestADueTime:
    def test_starts_a_run_on_behalf_of_the_creator_and_advances_the_schedule(
        self, workshop: Workshop
    ) -> None:
        schedule = create(workshop)
        time = make_due(schedule)
        sweep_once()
        run = Run.objects.get()
        assert (run.origin, run.created_by, run.employee) == (
            Origin.SCHEDULE,
            workshop.operator.user,
            workshop.employee,
        )
        assert (run.task, run.status) == ("Look around", RunStatus.QUEUED)
        assert run.client_request_id == f"schedule:{schedule.pk}:{time.isoformat()}"
        (line,) = payloads(run, "run_started")
        assert line == {
            "by": "acme-operator",
            "schedule_id": str(schedule.pk),
            "scheduled_for": time.isoformat(),
            "missed": 0,
        }
        schedule = reload(schedule)
        assert (schedule.last_run, schedule.last_at, schedule.fired) == (run, time, 1)
        assert schedule.next_at == parse_cron(*EVERY_DAY).next_after(datetime.now(UTC))

    def test_starts_a_run_that_succeeds_like_any_other(self, workshop: Workshop) -> None:
        workshop.play(answer="I looked.")
        make_due(create(workshop))
        sweep_once()
        run = workshop.drive(Run.objects.get())
        assert (run.status, run.answer) == (RunStatus.SUCCEEDED, "I looked.")

    def test_does_not_start_a_run_before_it_arrives(self, workshop: Workshop) -> None:
        schedule = create(workshop)
        assert sweep_once() == 0
        assert not schedules.fire(schedule.pk)
        assert not Run.objects.exists()

    @feature(
        "Schedules",
        "Each time fires at most once, with any number of sweepers",
        "agents/runs/schedules.py",
    )
    @pytest.mark.parametrize("sweepers", [2, 10])
    def test_fires_once_with_any_number_of_sweepers(
        self, workshop: Workshop, sweepers: int
    ) -> None:
        several = [create(workshop, f"Task {number}") for number in range(4)]
        for round_ in range(1, 4):
            for schedule in several:
                make_due(schedule, PAST * round_)
            all_at_once([sweep_once] * sweepers)
            sweep_once()
            assert Run.objects.count() == 4 * round_
            assert [reload(schedule).fired for schedule in several] == [round_] * 4

    @pytest.mark.parametrize("sweepers", [2, 10])
    def test_fires_once_even_if_all_sweepers_have_already_read_it(
        self, workshop: Workshop, sweepers: int
    ) -> None:
        schedule = create(workshop)
        make_due(schedule)
        outcomes: list[bool] = []
        all_at_once([lambda: outcomes.append(schedules.fire(schedule.pk))] * sweepers)
        assert sum(outcomes) == 1
        assert Run.objects.count() == reload(schedule).fired == 1

    def test_fires_after_a_process_was_killed_before_the_commit(self, workshop: Workshop) -> None:
        schedule = create(workshop)
        make_due(schedule)
        with pytest.raises(KeyboardInterrupt):
            fire_and_die(schedule)
        assert not Run.objects.exists()
        assert reload(schedule).fired == 0
        sweep_once()
        sweep_once()
        assert Run.objects.count() == 1

    def test_does_not_fire_again_if_the_row_is_restored_from_an_older_backup(
        self, workshop: Workshop
    ) -> None:
        schedule = create(workshop)
        time = make_due(schedule)
        sweep_once()
        Schedule.objects.filter(pk=schedule.pk).update(
            next_at=time, last_at=None, last_run=None, fired=0
        )
        sweep_once()
        assert Run.objects.count() == 1
        restored = reload(schedule)
        assert restored.last_run == Run.objects.get()
        assert restored.next_at is not None
        assert restored.next_at > time

    def test_does_not_fire_after_a_restore_until_the_schedule_is_resumed(
        self, workshop: Workshop
    ) -> None:
        """The schedule may have been cancelled, or may have fired, after the backup was taken."""
        schedule, later = create(workshop), create(workshop, "Later")
        make_due(schedule)
        call_command("after_restore", stdout=StringIO())
        for one in (schedule, later):
            assert (reload(one).state, reload(one).problem) == (
                "switched off",
                "A backup was restored.",
            )
        assert list_audited_actions()[-1] == "schedule_switched_off"
        confirm_all(workshop.admin)
        stops.release_everything(workshop.admin)
        sweep_once()
        assert not Run.objects.exists()
        schedules.resume(workshop.operator, schedule.pk)
        make_due(schedule)
        sweep_once()
        assert (Run.objects.count(), reload(schedule).problem) == (1, "")


class TestAScheduleAndItsClock:
    def test_recomputes_and_reports_a_next_time_set_while_the_clock_was_ahead(
        self, workshop: Workshop
    ) -> None:
        schedule = create(workshop)
        expected = schedule.next_at
        assert expected is not None
        late = expected + timedelta(days=30)
        Schedule.objects.filter(pk=schedule.pk).update(next_at=late)
        sweep_once()
        assert (reload(schedule).next_at, reload(schedule).problem) == (
            expected,
            schedules.CLOCK_WAS_AHEAD,
        )
        entry = AuditEntry.objects.get(action="schedule_corrected")
        assert (entry.payload["time"], entry.payload["instead_of"]) == (
            expected.isoformat(),
            late.isoformat(),
        )
        read_everything()
        told = Notice.objects.get(kind=NoticeKind.SCHEDULE)
        assert (told.user, told.detail) == (workshop.operator.user, f"schedule {schedule.pk}")

    def test_does_not_repeat_a_time_that_fired_while_the_clock_was_ahead(
        self, workshop: Workshop
    ) -> None:
        schedule = create(workshop)
        time = make_due(schedule)
        sweep_once()
        Schedule.objects.filter(pk=schedule.pk).update(next_at=time)
        sweep_once()
        assert Run.objects.count() == 1

    @pytest.mark.parametrize(
        "when",
        [EVERY_DAY, ("*/5 * * * *", "UTC"), ("0 0 29 2 *", "UTC"), ("30 2 * * *", "Europe/Berlin")],
    )
    def test_keeps_a_next_time_that_matches_the_expression(
        self, workshop: Workshop, when: tuple[str, str]
    ) -> None:
        schedule = create(workshop, when=when)
        sweep_once()
        assert reload(schedule).next_at == schedule.next_at
        assert not AuditEntry.objects.filter(action="schedule_corrected").exists()

    @feature("Schedules", "One run makes up for missed times", "agents/runs/schedules.py")
    def test_starts_one_run_for_many_missed_times(self, workshop: Workshop) -> None:
        schedule = create(workshop, when=("*/5 * * * *", "UTC"))
        make_due(schedule, timedelta(minutes=33))
        sweep_once()
        sweep_once()
        (line,) = payloads(Run.objects.get(), "run_started")
        assert line["missed"] in (6, 7)
        following = reload(schedule).next_at
        assert following is not None
        assert following > datetime.now(UTC)

    def test_counts_missed_times_only_up_to_a_maximum(self, workshop: Workshop) -> None:
        make_due(create(workshop, when=("*/5 * * * *", "UTC")), timedelta(days=3000))
        sweep_once()
        assert payloads(Run.objects.get(), "run_started")[0]["missed"] == schedules.MAX_MISSED

    def test_does_not_repeat_a_time_after_the_clock_is_set_back(self, workshop: Workshop) -> None:
        """After a time has fired, the row contains the next time, so no earlier time is due."""
        schedule = create(workshop)
        make_due(schedule)
        sweep_once()
        Schedule.objects.filter(pk=schedule.pk).update(next_at=Now() + timedelta(hours=1))
        for _ in range(3):
            sweep_once()
        assert Run.objects.count() == 1

    def test_fires_once_after_the_clock_is_set_forward(self, workshop: Workshop) -> None:
        schedule = create(workshop)
        make_due(schedule, timedelta(days=20))
        all_at_once([sweep_once] * 4)
        sweep_once()
        assert Run.objects.count() == reload(schedule).fired == 1


class TestStopsAndPauses:
    @pytest.mark.parametrize("what", ["everything", "the employee"])
    def test_delay_a_due_schedule_so_that_it_fires_once_after_the_stop(
        self, workshop: Workshop, what: str
    ) -> None:
        schedule = create(workshop)
        time = make_due(schedule)
        if what == "everything":
            stops.stop_everything(workshop.operator)
        else:
            stops.stop_employee(workshop.operator, workshop.employee.pk)
        sweep_once()
        assert not schedules.fire(schedule.pk), "a sweeper that has read it before"
        assert not Run.objects.exists()
        assert (reload(schedule).next_at, reload(schedule).is_active) == (time, True)
        if what == "everything":
            stops.release_everything(workshop.admin)
        else:
            stops.release_employee(workshop.admin, workshop.employee.pk)
        all_at_once([sweep_once] * 3)
        assert Run.objects.count() == 1

    def test_prevent_firing_until_the_schedule_is_resumed(self, workshop: Workshop) -> None:
        paused, cancelled = create(workshop), create(workshop, "Other")
        schedules.pause(workshop.operator, paused.pk)
        schedules.cancel(workshop.operator, cancelled.pk)
        sweep_once()
        assert not Run.objects.exists()
        assert (reload(paused).state, reload(cancelled).state) == ("paused", "cancelled")
        schedules.resume(workshop.approver, paused.pk)
        make_due(paused)
        sweep_once()
        assert Run.objects.get().created_by == workshop.approver.user

    def test_skip_the_paused_times(self, workshop: Workshop) -> None:
        schedule = create(workshop)
        make_due(schedule)
        schedules.pause(workshop.operator, schedule.pk)
        schedules.resume(workshop.operator, schedule.pk)
        sweep_once()
        assert not Run.objects.exists()


def _leave(workshop: Workshop) -> None:
    workshop.operator.delete()


def _move_to_another_organization(workshop: Workshop) -> None:
    Membership.objects.filter(pk=workshop.operator.pk).update(
        organization=build_workshop("globex").organization
    )


def _switch_off(workshop: Workshop) -> None:
    workshop.operator.user.is_active = False
    workshop.operator.user.save()


def _become_viewer(workshop: Workshop) -> None:
    Membership.objects.filter(pk=workshop.operator.pk).update(role=Role.VIEWER)


def _deactivate_employee(workshop: Workshop) -> None:
    Employee.objects.update(is_active=False)


def _delete_employee(workshop: Workshop) -> None:
    workshop.employee.delete()


class TestASwitchedOffSchedule:
    @feature(
        "Schedules",
        "A stop holds a schedule; without its person or employee it is switched off, with the reason",
        "agents/runs/schedules.py",
    )
    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            (_leave, "acme-operator is no longer a member."),
            (_move_to_another_organization, "acme-operator is no longer a member."),
            (_switch_off, "acme-operator is no longer a member."),
            (_become_viewer, "acme-operator is now a viewer, who cannot start runs."),
            (_deactivate_employee, "Dana is no longer active."),
            (_delete_employee, "Its employee was deleted."),
        ],
    )
    def test_states_its_problem_and_stays_off(
        self, workshop: Workshop, change: Callable[[Workshop], None], problem: str
    ) -> None:
        schedule = create(workshop)
        make_due(schedule)
        change(workshop)
        all_at_once([sweep_once] * 3)
        assert not Run.objects.exists()
        schedule = reload(schedule)
        assert (schedule.state, schedule.problem, schedule.next_at) == (
            "switched off",
            problem,
            None,
        )
        assert list_audited_actions() == ["schedule_created", "schedule_switched_off"]

    def test_is_the_result_of_a_due_time_in_an_unknown_time_zone(self, workshop: Workshop) -> None:
        schedule = create(workshop)
        Schedule.objects.update(time_zone="Mars/Olympus")
        make_due(schedule)
        sweep_once()
        assert reload(schedule).state == "switched off"

    def test_can_be_resumed_by_another_member(self, workshop: Workshop) -> None:
        schedule = create(workshop)
        make_due(schedule)
        _leave(workshop)
        sweep_once()
        schedules.resume(workshop.approver, schedule.pk)
        assert (reload(schedule).state, reload(schedule).problem) == ("active", "")
        make_due(schedule)
        sweep_once()
        assert Run.objects.get().created_by == workshop.approver.user

    def test_does_not_delay_other_schedules(self, workshop: Workshop) -> None:
        first, second = create(workshop, "One"), create(workshop, "Two")
        # An empty task, which no form or API allows, makes this schedule fail to start.
        Schedule.objects.filter(pk=first.pk).update(task="")
        make_due(first)
        make_due(second)
        sweep_once()
        assert Run.objects.get().task == "Two"


class TestEveryActionOnASchedule:
    def test_is_audited(self, workshop: Workshop) -> None:
        schedule = create(workshop)
        schedules.pause(workshop.operator, schedule.pk)
        schedules.resume(workshop.operator, schedule.pk)
        schedules.cancel(workshop.operator, schedule.pk)
        assert list_audited_actions() == [
            "schedule_created",
            "schedule_paused",
            "schedule_resumed",
            "schedule_cancelled",
        ]

    def test_is_refused_in_another_organization(self, workshop: Workshop) -> None:
        schedule, other = create(workshop), build_workshop("other")
        for act in (schedules.pause, schedules.resume, schedules.cancel):
            with pytest.raises(NotFound):
                act(other.admin, schedule.pk)
        with pytest.raises(NotFound):
            schedules.create(other.admin, workshop.employee.pk, "Work", EVERY_DAY)
        assert reload(schedule).state == "active"

    def test_is_refused_to_a_viewer(self, workshop: Workshop) -> None:
        schedule, viewer = create(workshop), workshop.members["viewer"]
        for act in (schedules.pause, schedules.resume, schedules.cancel):
            with pytest.raises(Forbidden):
                act(viewer, schedule.pk)
        with pytest.raises(Forbidden):
            schedules.create(viewer, workshop.employee.pk, "Work", EVERY_DAY)

    def test_takes_effect_either_before_or_after_a_simultaneous_firing(
        self, workshop: Workshop
    ) -> None:
        schedule = create(workshop)
        make_due(schedule)
        all_at_once(
            [sweep_once, lambda: schedules.pause(workshop.operator, schedule.pk), sweep_once]
        )
        schedule = reload(schedule)
        assert schedule.state == "paused"
        assert Run.objects.count() == schedule.fired <= 1


def test_the_database_requires_a_next_time_for_active_schedules_and_only_for_them(
    workshop: Workshop,
) -> None:
    schedule = create(workshop)
    with pytest.raises(IntegrityError), transaction.atomic():
        Schedule.objects.filter(pk=schedule.pk).update(next_at=None)
    with pytest.raises(IntegrityError), transaction.atomic():
        Schedule.objects.filter(pk=schedule.pk).update(is_active=False)
