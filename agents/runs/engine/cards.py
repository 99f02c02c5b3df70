"""Cards: computing the effect, sealing it, asking for a decision, and asking again."""

import queue
import threading
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Max
from django.db.models.functions import Now

from agents.approvals.models import Approval, ApprovalKind, ApprovalStatus
from agents.platform.database_condition import release_connection
from agents.runs.engine.results import end_unexecuted, publish_result
from agents.runs.engine.timing import DRIFTS, timing
from agents.runs.engine.transaction import Transaction
from agents.runs.events import ApprovalDecided, ApprovalRequested, ToolRejected
from agents.runs.models import CallStatus, ToolCall
from tools.contract import (
    ErrorCode,
    Preview,
    Target,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    canonical_json,
    fingerprint,
    inner_requests,
    secrets_of,
    signature_of,
)
from tools.toolbox.isolation import isolated
from tools.toolbox.permissions import Verdict
from tools.toolbox.secrecy import error_without_secrets, preview_without_secrets
from tools.toolbox.threads import THREADS, came_back, give_up


def digest_of(call: ToolCall, preview: dict[str, Any]) -> str:
    """SHA-256 over organization, run, call, tool, definition, level, params and effect.

    Everything is computed from the values themselves: a stored hash could be out of date.
    """
    return fingerprint(
        {
            "organization": call.organization_id,
            "run": call.run_id,
            "call": call.idempotency_key,
            "tool": f"{call.tool}@{call.version}",
            "definition": call.definition_hash,
            "level": call.level,
            "params": params_hash_of(call.params),
            "preview": fingerprint(_as_stored(preview)),
        }
    )


def params_hash_of(params: dict[str, Any]) -> str:
    """Hash canonical params with SHA-256, equally before they are stored and after they are read back."""
    return fingerprint(_as_stored(params))


def is_sealed(card: Approval) -> bool:
    """Return True if the card's digest matches the params and effect it shows, and its current call."""
    call = card.tool_call
    shows_its_call = params_hash_of(card.params) == params_hash_of(call.params) and card.level == call.level
    return shows_its_call and digest_of(call, card.preview) == card.digest


def unforeseen(problem: str) -> dict[str, Any]:
    """The stored form of an effect that could not be previewed."""
    return Preview.impossible(problem).as_json()


