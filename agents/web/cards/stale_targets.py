"""Targets that are no longer as their card shows them, so that its call could not start if it were approved."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import NamedTuple

from agents.approvals.marks import compare_contacts, get_targets, read_card
from agents.approvals.models import Approval
from agents.approvals.unstarted_cards import compute_effect_now
from agents.runs.engine.cards import compute_digest
from tools.contract import ToolError
from tools.contract.contacts import list_contacts
from tools.records.models import Record

RECORDS = "data"
LOCAL = frozenset({"files", "schedule"})
"""Tools whose effect is computed again for the card, because that reads only local data."""
MAX_NAMED = 3
MAX_COMPARED = 50


class RecordState(NamedTuple):
    """A record as it is now."""

    pk: int
    version: int
    name: str
    email: str
    domain: str


def load_record_states(cards: Collection[Approval]) -> dict[int, RecordState]:
    """Load the records that the cards affect, with one query."""
    ids = {int(id_) for card in cards if _is_about_records(card) for id_ in _list_ids(card)}
    if not ids:
        return {}
    own = Record.objects.filter(organization_id=next(iter(cards)).organization_id, pk__in=ids)
    return {row[0]: RecordState(*row) for row in own.values_list(*RecordState._fields)}


def describe_staleness(card: Approval, records: dict[int, RecordState]) -> str:
    """Explain why the call could not start as shown; empty if it could."""
    if _is_about_records(card):
        return _join_problems(list(_list_problems(card, records)))
    if card.tool_call.tool.partition(".")[0] in LOCAL:
        return _compare_effect(card)
    return ""


def find_contact_likeness(card: Approval, records: dict[int, RecordState]) -> list[str]:
    """Describe each contact on the card that resembles one of the record that it would be written to."""
    if not _is_about_records(card):
        return []
    targets = get_targets(card)
    found: list[str] = []
    for target in targets[:MAX_COMPARED]:
        record = records.get(int(target["id"])) if str(target.get("id")).isdecimal() else None
        if record is not None:
            current = list_contacts({"email": record.email, "domain": record.domain})
            written = read_card(card).contacts if len(targets) == 1 else list_contacts(target.get("after"))
            found += [f"{text}, which is in the record" for text in compare_contacts(written[:MAX_COMPARED], current)]
    return found


def _is_about_records(card: Approval) -> bool:
    return card.tool_call.tool.partition(".")[0] == RECORDS


def _list_ids(card: Approval) -> Iterator[str]:
    return (str(target.get("id")) for target in get_targets(card) if str(target.get("id")).isdecimal())


def _list_problems(card: Approval, records: dict[int, RecordState]) -> Iterator[str]:
    for target in get_targets(card):
        id_, label = str(target.get("id")), str(target.get("label"))
        if not id_.isdecimal():
            continue
        record = records.get(int(id_))
        if record is None:
            yield f"{label} no longer exists"
        elif record.version != target.get("version"):
            yield f"{label} has changed since"


def _join_problems(problems: list[str]) -> str:
    if not problems:
        return ""
    more = f", and {len(problems) - MAX_NAMED} more" if len(problems) > MAX_NAMED else ""
    return ", ".join(islice(problems, MAX_NAMED)) + more


def _compare_effect(card: Approval) -> str:
    effect = compute_effect_now(card)
    if isinstance(effect, ToolError):
        return effect.message.rstrip(".")
    if effect.preview.problem:
        return effect.preview.problem.rstrip(".")
    is_same = compute_digest(card.tool_call, effect.preview.as_json()) == card.digest
    return "" if is_same else "The target has changed since"
