"""An employee creates or cancels a schedule only through a card, which shows what starts, when, and
on whose behalf."""

from typing import Any

import pytest
from django.db.models.functions import Now

from agents.employees.models import Grant
from agents.notices.choices import save_time_zone
from agents.runs import schedules
from agents.runs.models import CallStatus, Run, RunStatus
from agents.worker.sweeper import sweep_once
from tests.features import feature
from tests.workshop import (
    Workshop,
    asking,
    build_workshop,
    call,
    calls,
    data_of,
    error_code,
    last_call,
    statuses,
)
from tools.contract import Preview
from tools.office.tools.schedule import CreateSchedule
from tools.schedules.models import Schedule

pytestmark = pytest.mark.django_db(transaction=True)

CREATE = call(
    "schedule.create", task="Summarize the week", cron="0 9 * * MON", time_zone="Europe/Berlin"
)


@pytest.fixture
def shop(workshop: Workshop) -> Workshop:
    """A workshop whose employee may use the schedule tools."""
    for tool in ("schedule.list", "schedule.create", "schedule.cancel"):
        Grant.objects.create(employee=workshop.employee, tool=tool)
    return workshop


def run_call(shop: Workshop, wanted: dict[str, Any]) -> Run:
    shop.play(asking(wanted))
    return shop.work()


def create_schedule(shop: Workshop, task: str = "Look around") -> Schedule:
    return schedules.create(shop.operator, shop.employee.pk, task, ("0 9 * * *", "UTC"))


