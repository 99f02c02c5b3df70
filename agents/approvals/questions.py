"""Answer the questions of employees."""

from dataclasses import dataclass, replace

from django.db.models.functions import Now

from agents.accounts.models import Membership, Role
from agents.approvals.closed_cards import refuse_closed
from agents.platform.refusals import Conflict, Invalid, NotFound
from agents.runs.engine import next_step
from agents.runs.engine.cards import publish_decision
from agents.runs.engine.suspension import end_suspended, shorten_answer
from agents.runs.engine.transaction import Transaction, run_transaction
from agents.runs.events import QuestionAnswered
from agents.runs.models import Approval, ApprovalKind, ApprovalStatus, ToolCall
from tools.contract import ToolResult

MAX_ANSWER = 20_000
_MAX_IN_AUDIT = 2_000


@dataclass(frozen=True)
class Answer:
    """A person's answer to a question.

    Attributes:
        decision_id: a repeated request by the same person with the same id changes nothing and gets
            the same response.
        is_typed: True if a person typed the text on a page; any other text may come from a program.
    """

    text: str
    decision_id: str = ""
    is_typed: bool = False


def answer(member: Membership, approval_id: int, given: Answer) -> Approval:
    """Answer an employee's question; its call gets the answer as its result.

    Raises:
        Forbidden, NotFound, Invalid, AlreadyDecided, Expired
        Conflict: the card is not a question, or the run was cancelled.
    """
    member.require(Role.OPERATOR, "answer questions")
    decision_id = given.decision_id
    given = replace(given, text=_clean_answer(given.text, decision_id))
    cards = Approval.objects.filter(organization_id=member.organization_id).select_related(
        "tool_call", "decided_by"
    )
    run_id = cards.filter(pk=approval_id).values_list("run_id", flat=True).first()
    if run_id is None:
        raise NotFound(f"there is no approval {approval_id}")
    with run_transaction(run_id) as tx:
        card = cards.get(pk=approval_id)
        is_same = bool(decision_id) and (card.decision_id, card.decided_by_id) == (
            decision_id,
            member.user_id,
        )
        if is_same and card.status == ApprovalStatus.ANSWERED:
            return card
        open_question = Approval.objects.filter(
            pk=card.pk,
            kind=ApprovalKind.QUESTION,
            status=ApprovalStatus.PENDING,
            expires_at__gt=Now(),
            run__cancel_requested_at=None,
        )
        decision = {
            "decided_by": member.user,
            "decided_at": Now(),
            "decision_id": decision_id,
            "reason": given.text,
        }
        if not open_question.update(status=ApprovalStatus.ANSWERED, **decision):
            _refuse_unanswerable(card)
            raise Conflict("the run was cancelled", approval_status=card.status)
        card.decided_by, card.status = member.user, ApprovalStatus.ANSWERED
        _publish_and_audit(tx, member, card, given)
        _end_call(tx, card.tool_call, member.user.get_username(), given.text)
        next_step.wake_if_possible(tx, member.user.get_username())
    return cards.get(pk=approval_id)


def _refuse_unanswerable(card: Approval) -> None:
    if card.kind != ApprovalKind.QUESTION:
        raise Conflict(
            f"a card of kind {card.kind!r} cannot be answered", approval_status=card.status
        )
    refuse_closed(card)


def _clean_answer(text: str, decision_id: str) -> str:
    answer_text = text.strip()
    if not answer_text:
        raise Invalid("text", "the answer is empty")
    if len(text) > MAX_ANSWER:
        raise Invalid(
            "text", f"the answer has {len(text):,} characters; at most {MAX_ANSWER:,} are allowed"
        )
    if "\0" in text:
        raise Invalid("text", "the answer contains a NUL character")
    if len(decision_id) > 200 or "\0" in decision_id:
        raise Invalid("decision_id", "decision_id may have at most 200 characters, and no NUL")
    return answer_text


def _end_call(tx: Transaction, call: ToolCall, by: str, answer_text: str) -> None:
    """End the call with the answer as its result; the model also reads who answered."""
    quoted = "\n".join(f"> {line}" for line in answer_text.splitlines())
    summary = f"{by} answered: {shorten_answer(answer_text)}"
    data = {"answer": answer_text, "answered_by": by}
    if not end_suspended(tx, call, ToolResult.ok(data, summary, f"{by} answered:\n\n{quoted}")):
        raise Conflict("the call is not waiting for an answer", call_status=call.status)


def _publish_and_audit(tx: Transaction, member: Membership, card: Approval, given: Answer) -> None:
    """Publish and audit the answer. Of the published events, only QuestionAnswered contains the
    text of the answer."""
    by = member.user.get_username()
    is_typed = given.is_typed or None
    tx.publish(QuestionAnswered(str(card.pk), str(card.tool_call_id), given.text, by, is_typed))
    publish_decision(tx, card, "")
    tx.audit(
        member.actor,
        "card_answered",
        f"approval:{card.pk}",
        tool=card.tool_call.tool,
        answer=given.text[:_MAX_IN_AUDIT],
    )
