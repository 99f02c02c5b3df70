"""Replace the cards of approved calls that have not started, and compute the effect of a card
again."""

from agents.employees.toolboxes import load_toolbox
from agents.runs.engine.approved_calls import ApprovedCall
from agents.runs.engine.card_sentences import CallEffect
from agents.runs.engine.cards import (
    compute_effect_again,
    compute_effect_here,
    describe_refusal,
    replace_card,
    withdraw,
)
from agents.runs.engine.context import load_context
from agents.runs.engine.next_step import wake_if_possible
from agents.runs.engine.results import reject
from agents.runs.engine.transaction import run_transaction
from agents.runs.models import Approval, ApprovalStatus, CallStatus
from tools.contract import ErrorCode, Preview, ToolError
from tools.toolbox.asked_actions import find_asked_action


def replace_unstarted_card(card_id: int, why: str) -> bool:
    """Replace the approved card of a call that has not started; return False if the card is no
    longer approved.

    A call that the gate now forbids is rejected instead.
    """
    card = Approval.objects.select_related("tool_call").get(pk=card_id)
    due, effect = _judge(card)
    with run_transaction(card.run_id) as tx:
        card = Approval.objects.select_related("tool_call", "decided_by").get(pk=card_id)
        if card.status != ApprovalStatus.APPROVED or card.tool_call.status != CallStatus.APPROVED:
            return False
        objection = None if due is None else due.judge_again(tx)
        if objection is None or objection.error is None:
            replace_card(tx, card, effect, why)
        elif withdraw(tx, card, objection.error.message):
            reject(tx, card.tool_call, objection.error)
            wake_if_possible(tx)
        return True


def _judge(card: Approval) -> tuple[ApprovedCall | None, CallEffect]:
    """Judge the card's call and compute its effect, outside transactions. For an ask, which the
    gate does not judge, return None in place of the call.

    If the gate forbids the call, return the effect that the card shows: the rules may allow the
    call again once the run is locked.
    """
    shown = CallEffect(card.sentence, Preview.from_json(card.preview))
    call = card.tool_call
    if find_asked_action(call.tool):
        return None, shown
    due = ApprovedCall(load_context(call.run_id), card)
    computed = compute_effect_again(
        card, due.tool, due.verdict, due.context.build_tool_context(call)
    )
    due.effect = effect = computed if isinstance(computed, CallEffect) else shown
    return due, effect


def compute_current_effect(card: Approval) -> CallEffect | ToolError:
    """Compute the card's effect again, outside transactions; return the gate's error if it now
    forbids the call.

    The gate does not judge asks, so for an ask the effect on the card is returned unchanged.
    """
    call = card.tool_call
    if find_asked_action(call.tool):
        return CallEffect(card.sentence, Preview.from_json(card.preview))
    context = load_context(call.run_id)
    tool, verdict = context.judge_start(call.tool, call)
    return compute_effect_again(card, tool, verdict, context.build_tool_context(call))


def compute_effect_to_show(card: Approval) -> CallEffect:
    """Compute the card's effect again. If the gate now forbids the call, return an effect that says
    so."""
    effect = compute_current_effect(card)
    if isinstance(effect, CallEffect):
        return effect
    call = card.tool_call
    tool = load_toolbox(card.organization_id).get_called_tool(call.tool, call.version)
    return describe_refusal(tool, card, effect)


def compute_effect_now(card: Approval) -> CallEffect | ToolError:
    """Compute the card's effect again in this thread, for tools that read only local data.

    If the tool refuses the call, the effect gives the reason, or says that the work is already
    done. If the gate forbids the call, return the gate's error.
    """
    call = card.tool_call
    context = load_context(call.run_id)
    tool, verdict = context.judge_start(call.tool, call)
    if tool is None or verdict.error is not None:
        return verdict.error or ToolError(
            ErrorCode.TOOL_NOT_FOUND, "The tool is no longer installed.", attempted=False
        )
    try:
        return compute_effect_here(tool, verdict.params, context.build_tool_context(call))
    except ToolError as error:
        return describe_refusal(tool, card, error)
