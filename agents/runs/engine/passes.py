"""Steps 5 and 6 of a run: ask the model, then record its answer and the calls that it requests in one transaction."""

from __future__ import annotations

import time
from collections.abc import Set
from dataclasses import asdict, dataclass, field, replace
from functools import partial

from django.db import transaction

from agents.employees.budgets import Price, check_budgets, compute_cost, find_price, to_currency
from agents.employees.provider_settings import load_provider_config
from agents.platform import notify
from agents.platform.database_connections import release_connection
from agents.platform.error_boundary import log_and_continue
from agents.platform.queries.writes import insert_rows
from agents.providers.base import (
    LateUsage,
    ModelRequest,
    ModelResponse,
    ProviderConfig,
    ProviderError,
    RequestedCall,
    Usage,
)
from agents.providers.registry import build_provider
from agents.providers.server_errors import CONTEXT_TOO_LONG, build_still_too_long_error
from agents.runs.call_history import Occasion
from agents.runs.engine.context import RunContext, load_context
from agents.runs.engine.ending import Ending, end_run
from agents.runs.engine.history import History, OpenCalls, build_history, load_outcomes
from agents.runs.engine.lease import Lease
from agents.runs.engine.recounts import add_starting, count_again
from agents.runs.engine.requested_calls import (
    MAX_ROUNDS,
    PlannedCall,
    insert_calls,
    is_volatile,
    make_cards_error,
    make_limit_error,
    plan_call,
    preview_card,
)
from agents.runs.engine.timing import MAX_OPEN_CARDS, timing
from agents.runs.engine.transaction import Action, NextStep, Transaction, run_transaction
from agents.runs.events import AnswerCut, AssistantMessage, AssistantThought, HistoryShortened, UsageReported
from agents.runs.models import Pass, Run, ToolCall
from tools.contract import ErrorCode, ToolError
from tools.toolbox.facts import HISTORY
from tools.toolbox.permissions import Permission

MAX_CALLS = 100
"""Calls in one answer."""
MAX_THOUGHT = 100_000
"""Characters stored of a model's reasoning; only a broken or hostile server sends far more."""
MAX_SHOWN_THOUGHT = 8_000
"""Characters of it in an event."""


@dataclass(frozen=True)
class ModelAnswer:
    """The model's answer before it is recorded, with its calls as `context` judged them, and their previews.

    Attributes:
        snapshot: the hash of the rules of `context`, once they are kept.
    """

    context: RunContext
    history: History
    response: ModelResponse
    duration_ms: int
    planned: list[PlannedCall] = field(default_factory=list)
    snapshot: str = ""


def ask_model(lease: Lease, step: NextStep) -> ModelAnswer:
    """Ask the model outside any transaction, and plan the calls that it requests.

    Raises:
        ProviderError: the model could not be asked, or its answer is unusable.
        ProviderStopped: the driver was stopped before the answer came.
        BudgetExhausted: the model was not asked.
        LeaseLost: another worker drives the run.
    """
    context = load_context(lease.run_id)
    check_budgets(context.run)
    try:
        answer = _request_answer(lease, step, context)
    except OpenCalls:
        with lease.transaction():  # raises LeaseLost if another worker drives the run and opened the calls
            raise
    answer = replace(answer, planned=_plan_calls(context, answer))
    if all(plan.permission != Permission.ASK for plan in answer.planned):
        return answer
    return _preview_answer(lease, answer, context.with_current_rules())


def _preview_answer(lease: Lease, answer: ModelAnswer, context: RunContext, is_retry: bool = False) -> ModelAnswer:
    """Judge the answer's calls in this context and compute the effects for their cards.

    A call whose verdict stays the same keeps its effect.

    Args:
        is_retry: the rules have changed, or other runs have used up a limit, since the calls were judged.
    """
    planned = answer.planned
    if is_retry or not context.has_same_rules(answer.context):
        pairs = zip(planned, _plan_calls(context, answer), strict=True)
        planned = [before.replace_if_changed(current) for before, current in pairs]
    _preview_all(lease, context, planned, answer.history.signatures)
    return replace(answer, context=context, planned=planned)


def _request_answer(lease: Lease, step: NextStep, context: RunContext) -> ModelAnswer:
    """Send the history; if the provider refuses it as too long, send it once more, shortened further."""
    config, employee, tools = load_provider_config(context.run.employee), context.run.employee, context.tools
    history = build_history(context, lease.conversation, step.action == Action.ASK_FOR_ANSWER)
    request = ModelRequest(
        model=employee.model,
        messages=history.messages,
        tools=[tool.definition for tool in tools],
        deadline=step.deadline,
        closing=step.action == Action.ASK_FOR_ANSWER,
        outcomes=lambda: load_outcomes(lease.run_id),
    )
    sender = _ModelRequestSender(lease, context, config)
    try:
        return sender.send(request, history)
    except ProviderError as error:
        if error.code != CONTEXT_TOO_LONG:
            raise
        shorter = build_history(context, lease.conversation, request.closing, was_too_long=True)
        if shorter.cuts == history.cuts:
            raise
    try:
        return sender.send(replace(request, messages=shorter.messages), shorter)
    except ProviderError as error:
        raise build_still_too_long_error(error) if error.code == CONTEXT_TOO_LONG else error from error


