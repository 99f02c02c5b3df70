"""Calls that wait: for a person's answer, for a colleague, or, as recipes do, for their own steps (step 4 of a run)."""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Now

from agents.approvals.models import Approval, ApprovalKind, ApprovalStatus
from agents.employees.models import Employee
from agents.runs.engine.cards import digest_of, next_sequence
from agents.runs.engine.context import RunContext, colleagues_of, grants_of, load_context
from agents.runs.engine.lease import Lease
from agents.runs.engine.next_step import expandable_recipes, wake_if_possible
from agents.runs.engine.requested_calls import (
    MOST_CALL_DEPTH,
    ROUNDS,
    CallRequest,
    PlannedCall,
    insert_calls,
    make_child,
    plan_call,
    preview_card,
)
from agents.runs.engine.results import NotExecuting, end_columns, end_unexecuted, publish_result
from agents.runs.engine.timing import OPEN_CARDS
from agents.runs.engine.transaction import NextStep, Transaction, new_run_transaction, run_transaction
from agents.runs.events import QuestionAsked, RunStarted, ToolProgress, ToolRejected
from agents.runs.models import (
    ENDED,
    CallStatus,
    Message,
    Origin,
    Run,
    RunStatus,
    ToolCall,
)
from agents.runs.models.run import title_of
from tools.contract import Delegation, ErrorCode, Preview, Question, Recipe, Suspend, ToolError, ToolResult
from tools.contract.canonical import made_storable
from tools.toolbox.isolation import isolated
from tools.toolbox.outcome import checked_result
from tools.toolbox.permissions import Permission

MOST_DELEGATION_DEPTH = 3
"""A task of a person has depth 0; what it leads to is handed on at most so often."""
OPEN_CHILDREN = 5
LONGEST_QUESTION = 4_000
LONGEST_TASK = 20_000
LONGEST_SUMMARY = 300
MOST_MS = 2**31 - 1
"""What a call's duration can hold: somewhat more than 24 days."""
_MS = timedelta(milliseconds=1)
_SENTENCE_LENGTH = 1_000


def suspend(tx: Transaction, call: ToolCall, wait: Suspend, duration_ms: int) -> None:
    """Let an executing call of this driver wait, and ask its question or start the colleague's run.

    All of it happens in this transaction; a refusal is the call's result.

    Raises:
        NotExecuting: the call is not executing in the driver's epoch; nothing may be written then.
    """
    mine = ToolCall.objects.filter(pk=call.pk, status=CallStatus.EXECUTING, exec_epoch=tx.run.lease_epoch)
    if not mine.update(status=CallStatus.SUSPENDED):
        raise NotExecuting(f"run {tx.run.pk}: {call.pk}")
    call.status = CallStatus.SUSPENDED
    tx.run.crash_count = 0
    try:
        if tx.run.cancel_requested_at is not None:
            _cancel(tx, call)
        elif isinstance(wait, Question):
            _ask(tx, call, wait)
        elif isinstance(wait, Delegation):
            _hand_over(tx, call, wait)
    except ToolError as refusal:
        _end_waiting(tx, call, ToolResult.failed(refusal), duration_ms)


def end_suspended(tx: Transaction, call: ToolCall, result: ToolResult) -> bool:
    """Give a suspended call its result, and the time from its start until now; False if it does not wait any more."""
    waited = (tx.now - call.started_at) / _MS if call.started_at is not None else 0
    return _end_waiting(tx, call, result, min(round(waited), MOST_MS))


def _end_waiting(tx: Transaction, call: ToolCall, result: ToolResult, duration_ms: int) -> bool:
    waiting = ToolCall.objects.filter(pk=call.pk, status=CallStatus.SUSPENDED)
    if not waiting.update(**end_columns(tx, call, result, duration_ms)):
        return False
    publish_result(tx, call, result, duration_ms)
    return True


def _cancel(tx: Transaction, call: ToolCall) -> None:
    error = ToolError(ErrorCode.OPERATION_NOT_ALLOWED, "The run was cancelled.", attempted=False)
    if end_unexecuted(tx, call, CallStatus.CANCELLED, error):
        tx.publish(ToolRejected.of(call, error))


def _ask(tx: Transaction, call: ToolCall, question: Question) -> None:
    """The question's card, which stands in the inbox like any other."""
    text = made_storable(question.text)
    if not text.strip() or len(text) > LONGEST_QUESTION:
        raise _refused(ErrorCode.INVALID_PARAMETER, f"A question has 1 to {LONGEST_QUESTION:,} characters.")
    if Approval.objects.filter(run_id=call.run_id, status=ApprovalStatus.PENDING).count() >= OPEN_CARDS:
        raise _refused(ErrorCode.LIMIT_EXCEEDED, f"At most {OPEN_CARDS} cards may wait at a time; ask again later.")
    days = tx.run.organization.card_days
    choices = [made_storable(choice) for choice in question.choices]
    preview = Preview("answer").as_json() | {"question": text, "choices": choices}
    asks = f"{tx.run.employee.name} asks: “{text}”"
    card = Approval.objects.create(
        organization_id=call.organization_id,
        run_id=call.run_id,
        tool_call=call,
        sequence=next_sequence(call),
        kind=ApprovalKind.QUESTION,
        level=call.level,
        params=call.params,
        sentence=asks if len(asks) <= _SENTENCE_LENGTH else f"{asks[:_SENTENCE_LENGTH]}…",
        preview=preview,
        why="The employee cannot go on with this without an answer.",
        digest=digest_of(call, preview),
        expires_at=Now() + timedelta(days=days),
    )
    expires_at = (tx.now + timedelta(days=days)).isoformat()
    tx.publish(QuestionAsked(str(card.pk), str(call.pk), text, choices, expires_at))
    tx.inbox_changed = True


