"""Steps 5 and 6 of a run: ask the model, then record its answer and the calls that it asks for in one transaction."""

from __future__ import annotations

import time
from collections.abc import Set
from dataclasses import asdict, dataclass, field, replace
from functools import partial

from django.db import transaction

from agents.employees import budgets
from agents.employees.budgets import Price, cost_of, in_units, price_of
from agents.platform import notify
from agents.platform.boundaries import surviving
from agents.platform.database_condition import release_connection
from agents.platform.statements import insert
from agents.providers.base import (
    LateUsage,
    ModelRequest,
    ModelResponse,
    ProviderConfig,
    ProviderError,
    RequestedCall,
    Usage,
)
from agents.providers.choice import provider_for
from agents.providers.failures import TOO_LONG, still_too_long
from agents.runs.engine.compaction import room_for
from agents.runs.engine.context import RunContext, load_context, provider_config
from agents.runs.engine.ending import Ending, end_run
from agents.runs.engine.execution import count_slots
from agents.runs.engine.history import History, OpenCalls, history_of, kept, outcomes_of
from agents.runs.engine.lease import Lease
from agents.runs.engine.next_step import is_late
from agents.runs.engine.requested_calls import (
    CARDS_ARE_FULL,
    ROUNDS,
    PlannedCall,
    earlier_calls,
    insert_calls,
    is_volatile,
    make_limit_error,
    plan_call,
    preview_card,
)
from agents.runs.engine.timing import OPEN_CARDS
from agents.runs.engine.transaction import Action, NextStep, Transaction, run_transaction
from agents.runs.events import AnswerCut, AssistantMessage, AssistantThought, HistoryShortened, UsageReported
from agents.runs.models import Pass, Run, ToolCall
from tools.contract import ErrorCode, ToolError
from tools.toolbox.permissions import Permission

MOST_CALLS = 100
MOST_THOUGHT = 100_000
"""Characters kept of a model's thoughts; far more come only from a broken or hostile server."""
MOST_SHOWN_THOUGHT = 8_000


@dataclass(frozen=True)
class ModelAnswer:
    """The model's answer before it is recorded: its calls judged in `context`, and previewed."""

    context: RunContext
    history: History
    response: ModelResponse
    duration_ms: int
    planned: list[PlannedCall] = field(default_factory=list)


def ask_model(lease: Lease, step: NextStep) -> ModelAnswer:
    """Ask the model, outside any transaction, and plan the calls that it asks for.

    Raises:
        ProviderError: the model could not be asked or answered nonsense.
        ProviderStopped: the driver was told to stop meanwhile.
        BudgetExhausted: nothing was asked.
        LeaseLost: somebody else drives the run by now.
    """
    context = load_context(lease.run_id)
    budgets.check_budgets(context.run)
    try:
        answer = _ask(lease, step, context)
    except OpenCalls:
        with lease.transaction():
            raise  # unless the lease is lost: then the open calls are the next driver's
    answer.planned.extend(_plan_calls(context, answer))
    if all(plan.permission != Permission.ASK for plan in answer.planned):
        return answer
    return _preview_answer(lease, answer, context.with_current_rules())


def _preview_answer(lease: Lease, answer: ModelAnswer, context: RunContext) -> ModelAnswer:
    """Return the answer with its calls as this context judges them, and with the effects that their cards will show.

    A call whose verdict stays the same is previewed once.
    """
    planned = answer.planned
    if not context.has_same_rules(answer.context):
        both = zip(planned, _plan_calls(context, answer), strict=True)
        planned = [before.keep_if_same(current) for before, current in both]
    _preview_all(lease, context, planned, answer.history.signatures)
    return replace(answer, context=context, planned=planned)


def _ask(lease: Lease, step: NextStep, context: RunContext) -> ModelAnswer:
    """Send the history, once more and shorter if the provider finds it too long."""
    config, employee, tools = provider_config(context), context.run.employee, context.tools
    room = room_for(employee, employee.provider, tools)
    history = history_of(context, lease.conversation, step.action == Action.CLOSE, room)
    request = ModelRequest(
        model=employee.model,
        messages=history.messages,
        tools=[tool.definition for tool in tools],
        deadline=step.ends,
        closing=step.action == Action.CLOSE,
        outcomes=lambda: outcomes_of(lease.run_id),
    )
    conversation = _Request(lease, context, config)
    try:
        return conversation.send(request, history)
    except ProviderError as error:
        if error.code != TOO_LONG:
            raise
        shorter = history_of(context, lease.conversation, request.closing, replace(room, harder=True))
        if shorter.cuts == history.cuts:
            raise
    try:
        return conversation.send(replace(request, messages=shorter.messages), shorter)
    except ProviderError as error:
        raise still_too_long(error) if error.code == TOO_LONG else error from error


