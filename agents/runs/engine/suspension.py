"""Suspend calls that wait for a person, a colleague's run or, as recipes (step 4 of a run), their
own steps."""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Now

from agents.employees.models import Employee
from agents.runs.engine.cards import compute_digest, find_next_sequence
from agents.runs.engine.context import RunContext, list_colleagues, load_context, load_grants
from agents.runs.engine.judgment import PlannedCalls
from agents.runs.engine.lease import Lease
from agents.runs.engine.next_step import find_expandable_recipes, wake_if_possible
from agents.runs.engine.requested_calls import (
    MAX_CALL_DEPTH,
    CallRequest,
    attach_to_parent,
    insert_calls,
)
from agents.runs.engine.results import (
    NotExecuting,
    build_end_columns,
    end_unexecuted,
    publish_result,
)
from agents.runs.engine.timing import MAX_OPEN_CARDS
from agents.runs.engine.transaction import (
    NextStep,
    Transaction,
    new_run_transaction,
    run_transaction,
)
from agents.runs.events import QuestionAsked, RunStarted, ToolProgress, ToolRejected
from agents.runs.models import (
    ENDED,
    Approval,
    ApprovalKind,
    ApprovalStatus,
    CallStatus,
    Message,
    Origin,
    Run,
    RunStatus,
    ToolCall,
)
from agents.runs.models.run import make_title
from tools.contract import (
    Delegation,
    ErrorCode,
    Preview,
    Question,
    Recipe,
    Suspend,
    ToolError,
    ToolResult,
)
from tools.contract.canonical import make_storable
from tools.contract.sentences import cut_end, quote_whole
from tools.toolbox.isolation import run_isolated
from tools.toolbox.outcome import normalize_result
from tools.toolbox.param_values import write_params
from tools.toolbox.permissions import find_refusal

MAX_DELEGATION_DEPTH = 3
"""The maximum number of delegations in a row: a person's task has depth 0, and each delegation adds
one."""
MAX_OPEN_CHILDREN = 5
LONGEST_QUESTION = 4_000
LONGEST_TASK = 20_000
LONGEST_SUMMARY = 300
MAX_MS = 2**31 - 1
"""The longest duration in milliseconds that a call's column can store: more than 24 days."""
_MS = timedelta(milliseconds=1)
_SENTENCE_LENGTH = 1_000


def suspend(tx: Transaction, call: ToolCall, wait: Suspend, duration_ms: int) -> None:
    """Suspend an executing call of this driver, and ask its question or start the colleague's run,
    in this transaction.

    If the question or the delegation is refused, the refusal becomes the call's result.

    Raises:
        NotExecuting: the call is not executing in the driver's epoch; the transaction must be
            rolled back.
    """
    mine = ToolCall.objects.filter(
        pk=call.pk, status=CallStatus.EXECUTING, exec_epoch=tx.run.lease_epoch
    )
    if not mine.update(status=CallStatus.SUSPENDED):
        raise NotExecuting(f"run {tx.run.pk}: {call.pk}")
    call.status = CallStatus.SUSPENDED
    tx.run.crash_count = 0
    try:
        if tx.run.cancel_requested_at is not None:
            _cancel_suspended(tx, call)
        elif isinstance(wait, Question):
            _ask_question(tx, call, wait)
        elif isinstance(wait, Delegation):
            _delegate(tx, call, wait)
    except ToolError as refusal:
        _end_suspended_after(tx, call, ToolResult.failed(refusal), duration_ms)


def end_suspended(tx: Transaction, call: ToolCall, result: ToolResult) -> bool:
    """End a suspended call with its result and its duration; return False if it is no longer
    suspended."""
    waited = (tx.now - call.started_at) / _MS if call.started_at is not None else 0
    return _end_suspended_after(tx, call, result, min(round(waited), MAX_MS))


def _end_suspended_after(
    tx: Transaction, call: ToolCall, result: ToolResult, duration_ms: int
) -> bool:
    waiting = ToolCall.objects.filter(pk=call.pk, status=CallStatus.SUSPENDED)
    if not waiting.update(**build_end_columns(tx, call, result, duration_ms)):
        return False
    publish_result(tx, call, result, duration_ms)
    return True