@dataclass(frozen=True)
class _ModelRequestSender:
    """Sends the requests of one pass to its model, and streams the answer's text to open pages."""

    lease: Lease
    context: RunContext
    config: ProviderConfig

    def send(self, request: ModelRequest, history: History) -> ModelAnswer:
        """Return the answer; give up at the request's deadline or the provider's timeout."""
        lease = self.lease
        stream = notify.TextStream(lease.run_id, lease.epoch, self.context.run.pass_number + 1)
        provider = build_provider(self.config)
        lease.expect_step(self.config.timeout_s)
        release_connection()
        deadline = min(request.deadline, time.monotonic() + self.config.timeout_s)
        started = time.perf_counter()
        response = provider.ask(
            replace(request, deadline=deadline),
            partial(notify.stream_text, stream),
            lease.stopped,
        )
        return ModelAnswer(self.context, history, response, round((time.perf_counter() - started) * 1000))


def _plan_calls(context: RunContext, answer: ModelAnswer) -> list[PlannedCall]:
    planned: list[PlannedCall] = []
    starting: list[ToolCall] = []
    for index, call in enumerate(answer.response.calls):
        planned.append(_plan_call(context, index, call, Occasion(beside=starting)))
        if HISTORY in planned[-1].verdict.facts:
            add_starting(starting, planned[-1], context.run.pk, answer.history.signatures)
    return planned


def _plan_call(context: RunContext, index: int, requested: RequestedCall, occasion: Occasion) -> PlannedCall:
    plan = plan_call(context, index, requested, occasion)
    if index >= MAX_CALLS:
        plan.refuse(plan.error or make_limit_error(f"At most {MAX_CALLS} calls in one answer."))
    return plan


def _preview_all(lease: Lease, context: RunContext, planned: list[PlannedCall], seen: Set[str]) -> None:
    """Compute the effect for each card, once for equal calls, and refuse calls beyond the limit of open cards.

    Calls whose signature the run has `seen` before may be duplicates, and do not count against the limit.
    """
    previewed: set[str] = set()
    cards = 0
    for plan in planned:
        row = plan.row
        if plan.permission != Permission.ASK or (row.signature in previewed and not is_volatile(row)):
            continue
        if cards >= MAX_OPEN_CARDS:
            plan.refuse(make_cards_error(MAX_OPEN_CARDS))
            continue
        previewed.add(row.signature)
        if plan.effect is None:
            lease.expect_step(timing().preview_s)
            preview_card(context, plan)
        cards += plan.effect is not None and row.signature not in seen


@dataclass(frozen=True)
class RecordedPass:
    """The result of recording a pass: the next step, or the started calls with the context that judged them."""

    step: NextStep
    context: RunContext
    started: list[ToolCall] = field(default_factory=list)


def record_pass(lease: Lease, step: NextStep, answer: ModelAnswer) -> RecordedPass:
    """Record the pass with its calls and start those that need no approval, or end the run with the answer.

    The rules may have changed since the calls were judged. Then the calls are judged and previewed again, outside the
    transaction, and recording is tried once more. After a few rounds, or if the run may start nothing, the calls are
    recorded by the current rules without another preview.
    """
    rounds = MAX_ROUNDS
    while True:
        rounds -= 1
        answer = replace(answer, snapshot=answer.context.keep_snapshot())
        with lease.transaction() as tx:
            context, started = _record_unless_outdated(tx, step, answer, is_last_round=rounds == 0)
        if started is not None:
            return RecordedPass(tx.next_step, context, started)
        answer = _preview_answer(lease, answer, context, is_retry=True)


def _record_unless_outdated(
    tx: Transaction, step: NextStep, answer: ModelAnswer, is_last_round: bool
) -> tuple[RunContext, list[ToolCall] | None]:
    """Record the answer by the current rules; return them with the started calls.

    Return None in place of the calls if they have to be judged again first. The answer of a cancelled run is dropped.
    """
    context = answer.context
    if tx.run.cancel_requested_at is not None:
        return context, []
    has_calls_to_judge = answer.planned and step.action != Action.ASK_FOR_ANSWER
    current = context.with_current_rules() if has_calls_to_judge else context
    is_final = is_last_round or not tx.run.may_start
    is_outdated = current is not context and not current.has_same_rules(context)
    if is_outdated and is_final:
        answer, is_outdated = _judge_without_previews(answer, current), False
    if not is_outdated:
        has_limits = has_calls_to_judge and any(HISTORY in plan.verdict.facts for plan in answer.planned)
        lacking = count_again(tx, answer.context, answer.planned, answer.history.signatures) if has_limits else []
        if is_final or not lacking:
            for plan in lacking:
                plan.refuse_without_preview()
            return current, _record_answer(tx, step, replace(answer, context=current))
    tx.step_continues = True
    return current, None


