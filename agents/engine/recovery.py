"""What is done with calls that a lost worker or a restored backup left executing."""

from agents.engine import lease, losses, parking, turns
from agents.engine.cards import Effect, effect_now, reopen, withdraw
from agents.engine.gate import workplace
from agents.engine.outcomes import reject
from agents.engine.turns import Turn
from agents.events import recording
from agents.models import Approval, ApprovalStatus, CallStatus, Run, RunStatus, ToolCall
from agents.statements import STAND_INS, Prepared
from tools.contract import ToolError

_LEFT_EXECUTING = Prepared(
    lambda run_id, epoch: (
        ToolCall.objects.filter(run_id=run_id, status=CallStatus.EXECUTING, exec_epoch__lt=epoch)
        .order_by("pk")
        .values_list("pk")
    ),
    slots=STAND_INS[:2],
)


def recover(held: lease.Claim) -> Turn:
    """Settle what the last holder left executing, and find the first move; one transaction."""
    with held.recording() as record:
        if left := [pk for (pk,) in _LEFT_EXECUTING.rows(held.run_id, held.epoch)]:
            for call in ToolCall.objects.filter(pk__in=left).order_by("pk"):
                losses.lose_worker(record, call, may_repeat=True)
        return turns.settle(record, held)


def ask_again(card_id: int, why: str) -> bool:
    """Replace an approved card that has not started by a fresh one; False if it is not approved any more.

    Nobody is asked again about a call that the gate forbids by now: it is rejected.
    """
    card = Approval.objects.select_related("tool_call").get(pk=card_id)
    effect = current_effect(card)
    with recording(card.run_id) as record:
        card = Approval.objects.select_related("tool_call", "decided_by").get(pk=card_id)
        if card.status != ApprovalStatus.APPROVED or card.tool_call.status != CallStatus.APPROVED:
            return False
        if isinstance(effect, Effect):
            reopen(record, card, effect, why)
        elif withdraw(record, card, effect.message):
            reject(record, card.tool_call, effect)
            turns.wake_if_possible(record)
        return True


def current_effect(card: Approval) -> Effect | ToolError:
    """The card's effect computed again, outside transactions; an error if the gate forbids the call by now."""
    call = card.tool_call
    place = workplace(call.run_id)
    tool, verdict = place.judge(call.tool, call.params)
    return effect_now(card, tool, verdict, place.context(call))


def after_restore() -> dict[str, int]:
    """After a restored backup, before anything starts: nobody can know what happened since it was made.

    Open approvals lapse and are asked again, what was executing is settled as after a lost worker, leases are dropped.
    Returns how many of each: {"runs", "asked_again", "unsettled"}.
    """
    counts = {"runs": 0, "asked_again": 0, "unsettled": 0}
    for pk in Run.objects.filter(status=RunStatus.RUNNING).values_list("pk", flat=True):
        with recording(pk) as record:
            parking.requeue(record)
        counts["runs"] += 1
    for call in ToolCall.objects.filter(status=CallStatus.EXECUTING).order_by("pk"):
        with recording(call.run_id) as record:
            losses.lose_worker(record, call, may_repeat=True)
        counts["unsettled"] += 1
    for pk in Approval.objects.filter(status=ApprovalStatus.APPROVED).values_list("pk", flat=True):
        counts["asked_again"] += ask_again(pk, "The approval was given before a backup was restored.")
    return counts