def _hand_over(tx: Transaction, call: ToolCall, delegation: Delegation) -> None:
    """The run of another employee, who gets nothing of this one but the task."""
    parent, colleague = tx.run, _colleague(tx, delegation.employee)
    task = made_storable(delegation.task).strip()
    if not task or len(task) > LONGEST_TASK:
        raise _refused(ErrorCode.INVALID_PARAMETER, f"A task has 1 to {LONGEST_TASK:,} characters.")
    if _waiting_for_others(parent.pk).count() >= OPEN_CHILDREN:
        raise _refused(ErrorCode.LIMIT_EXCEEDED, f"At most {OPEN_CHILDREN} tasks may be handed over at a time.")
    child = Run(
        organization_id=parent.organization_id,
        employee=colleague,
        created_by_id=parent.created_by_id,
        origin=Origin.DELEGATE,
        parent_id=parent.pk,
        parent_call=call,
        depth=parent.depth + 1,
        client_request_id=f"delegate-{call.idempotency_key}",
        task=task,
        title=title_of(task),
        mode=colleague.mode,
        max_passes=colleague.max_passes,
        deadline_at=_earliest(parent.deadline_at, tx.now, colleague.run_minutes),
    )
    with new_run_transaction(child) as child_tx:
        Message.objects.create(run=child, number=1, text=task)
        child_tx.publish(RunStarted(parent.employee.name, parent_run_id=str(parent.pk)))
    tx.publish(ToolProgress(str(call.pk), 0.0, f"{colleague.name} works on it.", run_id=str(child.pk)))


def _waiting_for_others(run_id: int) -> QuerySet[ToolCall]:
    """The run's calls that wait for another employee."""
    return ToolCall.objects.filter(run_id=run_id, status=CallStatus.SUSPENDED, child_run__isnull=False)


def _colleague(tx: Transaction, name: str) -> Employee:
    """The employee of that name, to whom this run may hand a task now.

    Raises:
        ToolError: it may not, and why.
    """
    run = tx.run
    allowed = colleagues_of(run.employee, grants_of(run.employee_id, run.mode).delegates)
    found = next((each for each in allowed if each.name.casefold() == name.strip().casefold()), None)
    if found is None:
        names = ", ".join(each.name for each in allowed if each.is_active) or "nobody"
        raise _refused(ErrorCode.NOT_PERMITTED, f"You may not hand a task to {name!r}, only to: {names}.")
    if not found.is_active or found.stopped_at is not None:
        raise _refused(ErrorCode.OPERATION_NOT_ALLOWED, f"{found.name} does not work at the moment.")
    if run.depth >= MOST_DELEGATION_DEPTH:
        raise _refused(ErrorCode.OPERATION_NOT_ALLOWED, f"A task is handed on at most {MOST_DELEGATION_DEPTH} times.")
    if found.pk in _employees_above(run):
        raise _refused(
            ErrorCode.OPERATION_NOT_ALLOWED, f"{found.name} is waiting for this very task, and cannot work on it."
        )
    return found


def _employees_above(run: Run) -> set[int]:
    """The employees of the run and of those that wait for it."""
    found, parent_id = {run.employee_id}, run.parent_id
    while parent_id is not None:
        employee_id, parent_id = Run.objects.values_list("employee_id", "parent_id").get(pk=parent_id)
        found.add(employee_id)
    return found


def _earliest(of_parent: datetime | None, now: datetime, minutes: int | None) -> datetime | None:
    """A child's deadline: its employee's own, but not later than its parent's."""
    own = now + timedelta(minutes=minutes) if minutes else None
    return min((at for at in (of_parent, own) if at is not None), default=None)


def _refused(code: ErrorCode, message: str) -> ToolError:
    return ToolError(code, message, attempted=False)


def collect(run_id: int, wait: bool = True) -> bool:
    """Give the run's calls that wait for another employee the ends of their runs; False if none has ended.

    Raises:
        Run.DoesNotExist: without `wait`, the run is not free.
    """
    answered = _waiting_for_others(run_id).filter(child_run__status__in=ENDED)
    if not answered.exists():
        return False
    with run_transaction(run_id, wait=wait) as tx:
        calls = list(answered.select_related("child_run__employee").order_by("pk"))
        for call in calls:
            end_suspended(tx, call, result_of(call.child_run))
        wake_if_possible(tx)
    return bool(calls)


