"""Compare the records that a card affects, in their current state, with the card and with the
contacts that its call would write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from agents.approvals.warnings.card_reading import (
    MAX_CACHED,
    MAX_COMPARED,
    AffectedRecord,
    compare_contacts,
)
from tools.contract.contacts import Contact, list_contacts
from tools.contract.outside_text import quote_excerpt
from tools.registries.records import RECORD_STORE

MAX_NAMED = 3
IN_RECORD = ", which is in the record"
MAX_IDS = 10_000
"""The maximum number of ids in one query, because databases limit the size of a query."""


class RecordState(NamedTuple):
    """The current state of a record."""

    pk: int
    version: int
    name: str
    email: str
    domain: str


def load_record_states(
    organization_id: int, shown: Iterable[AffectedRecord]
) -> dict[int, RecordState]:
    """Load the records that cards of one organization affect, by id, with one query per 10,000
    records."""
    ids = list(dict.fromkeys(one.pk for one in shown))
    own = RECORD_STORE.get().get_records(organization_id).order_by()
    parts = (ids[start : start + MAX_IDS] for start in range(0, len(ids), MAX_IDS))
    rows = (
        row for part in parts for row in own.filter(pk__in=part).values_list(*RecordState._fields)
    )
    return {row[0]: RecordState(*row) for row in rows}


def describe_problems(shown: Sequence[AffectedRecord], records: Mapping[int, RecordState]) -> str:
    """Name at most three of the shown records that no longer exist or have changed; empty if there
    are none."""
    problems = []
    for one in shown:
        record = records.get(one.pk)
        if record is None:
            problems.append(f"{quote_excerpt(one.label)} no longer exists")
        elif record.version != one.version:
            problems.append(f"{quote_excerpt(one.label)} has changed since the request")
    more = f", and {len(problems) - MAX_NAMED} more" if len(problems) > MAX_NAMED else ""
    return ", ".join(problems[:MAX_NAMED]) + more


def find_contact_likeness(
    shown: Sequence[AffectedRecord], records: Mapping[int, RecordState]
) -> list[str]:
    """Describe each contact that a card would write to a record and that resembles the record's own
    contact."""
    found: list[str] = []
    for one in shown[:MAX_COMPARED]:
        record = records.get(one.pk)
        if record is not None and one.written:
            found += _compare_with_record(one.written[:MAX_COMPARED], record.email, record.domain)
    return found


@lru_cache(maxsize=MAX_CACHED)
def _compare_with_record(written: tuple[Contact, ...], email: str, domain: str) -> tuple[str, ...]:
    current = list_contacts({"email": email, "domain": domain})
    return tuple(f"{text}{IN_RECORD}" for text in compare_contacts(written, current))
