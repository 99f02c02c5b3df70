"""Call the model, then record its response and the requested calls in one transaction (steps 5 and
6 of a run)."""

from __future__ import annotations

import time
from collections.abc import Set
from dataclasses import asdict, dataclass, field, replace
from functools import partial

from agents.employees.provider_settings import load_provider_config
from agents.platform import notify
from agents.platform.database_connections import release_connection
from agents.platform.queries.writes import insert_rows
from agents.providers.base import (
    ContextWindow,
    ModelRequest,
    ModelResponse,
    ProviderConfig,
    ProviderError,
    ProviderStopped,
)
from agents.providers.error_kinds import CONTEXT_TOO_LONG
from agents.providers.registry import build_provider
from agents.providers.server_errors import build_still_too_long_error
from agents.providers.unusable_responses import find_hint
from agents.runs.budgets import check_budgets
from agents.runs.engine.context import RunContext, load_context
from agents.runs.engine.ending import Ending, end_run
from agents.runs.engine.history import History, OpenCalls, add_hint, build_history, load_outcomes
from agents.runs.engine.judgment import PlannedCalls
from agents.runs.engine.kept_responses import find_kept_response, keep_after_failure
from agents.runs.engine.late_usage import correct_usage_later
from agents.runs.engine.lease import Lease
from agents.runs.engine.requested_calls import (
    PlannedCall,
    insert_calls,
)
from agents.runs.engine.transaction import Action, NextStep, Transaction
from agents.runs.engine.usage import (
    UnusableResponse,
    compute_usage_cost,
    count_unusable,
    count_usage,
)
from agents.runs.model_events import (
    AnswerCut,
    AssistantMessage,
    AssistantThought,
    HistoryShortened,
    RequestAdapted,
)
from agents.runs.models import Pass, ToolCall
from tools.contract import ErrorCode, ToolError
from tools.toolbox.permissions import Permission

MAX_THOUGHT = 100_000
"""The maximum length, in characters, of the stored reasoning of a model."""
MAX_SHOWN_THOUGHT = 8_000
"""The maximum length, in characters, of a model's reasoning in an event."""


@dataclass(frozen=True)
class ReceivedResponse:
    """The model's response before it is recorded.

    Attributes:
        judgment: the judgment of the requested calls, with the effects for their cards; None before
            they are judged.
        is_kept: True if an earlier driver received the response and failed; its usage is already
            counted.
    """

    context: RunContext
    history: History
    response: ModelResponse
    duration_ms: int
    judgment: PlannedCalls | None = None
    is_kept: bool = False

    @property
    def planned(self) -> list[PlannedCall]:
        """The requested calls with their last verdicts; empty before they are judged."""
        return self.judgment.planned if self.judgment else []


def ask_model(lease: Lease, step: NextStep) -> ReceivedResponse:
    """Call the model outside any transaction, and plan the calls that it requests.

    Raises:
        ProviderError: the model could not be called, or its response is unusable.
        ProviderStopped: the driver was stopped before the response arrived.
        BudgetExhausted: a budget is used up, so the model was not called.
        LeaseLost: another worker drives the run.
    """
    context = load_context(lease.run_id)
    check_budgets(context.run)
    try:
        kept = (
            _load_kept_response(lease, step, context)
            if context.run.kept_answer is not None
            else None
        )
        received = kept or _request_response(lease, step, context)
    except OpenCalls:
        # If another worker drives the run and opened the calls, the transaction raises LeaseLost.
        with lease.transaction():
            raise
    is_planned = False
    try:
        judgment = PlannedCalls(context, received.response.calls, received.history.signatures)
        if any(plan.permission is Permission.ASK for plan in judgment.planned):
            judgment.prepare_cards(lease)
        is_planned = True
    finally:
        if not is_planned:
            keep_after_failure(lease, step, received, count_usage)
    return replace(received, judgment=judgment)


