"""An agent's steps with its ask: get the receipt, redeem it once, report the outcome, or cancel."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta

from django.conf import settings
from django.db.models import F, Q
from django.db.models.functions import Now

from agents.gateway.action_rules import ActionRules
from agents.gateway.asks import MAX_WORDS
from agents.gateway.models import AgentKey, Ask
from agents.gateway.receipts import (
    InvalidReceipt,
    Receipt,
    digest_params,
    read_receipt,
    sign_receipt,
)
from agents.platform.refusals import Conflict, Expired, Invalid, NotFound
from agents.platform.row_ids import parse_row_id_or_none
from agents.runs.engine.cards import is_sealed, withdraw
from agents.runs.engine.ending import cancel_waiting_call, park
from agents.runs.engine.next_step import wake_if_possible
from agents.runs.engine.recovery import record_late_effect
from agents.runs.engine.requested_calls import publish_call_start
from agents.runs.engine.results import build_end_columns, end_unexecuted, publish_result
from agents.runs.engine.timing import timing
from agents.runs.engine.transaction import LostRace, Transaction, run_transaction
from agents.runs.engine.unknown_outcomes import close_unknown_card, mark_outcome_unknown
from agents.runs.events import CallResolved
from agents.runs.models import (
    Approval,
    ApprovalKind,
    ApprovalStatus,
    CallStatus,
    ToolCall,
    Vote,
    WithheldBulk,
)
from tools.contract import ErrorCode, Level, ToolError, ToolResult
from tools.toolbox.asked_actions import PREFIX

OUTCOME_TIME = timedelta(hours=1)
"""The time that an agent has after the redemption to report the outcome. When it is over, the
outcome is unknown."""
OUTCOMES = ("succeeded", "failed")
SHORTEST_PREFIX = 8
"""The shortest prefix of effect keys, in characters, for cancelling asks together."""
_STATUSES = {
    CallStatus.AWAITING_APPROVAL: "waiting",
    CallStatus.APPROVED: "waiting",
    CallStatus.EXECUTING: "redeemed",
    CallStatus.OUTCOME_UNKNOWN: "unknown",
}
"""The statuses that agents see, where these differ from the call's own status."""


@dataclass(frozen=True)
class AskState:
    """An ask as its agent, or a person, sees it.

    Attributes:
        status: waiting, approved, denied, expired, cancelled, redeemed, succeeded, failed or
            unknown.
    """

    ask: Ask
    call: ToolCall
    card: Approval
    status: str

    @property
    def has_ended(self) -> bool:
        """True if the approval is no longer valid, even if that is not recorded yet."""
        return bool(self.card.has_ended)  # type: ignore[attr-defined]

    @property
    def params_digest(self) -> str:
        return digest_params(self.call.params)

    @property
    def is_waiting(self) -> bool:
        return self.status == "waiting"

    def sign(self) -> str:
        """Sign the receipt; return an empty text unless the approval can be redeemed."""
        if self.status != "approved":
            return ""
        return sign_receipt(_build_receipt(self.ask, self.call, self.card))


def find_own_ask(key: AgentKey, ask_id: str) -> Ask:
    """Find an ask of this key; asks of other keys are not found.

    Raises:
        NotFound
    """
    asks = Ask.objects.select_related("run__organization", "key", "effect")
    row_id = parse_row_id_or_none(ask_id)
    ask = asks.filter(key=key, pk=row_id).first() if row_id is not None else None
    if ask is None:
        raise NotFound(f"there is no ask {ask_id[:40]} of this key")
    return ask


def load_state(ask: Ask) -> AskState:
    """Load the state of the ask. An ask counts as approved only when its approval can no longer be
    undone."""
    return load_states([ask])[0]