def _cancel_suspended(tx: Transaction, call: ToolCall) -> None:
    error = ToolError(ErrorCode.OPERATION_NOT_ALLOWED, "The run was cancelled.", attempted=False)
    if end_unexecuted(tx, call, CallStatus.CANCELLED, error):
        tx.publish(ToolRejected.of(call, error))


def _ask_question(tx: Transaction, call: ToolCall, question: Question) -> None:
    """Create the question's card; raise ToolError if the question is not allowed."""
    text = make_storable(question.text)
    if not text.strip() or len(text) > LONGEST_QUESTION:
        raise make_refusal(
            ErrorCode.INVALID_PARAMETER,
            f"A question must have 1 to {LONGEST_QUESTION:,} characters.",
        )
    if (
        Approval.objects.filter(run_id=call.run_id, status=ApprovalStatus.PENDING).count()
        >= MAX_OPEN_CARDS
    ):
        raise make_refusal(
            ErrorCode.LIMIT_EXCEEDED, f"Too many open cards ({MAX_OPEN_CARDS}). Try later."
        )
    days = tx.run.organization.card_days
    choices = [make_storable(choice) for choice in question.choices]
    preview = Preview("answer").as_json() | {"question": text, "choices": choices}
    asks = f"{tx.run.employee.name} asks: {quote_whole(text)}"
    card = Approval.objects.create(
        organization_id=call.organization_id,
        run_id=call.run_id,
        tool_call=call,
        sequence=find_next_sequence(call),
        kind=ApprovalKind.QUESTION,
        level=call.level,
        params=call.params,
        sentence=cut_end(asks, _SENTENCE_LENGTH),
        preview=preview,
        why="The employee needs an answer to continue.",
        digest=compute_digest(call, preview),
        expires_at=Now() + timedelta(days=days),
    )
    expires_at = (tx.now + timedelta(days=days)).isoformat()
    tx.publish(QuestionAsked(str(card.pk), str(call.pk), text, choices, expires_at))
    tx.inbox_changed = True


def _delegate(tx: Transaction, call: ToolCall, delegation: Delegation) -> None:
    """Start the colleague's run, which does not see anything of this run except the task."""
    parent, colleague = tx.run, _find_colleague(tx, delegation.employee)
    task = make_storable(delegation.task).strip()
    if not task or len(task) > LONGEST_TASK:
        raise make_refusal(
            ErrorCode.INVALID_PARAMETER, f"A task must have 1 to {LONGEST_TASK:,} characters."
        )
    if _find_delegated_calls(parent.pk).count() >= MAX_OPEN_CHILDREN:
        raise make_refusal(
            ErrorCode.LIMIT_EXCEEDED,
            f"At most {MAX_OPEN_CHILDREN} delegated tasks may be open at a time.",
        )
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
        title=make_title(task),
        mode=colleague.mode,
        max_passes=colleague.max_passes,
        deadline_at=_choose_deadline(parent.deadline_at, tx.now, colleague.run_minutes),
    )
    with new_run_transaction(child) as child_tx:
        Message.objects.create(run=child, number=1, text=task)
        child_tx.publish(RunStarted(parent.employee.name, parent_run_id=str(parent.pk)))
    tx.publish(
        ToolProgress(str(call.pk), 0.0, f"{colleague.name} is working on it.", run_id=str(child.pk))
    )


def _find_delegated_calls(run_id: int) -> QuerySet[ToolCall]:
    """Find the run's calls that wait for a colleague."""
    return ToolCall.objects.filter(
        run_id=run_id, status=CallStatus.SUSPENDED, child_run__isnull=False
    )


