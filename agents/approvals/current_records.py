"""The records that a card affects, as they are now, and how they resemble what the card would write."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from agents.approvals.marks import compare_contacts, get_family, get_targets, read_card
from agents.approvals.models import Approval
from agents.approvals.reach import RECORDS
from agents.platform.row_ids import parse_row_id_or_none
from tools.contract.contacts import list_contacts
from tools.records.models import Record

MAX_COMPARED = 50
IN_RECORD = ", which is in the record"


class RecordState(NamedTuple):
    """A record as it is now."""

    pk: int
    version: int
    name: str
    email: str
    domain: str


def load_record_states(cards: Collection[Approval]) -> dict[int, RecordState]:
    """Load the records that the cards affect, with one query."""
    found = (_read_id(target) for card in cards if is_about_records(card) for target in get_targets(card))
    ids = [row_id for row_id in dict.fromkeys(found) if row_id is not None]
    if not ids:
        return {}
    own = Record.objects.filter(organization_id=next(iter(cards)).organization_id, pk__in=ids)
    return {row[0]: RecordState(*row) for row in own.values_list(*RecordState._fields)}


def is_about_records(card: Approval) -> bool:
    """Return True if the card is about records."""
    return get_family(card) == RECORDS


def _read_id(target: dict[str, Any]) -> int | None:
    return parse_row_id_or_none(str(target.get("id")))


def find_contact_likeness(card: Approval, records: dict[int, RecordState]) -> list[str]:
    """Describe each contact on the card that resembles one of the record that it would be written to."""
    if not is_about_records(card):
        return []
    targets = get_targets(card)
    found: list[str] = []
    for target in targets[:MAX_COMPARED]:
        record = records.get(_read_id(target) or 0)
        if record is not None:
            current = list_contacts({"email": record.email, "domain": record.domain})
            written = read_card(card).contacts if len(targets) == 1 else list_contacts(target.get("after"))
            found += [f"{text}{IN_RECORD}" for text in compare_contacts(written[:MAX_COMPARED], current)]
    return found
