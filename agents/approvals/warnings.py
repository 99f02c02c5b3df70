"""Cards that carry a warning, which a person must see before deciding."""

from __future__ import annotations

from agents.approvals.current_records import find_contact_likeness, load_record_states
from agents.approvals.marks import find_marks
from agents.approvals.models import Approval
from agents.approvals.similar_names import find_similar_names


def has_warning(card: Approval) -> bool:
    """Return True if something on the card is marked, or resembles a record's name or address."""
    if find_marks(card) or find_similar_names([card]).get(card.pk):
        return True
    return bool(find_contact_likeness(card, load_record_states([card])))
