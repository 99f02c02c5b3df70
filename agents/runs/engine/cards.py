"""Cards (step 6 of a run): compute the effect of a call, seal it, ask for a decision, and ask again
after a change.

A card is an `Approval` row. `requested_calls` inserts the cards of new calls, `replace_card` the
cards that replace another card, `unknown_outcomes` the cards for unknown outcomes, `suspension` the
cards for questions, and `gateway/asks.py` the cards for asks.
"""

import queue
import threading
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import connection
from django.db.models import Max
from django.db.models.functions import Now

from agents.platform.database_connections import release_connection
from agents.runs.engine.card_sentences import (
    NO_LONGER_POSSIBLE,
    CallEffect,
    describe_effect,
    describe_refused,
    describe_without_effect,
    name_call,
)
from agents.runs.engine.results import end_unexecuted
from agents.runs.engine.timing import MAX_DRIFTS, timing
from agents.runs.engine.transaction import Transaction
from agents.runs.events import ApprovalDecided, ApprovalRequested, ToolRejected
from agents.runs.models import Approval, ApprovalStatus, CallStatus, Origin, ToolCall
from tools.contract import (
    NO_PREVIEW,
    ErrorCode,
    NothingToDo,
    Preview,
    Target,
    Tool,
    ToolContext,
    ToolError,
    build_signature,
    collect_secrets,
    find_embedded_requests,
    fingerprint,
    name_tool,
)
from tools.toolbox.isolation import BrokenPromise, convert_returned, run_isolated
from tools.toolbox.permissions import Verdict
from tools.toolbox.secrecy import hide_secrets_in_error, hide_secrets_in_preview
from tools.toolbox.threads import THREADS, mark_abandoned, mark_returned

MAX_LISTED_REQUESTS = 1_000
SEND = "send"
"""The name of the effect of a call that carries other requests."""


def compute_effect(tool: Tool, params: dict[str, object], context: ToolContext) -> CallEffect:
    """Compute the effect of a call in a separate thread, in at most 10 s; if the preview fails, the
    effect is unknown.

    Call it outside transactions.

    Raises:
        ToolError: the preview refuses the call, so it cannot run.
    """
    outcomes: queue.SimpleQueue[CallEffect | ToolError] = queue.SimpleQueue()
    ended = threading.Event()

    def compute() -> None:
        try:
            outcomes.put(compute_effect_here(tool, params, context))
        except ToolError as error:
            outcomes.put(error)
        finally:
            connection.close()
            ended.set()
            mark_returned(ended)

    release_connection()
    THREADS.run(compute)
    try:
        outcome = outcomes.get(timeout=timing().preview_s)
    except queue.Empty:
        mark_abandoned(ended)
        if ended.is_set():
            mark_returned(ended)
        return describe_without_effect(tool, params, "The preview took too long.")
    if isinstance(outcome, ToolError):
        raise outcome
    return outcome


def compute_effect_here(
    tool: Tool,
    params: dict[str, object],
    context: ToolContext,
    let_through: tuple[type[BaseException], ...] = (),
) -> CallEffect:
    """Compute the effect of a call in this thread, inside the caller's transaction if there is one.

    Raises:
        ToolError: the tool says that the call cannot work, for example because its target is
            missing, or does not return a valid preview or sentence.
        DatabaseError: inside a transaction, which must then be rolled back.
        BaseException: an exception of a class in `let_through`, such as a deadlock, after which the
            caller retries.
    """
    try:
        try:
            preview = run_isolated(
                tool,
                "preview",
                lambda: tool.preview(tool.load_params(params), context),
                let_through,
            )
        except NothingToDo as done:
            raise NothingToDo(
                done.message, convert_returned(tool, "preview", done.preview)
            ) from done
        except ToolError as error:
            if error.code != ErrorCode.TOOL_EXECUTION_FAILED or isinstance(error, BrokenPromise):
                raise
            preview = Preview.impossible("The preview failed.")
        preview = preview or _list_requests(tool, params) or Preview.impossible(NO_PREVIEW)
        return describe_effect(
            tool, params, hide_secrets_in_preview(preview, collect_secrets(context.credentials))
        )
    except ToolError as error:
        raise hide_secrets_in_error(error, collect_secrets(context.credentials)) from error


