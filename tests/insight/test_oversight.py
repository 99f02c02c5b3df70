"""Oversight: the figures of people, tools and employees match a naive recomputation; thresholds are
exact."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.approvals import bulk, decisions
from agents.approvals.decisions import DENY_REASONS, Decision
from agents.employees.models import Employee
from agents.insight import oversight
from agents.insight.decision_counts import get_midnight
from agents.insight.decision_spans import NO_REASON, OWN_WORDS
from agents.insight.figures import get_today
from agents.insight.trust import load_employee_trust
from agents.runs.models import Approval, CallStatus, Run, RunStatus
from tests.features import feature
from tests.insight.decided import (
    ANSWERED,
    APPROVED,
    DENIED,
    EDITED,
    Decided,
    Desk,
    median_ms,
    time_decisions,
)
from tests.world import World

pytestmark = pytest.mark.django_db

TOOLS = ("data.updateRecord", "data.createRecord", "files.writeFile")
QUICK = timedelta(milliseconds=1999)
SLOW = timedelta(seconds=2)


@pytest.fixture
def desk(world: World) -> Desk:
    return Desk(world, world.run())


def get_period_start(days: int) -> datetime:
    """Return midnight in UTC at the start of the first of the last `days` days."""
    return get_midnight(get_today() - timedelta(days=days - 1))


def hours_ago(hours: int = 1) -> datetime:
    return timezone.now().replace(microsecond=0) - timedelta(hours=hours)


def make_history(chance: random.Random, count: int) -> list[Decided]:
    """Build decisions of three people that begin shortly before the last 7 days, with bulk
    decisions, edits, answers and pauses."""
    history: list[Decided] = []
    call = 0
    for person in ("approver", "admin", "operator"):
        start = get_period_start(7)
        at = start - timedelta(hours=3)
        while (made := len([each for each in history if each.by == person])) < count:
            call += 1
            at = max(at, start) if made > count / 2 else at
            at += timedelta(
                milliseconds=chance.choice([300, 1_500, 1_999, 2_000, 7_000, 3_600_000])
            )
            requested = at - timedelta(milliseconds=chance.choice([100, 1_000, 30_000, 86_400_000]))
            tool = TOOLS[call % len(TOOLS)]
            kind = chance.randrange(10)
            if kind == 0:
                bulk_id = uuid.uuid4()
                for _ in range(chance.randrange(1, 6)):
                    call += 1
                    outcome = chance.choice([APPROVED, APPROVED, APPROVED, DENIED])
                    history.append(
                        Decided(person, at, requested, outcome, call, TOOLS[call % 3], bulk_id)
                    )
                    at += timedelta(milliseconds=20)
            elif kind <= 2:
                history.append(Decided(person, at, requested, EDITED, call, tool))
                again = at + timedelta(milliseconds=800)
                history.append(
                    Decided(
                        person, again, at, chance.choice([APPROVED, DENIED, EDITED]), call, tool
                    )
                )
                at = again
            else:
                outcome = chance.choice([APPROVED, APPROVED, DENIED, ANSWERED])
                history.append(Decided(person, at, requested, outcome, call, tool))
    return history


def on_the_person(desk: Desk, days: int = 30) -> dict[str, oversight.PersonFigures]:
    return {each.name: each for each in oversight.load_person_figures(desk.world.acme, days)}


class TestFiguresOfPeople:
    @feature(
        "Figures and metrics",
        "How people decide: cards, median time, quick approvals, edits and denials of each person",
        "agents/insight/oversight.py",
    )
    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("days", [7, 30])
    def test_match_a_naive_recomputation(self, desk: Desk, seed: int, days: int) -> None:
        history = make_history(random.Random(seed), 60)
        desk.add(history)
        since = get_period_start(days)
        figures = oversight.load_person_figures(desk.world.acme, days)
        assert [each.name for each in figures] == ["admin", "approver", "operator"]
        assert (len([each for each in history if each.at < since]) > 0) is (days == 7)
        every = [
            one
            for one in time_decisions(history)
            if one.decided.at >= since and one.decided.outcome != ANSWERED
        ]
        for person in figures:
            own = [one for one in every if one.decided.by == person.name]
            counted = [one for one in own if one.counts]
            outcomes = [one.decided.outcome for one in own]
            assert person.decided[1:] == (
                len(own),
                len(counted),
                len([one for one in counted if one.decided.bulk]),
                *(outcomes.count(outcome) for outcome in (APPROVED, EDITED, DENIED)),
                len([one for one in counted if one.decided.outcome == APPROVED and one.ms < 2_000]),
                median_ms(counted),
            )

    def test_measure_a_decision_from_its_request_or_the_preceding_decision(
        self, desk: Desk
    ) -> None:
        at = hours_ago()
        earlier, later = at - timedelta(hours=1), at + timedelta(seconds=4)
        desk.add(
            [Decided("approver", at, earlier, call=1), Decided("approver", later, earlier, call=2)]
        )
        assert on_the_person(desk)["approver"].decided.median_ms == (3_600_000 + 4_000) // 2

    def test_use_the_last_decision_before_the_period_as_the_preceding_decision(
        self, desk: Desk
    ) -> None:
        start = get_period_start(7)
        before, after = start - timedelta(seconds=1), start + timedelta(seconds=3)
        desk.add(
            [
                Decided("admin", at, start - timedelta(hours=5), call=n)
                for n, at in enumerate((before, after))
            ]
        )
        decided = on_the_person(desk, 7)["admin"].decided
        assert (decided.cards, decided.median_ms) == (1, 4_000)

    @feature(
        "Figures and metrics",
        "A bulk decision counts once for each outcome, with the time for each row",
        "agents/insight/decision_spans.py",
    )
    def test_count_a_bulk_once_with_the_time_per_row(self, desk: Desk) -> None:
        at, bulk_id = hours_ago(), uuid.uuid4()
        rows = [
            Decided("approver", at, at - timedelta(seconds=60), call=n, bulk=bulk_id)
            for n in range(12)
        ]
        desk.add(rows)
        decided = on_the_person(desk)["approver"].decided
        assert (decided.cards, decided.decisions, decided.in_bulk, decided.median_ms) == (
            12,
            1,
            1,
            5_000,
        )

    def test_do_not_count_an_edited_card_as_quick_for_its_editor(self, desk: Desk) -> None:
        at = hours_ago()
        edit = Decided("approver", at, at - timedelta(seconds=30), EDITED, call=1)
        own = Decided("approver", at + timedelta(seconds=1), at, call=1)
        desk.add([edit, own])
        assert on_the_person(desk)["approver"].decided.quick == 0

    def test_do_not_count_an_answer_as_a_decision(self, desk: Desk) -> None:
        at = hours_ago()
        hour_ago = at - timedelta(hours=1)
        answer = Decided("approver", at, hour_ago, ANSWERED, call=1)
        desk.add([answer, Decided("approver", at + timedelta(seconds=1), hour_ago, call=2)])
        decided = on_the_person(desk)["approver"].decided
        assert (decided.cards, decided.quick, decided.median_ms) == (1, 1, 1_000)

    def test_do_not_attribute_approvals_by_standing_grants_to_their_creators(
        self, desk: Desk
    ) -> None:
        at = hours_ago()
        hour_ago = at - timedelta(hours=1)
        desk.add(
            [Decided("approver", at + timedelta(seconds=n), hour_ago, call=n) for n in range(3)]
        )
        grant = desk.world.standing_grant()
        Approval.objects.filter(pk=Approval.objects.order_by("pk")[1].pk).update(
            standing_grant=grant
        )
        decided = on_the_person(desk)["approver"].decided
        assert (decided.cards, decided.quick, decided.median_ms) == (2, 0, (3_600_000 + 2_000) // 2)
        assert [row.calls for row in oversight.load_tool_corrections(desk.world.acme.pk, 30)] == [2]
        assert [
            tool.approved
            for tool in load_employee_trust(desk.world.employee, desk.world.acme).tools
        ] == [2]

    def test_exclude_other_organizations(self, desk: Desk) -> None:
        at = hours_ago()
        desk.add([Decided("outsider", at, at - SLOW)])
        Approval.objects.update(organization=desk.world.globex)
        assert oversight.load_person_figures(desk.world.acme, 30) == []
        assert oversight.load_tool_corrections(desk.world.acme.pk, 30) == []
        assert oversight.load_oversight(desk.world.acme.pk, 30).days == {}
        assert [each.name for each in oversight.load_person_figures(desk.world.globex, 30)] == [
            "outsider"
        ]


class TestTheHasteWarning:
    @staticmethod
    def is_hasty(desk: Desk, quick: int, slow: int, outcome: str = APPROVED) -> bool:
        at = hours_ago(24)
        rows = []
        for number in range(quick + slow):
            took = QUICK if number < quick else SLOW
            at += timedelta(minutes=1)
            rows.append(
                Decided(
                    "approver", at, at - took, outcome if number < quick else APPROVED, call=number
                )
            )
        desk.add(rows)
        return on_the_person(desk)["approver"].is_hasty

    @feature(
        "Figures and metrics",
        "A warning of people who approve nearly everything in under two seconds",
        "agents/insight/oversight.py",
    )
    @pytest.mark.parametrize(
        ("quick", "slow", "is_hasty"),
        [
            (50, 0, True),
            (49, 0, False),
            (48, 2, True),
            (47, 3, False),
            (95, 5, False),
            (96, 4, True),
        ],
    )
    def test_appears_if_over_95_percent_of_at_least_50_decisions_were_quick(
        self, desk: Desk, quick: int, slow: int, is_hasty: bool
    ) -> None:
        assert self.is_hasty(desk, quick, slow) is is_hasty

    def test_does_not_count_exactly_two_seconds_as_quick(self, desk: Desk) -> None:
        assert not self.is_hasty(desk, 0, 60)

    def test_ignores_quick_denials(self, desk: Desk) -> None:
        assert not self.is_hasty(desk, 60, 0, DENIED)

    def test_counts_one_large_bulk_as_one_decision(self, desk: Desk) -> None:
        at, bulk_id = hours_ago(), uuid.uuid4()
        desk.add(
            [Decided("approver", at, at - SLOW, call=number, bulk=bulk_id) for number in range(60)]
        )
        assert not on_the_person(desk)["approver"].is_hasty


class TestFiguresOfTools:
    @feature(
        "Figures and metrics",
        "How often calls of a tool are denied or edited",
        "agents/insight/oversight.py",
    )
    def test_count_denied_and_edited_calls_once(self, desk: Desk) -> None:
        at = hours_ago()
        before = at - SLOW
        desk.add(
            [
                Decided("approver", at, before, EDITED, call=1),
                Decided("approver", at, before, APPROVED, call=1),
                Decided("approver", at, before, APPROVED, call=2),
                Decided("approver", at, before, DENIED, call=3),
                Decided("admin", at, before, DENIED, call=4, tool="files.writeFile"),
            ]
        )
        assert oversight.load_tool_corrections(desk.world.acme.pk, 30) == [
            ("data.updateRecord", 3, 2, 1, 1, 2),
            ("files.writeFile", 1, 0, 0, 1, 1),
        ]

    def test_match_a_naive_recomputation_by_tool_and_by_day(self, desk: Desk) -> None:
        history = make_history(random.Random(7), 60)
        desk.add(history)
        shown = [each for each in history if each.outcome != ANSWERED]
        for row in oversight.load_tool_corrections(desk.world.acme.pk, 30):
            own = [each for each in shown if each.tool == row.tool]
            outcomes = [each.outcome for each in own]
            corrected = {each.call for each in own if each.outcome in (EDITED, DENIED)}
            assert row[1:] == (
                len({each.call for each in own}),
                *(outcomes.count(outcome) for outcome in (APPROVED, EDITED, DENIED)),
                len(corrected),
            )
        for day, decided in oversight.load_oversight(desk.world.acme.pk, 30).days.items():
            outcomes = [each.outcome for each in shown if each.at.astimezone(UTC).date() == day]
            assert tuple(decided) == tuple(
                outcomes.count(outcome) for outcome in (APPROVED, EDITED, DENIED)
            )


class TestTrustInAnEmployee:
    @feature(
        "Figures and metrics",
        "How far an employee is trusted, with reasons of denials and failures of approved calls",
        "agents/insight/trust.py",
    )
    def test_shows_decisions_outcomes_and_reasons_of_one_employee(self, desk: Desk) -> None:
        at = hours_ago()
        before = at - timedelta(seconds=9)
        desk.add(
            [
                Decided("approver", at, before, call=1),
                Decided("admin", at, before, call=2, ended=CallStatus.FAILED),
                Decided(
                    "operator",
                    at,
                    before,
                    DENIED,
                    call=3,
                    reason="Wrong target. It is the other one",
                ),
            ]
        )
        trust = load_employee_trust(desk.world.employee, desk.world.acme)
        assert trust.tools == [("data.updateRecord", 2, 0, 1, 2, 1, 0, 9_000)]
        assert trust.reasons == [("Wrong target", 1)]
        assert load_employee_trust(desk.world.others_employee, desk.world.globex).tools == []

    def test_has_medians_that_match_a_naive_recomputation(self, desk: Desk) -> None:
        history = make_history(random.Random(3), 60)
        desk.add(history)
        shown = [one for one in time_decisions(history) if one.decided.outcome != ANSWERED]
        trust = load_employee_trust(desk.world.employee, desk.world.acme)
        assert {each.tool: each.median_ms for each in trust.tools} == {
            tool: median_ms(one for one in shown if one.decided.tool == tool)
            for tool in {one.decided.tool for one in shown}
        }

    def test_uses_cards_of_other_employees_only_as_preceding_decisions(self, world: World) -> None:
        at = hours_ago()
        hour_ago = at - timedelta(hours=1)
        colleague = Employee.objects.create(
            organization=world.acme, name="Robin", provider=world.employee.provider
        )
        other = Run.objects.create(
            organization=world.acme, employee=colleague, task="Help", status=RunStatus.WAITING
        )
        Desk(world, other).add([Decided("approver", at, hour_ago, call=1)])
        mine = Desk(world, world.run())
        mine.add([Decided("approver", at + timedelta(seconds=5), hour_ago, call=2)])
        assert [
            each.median_ms for each in load_employee_trust(world.employee, world.acme).tools
        ] == [5_000]

    def test_distinguishes_reasons_that_cards_offer_from_free_text(self, desk: Desk) -> None:
        own = ["Wrong targets all over", "not needed", "  ", ""]
        offered = [DENY_REASONS[2], f"{DENY_REASONS[2]}. We did it", DENY_REASONS[0]]
        at = hours_ago()
        desk.add(
            [
                Decided("approver", at, at - SLOW, DENIED, call=number, reason=reason)
                for number, reason in enumerate([*own, *offered])
            ]
        )
        assert load_employee_trust(desk.world.employee, desk.world.acme).reasons == [
            (DENY_REASONS[0], 1),
            (DENY_REASONS[2], 2),
            (OWN_WORDS, 2),
            (NO_REASON, 2),
        ]


class TestBulkIds:
    def test_are_shared_by_rows_decided_in_bulk_and_absent_otherwise(self, world: World) -> None:
        member = world.member("approver")
        cards = [world.card() for _ in range(4)]
        one, *others = [(card.pk, "approve", Decision(card.digest)) for card in cards[:3]]
        bulk.decide_many(member, [one])
        assert [outcome.status for outcome in bulk.decide_many(member, others)] == [200, 200]
        decisions.deny(member, cards[3].pk, Decision(cards[3].digest))
        ids = list(Approval.objects.order_by("pk").values_list("bulk_id", flat=True))
        assert ids[0] is ids[3] is None
        assert ids[1] == ids[2] is not None

    def test_can_be_shared_by_several_requests(self, world: World) -> None:
        bulk_id = uuid.uuid4()
        for card in (world.card(), world.card()):
            bulk.decide_many(
                world.member("approver"), [(card.pk, "approve", Decision(card.digest))], bulk_id
            )
        assert set(Approval.objects.values_list("bulk_id", flat=True)) == {bulk_id}


def test_the_number_of_queries_is_independent_of_the_number_of_rows(desk: Desk) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            oversight.load_person_figures(desk.world.acme, 30)
            load_employee_trust(desk.world.employee, desk.world.acme)
        return len(queries)

    at = hours_ago()
    desk.add([Decided("admin", at, at - SLOW, EDITED), Decided("admin", at, at - SLOW, DENIED)])
    few = count()
    other = Desk(desk.world, desk.world.run())
    other.add(make_history(random.Random(2), 40))
    assert count() == few
