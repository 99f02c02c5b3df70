"""Find the marks of cards: everything about a card that a person must see before approving it.

Every page or program that shows a value of a card takes its marks from here, so that all of them
agree.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from django.db.models import QuerySet

from agents.accounts.models import Organization
from agents.approvals.models import Claim
from agents.approvals.warnings.card_reading import (
    MAX_COMPARED,
    CardReading,
    find_params_marks,
    read_all,
)
from agents.approvals.warnings.current_records import (
    IN_RECORD,
    RecordState,
    describe_problems,
    find_contact_likeness,
    load_record_states,
)
from agents.approvals.warnings.employee_words import find_imitations
from agents.approvals.warnings.marks import (
    CONFLICT,
    DESTRUCTIVE,
    DONE,
    ELSEWHERE,
    FOLDED,
    IMITATION,
    LIKENESS,
    NAME,
    NEW,
    ODD,
    PREVIEW,
    REACH,
    RESTORED,
    STALE,
    Mark,
    add_details,
    build_mark,
)
from agents.approvals.warnings.new_contacts import NewContacts, find_new_contacts
from agents.approvals.warnings.odd_cards import find_card_oddities
from agents.approvals.warnings.reach import find_far_reaching
from agents.approvals.warnings.restored import RESTORED_SINCE, was_called_before_restore
from agents.approvals.warnings.same_targets import SameTargetCard, find_same_target_cards
from agents.approvals.warnings.similar_names import SimilarName, find_similar_names
from agents.approvals.warnings.similar_people import find_similar_people
from agents.runs.models import Approval, ApprovalKind, ApprovalStatus, ToolCall
from tools.contract import Level
from tools.contract.outside_text import quote_excerpt


class WaitingCard(NamedTuple):
    """The columns of a waiting approval from which its marks are found.

    Attributes:
        called_at: the time of the card's call, which is older than the card if the card replaces
            another one.
    """

    pk: int
    level: str
    digest: str
    called_at: datetime

    @classmethod
    def of(cls, card: Approval) -> WaitingCard:
        """Take the columns from a card that is loaded with its call."""
        return cls(card.pk, card.level, card.digest, card.tool_call.created_at)


@dataclass(frozen=True)
class CardFacts:
    """Facts about waiting cards that come from the database. They are keyed by card id, except that
    `records` is keyed by record id, and `claims` by call id.

    Attributes:
        cards: the cards that the facts cover.
        similar_names, similar_people: the values that resemble the name of a record, or a member.
        imitations: the employee's words that imitate Gadget.
        records: the affected records; for each card, at least the first 50.
        same_targets: other open cards that affect the same targets; not loaded for lists.
        oddities: the values that set a card apart from other waiting cards of its shape; only
            loaded for cards outside the inbox, whose rows have their own comparison.
        claims: the current claims; only loaded for pages.
    """

    cards: Collection[int]
    similar_names: Mapping[int, list[SimilarName]] = field(default_factory=dict)
    similar_people: Mapping[int, list[str]] = field(default_factory=dict)
    new_contacts: Mapping[int, NewContacts] = field(default_factory=dict)
    imitations: Mapping[int, str] = field(default_factory=dict)
    records: Mapping[int, RecordState] = field(default_factory=dict)
    far_reaching: Collection[int] = ()
    same_targets: Mapping[int, list[SameTargetCard]] = field(default_factory=dict)
    oddities: Mapping[int, str] = field(default_factory=dict)
    claims: Mapping[int, Claim] = field(default_factory=dict)


def load_facts(
    organization: Organization,
    cards: Collection[WaitingCard],
    readings: Mapping[int, CardReading],
    *,
    checks_contacts: bool = True,
) -> CardFacts:
    """Load the facts that all marks need, with the same number of queries for any number of cards.

    Args:
        checks_contacts: False to leave out new contacts, which a standing grant limits by its own
            conditions.
    """
    shown = (record for reading in readings.values() for record in reading.records[:MAX_COMPARED])
    contacts = {pk: each.contacts for pk, each in readings.items()} if checks_contacts else {}
    return CardFacts(
        readings.keys(),
        similar_names=find_similar_names(
            organization.pk, {pk: each.names for pk, each in readings.items()}
        ),
        similar_people=find_similar_people(organization.pk, readings),
        new_contacts=find_new_contacts(organization.pk, contacts),
        imitations=find_imitations(organization.pk, {card.pk: card.digest for card in cards}),
        records=load_record_states(organization.pk, shown),
        far_reaching=find_far_reaching(organization, readings),
    )


def find_marks(
    organization: Organization,
    cards: Collection[WaitingCard],
    readings: Mapping[int, CardReading],
    facts: CardFacts,
) -> dict[int, tuple[Mark, ...]]:
    """Find the marks of waiting cards of one organization, by card id, without a query. Cards
    without marks are left out."""
    found = {
        card.pk: tuple(_list_marks(organization, card, readings[card.pk], facts))
        for card in cards
        if card.pk in readings
    }
    return {pk: marks for pk, marks in found.items() if marks}


def load_marks(cards: Iterable[Approval]) -> dict[int, tuple[Mark, ...]]:
    """Find the marks of any cards, by card id. Cards without marks are left out.

    For each organization, the number of queries does not depend on the number of cards. A decided
    card has the marks that it showed when it was decided. For other cards that no longer wait, only
    the marks of their sealed content are known.

    Args:
        cards: approvals that are loaded with their calls, and with their runs and organizations.
    """
    marks: dict[int, tuple[Mark, ...]] = {}
    unknown: dict[int, list[Approval]] = defaultdict(list)
    for card in cards:
        if card.shown_marks is None:
            unknown[card.organization_id].append(card)
        else:
            marks[card.pk] = tuple(Mark(**each) for each in card.shown_marks)
    for some in unknown.values():
        readings = read_all(some)
        marks |= {pk: each.marks for pk, each in readings.items()}
        marks |= _load_current([card for card in some if _is_waiting(card)], readings)
    return {pk: each for pk, each in marks.items() if each}


def _is_waiting(card: Approval) -> bool:
    return (card.kind, card.status) == (ApprovalKind.APPROVAL, ApprovalStatus.PENDING)


def _load_current(
    cards: Collection[Approval], readings: Mapping[int, CardReading]
) -> dict[int, tuple[Mark, ...]]:
    """Find the marks that waiting cards of one organization have now."""
    if not cards:
        return {}
    organization = next(iter(cards)).run.organization
    columns = [WaitingCard.of(card) for card in cards]
    own = {card.pk: readings[card.pk] for card in cards}
    facts = replace(
        load_facts(organization, columns, own),
        same_targets=find_same_target_cards(cards),
        oddities=find_card_oddities(cards),
    )
    return find_marks(organization, columns, own, facts)


def load_marks_of(rows: QuerySet[Approval]) -> dict[int, tuple[Mark, ...]]:
    """Find the marks of cards that are not loaded, as `load_marks` does."""
    return load_marks(select_for_marks(rows))


def load_call_marks(calls: Collection[ToolCall]) -> dict[int, tuple[Mark, ...]]:
    """Find the marks of tool calls, by call id: the marks of the call's newest card or, for a call
    without a card, the marks of its params. If a person has replaced
    the params, the original ones are checked, too."""
    rows = Approval.objects.filter(tool_call__in=[call.pk for call in calls])
    approvals = select_for_marks(rows.filter(kind=ApprovalKind.APPROVAL)).order_by("sequence")
    newest = {card.tool_call_id: card for card in approvals} if calls else {}
    marks = load_marks(newest.values())
    found = {}
    for call in calls:
        card = newest.get(call.pk)
        own = (
            marks.get(card.pk, ()) if card else find_params_marks(call.organization_id, call.params)
        )
        told = {mark.kind for mark in own}
        replaced = find_params_marks(call.organization_id, call.model_params)
        found[call.pk] = (*own, *(mark for mark in replaced if mark.kind not in told))
    return found


def select_for_marks(rows: QuerySet[Approval]) -> QuerySet[Approval]:
    """Select cards with the rows that `load_marks` needs, but without their content, which is
    cached."""
    return rows.select_related("tool_call", "run__organization").defer(
        *("params", "preview", "why", "words", "ruling", "run__task", "run__answer"),
        *(f"tool_call__{name}" for name in ("params", "model_params", "result", "provenance")),
    )


def _list_marks(
    organization: Organization, card: WaitingCard, reading: CardReading, facts: CardFacts
) -> Iterator[Mark]:
    told = " ".join(each.detail for each in reading.marks if each.kind == LIKENESS)
    likeness = find_contact_likeness(reading.records, facts.records)
    words = facts.imitations.get(card.pk, "")
    yield from add_details(
        reading.marks,
        {
            NAME: [
                f"{quote_excerpt(each.value)} looks like the record {quote_excerpt(each.name)}"
                for each in facts.similar_names.get(card.pk, ())
            ],
            IMITATION: [f"the employee’s words: {quote_excerpt(words)}"] if words else [],
            LIKENESS: [
                *(text for text in likeness if text.removesuffix(IN_RECORD) not in told),
                *facts.similar_people.get(card.pk, ()),
            ],
        },
    )
    if new := facts.new_contacts.get(card.pk):
        yield build_mark(NEW, new.text)
    if card.pk in facts.far_reaching:
        yield build_mark(REACH, f"{reading.target_count:,} objects")
    if reading.lacks_preview:
        yield build_mark(PREVIEW)
    if reading.runs_elsewhere:
        yield build_mark(ELSEWHERE)
    if was_called_before_restore(organization, card.called_at):
        yield build_mark(RESTORED, RESTORED_SINCE)
    if reading.is_done:
        yield build_mark(DONE)
    elif problems := describe_problems(reading.records[:MAX_COMPARED], facts.records):
        yield build_mark(STALE, problems)
    if reading.folds_parts and card.level in (Level.WRITE.value, Level.DESTRUCTIVE.value):
        yield build_mark(FOLDED)
    if card.level == Level.DESTRUCTIVE.value:
        yield build_mark(DESTRUCTIVE)
    if others := facts.same_targets.get(card.pk):
        yield build_mark(CONFLICT, ", ".join(other.text for other in others))
    if oddity := facts.oddities.get(card.pk):
        yield build_mark(ODD, oddity)