def compute_effect_again(
    card: Approval, tool: Tool | None, verdict: Verdict, context: ToolContext
) -> CallEffect | ToolError:
    """Compute the card's effect again, outside transactions; return an error if the gate now
    forbids the call.

    If the tool itself refuses the call, the effect says why, or that there is nothing left to do.
    """
    if tool is None or verdict.error is not None:
        return verdict.error or ToolError(
            ErrorCode.TOOL_NOT_FOUND, "The tool is no longer installed.", attempted=False
        )
    try:
        return compute_effect(tool, verdict.params, context)
    except ToolError as error:
        return describe_refusal(tool, card, error)


def describe_refusal(tool: Tool | None, card: Approval, error: ToolError) -> CallEffect:
    """Describe, in a new sentence, a call that cannot run as its card shows, because the old
    sentence promises an effect."""
    if tool is None:
        sentence = (
            f"{NO_LONGER_POSSIBLE}{name_call(name_tool(None, card.tool_call.tool), card.params)}"
        )
        return CallEffect(sentence, Preview.refused(error.message))
    return describe_refused(tool, card.params, error, card.preview)


def _list_requests(tool: Tool, params: dict[str, object]) -> Preview | None:
    """Return a preview with the requests inside a call of an external tool, each as a target; None
    if there are none."""
    carried = find_embedded_requests(params) if tool.is_from_outside else ()
    if not carried:
        return None
    if len(carried) > MAX_LISTED_REQUESTS:
        return Preview.impossible(
            f"The call carries {len(carried):,} other requests; at most {MAX_LISTED_REQUESTS:,} can be listed."
        )
    targets = (
        Target(str(number), request, after={"request": request})
        for number, request in enumerate(carried, start=1)
    )
    return Preview(SEND, tuple(targets), reversible=False)


def build_card(call: ToolCall, effect: CallEffect, why: str, days: float) -> Approval:
    """Build a pending card for a stored call; the caller saves it."""
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
        digest=compute_digest(call, stored),
        shape=compute_shape(call),
        expires_at=Now() + timedelta(days=days),
    )


def approve_by_grant(card: Approval, grant: Any, now: datetime) -> None:
    """Approve a new card in the name of the standing grant's maker, so that its call may start
    immediately; the caller saves it."""
    card.status = ApprovalStatus.APPROVED
    card.standing_grant, card.decided_by = grant, grant.made_by
    card.decided_at = card.start_after = now
    card.valid_until = now + timing().approval_validity


def publish_card(tx: Transaction, call: ToolCall, card: Approval, days: float) -> None:
    """Publish the event that the card was created."""
    tx.publish(ApprovalRequested.of(card, call, tx.now + timedelta(days=days)))
    tx.inbox_changed = True


def replace_card(tx: Transaction, card: Approval, effect: CallEffect, why: str) -> Approval:
    """Replace an open card with a new one, because the effect has changed or a person asked for it;
    the old card becomes superseded.

    The new card seals the values that `card.tool_call` has in memory, and gives two reasons: the
    change (`why`), and the reason why the call needs approval.

    Raises:
        RuntimeError: the card is not open; the caller must check this first.
    """
    call = card.tool_call
    supersede(tx, card, why)
    waiting = ToolCall.objects.filter(
        pk=call.pk, status__in=(CallStatus.AWAITING_APPROVAL, CallStatus.APPROVED)
    )
    waiting.update(
        status=CallStatus.AWAITING_APPROVAL,
        params=call.params,
        model_params=call.model_params,
        params_hash=hash_params(call.params),
        signature=call.signature,
        level=call.level,
        why=call.why,
        judgment=call.judgment,
        provenance=call.provenance,
        version=call.version,
        definition_hash=call.definition_hash,
        drifts=call.drifts,
    )
    days: float = tx.run.organization.card_days
    if tx.run.origin == Origin.ASK:  # the agent may have set an earlier expiry
        days = max(0.0, min(days, (card.expires_at - tx.now) / timedelta(days=1)))
    new_card = build_card(call, effect, _join_reasons(why, call.why), days)
    new_card.sequence = find_next_sequence(call)
    new_card.save(force_insert=True)
    publish_decision(tx, card, why, next_approval_id=str(new_card.pk))
    publish_card(tx, call, new_card, days)
    return new_card


def _join_reasons(change: str, verdict_reason: str) -> str:
    return (
        f"{change}\n{verdict_reason[:1].upper()}{verdict_reason[1:]}." if verdict_reason else change
    )


