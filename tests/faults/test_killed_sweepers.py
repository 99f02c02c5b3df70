"""kill -9 of sweepers while schedules fire: no scheduled time is missed, and none fires twice."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from django.db.models.functions import Now

from agents.runs import schedules
from agents.runs.models import Origin, Run
from gadget_site.management.processes import build_sweeper_process
from tests.awaiting import await_that
from tests.faults.site import Site
from tests.features import feature
from tools.schedules.models import Schedule

ROUNDS = 3
SCHEDULES = 10


@feature(
    "Schedules",
    "Each time of a schedule fires at most once even if sweepers are killed",
    "agents/runs/schedules.py",
)
def test_each_scheduled_time_fires_once_even_if_sweepers_are_killed(site: Site) -> None:
    site.workshop.play()
    site.have_workers(1, build_sweeper_process())
    operator, employee = site.workshop.operator, site.workshop.employee
    for number in range(SCHEDULES):
        schedules.create(operator, employee.pk, f"Task {number}", ("0 9 * * *", "Europe/Berlin"))
    for round_ in range(1, ROUNDS + 1):
        Schedule.objects.update(next_at=Now() - timedelta(minutes=round_))
        await_that(lambda: count_fired_runs() > (round_ - 1) * SCHEDULES, "the first one has fired")  # noqa: B023
        victim = next(
            one for one in site.installation.processes if one.name == "sweeper" and one.is_alive
        )
        victim.kill()
        site.start(build_sweeper_process())
        await_that(lambda: count_fired_runs() == round_ * SCHEDULES, "all have fired")  # noqa: B023
    counted = Counter(Run.objects.filter(origin=Origin.SCHEDULE).values_list("task", flat=True))
    assert counted == {f"Task {number}": ROUNDS for number in range(SCHEDULES)}
    assert set(Schedule.objects.values_list("fired", flat=True)) == {ROUNDS}


def count_fired_runs() -> int:
    return Run.objects.filter(origin=Origin.SCHEDULE).count()