def _load_kept_response(
    lease: Lease, step: NextStep, context: RunContext
) -> ReceivedResponse | None:
    """Return the response that an earlier driver received for this pass before it failed; None if
    there is none."""
    kept = find_kept_response(context.run, step)
    if kept is None:
        return None
    history = build_history(
        context, lease.conversation, step.action == Action.ASK_FOR_ANSWER, kept.refused
    )
    history = replace(history, messages_upto=kept.messages_upto)
    return ReceivedResponse(context, history, kept.response, kept.duration_ms, is_kept=True)


def _request_response(lease: Lease, step: NextStep, context: RunContext) -> ReceivedResponse:
    """Send the history to the model; if the provider refuses it as too long, shorten it further and
    send it again."""
    config, employee, tools = (
        load_provider_config(context.run.employee),
        context.run.employee,
        context.tools,
    )
    history = build_history(context, lease.conversation, step.action == Action.ASK_FOR_ANSWER)
    hint = find_hint(context.run.problem.partition(":")[0]) if context.run.patience_tries else ""
    request = ModelRequest(
        model=employee.model,
        messages=add_hint(history.messages, hint),
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
        shorter = build_history(
            context, lease.conversation, request.closing, error.window or ContextWindow()
        )
        if shorter.cuts == history.cuts:
            raise
    try:
        return sender.send(replace(request, messages=add_hint(shorter.messages, hint)), shorter)
    except ProviderError as error:
        raise (
            build_still_too_long_error(error) if error.code == CONTEXT_TOO_LONG else error
        ) from error


@dataclass(frozen=True)
class _ModelRequestSender:
    """Sends the requests of one pass to the model, and streams the text of the response to open
    pages."""

    lease: Lease
    context: RunContext
    config: ProviderConfig

    def send(self, request: ModelRequest, history: History) -> ReceivedResponse:
        """Return the response; give up at the request's deadline or the provider's timeout."""
        lease = self.lease
        stream = notify.TextStream(lease.run_id, lease.epoch, self.context.run.pass_number + 1)
        provider = build_provider(self.config)
        lease.expect_step(self.config.answer_timeout_s)
        release_connection()
        deadline = min(request.deadline, time.monotonic() + self.config.answer_timeout_s)
        started = time.perf_counter()
        try:
            response = provider.ask(
                replace(request, deadline=deadline),
                partial(notify.stream_text, stream),
                lease.stopped,
            )
        except (ProviderError, ProviderStopped) as failure:
            failure.duration_ms = _measure_ms(started)
            raise
        return ReceivedResponse(self.context, history, response, _measure_ms(started))


def _measure_ms(started: float) -> int:
    return round((time.perf_counter() - started) * 1000)


@dataclass(frozen=True)
class RecordedPass:
    """The result of recording a pass: the next step, or the calls that were started, with the
    context that judged them."""

    step: NextStep
    context: RunContext
    started: list[ToolCall] = field(default_factory=list)


def record_pass(lease: Lease, step: NextStep, received: ReceivedResponse) -> RecordedPass:
    """Record the pass with its calls and start those that need no approval, or end the run with the
    answer.

    If the rules have changed since the calls were judged, the calls are judged and previewed again,
    outside the transaction, and recording is retried. After a few rounds, or if the run must not
    start anything, the calls are recorded by the current rules without another preview.
    """
    recorded = None
    try:
        recorded = _record_in_rounds(lease, step, received)
    finally:
        if recorded is None:
            keep_after_failure(lease, step, received, count_usage)
    return recorded


def _record_in_rounds(lease: Lease, step: NextStep, received: ReceivedResponse) -> RecordedPass:
    judgment = received.judgment
    assert judgment is not None
    for _ in judgment.rounds(lease):
        with lease.transaction() as tx:
            started = _record_unless_outdated(tx, step, received, judgment)
        if started is not None:
            return RecordedPass(tx.next_step, judgment.context, started)
    raise AssertionError("the last round records every response")


def _record_unless_outdated(
    tx: Transaction, step: NextStep, received: ReceivedResponse, judgment: PlannedCalls
) -> list[ToolCall] | None:
    """Record the response by the current rules, and return the started calls; None if the calls
    have to be judged again first.

    The response of a cancelled run is only counted.
    """
    tx.run.employee, tx.run.organization = (
        received.context.run.employee,
        received.context.run.organization,
    )
    if tx.run.cancel_requested_at is not None:
        count_unusable(
            tx,
            UnusableResponse(received.response.usage, received.duration_ms),
            is_counted=received.is_kept,
        )
        return []
    is_closing = step.action == Action.ASK_FOR_ANSWER
    if judgment.planned and not is_closing and judgment.judge_again(tx) is not None:
        return None
    _insert_pass(tx, step, received, judgment.snapshot)
    if is_closing:
        _record_closing_response(tx, step, received)
        return []
    return _record_calls(tx, received, judgment.context, seen=received.history.signatures)


def _insert_pass(
    tx: Transaction, step: NextStep, received: ReceivedResponse, snapshot: str
) -> None:
    run, response = tx.run, received.response
    run.pass_number += 1
    run.asked_pass = max(run.asked_pass, run.pass_number)
    run.messages_heard = received.history.messages_upto
    run.crash_count = run.patience_tries = 0
    run.patience_since = None
    run.problem = ""
    run.kept_answer = None
    cost = (
        compute_usage_cost(run, response.usage)
        if received.is_kept
        else count_usage(run, response.usage)
    )
    insert_rows(
        [
            Pass(
                run_id=run.pk,
                number=run.pass_number,
                response={**response.message, **received.history.flags},
                text=response.text,
                thought=response.thought[:MAX_THOUGHT],
                cut_off=response.cut_off.value,
                messages_upto=received.history.messages_upto,
                closing=step.action == Action.ASK_FOR_ANSWER,
                snapshot=snapshot,
                input_tokens=response.usage.input_tokens,
                output_tokens=response.usage.output_tokens,
                cached_tokens=response.usage.cached_tokens,
                cost_micros=cost,
                usage_estimated=response.usage.is_estimated,
                duration_ms=received.duration_ms,
            )
        ]
    )
    if response.late_usage is not None:
        correct_usage_later(run, response.late_usage)
    if changes := response.adaptations if run.pass_number == 1 else response.learned:
        tx.publish(RequestAdapted(run.pass_number, list(changes)))
    _publish_response(tx, response)
    if (shortening := received.history.cuts.added) is not None:
        tx.publish(HistoryShortened(pass_number=run.pass_number, **asdict(shortening)))


def _publish_response(tx: Transaction, response: ModelResponse) -> None:
    number = tx.run.pass_number
    if response.thought:
        shown = response.thought[:MAX_SHOWN_THOUGHT]
        tx.publish(
            AssistantThought(number, shown, True if len(shown) < len(response.thought) else None)
        )
    if response.text:
        tx.publish(AssistantMessage(response.text, number))
    if response.cut_off:
        tx.publish(AnswerCut(number, str(response.cut_off)))


def _record_closing_response(tx: Transaction, step: NextStep, received: ReceivedResponse) -> None:
    """Reject the calls of a closing pass, and end the run with its text, unless a person has sent
    another message."""
    refused = ToolError(
        ErrorCode.OPERATION_NOT_ALLOWED,
        "No more tools may be called: the run is closing.",
        attempted=False,
    )
    for plan in received.planned:
        plan.refuse(refused)
    _record_calls(tx, received, received.context, seen=None)
    if tx.run.message_count <= received.history.messages_upto:
        end_run(tx, Ending.answered(received.response.text, received.response.cut_off, step.reason))


def _record_calls(
    tx: Transaction, received: ReceivedResponse, context: RunContext, seen: Set[str] | None
) -> list[ToolCall]:
    """Insert the calls, start as many as there are free slots, and return the started calls."""
    for plan in received.planned:
        plan.row.pass_number = tx.run.pass_number
    may_start = tx.run.may_start and not tx.is_late
    return insert_calls(tx, received.planned, context.calls_at_once if may_start else 0, seen)
