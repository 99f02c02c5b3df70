"""Decide the next step of a run (step 8), under the run's lock and only from its rows."""

import time
from dataclasses import replace

from django.db.models import Exists, OuterRef, Q, QuerySet

from agents.runs.engine.ending import Ending, end_run, park
from agents.runs.engine.planned_order import release_held_calls
from agents.runs.engine.recovery import end_abandoned_calls
from agents.runs.engine.timing import MAX_CRASHES, MAX_DENIED_PASSES, timing
from agents.runs.engine.transaction import MACHINE, NO_STEP, Action, NextStep, Transaction
from agents.runs.events import PassStarted, RunResumed
from agents.runs.models import (
    PARKED,
    TERMINAL_CALLS,
    Approval,
    ApprovalKind,
    CallStatus,
    ExitReason,
    Origin,
    Pass,
    Run,
    RunStatus,
    ToolCall,
)
from agents.runs.queries.engine import OPEN_OR_LAST_CALLS, STARTABLE_CARD

ENGINE_FAILED = "The engine failed; its log says why."


def decide_next_step(tx: Transaction, must_yield: bool) -> NextStep:
    """Decide the next step of a driven run; park or end the run if its driver can do nothing more.

    Args:
        must_yield: True if the worker is shutting down, or the time slice is used up.
    """
    run = tx.run
    if run.cancel_requested_at is not None:
        end_run(tx, Ending(ExitReason.CANCELLED))
        return NO_STEP
    calls = OPEN_OR_LAST_CALLS.fetch_all(run.pk, run.pass_number)
    unfinished = {call.status for call in calls if call.status not in TERMINAL_CALLS}
    if CallStatus.EXECUTING in unfinished:
        end_abandoned_calls(tx)
        unfinished = set(
            ToolCall.objects.filter(_match_open_calls(run)).values_list("status", flat=True)
        )
    if reason := _find_forced_end(tx, unfinished):
        end_run(tx, Ending(reason))
        return NO_STEP
    if (action := _choose_action(tx, unfinished)) is not None:
        step = NextStep(action)
    elif unfinished or run.origin == Origin.MCP:
        _leave_waiting(tx, unfinished)
        return NO_STEP
    else:
        step = _decide_after_pass(
            tx, [call.status for call in calls if call.pass_number == run.pass_number]
        )
    return step if step is NO_STEP else _begin_step(tx, step, must_yield)


def wake_if_possible(tx: Transaction, by: str = MACHINE, *, is_announced: bool = False) -> bool:
    """Queue a parked run if it has something to do: a call can start, or all calls have ended;
    return True if it was queued.

    Args:
        by: the name of the person who decided or answered.
        is_announced: True if the caller has published that the run continues.
    """
    run = tx.run
    if run.status not in PARKED:
        return False
    statuses = set(ToolCall.objects.filter(_match_open_calls(run)).values_list("status", flat=True))
    if statuses and _choose_action(tx, statuses) is None:
        if run.status == RunStatus.NEEDS_ATTENTION and CallStatus.OUTCOME_UNKNOWN not in statuses:
            park(tx, needs_attention=False)
        return False
    tx.requeue()
    if not run.stopped_because and not is_announced:
        tx.publish(RunResumed(by, pass_number=run.pass_number))
    return True


def _leave_waiting(tx: Transaction, unfinished: set[str]) -> None:
    """Let the run wait for its open calls, or for the next request of a remote agent."""
    if unfinished:
        park(tx, needs_attention=CallStatus.OUTCOME_UNKNOWN in unfinished)
    else:
        rest(tx)


def rest(tx: Transaction) -> None:
    """Let the run of a remote agent's session rest until the next request; if none arrives within
    `session_idle`, the run ends."""
    tx.release_lease()
    tx.run.status = RunStatus.WAITING
    tx.run.next_wake_at = tx.now + timing().session_idle


def find_expandable_recipes(run_id: int) -> QuerySet[ToolCall]:
    """Return the run's recipes that can take a step, because they do not wait for a person, a
    colleague or a step."""
    waiting = ToolCall.objects.filter(run_id=run_id, status=CallStatus.SUSPENDED, child_run=None)
    asking = Approval.objects.filter(tool_call=OuterRef("pk"), kind=ApprovalKind.QUESTION)
    steps = ToolCall.objects.exclude(status__in=TERMINAL_CALLS).filter(parent_call=OuterRef("pk"))
    return waiting.filter(~Exists(asking), ~Exists(steps)).order_by("pass_number", "index")


def _match_open_calls(run: Run) -> Q:
    return Q(run_id=run.pk) & ~Q(status__in=TERMINAL_CALLS)


