"""The counts of calls, cards and passes match their rows: each row is counted exactly once, by any
number of counters."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models.functions import Now
from pydantic import BaseModel

from agents.employees.models import Grant
from agents.insight import counting, figures
from agents.insight.models import FiguresHead, ToolFigures
from agents.readers.reading import find_oldest_cursor, skip_unread
from agents.runs.engine.timing import timing
from agents.runs.engine.transaction import run_transaction
from agents.runs.events import ToolFinished
from agents.runs.models import (
    ApprovalKind,
    CallStatus,
    Event,
    EventType,
    Pass,
    Run,
    RunStatus,
    ToolCall,
)
from agents.worker.sweeper import sweep_once
from tests.features import feature
from tests.recorder import Recorder
from tests.runs.counted import assert_figures_are_true, count_all, make_counting_due
from tests.workshop import (
    Workshop,
    again,
    all_at_once,
    asking,
    beside,
    build_workshop,
    call,
    calls,
    die_while_executing,
    eventually,
    expire_card,
    lose_worker,
    make_due,
)
from tools.contract import Level, Tool, ToolContext, ToolResult
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)


def some_pass(chance: random.Random) -> dict[str, Any]:
    name = f"n{chance.randrange(4)}"
    kinds = [
        call("utility.calculate", operation="add", a=chance.randrange(3), b=1),
        call("utility.calculate", operation="divide", a=1, b=0),
        call("probe.fail", code="NOT_FOUND"),
        call("probe.fail", code="TIMEOUT"),
        call("probe.effect", name=name),
        call("probe.failingEffect", code="NETWORK_ERROR"),
        call("no.such", x=1),
        call("utility.calculate", operation="nonsense"),
    ]
    return asking(*[chance.choice(kinds) for _ in range(chance.randrange(1, 5))])


def some_act(chance: random.Random, workshop: Workshop, run: Run) -> None:
    """Let a person, or the clock, do something to the run."""
    cards = workshop.cards(run)
    unknown = [one for one in calls(run) if one.status == CallStatus.OUTCOME_UNKNOWN]
    if unknown and chance.random() < 0.7:
        workshop.resolve(unknown[0], chance.choice(["succeeded", "not_done"]))
    elif cards and (card := chance.choice(cards)).kind == ApprovalKind.APPROVAL:
        act = chance.randrange(6)
        if act <= 2:
            workshop.approve(card, grace_s=60 if act == 0 else 0)
            if act == 0 and chance.random() < 0.5:
                workshop.undo(card)
        elif act == 3:
            workshop.deny(card)
        elif act == 4:
            expire_card(card)
            sweep_once()
        elif card.tool_call.tool == "probe.effect":
            workshop.edit(card, {"name": f"edited {chance.random()}"})
    elif chance.random() < 0.1:
        workshop.cancel(run)
    make_due(run)


class TestConcurrentCounting:
    @feature(
        "Figures and metrics",
        "Every call, card and pass is counted once, even by parallel counters",
        "agents/insight/counting.py",
    )
    @pytest.mark.parametrize("seed", range(4))
    def test_counts_every_call_card_and_pass_once_with_two_counters(
        self, workshop: Workshop, recorder: Recorder, seed: int
    ) -> None:
        chance = random.Random(seed)
        other = build_workshop("globex")
        workshop.allow_passes(8)
        make_counting_due()
        with counting_beside():
            for _ in range(5):
                place = chance.choice([workshop, other])
                place.play(*[some_pass(chance) for _ in range(chance.randrange(1, 4))])
                run = place.work()
                for _ in range(chance.randrange(8)):
                    if again(run).status in (RunStatus.WAITING, RunStatus.NEEDS_ATTENTION):
                        some_act(chance, place, run)
                    if again(run).status == RunStatus.QUEUED:
                        place.drive(run)
        assert Event.objects.count() > 30
        count_all(most=7)
        assert_figures_are_true()

    def test_counts_nothing_twice_with_four_counters_in_small_steps(
        self, workshop: Workshop
    ) -> None:
        workshop.play(
            asking(*[call("utility.calculate", operation="add", a=n, b=1) for n in range(8)])
        )
        for _ in range(3):
            workshop.work()
        make_counting_due()
        all_at_once([lambda: [counting.count_batch(2) for _ in range(6)]] * 4)
        count_all(most=3)
        assert_figures_are_true()


def counting_beside() -> Any:
    """Run two counters in small steps during the block."""
    stop = threading.Event()

    def until_stopped() -> None:
        while not stop.wait(0.002):
            counting.count_batch(3)

    class Counting:
        def __enter__(self) -> None:
            self.beside = beside(until_stopped, until_stopped)
            self.beside.__enter__()

        def __exit__(self, *error: Any) -> None:
            stop.set()
            self.beside.__exit__(*error)

    return Counting()


def figures_of(workshop: Workshop, tool: str) -> figures.Figures:
    return figures.load_tool_figures(workshop.organization.pk).get(tool, figures.Figures())


class TestCountedCalls:
    def test_are_counted_at_their_end_no_matter_how_old_they_are(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        workshop.play(asking(call("probe.effect", name="a")))
        run = workshop.work()
        count_all()
        assert (
            figures_of(workshop, "probe.effect").calls,
            figures_of(workshop, "probe.effect").asked,
        ) == (0, 1)
        ToolCall.objects.filter(run=run).update(created_at=Now() - timedelta(days=100))
        workshop.approve(workshop.card(run))
        workshop.drive(run)
        count_all()
        found = figures_of(workshop, "probe.effect")
        assert (found.succeeded, found.failed, found.asked, found.approved) == (1, 0, 1, 1)
        assert list(found.days) == [datetime.now(UTC).date()]
        assert found.p50_ms is not None
        assert_figures_are_true()

    def test_do_not_include_refused_denied_or_repeated_calls(self, workshop: Workshop) -> None:
        same = call("utility.calculate", operation="add", a=1, b=1)
        workshop.play(asking(same, same, call("no.such"), call("probe.effect", name="a")))
        run = workshop.work()
        workshop.deny(workshop.card(run))
        workshop.drive(run)
        count_all()
        assert {
            tool: one.calls
            for tool, one in figures.load_tool_figures(workshop.organization.pk).items()
        } == {
            "utility.calculate": 1,
            "probe.effect": 0,
        }
        assert figures_of(workshop, "probe.effect").denied == 1
        assert_figures_are_true()

    @feature(
        "Figures and metrics",
        "An unknown outcome is counted when it is resolved",
        "agents/insight/counting.py",
    )
    @pytest.mark.parametrize(("outcome", "sums"), [("succeeded", (1, 0)), ("not_done", (0, 1))])
    def test_include_an_unknown_outcome_once_a_person_has_resolved_it(
        self, workshop: Workshop, recorder: Recorder, outcome: str, sums: tuple[int, int]
    ) -> None:
        workshop.play(asking(call("probe.failingEffect", code="NETWORK_ERROR")))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        workshop.drive(run)
        count_all()
        assert figures_of(workshop, "probe.failingEffect").calls == 0
        workshop.resolve(calls(run)[0], outcome, "I rang them.")
        count_all()
        found = figures_of(workshop, "probe.failingEffect")
        assert (found.succeeded, found.failed) == sums
        assert found.p50_ms is None, "nobody measured how long it took"
        error = found.last_error
        assert (
            (error.code, error.message) == ("OUTCOME_UNKNOWN", "I rang them.")
            if error
            else outcome == "succeeded"
        )
        assert_figures_are_true()

    def test_reflect_a_late_report_unless_a_person_has_resolved_the_call(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        for name, is_settled in (("first", False), ("second", True)):
            recorder.hold(name)
            workshop.play(asking(call("probe.shortEffect", name=name)))
            run = workshop.work()
            workshop.approve(workshop.card(run))
            workshop.drive(run)
            if is_settled:
                workshop.resolve(calls(run)[0], "not_done")
            recorder.release(name)
            count_all()
            late = Event.objects.filter(run=run, type=EventType.CALL_RESOLVED)
            eventually(lambda late=late, least=1 + is_settled: late.count() >= least)  # type: ignore[misc]
        count_all()
        found = figures_of(workshop, "probe.shortEffect")
        assert (found.succeeded, found.failed) == (1, 1)
        assert_figures_are_true()

    def test_include_a_restarted_read_once(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.clock")))
        run = workshop.submit()
        die_while_executing(run)
        count_all()
        workshop.drive(lose_worker(run))
        count_all()
        assert figures_of(workshop, "probe.clock").calls == 1
        assert_figures_are_true()

    @pytest.mark.parametrize(
        "told", [12, None, "", "²", "٣", "1e3", "-1", "9" * 40, [1], {"id": 1}, True]
    )
    def test_are_not_blocked_by_an_event_without_a_call(
        self, workshop: Workshop, told: Any
    ) -> None:
        workshop.play(asking(call("probe.clock")))
        run = workshop.submit()
        with run_transaction(run.pk) as tx:
            tx.publish(ToolFinished(told, "probe.clock", {}, 0))
        workshop.drive(run)
        count_all()
        assert figures_of(workshop, "probe.clock").calls == 1

    def test_are_separate_for_each_organization(self, workshop: Workshop) -> None:
        other = build_workshop("globex")
        for place, passes in ((workshop, 1), (other, 2)):
            place.play(*[asking(call("probe.clock")) for _ in range(passes)])
            place.work()
        count_all()
        assert (
            figures_of(workshop, "probe.clock").calls,
            figures_of(other, "probe.clock").calls,
        ) == (1, 2)
        assert figures.load_employee_figures(workshop.employee.pk)["probe.clock"].calls == 1
        assert sum(use.passes for use in figures.load_employee_use(other.employee.pk).values()) == 3

    def test_include_the_newest_failure_shortened_and_without_secrets(
        self, workshop: Workshop
    ) -> None:
        for code in ("NOT_FOUND", ""):
            workshop.play(asking(call("probe.fail", code=code)))
            workshop.work()
            count_all()
        found = figures_of(workshop, "probe.fail").last_error
        assert found is not None
        assert found.code == "TOOL_EXECUTION_FAILED"
        assert "hunter2" not in found.message

    @pytest.mark.parametrize(
        ("cost", "micros"),
        [
            (0.25, 250_000),
            (3, 3_000_000),
            (-1, 0),
            ("dear", 0),
            (True, 0),
            (None, 0),
            ([1], 0),
            (1e12, 10**12),
        ],
    )
    def test_include_the_cost_that_a_result_reports_if_it_is_a_positive_number(
        self, workshop: Workshop, toolbox: Toolbox, cost: Any, micros: int
    ) -> None:
        toolbox.register(Dear())
        Grant.objects.create(employee=workshop.employee, tool=Dear.name)
        workshop.play(asking(call(Dear.name, cost={"is": cost})))
        workshop.work()
        count_all()
        assert figures_of(workshop, Dear.name).cost_micros == micros


class Dear(Tool):
    """A read that reports its cost."""

    name = "probe.dear"
    description = "Costs."
    level = Level.READ

    class Params(BaseModel):
        cost: dict[str, Any]

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        return ToolResult.ok({}, "Done", cost=params.cost["is"])


class TestCounting:
    @feature(
        "Figures and metrics", "Uncommitted rows are not skipped", "agents/insight/counting.py"
    )
    def test_does_not_skip_events_that_are_not_committed_yet(self, workshop: Workshop) -> None:
        """An event may get its id long before it is committed, and events with later ids may be
        committed first."""
        if connection.vendor == "sqlite":
            return  # SQLite has one writer at a time
        workshop.play(asking(call("probe.clock")))
        slow, fast = workshop.submit(), workshop.submit()
        count_all()
        written, commit = threading.Event(), threading.Event()

        def write_slowly() -> None:
            with transaction.atomic():
                workshop.drive(slow)
                written.set()
                assert commit.wait(30)

        with beside(write_slowly):
            assert written.wait(30)
            workshop.drive(fast)
            for _ in range(5):
                counting.count_batch()
            assert figures_of(workshop, "probe.clock").calls == 0
            assert (
                FiguresHead.objects.get().event_bound
                >= Event.objects.filter(run=fast).latest("pk").pk
            )
            commit.set()
        count_all()
        assert figures_of(workshop, "probe.clock").calls == 2
        assert_figures_are_true()

    @feature(
        "Figures and metrics",
        "A crash before the commit counts nothing",
        "agents/insight/counting.py",
    )
    def test_has_no_effect_if_a_crash_rolls_it_back(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.clock"), call("probe.fail", code="NOT_FOUND")))
        workshop.work()
        make_counting_due()
        with missing_table("insight_totaluse"), pytest.raises(DatabaseError):
            eventually(lambda: not counting.count_batch())
        assert not ToolFigures.objects.exists()
        assert FiguresHead.objects.get().event_id == 0
        count_all()
        assert_figures_are_true()

    def test_protects_uncounted_events_and_passes_from_deletion(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.clock")))
        workshop.work()
        skip_unread()
        for log in (Event, Pass):
            assert find_oldest_cursor(log) == 0
        count_all()
        for log in (Event, Pass):
            assert find_oldest_cursor(log) == log.objects.latest("pk").pk

    def test_pauses_after_the_sweeper_has_counted(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.clock")))
        workshop.work()

        def is_counted() -> bool:
            sweep_once()
            return figures_of(workshop, "probe.clock").calls == 1

        eventually(is_counted)
        head = FiguresHead.objects.get()
        assert head.due_at - head.looked_at == timing().count_pause
        FiguresHead.objects.update(due_at=Now() + timedelta(minutes=1))
        workshop.play(asking(call("probe.clock")))
        workshop.work()
        for _ in range(5):
            sweep_once()
        assert figures_of(workshop, "probe.clock").calls == 1

    def test_executes_few_queries_if_there_are_no_new_events(
        self, workshop: Workshop, django_assert_max_num_queries: Any
    ) -> None:
        count_all()
        FiguresHead.objects.update(due_at=Now() + timedelta(minutes=1))
        with django_assert_max_num_queries(1):
            counting.count_if_due()
        with django_assert_max_num_queries(10):
            counting.count_batch()

    def test_continues_after_the_database_resets_its_transaction_numbers(
        self, workshop: Workshop
    ) -> None:
        """After a dump is restored, the remembered numbers may be in the future."""
        workshop.play(asking(call("probe.clock")))
        workshop.work()
        make_counting_due()
        FiguresHead.objects.update(event_bound=1, asked_in=2**60)
        count_all()
        assert_figures_are_true()


@contextmanager
def missing_table(name: str) -> Iterator[None]:
    """Make the database fail in the middle of counting."""
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {name} RENAME TO {name}_away")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {name}_away RENAME TO {name}")
