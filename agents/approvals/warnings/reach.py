"""The reach of a card: how many of all objects the card affects."""

from __future__ import annotations

from collections.abc import Mapping

from agents.accounts.models import Organization
from agents.approvals.warnings.card_reading import CardReading, read_card
from agents.runs.models import Approval
from tools.registries.records import RECORD_STORE

MAX_UNCONFIRMED = 5
"""The maximum number of objects that a card may affect without reaching far, because it shows this
many at its top."""


def count_objects(card: Approval) -> int | None:
    """Return the total number of records if the card affects existing records; None for other
    cards."""
    return _count_records(card.organization_id) if read_card(card).records else None


def reaches_far(card: Approval) -> bool:
    """Return True if the card affects more objects, or a larger share of all objects, than the
    organization's limits allow.

    The approval of a card that does must be confirmed by typing, whatever the card's level is.
    """
    reading = read_card(card)
    return reading.target_count > MAX_UNCONFIRMED and bool(
        find_far_reaching(card.organization, {card.pk: reading})
    )


def find_far_reaching(organization: Organization, readings: Mapping[int, CardReading]) -> set[int]:
    """Find the cards that reach far, by id. This takes one query if any of the cards affects more
    than five records."""
    many = {
        pk: reading for pk, reading in readings.items() if reading.target_count > MAX_UNCONFIRMED
    }
    total = (
        _count_records(organization.pk) if any(reading.records for reading in many.values()) else 0
    )
    return {
        pk
        for pk, reading in many.items()
        if reading.target_count > organization.confirm_count
        or (reading.records and reading.target_count * 100 > total * organization.confirm_percent)
    }


def _count_records(organization_id: int) -> int:
    return RECORD_STORE.get().get_records(organization_id).count()
