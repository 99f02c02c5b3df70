"""Decisions that a sweeper has counted: every figure stays the same, no matter where the counting
was interrupted."""

from __future__ import annotations

import random
import uuid
from datetime import datetime, timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from agents.insight import decision_counts, oversight
from agents.insight.decision_counts import (
    UNSETTLED,
    compute_median,
    count_decisions,
    get_midnight,
)
from agents.insight.figures import get_today
from agents.insight.models import DecisionFigures, DecisionHead
from agents.insight.trust import EmployeeTrust, load_employee_trust
from agents.runs.models import CallStatus, ToolCall
from agents.worker.sweeper import sweep_once
from tests.insight.decided import APPROVED, DENIED, EDITED, Decided, Desk
from tests.insight.test_oversight import hours_ago, make_history
from tests.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk(world: World) -> Desk:
    return Desk(world, world.run())


def read_figures(world: World) -> list[oversight.Oversight | EmployeeTrust]:
    every = [oversight.load_oversight(world.acme.pk, days) for days in (7, 30)]
    return [*every, load_employee_trust(world.employee, world.acme)]


def count_up_to(moment: datetime) -> None:
    count_decisions(now=moment + UNSETTLED)


@pytest.mark.parametrize("seed", range(4))
def test_figures_stay_the_same_no_matter_where_the_counting_is_interrupted(
    world: World, desk: Desk, seed: int
) -> None:
    chance = random.Random(seed)
    history = make_history(chance, 60)
    desk.add(history)
    before = read_figures(world)
    for cut in sorted(chance.sample([each.at for each in history], 6)):
        count_up_to(cut + timedelta(microseconds=1))
        assert read_figures(world) == before
    count_decisions()
    assert read_figures(world) == before
    DecisionFigures.objects.filter(subject="people").delete()
    assert read_figures(world) != before, "the figures come from the counted rows"


def test_an_interrupted_bulk_decision_counts_once(world: World, desk: Desk) -> None:
    at, bulk_id = hours_ago(5), uuid.uuid4()
    desk.add(
        [
            Decided("approver", at + timedelta(seconds=n), at, call=n, bulk=bulk_id)
            for n in range(10)
        ]
    )
    count_up_to(at + timedelta(seconds=5))
    (person,) = oversight.load_person_figures(world.acme, 7)
    assert (person.decided.cards, person.decided.decisions, person.decided.in_bulk) == (10, 1, 1)


def test_a_call_edited_before_and_approved_after_an_interruption_counts_once(
    world: World, desk: Desk
) -> None:
    at = hours_ago(30)
    later = at + timedelta(hours=28)
    desk.add(
        [
            Decided("approver", at, at, EDITED, call=1),
            Decided("approver", later, at, APPROVED, call=1),
        ]
    )
    count_up_to(at + timedelta(hours=1))
    assert oversight.load_tool_corrections(world.acme.pk, 7) == [
        ("data.updateRecord", 1, 1, 1, 0, 1)
    ]


def test_decisions_that_are_recorded_long_after_they_were_made_are_counted(
    world: World, desk: Desk
) -> None:
    at = hours_ago(5)
    desk.add([Decided("approver", at, at, call=1)])
    count_decisions()
    desk.add([Decided("approver", at - timedelta(hours=9), at, DENIED, call=2)])
    DecisionHead.objects.update(until=F("until") - timedelta(minutes=6))
    count_decisions()
    (person,) = oversight.load_person_figures(world.acme, 7)
    assert (person.decided.approved, person.decided.denied) == (1, 1)


def test_decisions_made_while_the_clock_was_ahead_are_counted(world: World, desk: Desk) -> None:
    at = hours_ago(5)
    desk.add([Decided("approver", at, at, call=1)])
    count_decisions(now=timezone.now() + timedelta(days=1))
    assert DecisionHead.objects.get(organization=world.acme).until > timezone.now()
    desk.add([Decided("approver", hours_ago(1), at, DENIED, call=2)])
    count_decisions()
    assert DecisionHead.objects.get(organization=world.acme).until < timezone.now()
    (person,) = oversight.load_person_figures(world.acme, 7)
    assert (person.decided.approved, person.decided.denied) == (1, 1)