class TestCreatingASchedule:
    @feature(
        "Built-in tools",
        "`schedule.list`, `create`, `cancel`",
        "tools/office/tools/schedule.py",
        whole_file=True,
    )
    def test_shows_what_starts_when_and_on_whose_behalf_and_does_not_store_it_yet(
        self, shop: Workshop
    ) -> None:
        run = run_call(shop, CREATE)
        card = shop.card(run)
        assert card.sentence.startswith(
            "Start “Summarize the week” every Monday at 09:00 (Europe/Berlin) by **Dana**. Next times: Mon "
        )
        assert card.sentence.count("09:00") == 6
        (target,) = card.preview["targets"]
        assert target["after"] == {
            "task": "Summarize the week",
            "employee": "Dana",
            "when": "every Monday at 09:00 (Europe/Berlin)",
            "cron": "0 9 * * MON",
            "time_zone": "Europe/Berlin",
            "on_behalf_of": "acme-operator",
        }
        assert not Schedule.objects.exists()

    def test_stores_the_schedule_after_approval_and_the_schedule_fires(
        self, shop: Workshop
    ) -> None:
        run = run_call(shop, CREATE)
        shop.approve(shop.card(run))
        run = shop.drive(run)
        assert (run.status, statuses(run)) == (RunStatus.SUCCEEDED, [CallStatus.SUCCEEDED])
        schedule = Schedule.objects.get()
        assert (schedule.employee, schedule.created_by) == (shop.employee, shop.operator.user)
        assert (schedule.made_in_run, schedule.state, schedule.organization) == (
            str(run.pk),
            "active",
            shop.organization,
        )
        data = data_of(last_call(run))
        assert data["schedule"]["id"] == str(schedule.pk)
        assert len(data["next_times"]) == 5
        Schedule.objects.update(next_at=Now())
        sweep_once()
        started = Run.objects.latest("pk")
        assert (started.task, started.employee, started.created_by) == (
            "Summarize the week",
            shop.employee,
            shop.operator.user,
        )

    def test_without_a_time_zone_uses_the_persons_time_zone(self, shop: Workshop) -> None:
        save_time_zone(shop.operator, "Asia/Tokyo")
        run = run_call(shop, call("schedule.create", task="Look around", cron="0 9 * * MON"))
        card = shop.card(run)
        assert card.sentence.startswith(
            "Start “Look around” every Monday at 09:00 (Asia/Tokyo) by **Dana**. Next times: Mon "
        )
        shop.approve(card)
        assert statuses(shop.drive(run)) == [CallStatus.SUCCEEDED]
        assert Schedule.objects.get().time_zone == "Asia/Tokyo"

    def test_needs_a_new_approval_if_the_person_chooses_another_time_zone_meanwhile(
        self, shop: Workshop
    ) -> None:
        run = run_call(shop, call("schedule.create", task="Look around", cron="0 9 * * MON"))
        save_time_zone(shop.operator, "Asia/Tokyo")
        shop.approve(shop.card(run))
        run = shop.drive(run)
        assert not Schedule.objects.exists()
        assert "(Asia/Tokyo)" in shop.card(run).sentence

    def test_without_a_preview_says_that_the_persons_time_zone_is_used(self) -> None:
        params = CreateSchedule.Params(task="Look around", cron="0 9 * * MON")
        sentence = CreateSchedule().sentence(params, Preview.impossible("It took too long."))
        assert sentence == "Start “Look around” at 0 9 * * MON in the time zone of the person"

    def test_does_not_store_a_denied_schedule(self, shop: Workshop) -> None:
        run = run_call(shop, CREATE)
        shop.deny(shop.card(run))
        assert statuses(shop.drive(run)) == [CallStatus.DENIED]
        assert not Schedule.objects.exists()

    def test_does_not_need_a_new_approval_just_because_time_has_passed(
        self, shop: Workshop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = run_call(shop, call("schedule.create", task="Look", cron="*/5 * * * *"))
        card = shop.card(run)
        sentence = card.sentence
        shop.approve(card)
        # Simulate a change of the next times.
        monkeypatch.setattr("tools.office.tools.schedule.NEXT_TIMES", 3)
        run = shop.drive(run)
        assert statuses(run) == [CallStatus.SUCCEEDED]
        card.refresh_from_db()
        assert card.sentence == sentence

    def test_does_not_add_a_schedule_if_an_identical_one_was_created_after_the_approval(
        self, shop: Workshop
    ) -> None:
        run = run_call(shop, call("schedule.create", task="Look around", cron="0 9 * * *"))
        shop.approve(shop.card(run))
        create_schedule(shop)
        run = shop.drive(run)
        assert statuses(run) != [CallStatus.SUCCEEDED]
        assert Schedule.objects.count() == 1

    @pytest.mark.parametrize(
        ("params", "code"),
        [
            ({"cron": "0 0 31 2 *"}, "INVALID_CRON_SPEC"),
            ({"cron": "every monday"}, "INVALID_CRON_SPEC"),
            ({"cron": "* * * * *"}, "INVALID_CRON_SPEC"),
            ({"cron": "0 9 * * *", "time_zone": "Mars/Olympus"}, "INVALID_PARAMETER"),
            ({"cron": "0 9 * * *", "task": "  "}, "INVALID_PARAMETER"),
            ({"cron": "0 9 * * *", "employee_id": "1"}, "INVALID_PARAMETER"),
        ],
    )
    def test_refuses_an_impossible_schedule_without_a_card(
        self, shop: Workshop, params: dict[str, str], code: str
    ) -> None:
        run = run_call(shop, call("schedule.create", **{"task": "Look", **params}))
        assert (statuses(run), error_code(last_call(run))) == ([CallStatus.REJECTED], code)
        assert not shop.cards(run)

    def test_is_refused_beyond_100_schedules_until_one_is_cancelled(self, shop: Workshop) -> None:
        first = create_schedule(shop)
        Schedule.objects.bulk_create(
            Schedule(
                organization=shop.organization,
                employee=shop.employee,
                task=f"Task {number}",
                cron="0 9 * * *",
                time_zone="UTC",
                next_at=first.next_at,
            )
            for number in range(99)
        )
        run = run_call(shop, CREATE)
        assert error_code(last_call(run)) == "LIMIT_EXCEEDED"
        schedules.cancel(shop.operator, first.pk)
        assert shop.card(run_call(shop, CREATE))


class TestCancellingASchedule:
    def test_shows_the_schedule_and_ends_it(self, shop: Workshop) -> None:
        schedule = create_schedule(shop)
        run = run_call(shop, call("schedule.cancel", schedule_id=str(schedule.pk)))
        card = shop.card(run)
        assert (
            card.sentence
            == f"Cancel schedule **{schedule.pk}**: “Look around” every day at 09:00 (UTC)"
        )
        (target,) = card.preview["targets"]
        assert (target["before"], target["after"]) == ({"state": "active"}, {"state": "cancelled"})
        shop.approve(card)
        assert statuses(shop.drive(run)) == [CallStatus.SUCCEEDED]
        schedule.refresh_from_db()
        assert (schedule.state, schedule.cancelled_by, schedule.next_at) == (
            "cancelled",
            "Dana",
            None,
        )

    def test_succeeds_even_if_the_schedule_fired_meanwhile(self, shop: Workshop) -> None:
        schedule = create_schedule(shop)
        run = run_call(shop, call("schedule.cancel", schedule_id=str(schedule.pk)))
        shop.approve(shop.card(run))
        Schedule.objects.update(next_at=Now())
        sweep_once()
        assert statuses(shop.drive(run)) == [CallStatus.SUCCEEDED]

    def test_needs_a_new_approval_if_the_schedule_changed_after_approval(
        self, shop: Workshop
    ) -> None:
        schedule = create_schedule(shop)
        run = run_call(shop, call("schedule.cancel", schedule_id=str(schedule.pk)))
        shop.approve(shop.card(run))
        schedules.pause(shop.operator, schedule.pk)
        assert statuses(shop.drive(run)) == [CallStatus.AWAITING_APPROVAL]
        assert shop.card(run).preview["targets"][0]["before"] == {"state": "paused"}

    def test_refuses_a_missing_schedule_and_one_of_another_organization(
        self, shop: Workshop
    ) -> None:
        foreign = create_schedule(build_workshop("other"))
        for schedule_id in (str(foreign.pk), "999999999"):
            run = run_call(shop, call("schedule.cancel", schedule_id=schedule_id))
            assert error_code(last_call(run)) == "NOT_FOUND"
        foreign.refresh_from_db()
        assert foreign.state == "active"


class TestListingSchedules:
    def test_does_not_need_approval_and_shows_the_schedules_of_the_organization(
        self, shop: Workshop
    ) -> None:
        create_schedule(build_workshop("other"), "Foreign")
        kept, paused, gone = (
            create_schedule(shop),
            create_schedule(shop, "Rest"),
            create_schedule(shop, "Gone"),
        )
        schedules.pause(shop.operator, paused.pk)
        schedules.cancel(shop.operator, gone.pk)
        run = run_call(shop, call("schedule.list"))
        rows = data_of(last_call(run))["schedules"]
        assert [(row["id"], row["task"], row["state"]) for row in rows] == [
            (str(kept.pk), "Look around", "active"),
            (str(paused.pk), "Rest", "paused"),
        ]
        assert (rows[0]["when"], rows[0]["employee"]) == ("every day at 09:00 (UTC)", "Dana")
        assert rows[1]["next_at"] is None

    def test_says_so_if_there_are_no_schedules(self, shop: Workshop) -> None:
        run = run_call(shop, call("schedule.list"))
        (row,) = calls(run)
        assert row.content.startswith("There are no schedules.")


def test_a_run_without_a_person_cannot_create_a_schedule(shop: Workshop) -> None:
    shop.play(asking(CREATE))
    run = shop.submit()
    Run.objects.filter(pk=run.pk).update(created_by=None)
    run = shop.drive(run)
    assert error_code(last_call(run)) == "OPERATION_NOT_ALLOWED"