def replace_after_drift(tx: Transaction, card: Approval, effect: CallEffect, why: str) -> None:
    """Replace the card with a new one, because the call no longer matched it at the start; the
    third time, let the call fail instead."""
    call = card.tool_call
    call.drifts = ToolCall.objects.values_list("drifts", flat=True).get(pk=call.pk) + 1
    if call.drifts < MAX_DRIFTS:
        replace_card(tx, card, effect, why)
        return
    supersede(tx, card, why)
    publish_decision(tx, card, why)
    error = ToolError(
        ErrorCode.OPERATION_FAILED, f"The target kept changing: {why}", attempted=False
    )
    if end_unexecuted(tx, call, CallStatus.FAILED, error):
        tx.publish(ToolRejected.of(call, error))


def supersede(tx: Transaction, card: Approval, why: str) -> None:
    """Close an open card as superseded; raise RuntimeError if it is not open."""
    open_ = Approval.objects.filter(
        pk=card.pk, status__in=(ApprovalStatus.PENDING, ApprovalStatus.APPROVED)
    )
    if not open_.update(status=ApprovalStatus.SUPERSEDED, reason=why):
        raise RuntimeError(f"card {card.pk} is not open")
    card.status = ApprovalStatus.SUPERSEDED
    tx.inbox_changed = True


def withdraw(tx: Transaction, card: Approval, why: str) -> bool:
    """Cancel an open card because its call can no longer run; return False if the card is not
    open."""
    if not Approval.objects.filter(pk=card.pk, status=card.status).update(
        status=ApprovalStatus.CANCELLED, reason=why
    ):
        return False
    card.status = ApprovalStatus.CANCELLED
    publish_decision(tx, card, why)
    return True


def publish_decision(
    tx: Transaction, card: Approval, reason: str, next_approval_id: str | None = None
) -> None:
    """Publish the event that the card has ended, with its current status."""
    tx.publish(ApprovalDecided.of(card, reason, next_approval_id))
    tx.inbox_changed = True


def find_next_sequence(call: ToolCall) -> int:
    """Return the sequence number for the call's next card."""
    last = Approval.objects.filter(tool_call=call).aggregate(last=Max("sequence"))["last"]
    return (last or 0) + 1


def seal(call: ToolCall, tool: Tool, params: dict[str, object]) -> None:
    """Write the tool and the params on the call, exactly as they will be shown, decided and
    executed.

    A call that a person has edited keeps the signature of the model's request.
    """
    call.tool = tool.name
    call.version = tool.version
    call.definition_hash = tool.definition_hash
    call.params = dict(params)
    call.params_hash = hash_params(call.params)
    if call.model_params is None:
        call.signature = fingerprint(build_signature(tool.name, dict(params)))


def is_sealed(card: Approval) -> bool:
    """Return True if the card's digest matches its params, its effect and its call."""
    call = card.tool_call
    matches_call = hash_params(card.params) == hash_params(call.params) and card.level == call.level
    return matches_call and compute_digest(call, card.preview) == card.digest


def compute_digest(call: ToolCall, preview: dict[str, Any]) -> str:
    """Hash the organization, run, call, tool, definition, level, params and effect with SHA-256.

    The values themselves are hashed, because a stored hash could be outdated.
    """
    return fingerprint(
        {
            "organization": call.organization_id,
            "run": call.run_id,
            "call": call.idempotency_key,
            "tool": f"{call.tool}@{call.version}",
            "definition": call.definition_hash,
            "level": call.level,
            "params": hash_params(call.params),
            "preview": fingerprint(_normalize_stored(preview)),
        }
    )


def compute_shape(call: ToolCall) -> str:
    """Hash the parts that similar calls share: tool, definition, level and the names of the params.

    The names in nested objects are included too: a call that changes a phone number has another
    shape than one that changes a status.
    """
    return fingerprint(
        [f"{call.tool}@{call.version}", call.definition_hash, call.level, _list_names(call.params)]
    )


def _list_names(value: Any) -> Any:
    return (
        {name: _list_names(child) for name, child in value.items()}
        if isinstance(value, dict)
        else None
    )


def hash_params(params: dict[str, Any]) -> str:
    """Hash params with SHA-256; the hash is the same before they are stored and after they are read
    back."""
    return fingerprint(_normalize_stored(params))


def _normalize_stored(value: Any) -> Any:
    """Return the value in a form that every database returns unchanged: PostgreSQL stores 1e22 as
    an integer, and has no -0.0."""
    if isinstance(value, float):
        return int(Decimal(repr(value))) if "e+" in repr(value) else value + 0.0
    if isinstance(value, dict):
        return {str(key): _normalize_stored(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_normalize_stored(child) for child in value]
    return value