def _choose_action(tx: Transaction, unfinished: set[str]) -> Action | None:
    """Choose the next action for unfinished calls with these statuses; None if all of them wait."""
    if CallStatus.APPROVED in unfinished and _may_start_approved(tx):
        return Action.RUN_APPROVED
    if CallStatus.READY in unfinished:
        return Action.RUN_READY
    if CallStatus.SUSPENDED in unfinished and find_expandable_recipes(tx.run.pk).exists():
        return Action.EXPAND
    return None


def _may_start_approved(tx: Transaction) -> bool:
    """Return True if an approved call is due and not withheld. If only held calls are left, release
    those whose earlier calls have ended. Return False for asks, because their agents act
    themselves."""
    first = None if tx.run.origin == Origin.ASK else STARTABLE_CARD.fetch_one(tx.run.pk)
    return first is not None and (first.card.after_id is None or release_held_calls(tx))


def _find_forced_end(tx: Transaction, unfinished: set[str]) -> ExitReason | None:
    """Find the reason why the run must end now, even if calls could start; None if there is no such
    reason, or while calls execute."""
    run = tx.run
    if CallStatus.EXECUTING in unfinished:
        return None
    if run.crash_count >= MAX_CRASHES:
        return ExitReason.INTERNAL_ERROR if run.problem == ENGINE_FAILED else ExitReason.CRASH_LOOP
    return ExitReason.DEADLINE if tx.is_late else None


def _decide_after_pass(tx: Transaction, statuses: list[str]) -> NextStep:
    """Decide the step after a pass whose calls have all ended: the end of the run, a closing pass,
    or the next pass."""
    run = tx.run
    if run.pass_number == 0:
        return NextStep(Action.ASK)
    has_news = run.message_count > run.messages_heard
    if not run.has_model or (not statuses and not has_news):
        end_run(tx, _build_final_ending(run))
        return NO_STEP
    if not has_news and _was_denied_repeatedly(run, statuses):
        end_run(tx, Ending(ExitReason.DENIED_REPEATEDLY))
        return NO_STEP
    if run.pass_number >= run.max_passes:
        return NextStep(Action.ASK_FOR_ANSWER, ExitReason.MAX_PASSES)
    if not has_news and statuses and set(statuses) == {CallStatus.DUPLICATE}:
        return NextStep(Action.ASK_FOR_ANSWER, ExitReason.ALL_TOOLS_DUPLICATE)
    return NextStep(Action.ASK)


def _begin_step(tx: Transaction, step: NextStep, must_yield: bool) -> NextStep:
    """Return the step with the run's deadline; requeue the run instead if it was stopped or must
    yield."""
    run = tx.run
    if run.stopped_because or must_yield:
        tx.requeue()
        return NO_STEP
    if step.action in (Action.ASK, Action.ASK_FOR_ANSWER) and run.asked_pass <= run.pass_number:
        run.asked_pass = run.pass_number + 1
        tx.publish(PassStarted(run.asked_pass))
    if run.deadline_at is None:
        return step
    return replace(step, deadline=time.monotonic() + (run.deadline_at - tx.now).total_seconds())


def _build_final_ending(run: Run) -> Ending:
    """Build the ending with the model's answer; for a run without a model, with the result of its
    only call."""
    if run.has_model:
        rows = Pass.objects.filter(run_id=run.pk, number=run.pass_number)
        return Ending.answered(*rows.values_list("text", "cut_off").get())
    result = (
        ToolCall.objects.values_list("result", flat=True).get(run_id=run.pk, parent_call=None) or {}
    )
    error = result.get("error")
    answer = f"The call failed: {error['message']}" if error else str(result.get("summary", ""))
    return Ending(ExitReason.FINAL_ANSWER, answer)


def _was_denied_repeatedly(run: Run, statuses: list[str]) -> bool:
    """Return True if people denied every card of one tool in each of the last three passes."""
    if CallStatus.DENIED not in statuses or run.pass_number < MAX_DENIED_PASSES:
        return False
    passes = range(run.pass_number - MAX_DENIED_PASSES + 1, run.pass_number + 1)
    with_cards = ToolCall.objects.filter(
        run_id=run.pk, pass_number__in=passes, approvals__isnull=False
    ).distinct()
    outcomes: dict[str, dict[int, set[str]]] = {}
    for tool, number, status in with_cards.values_list("tool", "pass_number", "status"):
        outcomes.setdefault(tool, {}).setdefault(number, set()).add(status)
    return any(
        all(by_pass.get(number) == {CallStatus.DENIED} for number in passes)
        for by_pass in outcomes.values()
    )
