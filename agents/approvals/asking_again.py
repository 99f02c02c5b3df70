"""Asking again about an approved call that has not started: its card is replaced by a fresh one."""

from agents.approvals.models import Approval, ApprovalStatus
from agents.runs.engine.cards import Effect, effect_now, reopen, withdraw
from agents.runs.engine.context import load_context
from agents.runs.engine.next_step import wake_if_possible
from agents.runs.engine.results import reject
from agents.runs.engine.transaction import run_transaction
from agents.runs.models import CallStatus
from tools.contract import ToolError


def ask_again(card_id: int, why: str) -> bool:
    """Replace an approved card that has not started; return False if it is no longer approved.

    A call that the gate forbids by now is rejected instead.
    """
    card = Approval.objects.select_related("tool_call").get(pk=card_id)
    effect = compute_current_effect(card)
    with run_transaction(card.run_id) as tx:
        card = Approval.objects.select_related("tool_call", "decided_by").get(pk=card_id)
        if card.status != ApprovalStatus.APPROVED or card.tool_call.status != CallStatus.APPROVED:
            return False
        if isinstance(effect, Effect):
            reopen(tx, card, effect, why)
        elif withdraw(tx, card, effect.message):
            reject(tx, card.tool_call, effect)
            wake_if_possible(tx)
        return True


def compute_current_effect(card: Approval) -> Effect | ToolError:
    """Compute the card's effect again, outside transactions; return an error if the gate forbids the call by now."""
    call = card.tool_call
    context = load_context(call.run_id)
    tool, verdict = context.judge(call.tool, call.params)
    return effect_now(card, tool, verdict, context.tool_context(call))
