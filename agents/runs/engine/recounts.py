"""Limits over history (step 6 of a run): calls are counted again, under a lock, before they start."""

from collections.abc import Iterable, Set

from agents.runs.call_history import Occasion, lock_counts
from agents.runs.engine.context import RunContext
from agents.runs.engine.requested_calls import PlannedCall, find_earlier_calls, is_volatile
from agents.runs.engine.transaction import Transaction
from agents.runs.models import ToolCall
from tools.toolbox.permissions import Permission


def lock_counted(tx: Transaction, context: RunContext, tools: Iterable[str]) -> set[str]:
    """Return those of the tools whose calls a limit counts; nobody else counts the employee's calls of them meanwhile.

    No statement runs if there is none.
    """
    counted = {tool for tool in tools if context.has_counted_limit(tool)}
    if counted:
        lock_counts(tx.run.employee_id, counted)
    return counted


def add_starting(starting: list[ToolCall], plan: PlannedCall, run_id: int, seen: Set[str]) -> None:
    """Add the call if it will start without approval, and not as a duplicate of another.

    Args:
        seen: the signatures of the run's earlier calls; one of these costs a query.
    """
    if plan.permission == Permission.AUTO and not _is_repeated(plan.row, starting, run_id, seen):
        starting.append(plan.row)


def _is_repeated(row: ToolCall, starting: list[ToolCall], run_id: int, seen: Set[str]) -> bool:
    if is_volatile(row):
        return False
    is_equal = any(each.signature == row.signature for each in starting)
    return is_equal or bool(find_earlier_calls(run_id, {row.signature} & seen))


def count_again(
    tx: Transaction, context: RunContext, planned: list[PlannedCall], seen: Set[str] = frozenset()
) -> list[PlannedCall]:
    """Judge the calls whose limits count calls once more, while nobody else can count; return those that need a card.

    Other runs of the employee may have started calls since. No statement runs if there is no such limit.

    Args:
        seen: the signatures of the run's earlier calls; none for calls that are never duplicates.
    """
    tools = lock_counted(tx, context, (plan.row.tool for plan in planned if plan.error is None))
    counted = [plan for plan in planned if plan.error is None and plan.row.tool in tools]
    starting: list[ToolCall] = []
    lacking = []
    for plan in counted:
        _, verdict = context.judge(plan.row.tool, plan.row.params, Occasion(tx.now, beside=starting))
        if plan.permission == Permission.AUTO and verdict.permission == Permission.ASK:
            lacking.append(plan)
        elif plan.permission == Permission.AUTO or verdict.error is not None:
            plan.judge_again(verdict)
            add_starting(starting, plan, tx.run.pk, seen)
    return lacking
