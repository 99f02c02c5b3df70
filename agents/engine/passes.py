"""One pass: ask the model, then record its answer and the calls that it asks for in one transaction."""

import time
from collections.abc import Set
from dataclasses import asdict, dataclass, field, replace
from functools import partial

from django.conf import settings

from agents import hints
from agents.engine import budgets, endings, lease, prices, turns
from agents.engine.compaction import num_ctx_of, room_for
from agents.engine.connections import let_go
from agents.engine.duplicates import earlier_calls, is_volatile
from agents.engine.endings import Ending
from agents.engine.execution import most_at_once
from agents.engine.gate import Workplace, workplace
from agents.engine.history import History, history_of, kept, outcomes_of
from agents.engine.inserting import CARDS_ARE_FULL, insert_calls
from agents.engine.past import OpenCalls
from agents.engine.planning import ROUNDS, Planned, judged, preview, too_many
from agents.engine.timing import OPEN_CARDS
from agents.engine.turns import LEAVE, Move, Turn
from agents.events import Recording
from agents.known_secrets import KNOWN_SECRETS
from agents.models import (
    Employee,
    EventType,
    ModelProvider,
    Pass,
    ProviderKind,
    ToolCall,
)
from agents.models.encrypted import Unreadable
from agents.providers.base import (
    ModelRequest,
    ModelResponse,
    ModelSettings,
    ProviderConfig,
    ProviderError,
    RequestedCall,
)
from agents.providers.choice import provider_for
from agents.providers.failures import TOO_LONG, still_too_long
from agents.statements import insert
from tools.contract import SHORTEST_SECRET, ErrorCode, ToolError
from tools.toolbox.permissions import Decision

MOST_CALLS = 100


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


def provider_config(place: Workplace) -> ProviderConfig:
    """How the employee's provider is reached.

    Raises:
        ProviderError: the employee or its provider was switched off.
    """
    employee = place.run.employee
    provider = employee.provider
    if not employee.is_active or not provider.is_active:
        name = employee.name if not employee.is_active else f"the provider {provider.name!r}"
        raise ProviderError("bad_settings", f"{name} is switched off", transient=False)
    return replace(config_of(provider, float(provider.timeout_s)), settings=_settings_of(employee))


def _settings_of(employee: Employee) -> ModelSettings:
    return ModelSettings(employee.temperature, employee.max_tokens, num_ctx_of(employee), employee.extra_body)


def check_provider(provider: ModelProvider, timeout_s: float) -> None:
    """Ask the provider for something that costs nothing.

    Raises:
        ProviderError: it cannot be used, or says that it lacks the model of an employee.
    """
    named = provider.employees.filter(is_active=True).exclude(model="").order_by("model")
    models = tuple(named.values_list("model", flat=True).distinct())
    provider_for(replace(config_of(provider, timeout_s), models=models)).check()


def config_of(provider: ModelProvider, timeout_s: float) -> ProviderConfig:
    """The row as the provider's adapter takes it.

    Raises:
        ProviderError: its key was encrypted with one that is no longer there.
    """
    if isinstance(provider.api_key, Unreadable):
        raise ProviderError("bad_key", f"the key of the provider {provider.name!r} cannot be read", transient=False)
    if len(provider.api_key) >= SHORTEST_SECRET:
        KNOWN_SECRETS.learn([provider.api_key], owner=provider.organization_id)
    return ProviderConfig(
        kind=provider.kind,
        base_url=provider.base_url or (settings.OLLAMA_HOST if provider.kind == ProviderKind.OLLAMA else ""),
        api_key=provider.api_key,
        script=provider.script,
        timeout_s=timeout_s,
    )


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
    run, usage = recording.run, answer.response.usage
    run.pass_number += 1
    run.asked_pass = max(run.asked_pass, run.pass_number)
    run.messages_heard = answer.history.heard
    run.crash_count = run.patience_tries = 0
    run.patience_since = None
    run.problem = ""
    run.input_tokens += usage.input_tokens
    run.output_tokens += usage.output_tokens
    cost = prices.cost_of(run.employee.provider, run.employee.model, usage)
    run.cost_micros += cost
    insert(
        [
            Pass(
                run_id=run.pk,
                number=run.pass_number,
                response=kept(answer.response.message, answer.history.cuts),
                text=answer.response.text,
                messages_upto=answer.history.heard,
                closing=turn.move == Move.CLOSE,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cost_micros=cost,
                duration_ms=answer.duration_ms,
            )
        ]
    )
    if answer.response.text:
        recording.publish(EventType.ASSISTANT_MESSAGE, text=answer.response.text, pass_number=run.pass_number)
    if (step := answer.history.cuts.step) is not None:
        recording.publish(EventType.HISTORY_SHORTENED, pass_number=run.pass_number, **asdict(step))


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
    endings.end(recording, Ending(turn.reason, answer.response.text))
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
