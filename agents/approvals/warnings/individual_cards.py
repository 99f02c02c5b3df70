"""Find the reasons why a card must be approved individually, never in bulk."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from agents.accounts.models import Organization
from agents.approvals.warnings.card_marks import (
    ALLOWED_IN_BULK,
    CardFacts,
    Mark,
    WaitingCard,
    find_marks,
    load_facts,
)
from agents.approvals.warnings.card_reading import CardReading


def find_individual_reasons(
    organization: Organization,
    cards: Collection[WaitingCard],
    readings: Mapping[int, CardReading],
    facts: CardFacts | None = None,
) -> dict[int, tuple[str, ...]]:
    """Find the reasons why cards of one organization are approved individually, by card id: the
    labels of their marks, except those that a bulk approval allows.

    Args:
        facts: the facts about all these cards, if they are already loaded; this saves their
            queries.
    """
    if facts is None:
        facts = load_facts(organization, cards, readings)
    return list_individual_reasons(find_marks(organization, cards, readings, facts))


def list_individual_reasons(marks: Mapping[int, Iterable[Mark]]) -> dict[int, tuple[str, ...]]:
    """List the labels of the marks that a bulk approval does not allow, by card id."""
    found = {
        pk: tuple(mark.label for mark in each if mark.kind not in ALLOWED_IN_BULK)
        for pk, each in marks.items()
    }
    return {pk: reasons for pk, reasons in found.items() if reasons}