def load_states(asks: Sequence[Ask]) -> list[AskState]:
    """Load the states of these asks, in two queries."""
    runs = {ask.run_id for ask in asks}
    calls = {
        call.run_id: call for call in ToolCall.objects.filter(run_id__in=runs).select_related("run")
    }
    rows = (
        Approval.objects.filter(run_id__in=runs)
        .exclude(kind=ApprovalKind.UNKNOWN)
        .select_related("decided_by")
    )
    has_ended, is_usable = Q(valid_until__lte=Now()), _match_usable()
    newest = rows.annotate(has_ended=has_ended, is_usable=is_usable).order_by("sequence")
    cards = {card.run_id: card for card in newest}
    for ask in asks:
        card = cards[ask.run_id]
        card.run, card.tool_call = ask.run, calls[ask.run_id]
    return [_describe(ask, calls[ask.run_id], cards[ask.run_id]) for ask in asks]


def _match_usable() -> Q:
    """Return the condition for an approval that can be redeemed now; a receipt must not be signed
    for any other approval."""
    return ~Q(WithheldBulk.find_for_approval()) & Q(start_after__lte=Now(), valid_until__gt=Now())


def _describe(ask: Ask, call: ToolCall, card: Approval) -> AskState:
    is_approved = (call.status, card.status) == (CallStatus.APPROVED, ApprovalStatus.APPROVED)
    if is_approved and card.is_usable:  # type: ignore[attr-defined]
        return AskState(ask, call, card, "approved")
    return AskState(ask, call, card, _STATUSES.get(CallStatus(call.status), call.status))


def redeem(key: AgentKey, ask_id: str, receipt: str) -> AskState:
    """Use the approval once: the agent may now carry out the action.

    Raises:
        NotFound
        Invalid: the receipt is not genuine, or belongs to another ask.
        Expired: the approval has ended.
        Conflict: the ask was redeemed before, is not approved, or a stop is active.
    """
    ask = find_own_ask(key, ask_id)
    try:
        claims = read_receipt(receipt)
    except InvalidReceipt:
        raise Invalid("receipt", "the receipt is not genuine") from None
    with run_transaction(ask.run_id) as tx:
        state = load_state(ask)
        _compare(claims, state)
        _start(tx, state)
        Ask.objects.filter(pk=ask.pk).update(redeemed_at=Now())
        publish_call_start(tx, state.call)
        tx.audit(
            f"agent_key:{key.pk}",
            "receipt_redeemed",
            f"tool_call:{state.call.pk}",
            tool=state.call.tool,
            params_digest=state.params_digest,
            approval=str(state.card.pk),
            approved_by=state.card.decider,
        )
        tx.inbox_changed = True
    ask.refresh_from_db(fields=["redeemed_at"])
    return load_state(ask)


def report_outcome(key: AgentKey, ask_id: str, outcome: str, summary: str = "") -> AskState:
    """Record the outcome that the agent reports, in its own unverified words.

    Raises:
        NotFound, Invalid
        Conflict: the ask was not redeemed, or another outcome is known.
    """
    if outcome not in OUTCOMES:
        raise Invalid(
            "outcome", f"outcome is {outcome[:40]!r}, but must be one of {', '.join(OUTCOMES)}"
        )
    if len(summary) > MAX_WORDS or "\0" in summary:
        raise Invalid("summary", f"summary may have at most {MAX_WORDS:,} characters, and no NUL")
    ask = find_own_ask(key, ask_id)
    with run_transaction(ask.run_id) as tx:
        ask.refresh_from_db(fields=["redeemed_at", "reported_at"])
        call = ToolCall.objects.get(run_id=ask.run_id)
        was_unknown = call.status == CallStatus.OUTCOME_UNKNOWN
        result = _build_result(outcome, summary)
        running = ToolCall.objects.filter(
            pk=call.pk, status__in=(CallStatus.EXECUTING, CallStatus.OUTCOME_UNKNOWN)
        )
        if running.update(**build_end_columns(tx, call, result)):
            Ask.objects.filter(pk=ask.pk).update(reported_at=Now())
            if was_unknown:
                close_unknown_card(call, "The agent reported late.")
                tx.publish(
                    CallResolved(str(call.pk), outcome, key.name, "The agent reported late.")
                )
            else:
                publish_result(tx, call, result)
            tx.audit(
                f"agent_key:{key.pk}", "outcome_reported", f"tool_call:{call.pk}", outcome=outcome
            )
            tx.inbox_changed = True
            wake_if_possible(tx, is_announced=True)
            ask.refresh_from_db(fields=["reported_at"])
            return load_state(ask)
        is_repeat = (call.status, ask.reported_at is not None) == (outcome, True)
        if call.exec_epoch is not None and ask.reported_at is None:
            Ask.objects.filter(pk=ask.pk).update(reported_at=Now())
            tx.audit(
                f"agent_key:{key.pk}",
                "outcome_reported_late",
                f"tool_call:{call.pk}",
                outcome=outcome,
            )
            record_late_effect(tx, call, call.exec_epoch, result)
    if not is_repeat:
        raise Conflict(
            "the outcome of this ask cannot be reported now", ask_status=load_state(ask).status
        )
    return load_state(ask)


