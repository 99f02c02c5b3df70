"""Find the reasons why a card must be approved individually, never in bulk."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from agents.accounts.models import Organization
from agents.approvals.warnings.card_reading import (
    IMITATION,
    LIKENESS,
    MAX_COMPARED,
    NAME,
    CardReading,
    add_details,
)
from agents.approvals.warnings.current_records import (
    RecordState,
    find_contact_likeness,
    list_problems,
    load_record_states,
)
from agents.approvals.warnings.employee_words import find_imitations
from agents.approvals.warnings.likenesses import Likenesses, find_likenesses
from agents.approvals.warnings.reach import find_far_reaching
from agents.approvals.warnings.restored import was_called_before_restore
from tools.contract import Level

FROM_OUTSIDE = "From outside"
FAR_REACHING = "Affects many"
NO_EFFECT_SHOWN = "Preview failed"
RUNS_ELSEWHERE = "Not run by Gadget"
RESTORED = "May be done already"
STALE = "Cannot run as shown"
DONE = "Already done"
FOLDED = "Must be opened"
DESTRUCTIVE = "Destructive"


class WaitingCard(NamedTuple):
    """The columns of a waiting approval from which its reasons are computed.

    Attributes:
        called_at: the time of the card's call, which is older than the card if the card replaces
            another one.
    """

    pk: int
    level: str
    digest: str
    called_at: datetime


@dataclass(frozen=True)
class _Findings:
    """Findings about many cards that need the database. They are given by card id, but `records` by
    record id."""

    likenesses: Likenesses
    imitations: Mapping[int, str]
    records: Mapping[int, RecordState]
    far_reaching: Collection[int]
    organization: Organization


def find_individual_reasons(
    organization: Organization,
    cards: Collection[WaitingCard],
    readings: Mapping[int, CardReading],
    likenesses: Likenesses | None = None,
) -> dict[int, tuple[str, ...]]:
    """Find the reasons why cards of one organization are approved individually, as labels by card
    id.

    Costs three queries, and at most three more: one for employees' words that are not cached, one
    for the number of records if a card affects more than five objects, and one for the words of
    names if names are similar.

    Args:
        likenesses: the similar names and people of all these cards, if they are already loaded;
            this saves their queries.
    """
    likenesses = likenesses or find_likenesses(organization.pk, readings)
    shown = (record for reading in readings.values() for record in reading.records[:MAX_COMPARED])
    findings = _Findings(
        likenesses=likenesses,
        imitations=find_imitations(organization.pk, {card.pk: card.digest for card in cards}),
        records=load_record_states(organization.pk, shown),
        far_reaching=find_far_reaching(organization, readings),
        organization=organization,
    )
    found = {
        card.pk: tuple(_list_reasons(card, readings[card.pk], findings))
        for card in cards
        if card.pk in readings
    }
    return {pk: reasons for pk, reasons in found.items() if reasons}


def _list_reasons(card: WaitingCard, reading: CardReading, findings: _Findings) -> Iterator[str]:
    likenesses = findings.likenesses
    more = {
        NAME: [each.name for each in likenesses.names.get(card.pk, ())],
        IMITATION: [findings.imitations[card.pk]] if card.pk in findings.imitations else [],
        LIKENESS: [
            *find_contact_likeness(reading.records, findings.records),
            *likenesses.people.get(card.pk, ()),
        ],
    }
    yield from (warning.label for warning in add_details(reading.warnings, more))
    if reading.has_outside_destination:
        yield FROM_OUTSIDE
    if card.pk in findings.far_reaching:
        yield FAR_REACHING
    if reading.lacks_preview:
        yield NO_EFFECT_SHOWN
    if reading.runs_elsewhere:
        yield RUNS_ELSEWHERE
    if was_called_before_restore(findings.organization, card.called_at):
        yield RESTORED
    if reading.is_done:
        yield DONE
    elif list_problems(reading.records[:MAX_COMPARED], findings.records):
        yield STALE
    if reading.folds_parts and card.level in (Level.WRITE.value, Level.DESTRUCTIVE.value):
        yield FOLDED
    if card.level == Level.DESTRUCTIVE.value:
        yield DESTRUCTIVE