def _find_colleague(tx: Transaction, name: str) -> Employee:
    """Find the colleague with this name.

    Raises:
        ToolError: the reason why this run may not delegate to that colleague now.
    """
    run = tx.run
    allowed = list_colleagues(run.employee, load_grants(run.employee_id, run.mode).delegates)
    found = next(
        (each for each in allowed if each.name.casefold() == name.strip().casefold()), None
    )
    if found is None:
        names = ", ".join(each.name for each in allowed if each.is_active) or "nobody"
        raise make_refusal(
            ErrorCode.NOT_PERMITTED, f"You may not delegate to {name!r}, only to: {names}."
        )
    if not found.is_active or found.stopped_at is not None:
        raise make_refusal(
            ErrorCode.OPERATION_NOT_ALLOWED, f"{found.name} is not working at the moment."
        )
    if run.depth >= MAX_DELEGATION_DEPTH:
        message = f"A task may be delegated at most {MAX_DELEGATION_DEPTH} times in a row."
        raise make_refusal(ErrorCode.OPERATION_NOT_ALLOWED, message)
    if found.pk in _list_employees_above(run):
        message = f"{found.name} is waiting for this task, so it cannot work on it."
        raise make_refusal(ErrorCode.OPERATION_NOT_ALLOWED, message)
    return found


def _list_employees_above(run: Run) -> set[int]:
    """List the employees of the run and of the runs that wait for it."""
    found, parent_id = {run.employee_id}, run.parent_id
    while parent_id is not None:
        employee_id, parent_id = Run.objects.values_list("employee_id", "parent_id").get(
            pk=parent_id
        )
        found.add(employee_id)
    return found


def _choose_deadline(
    parent_deadline: datetime | None, now: datetime, minutes: int | None
) -> datetime | None:
    """Return the deadline of a child run: the deadline of its employee, but not later than the
    parent's; None if there is no deadline."""
    own = now + timedelta(minutes=minutes) if minutes else None
    return min((at for at in (parent_deadline, own) if at is not None), default=None)


def make_refusal(code: ErrorCode, message: str) -> ToolError:
    """Return an error for a call that was not attempted."""
    return ToolError(code, message, attempted=False)


def collect_delegate_results(run_id: int, wait: bool = True) -> bool:
    """End the run's delegating calls whose colleague's run has ended, with that run's result;
    return False if there are none.

    Raises:
        Run.DoesNotExist: `wait` is False and the run is locked.
    """
    answered = _find_delegated_calls(run_id).filter(child_run__status__in=ENDED)
    if not answered.exists():
        return False
    with run_transaction(run_id, wait=wait) as tx:
        calls = list(answered.select_related("child_run__employee").order_by("pk"))
        for call in calls:
            end_suspended(tx, call, make_delegate_result(call.child_run))
        wake_if_possible(tx)
    return bool(calls)


def make_delegate_result(child: Run) -> ToolResult:
    """Build the result of a delegating call from the colleague's ended run."""
    name = child.employee.name
    origin: dict[str, Any] = {"run_id": str(child.pk), "employee": name}
    if child.status == RunStatus.SUCCEEDED:
        data = {**origin, "answer": child.answer, "exit_reason": child.exit_reason}
        return ToolResult.ok(data, f"{name} answered: {shorten_answer(child.answer)}", **origin)
    if child.status == RunStatus.CANCELLED:
        message = f"The task was cancelled before {name} answered."
    else:
        because = f" {child.problem}" if child.problem else ""
        message = (
            f"{name} did not finish the task: {child.get_exit_reason_display().lower()}.{because}"
        )
    return ToolResult.failed(ToolError(ErrorCode.SUBAGENT_FAILED, message), **origin)


def shorten_answer(answer: str) -> str:
    """Shorten an answer to one line of at most 300 characters, for the summary of a call."""
    words = " ".join(answer.split())
    return words if len(words) <= LONGEST_SUMMARY else f"{words[: LONGEST_SUMMARY - 1]}…"


def expand_recipe(lease: Lease) -> NextStep:
    """Advance one of the run's recipes by a step, or end it with its result; return the run's next
    step."""
    parent = find_expandable_recipes(lease.run_id).first()
    if parent is None:
        with lease.transaction() as tx:
            pass  # the end of a transaction decides the next step
        return tx.next_step
    context = load_context(lease.run_id)
    try:
        step = _plan_recipe_step(context, parent)
    except ToolError as failure:
        step = ToolResult.failed(failure)
    if not isinstance(step, ToolResult):
        return _record_recipe_step(lease, parent, step)
    with lease.transaction() as tx:
        if _may_continue(tx, parent):
            end_suspended(tx, parent, step)
    return tx.next_step


