"""Asks: an agent asks before it carries out an action itself, and reports the outcome.

An ask is a run with one call. Its card is decided like any other, but Gadget does not run the call:
the agent redeems the approval's receipt once, and this is recorded as the start of the call.
"""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from agents.gateway.action_rules import ActionRules
from agents.gateway.keys import lock_key
from agents.gateway.models import AgentKey, AgentRun, Ask, AskedEffect, RefusedAsk
from agents.platform.queries.writes import insert_rows
from agents.platform.refusals import Conflict, Forbidden, Invalid
from agents.runs import stops
from agents.runs.engine.card_sentences import CallEffect
from agents.runs.engine.cards import build_card, hash_params, publish_card, seal
from agents.runs.engine.transaction import Transaction, new_run_transaction
from agents.runs.events import PassStarted, RunStarted
from agents.runs.models import (
    TERMINAL_CALLS,
    Approval,
    ApprovalStatus,
    CallStatus,
    Message,
    Origin,
    Pass,
    Run,
    RunStatus,
    ToolCall,
)
from agents.runs.models.run import ASK_REQUEST_PREFIX
from tools.contract import Level, Preview, canonical_json
from tools.contract.canonical import fingerprint, storable_json
from tools.contract.outside_text import quote_text
from tools.contract.sentences import format_name, quote_whole, sanitize
from tools.toolbox.asked_actions import NOT_RUN_HERE, AskedAction
from tools.toolbox.value_readings import fold_name

ASKING_STEP = timedelta(seconds=10)
MAX_OPEN_ASKS = 100
"""The maximum number of asks of one key that may wait for decisions at the same time."""
MAX_REFUSED = 5
"""The maximum number of refused asks of one key that are stored with the open ask about the same
effect."""
MAX_WORDS = 2_000
"""The maximum number of characters of the agent's own words about an ask, and about its outcome."""
MAX_PARAMS = 64_000
"""The maximum number of characters of an ask's params, written as JSON."""
DAY_S = 24 * 3600
SHORTEST_S, LONGEST_S = 10, 7 * DAY_S
_ACTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}")
WHY = "this agent needs approval before it acts"
WITHOUT_LEVEL = "nobody has set a level for this action, so it counts as destructive"
MAX_HEADLINE = 160
"""The maximum number of characters of the params that the sentence of a card shows."""


@dataclass(frozen=True)
class AskedRequest:
    """An action for which an agent asks for approval.

    Attributes:
        level: the agent's judgment; if the organization's level for the action is higher, the
            organization's level applies.
        sentence, effect: the agent's own words, which nobody has verified.
        effect_key: a name of the business effect: two asks with the same name are never open at the
            same time.
        expires_s: the seconds until the card expires; None for the organization's default.
        client_request_id: a repeated request with the same id and agent key returns the same ask.
    """

    action: str
    params: dict[str, Any]
    level: str
    sentence: str = ""
    effect: str = ""
    effect_key: str = ""
    expires_s: int | None = None
    client_request_id: str = ""
    audience: str = ""


class SameEffect(Conflict):
    """Another ask about this effect is open; the error does not reveal anything about that ask."""

    code = "same_effect"


def submit(key: AgentKey, asked: AskedRequest) -> tuple[Ask, bool]:
    """Create the ask with its card, or find the ask that this request repeats; return it, and True
    if it is new.

    Raises:
        Invalid, Forbidden
        Conflict: the employee is inactive or stopped, the action is stopped, or the key has too
            many open asks.
        SameEffect: another ask about the same effect is open.
    """
    _check(asked)
    level = _find_level(key, asked)
    if (earlier := _find_repeated(key, asked)) is not None:
        return earlier, False
    if not key.employee.is_active:
        raise Conflict(f"{key.employee.name} is not active")
    stops.refuse_stopped(key.employee)
    try:
        with transaction.atomic():
            lock_key(key)
            effect = _lock_effect(key, asked)
            found = _find_open(effect)
            if found is None:
                _refuse_flood(key)
                return _create(key, asked, level, effect), True
            if found.key_id == key.pk and _is_same(found, asked, level):
                note_asking(found)
                return found, False
            if RefusedAsk.objects.filter(ask=found, key=key).count() < MAX_REFUSED:
                RefusedAsk.objects.create(ask=found, key=key, params=asked.params)
    except IntegrityError:
        earlier = _find_repeated(key, asked)
        if earlier is None:
            raise
        return earlier, False
    raise SameEffect("another ask about this effect is open")


