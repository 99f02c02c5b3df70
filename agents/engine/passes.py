"""One pass: ask the model, then record its answer and the calls that it asks for in one transaction."""

import time
from collections.abc import Set
from dataclasses import asdict, dataclass, field, replace
from functools import partial

from agents import hints
from agents.engine import budgets, endings, lease, turns, usage
from agents.engine.compaction import room_for
from agents.engine.connections import let_go
from agents.engine.duplicates import earlier_calls, is_volatile
from agents.engine.endings import Ending
from agents.engine.execution import most_at_once
from agents.engine.gate import Workplace, workplace
from agents.engine.history import History, history_of, kept, outcomes_of
from agents.engine.inserting import CARDS_ARE_FULL, insert_calls
from agents.engine.model_access import provider_config
from agents.engine.past import OpenCalls
from agents.engine.planning import ROUNDS, Planned, judged, preview, too_many
from agents.engine.timing import OPEN_CARDS
from agents.engine.turns import LEAVE, Move, Turn
from agents.events import Recording
from agents.models import (
    EventType,
    Pass,
    ToolCall,
)
from agents.providers.base import (
    ModelRequest,
    ModelResponse,
    ProviderConfig,
    ProviderError,
    RequestedCall,
)
from agents.providers.choice import provider_for
from agents.providers.failures import TOO_LONG, still_too_long
from agents.statements import insert
from tools.contract import ErrorCode, ToolError
from tools.toolbox.permissions import Decision

MOST_CALLS = 100
MOST_THOUGHT = 100_000
"""Characters kept of a model's thoughts; far more come only from a broken or hostile server."""
MOST_SHOWN_THOUGHT = 8_000


@dataclass(frozen=True)
class Answer:
    """What the model answered, before it is recorded: its calls judged in `place`, and previewed."""

    place: Workplace
    history: History
    response: ModelResponse
    duration_ms: int
    planned: list[Planned] = field(default_factory=list)


def ask(held: lease.Claim, turn: Turn) -> Answer:
    """Ask the model, outside any transaction, and prepare what it asks for.

    Raises:
        ProviderError: the model could not be asked or answered nonsense.
        ProviderStopped: the driver was told to stop meanwhile.
        BudgetExhausted: nothing was asked.
        LeaseLost: somebody else drives the run by now.
    """
    place = workplace(held.run_id)
    budgets.check(place.run)
    try:
        answer = _answered(held, turn, place)
    except OpenCalls:
        with held.recording():
            raise  # unless the lease is lost: then they are the next driver's
    answer.planned.extend(_judged_in(place, answer))
    if all(plan.decision != Decision.ASK for plan in answer.planned):
        return answer
    return _previewed(held, answer, place.judging_anew())


def _previewed(held: lease.Claim, answer: Answer, place: Workplace) -> Answer:
    """The answer with its calls as `place` judges them, and with what their cards will show.

    What is judged as before is previewed once.
    """
    planned = answer.planned
    if not place.judges_like(answer.place):
        both = zip(planned, _judged_in(place, answer), strict=True)
        planned = [before.judged_anew(now) for before, now in both]
    _preview_all(held, place, planned, answer.history.signatures)
    return replace(answer, place=place, planned=planned)


def _answered(held: lease.Claim, turn: Turn, place: Workplace) -> Answer:
    """What the model says to the history, which is made shorter once if the provider finds it too long."""
    config, employee, tools = provider_config(place), place.run.employee, place.tools
    room = room_for(employee, employee.provider, tools)
    history = history_of(place, held.past, turn.move == Move.CLOSE, room)
    request = ModelRequest(
        model=employee.model,
        messages=history.messages,
        tools=[tool.definition for tool in tools],
        deadline=turn.ends,
        closing=turn.move == Move.CLOSE,
        outcomes=lambda: outcomes_of(held.run_id),
    )
    asking = _Asking(held, place, config)
    try:
        return asking.answer(request, history)
    except ProviderError as error:
        if error.code != TOO_LONG:
            raise
        shorter = history_of(place, held.past, request.closing, replace(room, harder=True))
        if shorter.cuts == history.cuts:
            raise
    try:
        return asking.answer(replace(request, messages=shorter.messages), shorter)
    except ProviderError as error:
        raise still_too_long(error) if error.code == TOO_LONG else error from error


@dataclass(frozen=True)
class _Asking:
    """One pass that asks its model."""

    held: lease.Claim
    place: Workplace
    config: ProviderConfig

    def answer(self, request: ModelRequest, history: History) -> Answer:
        """The answer, no later than the request's deadline and the provider's timeout."""
        held = self.held
        writing = hints.Writing(held.run_id, held.epoch, self.place.run.pass_number + 1)
        provider = provider_for(self.config)
        held.expects(self.config.timeout_s)
        let_go()
        deadline = min(request.deadline, time.monotonic() + self.config.timeout_s)
        started = time.perf_counter()
        response = provider.ask(
            replace(request, deadline=deadline),
            partial(hints.stream_text, writing),
            held.stopped,
        )
        return Answer(self.place, history, response, round((time.perf_counter() - started) * 1000))


def _judged_in(place: Workplace, answer: Answer) -> list[Planned]:
    return [_judged(place, index, call) for index, call in enumerate(answer.response.calls)]


def _judged(place: Workplace, index: int, requested: RequestedCall) -> Planned:
    plan = judged(place, index, requested)
    if index >= MOST_CALLS:
        plan.refuse(plan.error or too_many(f"At most {MOST_CALLS} calls in one answer."))
    return plan