def _judge_without_previews(answer: ModelAnswer, context: RunContext) -> ModelAnswer:
    """Judge the answer's calls in this context; a call that would need another preview is refused."""
    pairs = zip(answer.planned, _plan_calls(context, answer), strict=True)
    planned = [before.replace_without_preview(current) for before, current in pairs]
    return replace(answer, context=context, planned=planned, snapshot=context.keep_snapshot())


def _record_answer(tx: Transaction, step: NextStep, answer: ModelAnswer) -> list[ToolCall]:
    run, context = tx.run, answer.context
    run.employee, run.organization = context.run.employee, context.run.organization
    _insert_pass(tx, step, answer)
    if step.action == Action.ASK_FOR_ANSWER:
        _record_closing_answer(tx, step, answer)
        return []
    return _record_calls(tx, answer, answer.history.signatures)


def _insert_pass(tx: Transaction, step: NextStep, answer: ModelAnswer) -> None:
    run, response = tx.run, answer.response
    run.pass_number += 1
    run.asked_pass = max(run.asked_pass, run.pass_number)
    run.messages_heard = answer.history.messages_upto
    run.crash_count = run.patience_tries = 0
    run.patience_since = None
    run.problem = ""
    cost = count_usage(run, response.usage)
    insert_rows(
        [
            Pass(
                run_id=run.pk,
                number=run.pass_number,
                response={**response.message, **answer.history.marks},
                text=response.text,
                thought=response.thought[:MAX_THOUGHT],
                cut_off=response.cut_off.value,
                messages_upto=answer.history.messages_upto,
                closing=step.action == Action.ASK_FOR_ANSWER,
                snapshot=answer.snapshot,
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
    if (shortening := answer.history.cuts.added) is not None:
        tx.publish(HistoryShortened(pass_number=run.pass_number, **asdict(shortening)))


def _publish_answer(tx: Transaction, response: ModelResponse) -> None:
    number = tx.run.pass_number
    if response.thought:
        shown = response.thought[:MAX_SHOWN_THOUGHT]
        tx.publish(AssistantThought(number, shown, True if len(shown) < len(response.thought) else None))
    if response.text:
        tx.publish(AssistantMessage(response.text, number))
    if response.cut_off:
        tx.publish(AnswerCut(number, str(response.cut_off)))


def _record_closing_answer(tx: Transaction, step: NextStep, answer: ModelAnswer) -> None:
    """Reject the calls of a closing pass; its text is the run's answer, unless a person has sent another message."""
    refused = ToolError(
        ErrorCode.OPERATION_NOT_ALLOWED, "No more tools may be called: the run is closing.", attempted=False
    )
    for plan in answer.planned:
        plan.refuse(refused)
    _record_calls(tx, answer, seen=None)
    if tx.run.message_count <= answer.history.messages_upto:
        end_run(tx, Ending.answered(answer.response.text, answer.response.cut_off, step.reason))


def _record_calls(tx: Transaction, answer: ModelAnswer, seen: Set[str] | None) -> list[ToolCall]:
    """Insert the calls, start as many as have a free slot, and return these."""
    for plan in answer.planned:
        plan.row.pass_number = tx.run.pass_number
    may_start = tx.run.may_start and not tx.is_late
    return insert_calls(tx, answer.planned, answer.context.calls_at_once if may_start else 0, seen)


def count_usage(run: Run, used: Usage) -> int:
    """Add an answer's usage to the run and return its cost in millionths; needs the run's employee and provider."""
    cost = compute_cost(run.employee.provider, run.employee.model, used)
    run.input_tokens += used.input_tokens
    run.output_tokens += used.output_tokens
    run.cost_micros += cost
    if used.is_estimated:
        run.estimated_tokens += used.total
    return cost


def correct_usage_later(run: Run, late_usage: LateUsage) -> None:
    """Correct the pass recorded in this transaction once the server reports its usage, whoever drives the run then."""
    estimate = _EstimatedPass(run.pk, run.pass_number, find_price(run.employee.provider, run.employee.model))
    transaction.on_commit(partial(late_usage.then, estimate.replace), robust=True)


@dataclass(frozen=True)
class _EstimatedPass:
    """A recorded pass whose usage is estimated.

    Attributes:
        price: the price by which its cost was computed.
    """

    run_id: int
    number: int
    price: Price | None

    def replace(self, used: Usage) -> None:
        """Replace the estimate by the reported usage, in a thread that drives no run."""
        with log_and_continue("recording a late usage"):
            try:
                with run_transaction(self.run_id) as tx:
                    self._correct(tx, used)
            finally:
                release_connection()

    def _correct(self, tx: Transaction, used: Usage) -> None:
        run, rows = tx.run, Pass.objects.filter(run_id=self.run_id, number=self.number, usage_estimated=True)
        cost = self.price.compute_cost(used) if self.price else 0
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
                cost=to_currency(cost if self.price else None),
            )
        )
