"""Load the surroundings of cards: everything that a page shows beside a card's own content."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from agents.approvals.attention import find_claims
from agents.approvals.models import Claim
from agents.approvals.warnings.card_marks import CardFacts, WaitingCard, find_marks, load_facts
from agents.approvals.warnings.card_reading import MAX_COMPARED, read_card
from agents.approvals.warnings.current_records import load_record_states
from agents.approvals.warnings.done_already import DoneAlready, find_done
from agents.approvals.warnings.employee_words import note_words
from agents.approvals.warnings.marks import MEANINGS, NAME, SIGNS, Mark
from agents.approvals.warnings.new_contacts import NewContacts
from agents.approvals.warnings.odd_cards import find_card_oddities
from agents.approvals.warnings.reach import count_objects
from agents.approvals.warnings.same_targets import SameTargetCard, find_same_target_cards
from agents.approvals.warnings.similar_names import SimilarName
from agents.approvals.warnings.stale_targets import find_staleness
from agents.runs.models import Approval


@dataclass(frozen=True)
class Surroundings:
    """The warnings and facts that a page shows beside the content of one open card.

    Attributes:
        marks: the card's marks, which a person sees on it; see `find_marks`.
        similar_names: names on the card that look like another record's.
        new_contacts: hosts, email addresses, accounts and recipients that the organization has not
            used before.
        same_target_cards: other open cards that affect the same targets.
        staleness: the reason why the call could not start as shown; None if it could.
        done: the targets that already have the wanted values, and the cause; None if the call would
            still change something.
        total_objects: the number of all objects of the kind that the card affects.
        claim: the current claim on the card.
    """

    marks: tuple[Mark, ...] = ()
    similar_names: list[SimilarName] = field(default_factory=list)
    new_contacts: NewContacts = field(default_factory=NewContacts)
    same_target_cards: list[SameTargetCard] = field(default_factory=list)
    staleness: str | None = None
    done: DoneAlready | None = None
    total_objects: int | None = None
    claim: Claim | None = None

    @property
    def warnings(self) -> tuple[Mark, ...]:
        """The signs of deception and the values that mean more than they seem to, without similar
        names, which have a line of their own."""
        return tuple(
            mark for mark in self.marks if mark.kind in SIGNS | MEANINGS and mark.kind != NAME
        )

    @property
    def mark_kinds(self) -> str:
        """The kinds of all marks, joined by spaces, as an approval names them as seen."""
        return " ".join(mark.kind for mark in self.marks)


def load_surroundings(
    cards: Collection[Approval], words: Mapping[int, str], listed: CardFacts | None = None
) -> dict[int, Surroundings]:
    """Load, by card id, the surroundings of open cards of one organization.

    Args:
        words: the employee's own words by card id.
        listed: facts that are already loaded; used if they cover all these cards.
    """
    if not cards:
        return {}
    organization = next(iter(cards)).run.organization
    readings = {card.pk: read_card(card) for card in cards}
    columns = [WaitingCard.of(card) for card in cards]
    facts = listed
    if facts is None or not readings.keys() <= set(facts.cards):
        note_words(organization.pk, {card.digest: words.get(card.pk, "") for card in cards})
        facts = load_facts(organization, columns, readings)
        facts = replace(facts, claims=find_claims(organization.pk))
    if any(len(reading.records) > MAX_COMPARED for reading in readings.values()):
        shown = (record for reading in readings.values() for record in reading.records)
        facts = replace(facts, records=load_record_states(organization.pk, shown))
    facts = replace(
        facts, same_targets=find_same_target_cards(cards), oddities=find_card_oddities(cards)
    )
    marks = find_marks(organization, columns, readings, facts)
    staleness = {card.pk: find_staleness(card, facts.records) for card in cards}
    return {
        card.pk: Surroundings(
            marks=marks.get(card.pk, ()),
            similar_names=facts.similar_names.get(card.pk, []),
            new_contacts=facts.new_contacts.get(card.pk, NewContacts()),
            same_target_cards=facts.same_targets.get(card.pk, []),
            staleness=staleness[card.pk],
            done=find_done(card, is_stale=staleness[card.pk] is not None),
            total_objects=count_objects(card),
            claim=facts.claims.get(card.tool_call_id),
        )
        for card in cards
    }