def _may_continue(tx: Transaction, parent: ToolCall) -> bool:
    return tx.run.may_start and find_expandable_recipes(tx.run.pk).filter(pk=parent.pk).exists()


def _record_recipe_step(lease: Lease, parent: ToolCall, step: PlannedCalls) -> NextStep:
    """Record a recipe's step as a call, judged by the current rules; end the recipe if these rules
    forbid the recipe."""
    for _ in step.rounds(lease):
        with lease.transaction() as tx:
            if _may_continue(tx, parent) and step.judge_again(tx) is None:
                if (refusal := _find_recipe_refusal(step.context, parent)) is not None:
                    end_suspended(tx, parent, ToolResult.failed(refusal))
                else:
                    attach_to_parent(parent, step.only, step.context)
                    insert_calls(tx, step.planned, free_slots=0)
        if not tx.step_continues:
            return tx.next_step
    raise AssertionError("the last round records every step")


def _find_recipe_refusal(context: RunContext, recipe: ToolCall) -> ToolError | None:
    """Find the reason why the recipe, or a recipe above it, is no longer allowed; None if all of
    them are allowed."""
    call: ToolCall | None = recipe
    while call is not None:
        tool = context.find_tool(call)
        if tool is None:
            return _make_not_installed_error(call)
        if (refusal := find_refusal(tool, context.grants, context.policy)) is not None:
            return refusal
        call = call.parent_call
    return None


def _make_not_installed_error(call: ToolCall) -> ToolError:
    return ToolError(
        ErrorCode.TOOL_NOT_FOUND, f"{call.tool} is no longer installed.", attempted=False
    )


def _plan_recipe_step(context: RunContext, parent: ToolCall) -> PlannedCalls | ToolResult:
    """Plan the recipe's next step; after the last step, return the recipe's result.

    Raises:
        ToolError: a step did not succeed, or the recipe itself fails.
    """
    recipe = context.find_tool(parent)
    if not isinstance(recipe, Recipe):
        raise _make_not_installed_error(parent)
    done = list(ToolCall.objects.filter(parent_call=parent).order_by("index"))
    results = [ToolResult.from_json(call.result or {}) for call in done]
    if results and not results[-1].success:
        raise _make_step_failure(len(done), len(recipe.steps), done[-1], results[-1])
    params = run_isolated(recipe, "load_params", lambda: recipe.load_params(parent.params))
    if len(done) >= len(recipe.steps):
        return run_isolated(
            recipe, "result", lambda: normalize_result(recipe, recipe.result(params, results), 0)
        )
    step = recipe.steps[len(done)]
    if _count_callers(parent) >= MAX_CALL_DEPTH and isinstance(
        context.toolbox.get_granted_tool(step.tool, context.grants), Recipe
    ):
        raise ToolError(
            ErrorCode.LIMIT_EXCEEDED,
            f"Recipes may be nested at most {MAX_CALL_DEPTH} levels deep.",
            attempted=False,
        )

    def plan() -> PlannedCalls:
        request = CallRequest(step.tool, write_params(step.params(params, results)))
        return PlannedCalls(context, [request])

    return run_isolated(recipe, f"step {len(done) + 1}", plan)


def _count_callers(call: ToolCall) -> int:
    """Count the calls above this one."""
    depth = 0
    while call.parent_call is not None:
        call, depth = call.parent_call, depth + 1
    return depth


def _make_step_failure(number: int, total: int, call: ToolCall, result: ToolResult) -> ToolError:
    reason = result.error.message if result.error else result.summary
    what = f"Step {number} of {total}, {call.tool}, did not succeed ({call.get_status_display().lower()}): {reason}"
    done = "" if number == 1 else " The steps before it were completed."
    return ToolError(
        ErrorCode.OPERATION_FAILED, f"{what}{done}", recovery_hint="Do not repeat completed steps."
    )
