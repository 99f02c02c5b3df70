"""What people do to a question: answer it."""

from django.db.models.functions import Now

from agents.accounts.models import Membership, Role
from agents.approvals.closed_cards import refuse_closed
from agents.approvals.models import Approval, ApprovalKind, ApprovalStatus
from agents.platform.refusals import Conflict, Forbidden, Invalid, NotFound
from agents.runs.engine import next_step
from agents.runs.engine.cards import publish_decision
from agents.runs.engine.suspension import brief_words, end_suspended
from agents.runs.engine.transaction import Transaction, run_transaction
from agents.runs.events import QuestionAnswered
from agents.runs.models import ToolCall
from tools.contract import ToolResult

MOST_ANSWER = 20_000
_MOST_IN_AUDIT = 2_000


def answer(member: Membership, approval_id: int, text: str, decision_id: str = "") -> Approval:
    """Answer an employee's question; its call gets the answer as its result.

    Args:
        decision_id: the same one again by the same person gets the same answer.

    Raises:
        Forbidden, NotFound, Invalid, Decided, Conflict: it is no question, or the run was cancelled; Expired
    """
    if not member.may(Role.OPERATOR):
        raise Forbidden(f"{member.as_noun} may not answer questions")
    said = _checked(text, decision_id)
    cards = Approval.objects.filter(organization_id=member.organization_id).select_related("tool_call", "decided_by")
    run_id = cards.filter(pk=approval_id).values_list("run_id", flat=True).first()
    if run_id is None:
        raise NotFound(f"there is no approval {approval_id}")
    with run_transaction(run_id) as tx:
        card = cards.get(pk=approval_id)
        is_same = bool(decision_id) and (card.decision_id, card.decided_by_id) == (decision_id, member.user_id)
        if is_same and card.status == ApprovalStatus.ANSWERED:
            return card
        asked = Approval.objects.filter(
            pk=card.pk,
            kind=ApprovalKind.QUESTION,
            status=ApprovalStatus.PENDING,
            expires_at__gt=Now(),
            run__cancel_requested_at=None,
        )
        decision = {"decided_by": member.user, "decided_at": Now(), "decision_id": decision_id, "reason": said}
        if not asked.update(status=ApprovalStatus.ANSWERED, **decision):
            _refuse_unanswerable(card)
            raise Conflict("the run was cancelled meanwhile", approval_status=card.status)
        card.decided_by, card.status = member.user, ApprovalStatus.ANSWERED
        _tell(tx, member, card, said)
        _end_call(tx, card.tool_call, member.user.get_username(), said)
        next_step.wake_if_possible(tx, member.user.get_username())
    return cards.get(pk=approval_id)


def _refuse_unanswerable(card: Approval) -> None:
    if card.kind != ApprovalKind.QUESTION:
        raise Conflict(f"a card of kind {card.kind!r} is not answered", approval_status=card.status)
    refuse_closed(card)


def _checked(text: str, decision_id: str) -> str:
    said = text.strip()
    if not said:
        raise Invalid("text", "the answer is empty")
    if len(text) > MOST_ANSWER:
        raise Invalid("text", f"the answer has {len(text):,} characters; at most {MOST_ANSWER:,} are allowed")
    if "\0" in text:
        raise Invalid("text", "the answer contains a NUL character")
    if len(decision_id) > 200 or "\0" in decision_id:
        raise Invalid("decision_id", "decision_id may have at most 200 characters, and no NUL")
    return said


def _end_call(tx: Transaction, call: ToolCall, by: str, said: str) -> None:
    """The answer as the call's result; the model reads whose words they are."""
    quoted = "\n".join(f"> {line}" for line in said.splitlines())
    summary = f"{by} answered: {brief_words(said)}"
    told = {"answer": said, "answered_by": by}
    if not end_suspended(tx, call, ToolResult.ok(told, summary, f"{by} answered:\n\n{quoted}")):
        raise Conflict("the call does not wait for an answer", call_status=call.status)


def _tell(tx: Transaction, member: Membership, card: Approval, said: str) -> None:
    """The panel's lines and the audit's entry; the answer stands in the first."""
    by = member.user.get_username()
    tx.publish(QuestionAnswered(str(card.pk), str(card.tool_call_id), said, by))
    publish_decision(tx, card, "")
    tx.audit(
        f"user:{by}", "card_answered", f"approval:{card.pk}", tool=card.tool_call.tool, answer=said[:_MOST_IN_AUDIT]
    )
