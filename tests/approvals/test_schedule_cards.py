"""An employee makes and cancels schedules only by a card, which shows what starts, when, and on whose behalf."""

from typing import Any

import pytest
from django.db.models.functions import Now

from agents.employees.models import Grant
from agents.runs import schedules
from agents.runs.models import CallStatus, Run, RunStatus
from agents.worker.sweeper import sweep_once
from tests.workshop import Workshop, asking, build_workshop, call, calls, data_of, error_code, last_call, statuses
from tools.schedules.models import Schedule

pytestmark = pytest.mark.django_db(transaction=True)

CREATE = call("schedule.create", task="Summarize the week", cron="0 9 * * MON", time_zone="Europe/Berlin")


@pytest.fixture
def shop(workshop: Workshop) -> Workshop:
    """A workshop whose employee may use the three tools."""
    for tool in ("schedule.list", "schedule.create", "schedule.cancel"):
        Grant.objects.create(employee=workshop.employee, tool=tool)
    return workshop


def asked(shop: Workshop, wanted: dict[str, Any]) -> Run:
    shop.play(asking(wanted))
    return shop.work()


def existing(shop: Workshop, task: str = "Look around") -> Schedule:
    return schedules.create(shop.operator, shop.employee.pk, task, ("0 9 * * *", "UTC"))


class TestCreating:
    def test_shows_what_starts_when_and_for_whom_and_stores_nothing(self, shop: Workshop) -> None:
        run = asked(shop, CREATE)
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

    def test_approved_makes_the_row_and_it_fires(self, shop: Workshop) -> None:
        run = asked(shop, CREATE)
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

    def test_denied_makes_nothing(self, shop: Workshop) -> None:
        run = asked(shop, CREATE)
        shop.deny(shop.card(run))
        assert statuses(shop.drive(run)) == [CallStatus.DENIED]
        assert not Schedule.objects.exists()

    def test_is_not_asked_again_only_because_time_has_passed(
        self, shop: Workshop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = asked(shop, call("schedule.create", task="Look", cron="*/5 * * * *"))
        card = shop.card(run)
        sentence = card.sentence
        shop.approve(card)
        monkeypatch.setattr("tools.builtin.schedule.NEXT_TIMES", 3)  # as if the next times were others by now
        run = shop.drive(run)
        assert statuses(run) == [CallStatus.SUCCEEDED]
        card.refresh_from_db()
        assert card.sentence == sentence

    def test_is_asked_again_in_an_equal_schedule_made_meanwhile(self, shop: Workshop) -> None:
        run = asked(shop, call("schedule.create", task="Look around", cron="0 9 * * *"))
        shop.approve(shop.card(run))
        existing(shop)
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
    def test_what_cannot_be_is_refused_without_a_card(self, shop: Workshop, params: dict[str, str], code: str) -> None:
        run = asked(shop, call("schedule.create", **{"task": "Look", **params}))
        assert (statuses(run), error_code(last_call(run))) == ([CallStatus.REJECTED], code)
        assert not shop.cards(run)

    def test_is_limited(self, shop: Workshop) -> None:
        first = existing(shop)
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
        run = asked(shop, CREATE)
        assert error_code(last_call(run)) == "LIMIT_EXCEEDED"
        schedules.cancel(shop.operator, first.pk)
        assert shop.card(asked(shop, CREATE))


class TestCancelling:
    def test_shows_what_ends_and_ends_it(self, shop: Workshop) -> None:
        schedule = existing(shop)
        run = asked(shop, call("schedule.cancel", schedule_id=str(schedule.pk)))
        card = shop.card(run)
        assert card.sentence == f"Cancel schedule **{schedule.pk}**: “Look around” every day at 09:00 (UTC)"
        (target,) = card.preview["targets"]
        assert (target["before"], target["after"]) == ({"state": "active"}, {"state": "cancelled"})
        shop.approve(card)
        assert statuses(shop.drive(run)) == [CallStatus.SUCCEEDED]
        schedule.refresh_from_db()
        assert (schedule.state, schedule.cancelled_by, schedule.next_at) == ("cancelled", "Dana", None)

    def test_goes_on_though_it_fired_meanwhile(self, shop: Workshop) -> None:
        schedule = existing(shop)
        run = asked(shop, call("schedule.cancel", schedule_id=str(schedule.pk)))
        shop.approve(shop.card(run))
        Schedule.objects.update(next_at=Now())
        sweep_once()
        assert statuses(shop.drive(run)) == [CallStatus.SUCCEEDED]

    def test_is_asked_again_if_its_state_changed(self, shop: Workshop) -> None:
        schedule = existing(shop)
        run = asked(shop, call("schedule.cancel", schedule_id=str(schedule.pk)))
        shop.approve(shop.card(run))
        schedules.pause(shop.operator, schedule.pk)
        assert statuses(shop.drive(run)) == [CallStatus.AWAITING_APPROVAL]
        assert shop.card(run).preview["targets"][0]["before"] == {"state": "paused"}

    def test_of_one_that_is_not_there_or_another_organizations_is_refused(self, shop: Workshop) -> None:
        foreign = existing(build_workshop("other"))
        for schedule_id in (str(foreign.pk), "999999999"):
            run = asked(shop, call("schedule.cancel", schedule_id=schedule_id))
            assert error_code(last_call(run)) == "NOT_FOUND"
        foreign.refresh_from_db()
        assert foreign.state == "active"


class TestListing:
    def test_tells_what_starts_by_itself_here_and_asks_nobody(self, shop: Workshop) -> None:
        existing(build_workshop("other"), "Foreign")
        kept, paused, gone = existing(shop), existing(shop, "Rest"), existing(shop, "Gone")
        schedules.pause(shop.operator, paused.pk)
        schedules.cancel(shop.operator, gone.pk)
        run = asked(shop, call("schedule.list"))
        rows = data_of(last_call(run))["schedules"]
        assert [(row["id"], row["task"], row["state"]) for row in rows] == [
            (str(kept.pk), "Look around", "active"),
            (str(paused.pk), "Rest", "paused"),
        ]
        assert (rows[0]["when"], rows[0]["employee"]) == ("every day at 09:00 (UTC)", "Dana")
        assert rows[1]["next_at"] is None

    def test_of_none_says_so(self, shop: Workshop) -> None:
        run = asked(shop, call("schedule.list"))
        (row,) = calls(run)
        assert row.content.startswith("There are no schedules.")


def test_nobody_is_there_on_whose_behalf_it_could_work(shop: Workshop) -> None:
    shop.play(asking(CREATE))
    run = shop.submit()
    Run.objects.filter(pk=run.pk).update(created_by=None)
    run = shop.drive(run)
    assert error_code(last_call(run)) == "OPERATION_NOT_ALLOWED"