def _is_same(found: Ask, asked: AskedRequest, level: Level) -> bool:
    """Return True if the open ask has the same action, params, level and audience."""
    shown = (found.action, _get_call(found).level, found.audience)
    return _has_params(found, asked) and shown == (asked.action, level.value, asked.audience)


def _has_params(found: Ask, asked: AskedRequest) -> bool:
    """Return True if the ask has these params, compared as JSON, in which 1, 1.0 and true
    differ."""
    return hash_params(_get_call(found).params) == hash_params(asked.params)


def note_asking(ask: Ask) -> None:
    """Record that the agent is asking now. To save writes, the stored time may be up to
    `ASKING_STEP` old."""
    Ask.objects.filter(pk=ask.pk, last_asked_at__lt=Now() - ASKING_STEP).update(last_asked_at=Now())


def check_action(action: str) -> None:
    """Check the name of an action.

    Raises:
        Invalid
    """
    if not _ACTION.fullmatch(action):
        raise Invalid("action", "action must have 1 to 100 letters, digits or any of _ . : -")


def _check(asked: AskedRequest) -> None:
    check_action(asked.action)
    if asked.level not in set(Level):
        raise Invalid("level", f"level is {asked.level!r}, but must be one of {', '.join(Level)}")
    try:
        text = storable_json(asked.params)
    except (ValueError, TypeError, RecursionError) as error:
        raise Invalid("params", f"params cannot be stored: {error}") from error
    if fingerprint(asked.params) != hash_params(asked.params):
        raise Invalid(
            "params",
            "params contain a number that cannot be stored exactly, such as 1e17: send a string",
        )
    if len(text) > MAX_PARAMS:
        raise Invalid(
            "params",
            f"params have {len(text):,} characters as JSON; at most {MAX_PARAMS:,} are allowed",
        )
    for name, most in (
        ("sentence", MAX_WORDS),
        ("effect", MAX_WORDS),
        ("effect_key", 200),
        ("audience", 200),
    ):
        value: str = getattr(asked, name)
        if len(value) > most or "\0" in value:
            raise Invalid(name, f"{name} may have at most {most:,} characters, and no NUL")
    if len(asked.client_request_id) > 150 or "\0" in asked.client_request_id:
        raise Invalid(
            "client_request_id", "client_request_id may have at most 150 characters, and no NUL"
        )
    if asked.expires_s is not None and not SHORTEST_S <= asked.expires_s <= LONGEST_S:
        raise Invalid(
            "expires_s",
            f"expires_s is {asked.expires_s}, but must be {SHORTEST_S} to {LONGEST_S:,}",
        )


def _find_level(key: AgentKey, asked: AskedRequest) -> Level:
    """Return the higher one of the agent's level and the organization's level. If the organization
    has set no level, the action is destructive.

    Raises:
        Forbidden: the organization has stopped the action.
    """
    rules = ActionRules.load(key.employee.organization_id, asked.action)
    if rules.stop is not None:
        raise Forbidden(f"{quote_text(asked.action)} was stopped by {rules.stop.stopped_by}")
    if rules.level is None or not rules.has_level:
        return Level.DESTRUCTIVE
    return max(Level(asked.level), rules.level, key=lambda level: level.rank)


def _describe(key: AgentKey, asked: AskedRequest) -> str:
    """Name the action and the agent, with the start of the params, so that different cards about
    the same action can be told apart."""
    inner = [
        pair for value in asked.params.values() if isinstance(value, dict) for pair in value.items()
    ]
    outer = [pair for pair in asked.params.items() if not isinstance(pair[1], dict)]
    values = {
        name: value if isinstance(value, str) else canonical_json(value)
        for name, value in [*inner, *outer]
    }
    pairs = ", ".join(f"{name}: {value}" for name, value in values.items())
    shown = sanitize(pairs, MAX_HEADLINE)
    about = f" ({quote_whole(shown)})" if shown else ""
    return f"Run {format_name(asked.action)}{about}, asked by {format_name(key.name)}"


def _find_repeated(key: AgentKey, asked: AskedRequest) -> Ask | None:
    if not asked.client_request_id:
        return None
    found = Ask.objects.filter(key=key, run__client_request_id=_name_request(key, asked)).first()
    if found is None:
        return None
    if (found.action, found.audience) != (asked.action, asked.audience) or not _has_params(
        found, asked
    ):
        raise Conflict(
            "this client_request_id belongs to an ask with another action, other params or another audience"
        )
    return found