@pytest.mark.parametrize("end", [CallStatus.FAILED, CallStatus.SUCCEEDED])
def test_a_calls_outcome_is_shown_even_if_it_was_unknown_when_its_card_was_counted(
    world: World, desk: Desk, end: CallStatus
) -> None:
    at = hours_ago(5)
    running = {
        "status": CallStatus.OUTCOME_UNKNOWN,
        "finished_at": None,
        "content": "",
        "result": None,
    }
    desk.calls[1] = world.call(desk.run, "data.updateRecord", level="write", **running)
    desk.add([Decided("approver", at, at, call=1)])
    count_decisions()
    (tool,) = load_employee_trust(world.employee, world.acme).tools
    assert (tool.started, tool.failed, tool.unknown) == (1, 0, 1)
    ToolCall.objects.update(status=end, finished_at=timezone.now(), content="Ended.")
    (tool,) = load_employee_trust(world.employee, world.acme).tools
    assert (tool.started, tool.failed, tool.unknown) == (1, int(end == CallStatus.FAILED), 0)


def test_many_different_durations_are_stored_rounded_to_two_digits(
    world: World, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision_counts, "MAX_TIMES", 10)
    at = get_midnight(get_today() - timedelta(days=1))
    spans = [timedelta(milliseconds=3_001 + 17 * number) for number in range(40)]
    for number, span in enumerate(spans):
        end = at + timedelta(minutes=number)
        desk.add([Decided("approver", end, end - span, call=number)])
    (before,) = oversight.load_person_figures(world.acme, 7)
    count_decisions()
    (person,) = oversight.load_person_figures(world.acme, 7)
    of_that_day = DecisionFigures.objects.get(subject="people", day=at.date())
    assert len(of_that_day.data[str(person.decided.user_id)]["times"]) < 10
    assert person.decided.median_ms == pytest.approx(before.decided.median_ms, rel=0.02)
    assert person.decided[:-1] == before.decided[:-1]


def test_decisions_that_are_counted_while_a_page_reads_them_are_shown_once(
    world: World, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = hours_ago(30)
    desk.add([Decided("approver", at + timedelta(hours=n), at, call=n) for n in range(20)])
    count_up_to(at + timedelta(hours=3))
    read, reads = decision_counts.read_counted_to, list[datetime | None]()

    def count_after_the_first_read(organization_id: int) -> datetime | None:
        reads.append(read(organization_id))
        if len(reads) == 1:
            count_decisions()
        return reads[-1]

    monkeypatch.setattr(decision_counts, "read_counted_to", count_after_the_first_read)
    (person,) = oversight.load_person_figures(world.acme, 7)
    assert (person.decided.cards, len(reads)) == (20, 3)


def test_a_sweeper_counts_decisions_and_deletes_days_that_no_page_shows(
    world: World, desk: Desk
) -> None:
    at = hours_ago(5)
    desk.add([Decided("approver", at, at, call=1)])
    old = timezone.now().date() - timedelta(days=100)
    DecisionFigures.objects.create(organization=world.acme, day=old, subject="people")
    sweep_once()
    assert DecisionHead.objects.get(organization=world.acme).until > at
    assert set(DecisionFigures.objects.values_list("subject", flat=True)) >= {"people", "tools"}
    assert not DecisionFigures.objects.filter(day=old).exists()


@pytest.mark.parametrize(
    ("times", "median"), [({"5": 1}, 5), ({"5": 1, "8": 1}, 6), ({"9": 1, "5": 3}, 5)]
)
def test_the_median_of_counted_durations_is_rounded_down(
    times: dict[str, int], median: int
) -> None:
    assert compute_median(times) == median