def cancel(key: AgentKey, ask_id: str) -> AskState:
    """Withdraw the ask, unless it was redeemed or has ended; return its current state."""
    ask = find_own_ask(key, ask_id)
    with run_transaction(ask.run_id) as tx:
        call = ToolCall.objects.get(run_id=ask.run_id)
        if cancel_waiting_call(tx, call, "The agent cancelled the ask."):
            tx.audit(f"agent_key:{key.pk}", "ask_cancelled", f"tool_call:{call.pk}", tool=call.tool)
            tx.inbox_changed = True
            wake_if_possible(tx, is_announced=True)
    return load_state(ask)


def cancel_effects(key: AgentKey, prefix: str) -> int:
    """Cancel every open ask of the agent key whose effect key begins with the prefix; return the
    number of cancelled asks.

    Raises:
        Invalid: the prefix is so short that it could match asks of other users of the agent key.
    """
    if len(prefix) < SHORTEST_PREFIX:
        raise Invalid(
            "effect_key_prefix",
            f"effect_key_prefix must have at least {SHORTEST_PREFIX} characters",
        )
    undecided = Q(run__tool_calls__status__in=(CallStatus.AWAITING_APPROVAL, CallStatus.APPROVED))
    asks = Ask.objects.filter(undecided, key=key, effect__key__startswith=prefix).select_related(
        "effect"
    )
    # SQLite's LIKE ignores case, so the prefix is compared again here.
    found = [ask for ask in asks if ask.effect is not None and ask.effect.key.startswith(prefix)]
    return sum(cancel(key, str(ask.pk)).status == CallStatus.CANCELLED for ask in found)


def expire_approval(card_id: int) -> bool:
    """End an ask whose approval was not redeemed in time; return False if the ask did not have to
    be ended."""
    card = Approval.objects.select_related("tool_call", "decided_by").get(pk=card_id)
    with run_transaction(card.run_id, wait=False) as tx:
        late = Approval.objects.filter(
            pk=card_id, status=ApprovalStatus.APPROVED, valid_until__lte=Now()
        )
        why = "The agent did not use the approval in time."
        if not late.exists() or not withdraw(tx, card, why):
            return False
        end_unexecuted(
            tx,
            card.tool_call,
            CallStatus.EXPIRED,
            ToolError(ErrorCode.APPROVAL_EXPIRED, why, attempted=False),
        )
        wake_if_possible(tx, is_announced=True)
        return True


def note_silence(call_id: int) -> bool:
    """Set the outcome of a redeemed ask to unknown if its agent did not report it in time; return
    True if the outcome was set."""
    call = ToolCall.objects.get(pk=call_id)
    with run_transaction(call.run_id, wait=False) as tx:
        call = ToolCall.objects.get(pk=call_id)
        if (
            call.status != CallStatus.EXECUTING
            or call.deadline_at is None
            or call.deadline_at > tx.now
        ):
            return False
        mark_outcome_unknown(tx, call, "The agent used the approval and did not say what happened.")
        park(tx, needs_attention=True)
        return True


