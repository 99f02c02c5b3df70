"""The outcome of a card in one word: a person's decision, or how the card was closed without a
decision."""

from agents.runs.models import APPROVED_STATES, Approval, ApprovalKind, ApprovalStatus

OUTCOME_ICONS = {
    "Approved": "circle-check",
    "Resolved": "circle-check",
    "Acknowledged": "circle-check",
    "Answered": "circle-check",
    "Denied": "circle-x",
    "Dismissed": "circle-check",
    "Expired": "hourglass",
    "Replaced": "rotate-ccw",
}
_OUTCOMES = {
    (ApprovalKind.UNKNOWN, ApprovalStatus.CANCELLED): "Resolved",
    (ApprovalKind.UNKNOWN, ApprovalStatus.ANSWERED): "Acknowledged",
    (ApprovalKind.APPROVAL, ApprovalStatus.ANSWERED): "Dismissed",
}


def name_outcome(approval: Approval) -> str:
    """Name the decision of a person, or how the card was closed without approval."""
    was_approved = approval.status in APPROVED_STATES
    if was_withdrawn(approval) or was_approved:
        return "Approved"
    kind, status = ApprovalKind(approval.kind), ApprovalStatus(approval.status)
    return _OUTCOMES.get((kind, status)) or approval.get_status_display()


def was_withdrawn(approval: Approval) -> bool:
    """Return True if the card was approved and then closed before its call started."""
    ended = (ApprovalStatus.SUPERSEDED, ApprovalStatus.CANCELLED)
    return approval.start_after is not None and approval.status in ended