@dataclass(frozen=True)
class _Request:
    """The request of one pass to its model."""

    lease: Lease
    context: RunContext
    config: ProviderConfig

    def send(self, request: ModelRequest, history: History) -> ModelAnswer:
        """Return the answer, no later than the request's deadline and the provider's timeout."""
        lease = self.lease
        writing = notify.TextStream(lease.run_id, lease.epoch, self.context.run.pass_number + 1)
        provider = provider_for(self.config)
        lease.expect_step(self.config.timeout_s)
        release_connection()
        deadline = min(request.deadline, time.monotonic() + self.config.timeout_s)
        started = time.perf_counter()
        response = provider.ask(
            replace(request, deadline=deadline),
            partial(notify.stream_text, writing),
            lease.stopped,
        )
        return ModelAnswer(self.context, history, response, round((time.perf_counter() - started) * 1000))


def _plan_calls(context: RunContext, answer: ModelAnswer) -> list[PlannedCall]:
    return [_plan_call(context, index, call) for index, call in enumerate(answer.response.calls)]


def _plan_call(context: RunContext, index: int, requested: RequestedCall) -> PlannedCall:
    plan = plan_call(context, index, requested)
    if index >= MOST_CALLS:
        plan.refuse(plan.error or make_limit_error(f"At most {MOST_CALLS} calls in one answer."))
    return plan


def _preview_all(lease: Lease, context: RunContext, planned: list[PlannedCall], seen: Set[str]) -> None:
    """Compute what each card will show, once for equal calls and for no more than may wait at a time.

    Calls whose signature the run has `seen` before may turn out to be duplicates and take nobody's place.
    """
    shown: set[str] = set()
    cards = 0
    for plan in planned:
        row = plan.row
        if plan.permission != Permission.ASK or (row.signature in shown and not is_volatile(row)):
            continue
        if cards >= OPEN_CARDS:
            plan.refuse(make_limit_error(CARDS_ARE_FULL))
            continue
        shown.add(row.signature)
        if plan.effect is None:
            preview_card(lease, context, plan)
        cards += plan.effect is not None and row.signature not in seen


@dataclass(frozen=True)
class RecordedPass:
    """The next step; or the calls that were started already, with the context that judged them."""

    step: NextStep
    context: RunContext
    started: list[ToolCall] = field(default_factory=list)


def record_pass(lease: Lease, step: NextStep, answer: ModelAnswer) -> RecordedPass:
    """Record the pass with its calls, start those that need no approval, or end the run with its answer.

    The calls are judged by the rules of this transaction. If the rules have changed since, the calls are judged anew
    before, outside of it, and previewed where the verdict is another one; not once the run may start nothing, nor after
    a few rounds.
    """
    rounds = ROUNDS
    while True:
        rounds -= 1
        with lease.transaction() as tx:
            context = current = answer.context
            started, is_recorded = list[ToolCall](), True
            if tx.run.cancel_requested_at is None:
                current = context.with_current_rules() if answer.planned and step.action != Action.CLOSE else context
                if current.has_same_rules(context):
                    started = _record_answer(tx, step, replace(answer, context=current))
                elif not rounds or not tx.run.may_start:
                    started = _record_answer(tx, step, _finish_plans(answer, current))
                else:
                    is_recorded, tx.is_midway = False, True
        if is_recorded:
            return RecordedPass(tx.next_step, current, started)
        answer = _preview_answer(lease, answer, current)


def _finish_plans(answer: ModelAnswer, context: RunContext) -> ModelAnswer:
    both = zip(answer.planned, _plan_calls(context, answer), strict=True)
    return replace(answer, context=context, planned=[before.finish(current) for before, current in both])


def _record_answer(tx: Transaction, step: NextStep, answer: ModelAnswer) -> list[ToolCall]:
    run, context = tx.run, answer.context
    run.employee, run.organization = context.run.employee, context.run.organization
    _record_pass(tx, step, answer)
    if step.action == Action.CLOSE:
        _close(tx, step, answer)
        return []
    _find_duplicates(run.pk, answer.planned, answer.history.signatures)
    return _record_calls(tx, answer)


def _record_pass(tx: Transaction, step: NextStep, answer: ModelAnswer) -> None:
    run, response = tx.run, answer.response
    run.pass_number += 1
    run.asked_pass = max(run.asked_pass, run.pass_number)
    run.messages_heard = answer.history.heard
    run.crash_count = run.patience_tries = 0
    run.patience_since = None
    run.problem = ""
    cost = count_usage(run, response.usage)
    insert(
        [
            Pass(
                run_id=run.pk,
                number=run.pass_number,
                response=kept(response.message, answer.history.cuts),
                text=response.text,
                thought=response.thought[:MOST_THOUGHT],
                cut_off=response.cut_off.value,
                messages_upto=answer.history.heard,
                closing=step.action == Action.CLOSE,
                input_tokens=response.usage.input_tokens,
                output_tokens=response.usage.output_tokens,
                cost_micros=cost,
                usage_estimated=response.usage.is_estimated,
                duration_ms=answer.duration_ms,
            )
        ]
    )
    if response.late_usage is not None:
        correct_usage_later(run, response.late_usage)
    _publish_answer(tx, response)
    if (shortening := answer.history.cuts.step) is not None:
        tx.publish(HistoryShortened(pass_number=run.pass_number, **asdict(shortening)))