def _as_stored(value: Any) -> Any:
    """Return the value as every database returns it: PostgreSQL writes 1e22 as an integer, and has no -0.0."""
    if isinstance(value, float):
        return int(Decimal(repr(value))) if "e+" in repr(value) else value + 0.0
    if isinstance(value, dict):
        return {str(key): _as_stored(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_as_stored(child) for child in value]
    return value


_SENTENCE_LENGTH = 1000
MOST_CARRIED = 1_000
SEND = "send"
"""The effect of a call that carries other requests."""


@dataclass(frozen=True)
class Effect:
    """What a card says that the call would do."""

    sentence: str
    preview: Preview


def effect_of(tool: Tool, params: dict[str, object], context: ToolContext) -> Effect:
    """Compute the effect in a thread of its own, at most 10 s; a failing preview becomes "cannot be previewed".

    To be called outside transactions. A ToolError of the preview is raised: such a call cannot run.
    """
    answers: queue.SimpleQueue[Effect | ToolError] = queue.SimpleQueue()
    ended = threading.Event()

    def compute() -> None:
        try:
            answers.put(effect_here(tool, params, context))
        except ToolError as error:
            answers.put(error)
        finally:
            connection.close()
            ended.set()
            came_back(ended)

    release_connection()
    THREADS.run(compute)
    try:
        answer = answers.get(timeout=timing().preview_s)
    except queue.Empty:
        give_up(ended)
        if ended.is_set():
            came_back(ended)
        return _described(tool, params, Preview.impossible("The preview took too long."))
    if isinstance(answer, ToolError):
        raise answer
    return answer


def effect_here(
    tool: Tool,
    params: dict[str, object],
    context: ToolContext,
    let_through: tuple[type[BaseException], ...] = (),
) -> Effect:
    """Compute the effect in this thread, inside the caller's transaction if there is one.

    Raises:
        ToolError: the tool says that the call cannot work, e.g. because its target is not there.
        DatabaseError: inside a transaction, which is broken then.
        BaseException: only of the classes in `let_through`, e.g. a deadlock that the caller answers by trying again.
    """
    secrets = secrets_of(context.credentials)
    try:
        preview = isolated(tool, "preview", lambda: tool.preview(tool.load_params(params), context), let_through)
    except ToolError as error:
        if error.code != ErrorCode.TOOL_EXECUTION_FAILED:
            raise error_without_secrets(error, secrets) from error
        return _described(tool, params, Preview.impossible("The preview failed."))
    shown = preview or _list_requests(tool, params) or Preview.impossible("This tool has no preview.")
    return _described(tool, params, preview_without_secrets(shown, secrets))


def _list_requests(tool: Tool, params: dict[str, object]) -> Preview | None:
    """List the requests that a call of a tool from outside carries, each as one item; None if there are none."""
    carried = inner_requests(params) if tool.is_from_outside else ()
    if not carried:
        return None
    if len(carried) > MOST_CARRIED:
        return Preview.impossible(
            f"It carries {len(carried):,} other requests; at most {MOST_CARRIED:,} can be listed."
        )
    targets = (
        Target(str(number), request, after={"request": request}) for number, request in enumerate(carried, start=1)
    )
    return Preview(SEND, tuple(targets), reversible=False)


def effect_now(card: Approval, tool: Tool | None, verdict: Verdict, context: ToolContext) -> Effect | ToolError:
    """The card's effect computed again, outside transactions; an error if the gate forbids the call by now.

    If the tool itself refuses, the effect says why.
    """
    if tool is None or verdict.error is not None:
        return verdict.error or ToolError(ErrorCode.TOOL_NOT_FOUND, "The tool is gone.", attempted=False)
    try:
        return effect_of(tool, verdict.params, context)
    except ToolError as error:
        return Effect(card.sentence, Preview.impossible(error.message))


def _described(tool: Tool, params: dict[str, object], preview: Preview) -> Effect:
    try:
        sentence = isolated(tool, "sentence", lambda: tool.sentence(tool.load_params(params), preview))
    except ToolError:
        sentence = f"Use {tool.title}: {canonical_json(params)}"
    if len(sentence) > _SENTENCE_LENGTH:
        sentence = f"{sentence[:_SENTENCE_LENGTH]}… ({len(sentence) - _SENTENCE_LENGTH:,} more characters)"
    return Effect(sentence, preview)


def new_card(call: ToolCall, effect: Effect, why: str, days: int) -> Approval:
    """A pending card for a call that is stored already; not saved."""
    stored = effect.preview.as_json()
    return Approval(
        organization_id=call.organization_id,
        run_id=call.run_id,
        tool_call=call,
        level=call.level,
        params=call.params,
        sentence=effect.sentence,
        preview=stored,
        why=why,
        digest=digest_of(call, stored),
        expires_at=Now() + timedelta(days=days),
    )


def publish_card(tx: Transaction, call: ToolCall, card: Approval, days: int) -> None:
    """The panel's line for a card; it shows the card as it is when somebody looks."""
    tx.publish(ApprovalRequested.of(card, call, tx.now + timedelta(days=days)))
    tx.inbox_changed = True


def reopen(tx: Transaction, card: Approval, effect: Effect, why: str) -> Approval:
    """Replace a card by the next one, because what it showed is no longer what would happen, or a person asked so.

    The card's call as given holds what is to be sealed: params, level, definition. The old card becomes superseded.

    Raises:
        RuntimeError: the card is not open any more; the caller has to look before.
    """
    call = card.tool_call
    supersede(tx, card, why)
    waiting = ToolCall.objects.filter(pk=call.pk, status__in=(CallStatus.AWAITING_APPROVAL, CallStatus.APPROVED))
    waiting.update(
        status=CallStatus.AWAITING_APPROVAL,
        params=call.params,
        model_params=call.model_params,
        params_hash=params_hash_of(call.params),
        signature=call.signature,
        level=call.level,
        version=call.version,
        definition_hash=call.definition_hash,
        drifts=call.drifts,
    )
    days = tx.run.organization.card_days
    fresh = new_card(call, effect, why, days)
    fresh.sequence = next_sequence(call)
    fresh.save(force_insert=True)
    publish_decision(tx, card, why, next_approval_id=str(fresh.pk))
    publish_card(tx, call, fresh, days)
    return fresh


def supersede(tx: Transaction, card: Approval, why: str) -> None:
    """Close an open card without a decision."""
    open_ = Approval.objects.filter(pk=card.pk, status__in=(ApprovalStatus.PENDING, ApprovalStatus.APPROVED))
    if not open_.update(status=ApprovalStatus.SUPERSEDED, reason=why):
        raise RuntimeError(f"card {card.pk} is not open any more")
    card.status = ApprovalStatus.SUPERSEDED
    tx.inbox_changed = True


def withdraw(tx: Transaction, card: Approval, why: str) -> bool:
    """Cancel an open card because its call cannot run any more; False if it is not open."""
    if not Approval.objects.filter(pk=card.pk, status=card.status).update(status=ApprovalStatus.CANCELLED, reason=why):
        return False
    card.status = ApprovalStatus.CANCELLED
    publish_decision(tx, card, why)
    return True


def drifted(tx: Transaction, card: Approval, effect: Effect, why: str) -> None:
    """A guard failed at the start: ask again, and give up after the third time."""
    call = card.tool_call
    call.drifts = ToolCall.objects.values_list("drifts", flat=True).get(pk=call.pk) + 1
    if call.drifts < DRIFTS:
        reopen(tx, card, effect, why)
        return
    supersede(tx, card, why)
    publish_decision(tx, card, why)
    error = ToolError(ErrorCode.OPERATION_FAILED, f"The target kept changing: {why}", attempted=False)
    if end_unexecuted(tx, call, CallStatus.FAILED, error):
        tx.publish(ToolRejected.of(call, error))


def publish_decision(tx: Transaction, card: Approval, reason: str, next_approval_id: str | None = None) -> None:
    """The panel's line for what became of a card, whose `status` says it."""
    tx.publish(ApprovalDecided.of(card, reason, next_approval_id))
    tx.inbox_changed = True


def seal(call: ToolCall, tool: Tool, params: dict[str, object]) -> None:
    """Write tool and params on the call as they will be shown, decided and executed.

    A call that a person edited keeps the signature of what the model asked for.
    """
    call.tool = tool.name
    call.version = tool.version
    call.definition_hash = tool.definition_hash
    call.params = dict(params)
    call.params_hash = params_hash_of(call.params)
    if call.model_params is None:
        call.signature = fingerprint(signature_of(tool.name, dict(params)))


def next_sequence(call: ToolCall) -> int:
    """The number of the call's next card."""
    last = Approval.objects.filter(tool_call=call).aggregate(last=Max("sequence"))["last"]
    return (last or 0) + 1


def lose_outcome(tx: Transaction, call: ToolCall, why: str) -> None:
    """Nobody can know whether this write happened: it stops here and a person is asked."""
    changed = ToolCall.objects.filter(pk=call.pk, status=CallStatus.EXECUTING).update(status=CallStatus.OUTCOME_UNKNOWN)
    if not changed:
        return
    error = ToolError(ErrorCode.OUTCOME_UNKNOWN, why, recovery_hint="A person has to look and say what happened.")
    publish_result(tx, call, ToolResult.failed(error), 0)
    show_unknown_card(tx, call, "It is not known whether this happened", why)
    tx.audit("gadget", "outcome_unknown", f"tool_call:{call.pk}", tool=call.tool, why=why)


def show_unknown_card(tx: Transaction, call: ToolCall, fact: str, why: str) -> Approval:
    """Create the card that asks a person to look, about what the call's last approval showed."""
    last = Approval.objects.filter(tool_call=call).exclude(kind=ApprovalKind.UNKNOWN).order_by("-sequence").first()
    effect = last.preview if last else unforeseen("There is no preview.")
    done = last.sentence if last else call.tool
    tx.inbox_changed = True
    return Approval.objects.create(
        organization_id=call.organization_id,
        run_id=call.run_id,
        tool_call=call,
        sequence=next_sequence(call),
        kind=ApprovalKind.UNKNOWN,
        level=call.level,
        params=call.params,
        sentence=f"{fact}: {done}",
        preview=effect,
        why=why,
        digest=digest_of(call, effect),
        expires_at=Now() + _NEVER,
    )


def close_unknown_card(call: ToolCall, reason: str, by: User | None = None) -> None:
    """Close the card that asked what happened: a person has said so, or the executor reported."""
    Approval.objects.filter(tool_call=call, kind=ApprovalKind.UNKNOWN, status=ApprovalStatus.PENDING).update(
        status=ApprovalStatus.CANCELLED, reason=reason, decided_by=by, decided_at=Now()
    )


_NEVER = timedelta(days=3650)
