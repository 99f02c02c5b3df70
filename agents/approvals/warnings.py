"""Cards that carry a warning, which a person must see before deciding."""

from __future__ import annotations

from agents.approvals.current_records import find_contact_likeness, load_record_states
from agents.approvals.marks import read_card
from agents.approvals.models import Approval
from agents.approvals.similar_names import find_similar_names


def has_warning(card: Approval) -> bool:
    """Return True if the card is marked, says to whom or where from outside, or resembles a record."""
    reading = read_card(card)
    if reading.marks or reading.has_outside_destination or find_similar_names([card]).get(card.pk):
        return True
    return bool(find_contact_likeness(card, load_record_states([card])))