def _publish_answer(tx: Transaction, response: ModelResponse) -> None:
    number = tx.run.pass_number
    if response.thought:
        shown = response.thought[:MOST_SHOWN_THOUGHT]
        tx.publish(AssistantThought(number, shown, True if len(shown) < len(response.thought) else None))
    if response.text:
        tx.publish(AssistantMessage(response.text, number))
    if response.cut_off:
        tx.publish(AnswerCut(number, str(response.cut_off)))


def _close(tx: Transaction, step: NextStep, answer: ModelAnswer) -> None:
    """Reject the calls of a closing pass; its text is the answer, unless a person sent a message meanwhile."""
    refused = ToolError(
        ErrorCode.OPERATION_NOT_ALLOWED, "No more tools may be called: the run is closing.", attempted=False
    )
    for plan in answer.planned:
        plan.refuse(refused)
    _record_calls(tx, answer)
    if tx.run.message_count <= answer.history.heard:
        end_run(tx, Ending.answered(answer.response.text, answer.response.cut_off, step.reason))


def _record_calls(tx: Transaction, answer: ModelAnswer) -> list[ToolCall]:
    """Insert the calls, and start as many as there are slots; return these."""
    for plan in answer.planned:
        plan.row.pass_number = tx.run.pass_number
    may_start = tx.run.may_start and not is_late(tx)
    return insert_calls(tx, answer.planned, slots=count_slots() if may_start else 0)


def _find_duplicates(run_id: int, planned: list[PlannedCall], seen: Set[str]) -> None:
    earlier = earlier_calls(run_id, [plan.row for plan in planned if plan.row.signature in seen])
    volatile_free = {plan.row.signature: plan.row for plan in reversed(planned) if not is_volatile(plan.row)}
    for plan in planned:
        if plan.row.signature in earlier:
            plan.row.duplicate_of = earlier[plan.row.signature]
        elif (first := volatile_free.get(plan.row.signature)) is not None and first is not plan.row:
            plan.row.duplicate_of = first


def count_usage(run: Run, used: Usage) -> int:
    """Add an answer's usage to the run, and return its cost in micros; needs the run's employee and provider."""
    cost = cost_of(run.employee.provider, run.employee.model, used)
    run.input_tokens += used.input_tokens
    run.output_tokens += used.output_tokens
    run.cost_micros += cost
    if used.is_estimated:
        run.estimated_tokens += used.total
    return cost


def correct_usage_later(run: Run, late_usage: LateUsage) -> None:
    """Correct the pass recorded in this transaction once its usage comes, whoever drives the run by then."""
    late = _LateUsageOf(run.pk, run.pass_number, price_of(run.employee.provider, run.employee.model))
    transaction.on_commit(partial(late_usage.then, late.replace_estimate), robust=True)


@dataclass(frozen=True)
class _LateUsageOf:
    """A recorded pass whose usage is an estimate.

    Attributes:
        price: the price at which it was counted.
    """

    run_id: int
    number: int
    price: Price | None

    def replace_estimate(self, used: Usage) -> None:
        """Replace the estimate with the usage, in a thread without a run."""
        with surviving("recording a late usage"):
            try:
                with run_transaction(self.run_id) as tx:
                    self._correct(tx, used)
            finally:
                release_connection()

    def _correct(self, tx: Transaction, used: Usage) -> None:
        run, rows = tx.run, Pass.objects.filter(run_id=self.run_id, number=self.number, usage_estimated=True)
        cost = self.price.of(used) if self.price else 0
        estimated = rows.values_list("input_tokens", "output_tokens", "cost_micros").first()
        exact = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens, "cost_micros": cost}
        if estimated is None or not rows.update(**exact, usage_estimated=False):
            return
        for (name, value), before in zip(exact.items(), estimated, strict=True):
            setattr(run, name, max(0, getattr(run, name) + value - before))
        run.estimated_tokens = max(0, run.estimated_tokens - estimated[0] - estimated[1])
        tx.publish(
            UsageReported(
                pass_number=self.number,
                input_tokens=used.input_tokens,
                output_tokens=used.output_tokens,
                cost=in_units(cost if self.price else None),
            )
        )