def _preview_all(held: lease.Claim, place: Workplace, planned: list[Planned], seen: Set[str]) -> None:
    """Compute what each card will show, once for equal calls and for no more than may wait at a time.

    Calls whose signature the run has `seen` before may turn out to be duplicates and take nobody's place.
    """
    shown: set[str] = set()
    cards = 0
    for plan in planned:
        row = plan.row
        if plan.decision != Decision.ASK or (row.signature in shown and not is_volatile(row)):
            continue
        if cards >= OPEN_CARDS:
            plan.refuse(too_many(CARDS_ARE_FULL))
            continue
        shown.add(row.signature)
        if plan.effect is None:
            preview(held, place, plan)
        cards += plan.effect is not None and row.signature not in seen


@dataclass(frozen=True)
class Recorded:
    """The next move; for EXECUTE_READY with the calls that were started already, and where they are at work."""

    turn: Turn
    place: Workplace
    started: list[ToolCall] = field(default_factory=list)


def record(held: lease.Claim, turn: Turn, answer: Answer) -> Recorded:
    """Record the pass with its calls, start what runs by itself, or end the run with its answer.

    The calls are judged by what is permitted in this transaction: if that has changed since they were judged, they are
    judged anew before, outside of it, and previewed where the verdict is another one. Nobody waits for that once the
    run may start nothing, or after a few rounds.
    """
    rounds = ROUNDS
    while True:
        rounds -= 1
        with held.recording() as recording:
            run, place = recording.run, answer.place
            if run.cancel_requested_at is not None:
                return Recorded(turns.settle(recording, held), place)
            now = place.judging_anew() if answer.planned and turn.move != Move.CLOSE else place
            if now.judges_like(place):
                return _record(recording, held, turn, replace(answer, place=now))
            if not rounds or not run.may_start:
                return _record(recording, held, turn, _judged_at_last(answer, now))
        answer = _previewed(held, answer, now)


def _judged_at_last(answer: Answer, place: Workplace) -> Answer:
    both = zip(answer.planned, _judged_in(place, answer), strict=True)
    return replace(answer, place=place, planned=[before.judged_at_last(now) for before, now in both])


def _record(recording: Recording, held: lease.Claim, turn: Turn, answer: Answer) -> Recorded:
    run, place = recording.run, answer.place
    run.employee, run.organization = place.run.employee, place.run.organization
    _record_pass(recording, turn, answer)
    if turn.move == Move.CLOSE:
        return Recorded(_close(recording, held, turn, answer), place)
    _find_duplicates(run.pk, answer.planned, answer.history.signatures)
    started = _record_calls(recording, answer)
    return Recorded(Turn(Move.EXECUTE_READY) if started else turns.settle(recording, held), place, started)


def _record_pass(recording: Recording, turn: Turn, answer: Answer) -> None:
    run, response = recording.run, answer.response
    run.pass_number += 1
    run.asked_pass = max(run.asked_pass, run.pass_number)
    run.messages_heard = answer.history.heard
    run.crash_count = run.patience_tries = 0
    run.patience_since = None
    run.problem = ""
    cost = usage.count(run, response.usage)
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
                closing=turn.move == Move.CLOSE,
                input_tokens=response.usage.input_tokens,
                output_tokens=response.usage.output_tokens,
                cost_micros=cost,
                usage_estimated=response.usage.is_estimated,
                duration_ms=answer.duration_ms,
            )
        ]
    )
    if response.late_usage is not None:
        usage.correct_later(run, response.late_usage)
    _publish_answer(recording, response)
    if (step := answer.history.cuts.step) is not None:
        recording.publish(EventType.HISTORY_SHORTENED, pass_number=run.pass_number, **asdict(step))


def _publish_answer(recording: Recording, response: ModelResponse) -> None:
    number = recording.run.pass_number
    if response.thought:
        shown = response.thought[:MOST_SHOWN_THOUGHT]
        more = {"truncated": True} if len(shown) < len(response.thought) else {}
        recording.publish(EventType.ASSISTANT_THOUGHT, pass_number=number, text=shown, **more)
    if response.text:
        recording.publish(EventType.ASSISTANT_MESSAGE, text=response.text, pass_number=number)
    if response.cut_off:
        recording.publish(EventType.ANSWER_CUT, pass_number=number, cut_off=str(response.cut_off))


def _close(recording: Recording, held: lease.Claim, turn: Turn, answer: Answer) -> Turn:
    """The closing pass: calls are rejected, and its text is the answer, unless a person said something meanwhile."""
    refused = ToolError(
        ErrorCode.OPERATION_NOT_ALLOWED, "No more tools may be called: the run is closing.", attempted=False
    )
    for plan in answer.planned:
        plan.refuse(refused)
    _record_calls(recording, answer)
    if recording.run.message_count > answer.history.heard:
        return turns.settle(recording, held)
    endings.end(recording, Ending.answered(answer.response.text, answer.response.cut_off, turn.reason))
    return LEAVE


def _record_calls(recording: Recording, answer: Answer) -> list[ToolCall]:
    """Insert the calls, as many as there are slots for executing; returns these."""
    for plan in answer.planned:
        plan.row.pass_number = recording.run.pass_number
    may_start = recording.run.may_start and not turns.is_late(recording)
    return insert_calls(recording, answer.planned, slots=most_at_once() if may_start else 0)


def _find_duplicates(run_id: int, planned: list[Planned], seen: Set[str]) -> None:
    earlier = earlier_calls(run_id, [plan.row for plan in planned if plan.row.signature in seen])
    volatile_free = {plan.row.signature: plan.row for plan in reversed(planned) if not is_volatile(plan.row)}
    for plan in planned:
        if plan.row.signature in earlier:
            plan.row.duplicate_of = earlier[plan.row.signature]
        elif (first := volatile_free.get(plan.row.signature)) is not None and first is not plan.row:
            plan.row.duplicate_of = first