def _name_request(key: AgentKey, asked: AskedRequest) -> str:
    return (
        f"{ASK_REQUEST_PREFIX}{key.pk}:{asked.client_request_id}" if asked.client_request_id else ""
    )


def _lock_effect(key: AgentKey, asked: AskedRequest) -> AskedEffect | None:
    """Lock the effect that the ask names, so that asks about it are created one at a time; return
    None if the ask does not name an effect."""
    if not asked.effect_key:
        return None
    named = {
        "organization_id": key.employee.organization_id,
        "action": fold_name(asked.action),
        "key": asked.effect_key,
    }
    AskedEffect.objects.bulk_create([AskedEffect(**named)], ignore_conflicts=True)
    return AskedEffect.objects.select_for_update(no_key=True).get(**named)


def _find_open(effect: AskedEffect | None) -> Ask | None:
    """Return the open ask about this effect; None if there is none. An ask whose outcome is unknown
    is open, too."""
    if effect is None:
        return None
    open_calls = ToolCall.objects.exclude(status__in=TERMINAL_CALLS).filter(
        run_id=OuterRef("run_id")
    )
    return Ask.objects.filter(Exists(open_calls), effect=effect).order_by("pk").first()


def _refuse_flood(key: AgentKey) -> None:
    waiting = Approval.objects.filter(run__ask__key=key, status=ApprovalStatus.PENDING)
    if waiting.count() >= MAX_OPEN_ASKS:
        raise Conflict(f"at most {MAX_OPEN_ASKS} asks of a key may wait at a time")


def _get_call(ask: Ask) -> ToolCall:
    return ToolCall.objects.get(run_id=ask.run_id)


def _create(key: AgentKey, asked: AskedRequest, level: Level, effect: AskedEffect | None) -> Ask:
    assert key.membership is not None
    employee, user = key.employee, key.membership.user
    run = Run(
        organization=employee.organization,
        employee=employee,
        created_by=user,
        origin=Origin.ASK,
        client_request_id=_name_request(key, asked),
        task=f"{key.name} asks to run {asked.action}",
        title=f"{key.name} asks: {asked.action}"[:200],
        mode=employee.mode,
        status=RunStatus.WAITING,
        pass_number=1,
        asked_pass=1,
        max_passes=1,
        messages_heard=1,
    )
    with new_run_transaction(run) as tx:
        Message.objects.create(run=run, number=1, text=run.task)
        AgentRun.objects.create(run=run, key=key)
        ask = Ask.objects.create(
            run=run, key=key, action=asked.action, audience=asked.audience, effect=effect
        )
        tx.publish(RunStarted(user.get_username(), agent_key=key.name))
        _insert_call(tx, key, level, asked)
    return ask


def _insert_call(tx: Transaction, key: AgentKey, level: Level, asked: AskedRequest) -> None:
    run, action = tx.run, AskedAction(asked.action)
    has_level = ActionRules.load(run.organization_id, asked.action).has_level
    why = WHY if has_level else f"{WHY}; {WITHOUT_LEVEL}"
    call = ToolCall(
        organization_id=run.organization_id,
        run=run,
        pass_number=1,
        index=0,
        provider_call_id="call_1",
        level=level.value,
        why=why,
        status=CallStatus.AWAITING_APPROVAL,
    )
    seal(call, action, asked.params)
    words = "\n".join(part for part in (asked.sentence.strip(), asked.effect.strip()) if part)
    function = {"name": action.name, "arguments": canonical_json(asked.params)}
    request = {"id": call.provider_call_id, "type": "function", "function": function}
    response = {"role": "assistant", "content": words, "tool_calls": [request]}
    insert_rows([Pass(run_id=run.pk, number=1, response=response, text=words, messages_upto=1)])
    tx.publish(PassStarted(1))
    call.save(force_insert=True)
    effect = CallEffect(_describe(key, asked), Preview.impossible(NOT_RUN_HERE))
    days: float = run.organization.card_days
    if asked.expires_s is not None:
        days = min(days, asked.expires_s / DAY_S)
    card = build_card(call, effect, why, days)
    card.save(force_insert=True)
    publish_card(tx, call, card, days)
