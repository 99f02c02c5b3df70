"""A change affects only its own call, card and run, and only if they have not changed since the
change was decided."""

import pytest

from agents.runs.engine.card_sentences import CallEffect
from agents.runs.engine.cards import replace_card, supersede, withdraw
from agents.runs.engine.results import CallExecution, end_unexecuted, record_result
from agents.runs.engine.suspension import suspend
from agents.runs.engine.transaction import run_transaction
from agents.runs.engine.unknown_outcomes import mark_outcome_unknown
from agents.runs.models import Approval, ApprovalStatus, CallStatus, Run, RunStatus, ToolCall
from agents.worker.sweeper import sweep_once
from tests.workshop import (
    Workshop,
    again,
    asking,
    call,
    calls,
    die_while_executing,
    lose_worker,
    statuses,
)
from tests.workshop.colleagues import ask, may_ask
from tools.contract import ErrorCode, Preview, Question, ToolError, ToolResult

pytestmark = pytest.mark.django_db(transaction=True)

NO = ToolError(ErrorCode.OPERATION_NOT_ALLOWED, "No.", attempted=False)


class TestAnExecutingCall:
    @pytest.fixture
    def executing(self, workshop: Workshop) -> list[ToolCall]:
        """Two calls of different runs, whose drivers were killed."""
        workshop.play(asking(call("probe.sleep", ms=0)))
        runs = [workshop.submit() for _ in range(2)]
        for run in runs:
            die_while_executing(run)
        return [calls(run)[0] for run in runs]

    def test_is_marked_unknown_without_affecting_other_calls(
        self, executing: list[ToolCall]
    ) -> None:
        first, second = executing
        with run_transaction(first.run_id) as tx:
            mark_outcome_unknown(tx, first, "Nobody knows.")
        assert status_of(first, second) == [CallStatus.OUTCOME_UNKNOWN, CallStatus.EXECUTING]
        lose_worker(second.run)

    def test_ends_without_affecting_other_calls(self, executing: list[ToolCall]) -> None:
        first, second = executing
        with run_transaction(first.run_id) as tx:
            assert end_unexecuted(tx, first, CallStatus.CANCELLED, NO)
        assert status_of(first, second) == [CallStatus.CANCELLED, CallStatus.EXECUTING]
        lose_worker(second.run)

    def test_refuses_a_result_from_another_epoch(self, executing: list[ToolCall]) -> None:
        first, _ = executing
        assert first.exec_epoch is not None
        with run_transaction(first.run_id) as tx:
            assert not record_result(
                tx, first, CallExecution(first.exec_epoch - 1, ToolResult.ok(), 0)
            )
        assert not can_suspend(first, first.exec_epoch - 1)
        assert status_of(first) == [CallStatus.EXECUTING]
        lose_worker(first.run)

    def test_cannot_become_unknown_after_its_end(self, executing: list[ToolCall]) -> None:
        first, _ = executing
        with run_transaction(first.run_id) as tx:
            assert first.exec_epoch is not None
            assert record_result(tx, first, CallExecution(first.exec_epoch, ToolResult.ok(), 0))
            mark_outcome_unknown(tx, first, "Nobody knows.")
        assert status_of(first) == [CallStatus.SUCCEEDED]
        assert not Approval.objects.exists()


def can_suspend(row: ToolCall, epoch: int) -> bool:
    """Try to suspend the call as a driver of this epoch; return True if it is suspended."""
    with run_transaction(row.run_id) as tx:
        try:
            tx.run.lease_epoch = epoch
            suspend(tx, row, Question("Which one?"), 0)
        except RuntimeError:
            return False
    return True


def status_of(*rows: ToolCall) -> list[str]:
    return [ToolCall.objects.values_list("status", flat=True).get(pk=row.pk) for row in rows]


class TestACard:
    @pytest.fixture
    def cards(self, workshop: Workshop) -> list[Approval]:
        """Two cards of one run."""
        workshop.play(asking(call("probe.effect", name="a"), call("probe.effect", name="b")))
        return workshop.cards(workshop.work())

    def test_cannot_be_replaced_or_withdrawn_once_decided(
        self, workshop: Workshop, cards: list[Approval]
    ) -> None:
        card, _ = cards
        workshop.deny(Approval.objects.get(pk=card.pk))
        with run_transaction(card.run_id) as tx:
            with pytest.raises(RuntimeError):
                supersede(tx, card, "It changed.")
            assert not withdraw(tx, card, "It changed.")
        card.refresh_from_db()
        assert card.status == ApprovalStatus.DENIED

    def test_is_replaced_without_changing_another_call(self, cards: list[Approval]) -> None:
        card, other = cards
        card.tool_call.params = {"name": "c"}
        with run_transaction(card.run_id) as tx:
            replace_card(tx, card, CallEffect("Do c", Preview.impossible("None.")), "It changed.")
        assert [row.params for row in calls(card.run)] == [{"name": "c"}, other.tool_call.params]


class TestTheEndOfARun:
    def test_does_not_affect_cards_and_questions_of_other_runs(self, workshop: Workshop) -> None:
        may_ask(workshop.employee)
        workshop.play(asking(ask(), call("probe.effect", name="a")))
        first, second = workshop.work(), workshop.work()
        workshop.cancel(first)
        assert statuses(first) == [CallStatus.CANCELLED, CallStatus.CANCELLED]
        assert statuses(second) == [CallStatus.SUSPENDED, CallStatus.AWAITING_APPROVAL]
        assert len(workshop.cards(second)) == 2

    def test_does_not_wait_for_an_unknown_outcome_of_another_run(self, workshop: Workshop) -> None:
        failing = workshop.submit()
        workshop.play(asking(call("probe.failingEffect", code="NETWORK_ERROR")))
        unknown = workshop.work()
        workshop.approve(workshop.card(unknown))
        assert workshop.drive(unknown).status == RunStatus.NEEDS_ATTENTION
        Run.objects.filter(pk=failing.pk).update(deadline_at=failing.created_at)
        sweep_once()
        assert again(failing).status == RunStatus.FAILED