def result_of(child: Run) -> ToolResult:
    """What an ended run is for the call that asked for it."""
    name = child.employee.name
    told: dict[str, Any] = {"run_id": str(child.pk), "employee": name}
    if child.status == RunStatus.SUCCEEDED:
        told |= {"answer": child.answer, "exit_reason": child.exit_reason}
        return ToolResult.ok(told, f"{name} answered: {brief_words(child.answer)}", **_where(child))
    if child.status == RunStatus.CANCELLED:
        message = f"The task was cancelled before {name} had answered."
    else:
        because = f" {child.problem}" if child.problem else ""
        message = f"{name} did not get it done: {child.get_exit_reason_display().lower()}.{because}"
    return ToolResult.failed(ToolError(ErrorCode.SUBAGENT_FAILED, message), **_where(child))


def brief_words(answer: str) -> str:
    """An answer in one line of at most 300 characters, for the summary of the call that waited for it."""
    words = " ".join(answer.split())
    return words if len(words) <= LONGEST_SUMMARY else f"{words[: LONGEST_SUMMARY - 1]}…"


def _where(child: Run) -> dict[str, str]:
    return {"run_id": str(child.pk), "employee": child.employee.name}


def expand_recipe(lease: Lease) -> NextStep:
    """Take one recipe one step further, or give it its result."""
    parent = expandable_recipes(lease.run_id).first()
    if parent is None:
        with lease.transaction() as tx:
            pass
        return tx.next_step
    context = load_context(lease.run_id)
    try:
        step = _plan_step(context, parent)
    except ToolError as failure:
        step = ToolResult.failed(failure)
    if not isinstance(step, ToolResult):
        return _record_step(lease, context, parent, step)
    with lease.transaction() as tx:
        if _may_continue(tx, parent):
            end_suspended(tx, parent, step)
    return tx.next_step


def _may_continue(tx: Transaction, parent: ToolCall) -> bool:
    return tx.run.may_start and expandable_recipes(tx.run.pk).filter(pk=parent.pk).exists()


def _record_step(
    lease: Lease, context: RunContext, parent: ToolCall, step: tuple[CallRequest, PlannedCall]
) -> NextStep:
    """Record a step as a call, judged by the rules of that moment; if they have changed, it is judged anew before."""
    (request, plan), rounds = step, ROUNDS
    while True:
        rounds -= 1
        if plan.permission is Permission.ASK and plan.effect is None:
            preview_card(lease, context, plan)
        with lease.transaction() as tx:
            if _may_continue(tx, parent):
                current = context.with_current_rules()
                has_changed = not current.has_same_rules(context)
                if has_changed and rounds:
                    tx.is_midway = True
                else:
                    plan = plan.finish(plan_call(current, 0, request)) if has_changed else plan
                    plan.row = make_child(parent, plan)
                    insert_calls(tx, [plan], slots=0)
        if not tx.is_midway:
            return tx.next_step
        context, plan = current, plan.keep_if_same(plan_call(current, 0, request))


def _plan_step(context: RunContext, parent: ToolCall) -> tuple[CallRequest, PlannedCall] | ToolResult:
    """Plan the next step; return the recipe's result once there is none.

    Raises:
        ToolError: a step did not succeed, or the recipe itself fails.
    """
    recipe = context.find_tool(parent)
    if not isinstance(recipe, Recipe):
        raise ToolError(ErrorCode.TOOL_NOT_FOUND, f"{parent.tool} is not installed any more.", attempted=False)
    done = list(ToolCall.objects.filter(parent_call=parent).order_by("index"))
    results = [ToolResult.from_json(call.result or {}) for call in done]
    if results and not results[-1].success:
        raise _stopped_at(len(done), len(recipe.steps), done[-1], results[-1])
    params = isolated(recipe, "load_params", lambda: recipe.load_params(parent.params))
    if len(done) >= len(recipe.steps):
        return isolated(recipe, "result", lambda: checked_result(recipe, recipe.result(params, results), 0))
    step = recipe.steps[len(done)]
    if _depth(parent) >= MOST_CALL_DEPTH and isinstance(context.toolbox.get_tool(step.tool), Recipe):
        raise ToolError(
            ErrorCode.LIMIT_EXCEEDED, f"Recipes nest at most {MOST_CALL_DEPTH} levels deep.", attempted=False
        )

    def plan() -> tuple[CallRequest, PlannedCall]:
        request = CallRequest(step.tool, step.params(params, results))
        return request, plan_call(context, 0, request)

    return isolated(recipe, f"step {len(done) + 1}", plan)


def _depth(call: ToolCall) -> int:
    """Count the calls that stand above this one."""
    depth = 0
    while call.parent_call is not None:
        call, depth = call.parent_call, depth + 1
    return depth


def _stopped_at(number: int, of: int, call: ToolCall, result: ToolResult) -> ToolError:
    said = result.error.message if result.error else result.summary
    what = f"Step {number} of {of}, {call.tool}, did not succeed ({call.get_status_display().lower()}): {said}"
    done = "" if number == 1 else " The steps before it were done."
    return ToolError(ErrorCode.OPERATION_FAILED, f"{what}{done}", recovery_hint="Do not repeat what was done.")