def _build_receipt(ask: Ask, call: ToolCall, card: Approval) -> Receipt:
    assert card.decided_at is not None
    assert card.valid_until is not None
    votes = Vote.select_cast().filter(approval=card)
    people = list(votes.values_list("voter__username", flat=True)) or [card.decider]
    return Receipt(
        iss=settings.GADGET_ORIGIN or "gadget",
        org=ask.run.organization.slug,
        ask=str(ask.pk),
        asker=f"agent_key:{ask.key_id}",
        action=ask.action,
        level=call.level,
        params_digest=digest_params(call.params),
        decision="approved",
        decided_by=", ".join(people),
        aud=ask.audience,
        iat=int(card.decided_at.timestamp()),
        exp=int(card.valid_until.timestamp()),
    )


def _compare(claims: Receipt, state: AskState) -> None:
    """Check that the receipt matches the current state of the ask.

    Raises:
        Invalid: the receipt belongs to another ask, or to other params.
        Expired, Conflict
    """
    if state.status in ("redeemed", "succeeded", "failed", "unknown"):
        raise Conflict("this ask was already redeemed", ask_status=state.status)
    if state.call.status == CallStatus.APPROVED and state.has_ended:
        raise Expired("the approval has expired; ask again")
    if state.status != "approved":
        raise Conflict(f"this ask is not approved: it is {state.status}", ask_status=state.status)
    current = _build_receipt(state.ask, state.call, state.card)
    if wrong := [name for name, value in asdict(current).items() if getattr(claims, name) != value]:
        raise Invalid("receipt", f"the receipt differs from this ask in: {', '.join(wrong)}")
    if not is_sealed(state.card):
        raise Conflict("the card or its call was changed in the database", ask_status=state.status)


def _start(tx: Transaction, state: AskState) -> None:
    """Consume the approval and record the start of the only attempt. Each step is a conditional
    update."""
    if not tx.run.may_start:
        raise Conflict(f"nothing may start now: {tx.run.stopped_because}")
    _check_rule(state.call)
    approved = Approval.objects.filter(
        _match_usable(), pk=state.card.pk, status=ApprovalStatus.APPROVED
    )
    if not approved.update(status=ApprovalStatus.CONSUMED, consumed_at=Now()):
        raise Conflict("this ask was already redeemed, or its approval has expired")
    waiting = ToolCall.objects.filter(pk=state.call.pk, status=CallStatus.APPROVED, attempts=0)
    started = waiting.update(
        status=CallStatus.EXECUTING,
        attempts=F("attempts") + 1,
        exec_epoch=tx.run.lease_epoch,
        started_at=tx.now,
        deadline_at=tx.now + OUTCOME_TIME * timing().scale,
    )
    if started != 1:
        raise LostRace(f"call {state.call.pk} is not approved, although its approval was consumed")
    state.call.refresh_from_db()


def _check_rule(call: ToolCall) -> None:
    """Check that the action was neither stopped nor given a higher level since it was approved.

    Raises:
        Conflict
    """
    stop, level, _ = ActionRules.load(call.organization_id, call.tool.removeprefix(PREFIX))
    if stop is not None:
        raise Conflict(f"this action was stopped by {stop.stopped_by}")
    if level is not None and level.rank > Level(call.level).rank:
        raise Conflict(f"the level of this action is {level} now; ask again")


def _build_result(outcome: str, summary: str) -> ToolResult:
    words = summary.strip()
    if outcome == "succeeded":
        return ToolResult.ok({"reported": words}, f"The agent reported success. {words}".strip())
    message = f"The agent reported a failure. {words}".strip()
    return ToolResult.failed(ToolError(ErrorCode.OPERATION_FAILED, message))
