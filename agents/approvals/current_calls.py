"""Replace the cards of approved calls that have not started, and compute the effect of a card
again."""

from dataclasses import dataclass

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
from agents.runs.models import Approval, ApprovalStatus, CallStatus, ToolCall
from tools.contract import ErrorCode, Preview, ToolError
from tools.toolbox.asked_actions import find_asked_action


@dataclass(frozen=True)
class CurrentCall:
    """The call of a card as it would run now.

    Attributes:
        computed: its effect, or the error with which the gate forbids it.
        due: its judgment; None for asks, which the gate does not judge.
    """

    card: Approval
    computed: CallEffect | ToolError
    due: ApprovedCall | None = None

    @property
    def effect(self) -> CallEffect:
        """The effect to show; if the gate refuses the call, the effect says so."""
        if isinstance(self.computed, CallEffect):
            return self.computed
        call = self.card.tool_call
        tool = load_toolbox(self.card.organization_id).get_called_tool(call.tool, call.version)
        return describe_refusal(tool, self.card, self.computed)

    def seal_changes(self, call: ToolCall) -> None:
        """Seal the call as it would run now; see `ApprovedCall.seal_changes`."""
        if self.due is not None:
            self.due.seal_changes(call)


def judge_current(card: Approval) -> CurrentCall:
    """Judge the card's call and compute its effect, outside transactions.

    The gate does not judge asks; their effect stays as shown.
    """
    call = card.tool_call
    if find_asked_action(call.tool):
        return CurrentCall(card, CallEffect(card.sentence, Preview.from_json(card.preview)))
    due = ApprovedCall(load_context(call.run_id), card)
    context = due.context.build_tool_context(call)
    return CurrentCall(card, compute_effect_again(card, due.tool, due.verdict, context), due)


def replace_unstarted_card(card_id: int, why: str) -> bool:
    """Replace the approved card of a call that has not started; return False if the card is no
    longer approved.

    A call that the gate now forbids is rejected instead.
    """
    current = judge_current(Approval.objects.select_related("tool_call").get(pk=card_id))
    due, effect = current.due, current.computed
    if isinstance(effect, ToolError):  # the rules may allow the call again once the run is locked
        effect = CallEffect(current.card.sentence, Preview.from_json(current.card.preview))
    with run_transaction(current.card.run_id) as tx:
        card = Approval.objects.select_related("tool_call", "decided_by").get(pk=card_id)
        if card.status != ApprovalStatus.APPROVED or card.tool_call.status != CallStatus.APPROVED:
            return False
        if due is not None:
            due.effect = effect
        objection = None if due is None else due.judge_again(tx)
        if objection is None or objection.error is None:
            current.seal_changes(card.tool_call)
            replace_card(tx, card, effect, why)
        elif withdraw(tx, card, objection.error.message):
            reject(tx, card.tool_call, objection.error)
            wake_if_possible(tx)
        return True


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
