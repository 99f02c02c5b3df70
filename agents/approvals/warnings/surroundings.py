"""Load the surroundings of cards: everything that a page shows beside a card's own content."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from agents.approvals.attention import find_claims
from agents.approvals.models import Claim
from agents.approvals.warnings.card_reading import (
    IMITATION,
    LIKENESS,
    CardReading,
    CardWarning,
    add_details,
    find_card_warnings,
    quote_excerpt,
    read_card,
)
from agents.approvals.warnings.current_records import (
    IN_RECORD,
    find_contact_likeness,
    load_record_states,
)
from agents.approvals.warnings.done_already import DoneAlready, find_done
from agents.approvals.warnings.imitations import find_imitation
from agents.approvals.warnings.likenesses import Likenesses, find_likenesses
from agents.approvals.warnings.new_contacts import NewContacts, find_new_contacts
from agents.approvals.warnings.reach import count_objects
from agents.approvals.warnings.same_targets import SameTargetCard, find_same_target_cards
from agents.approvals.warnings.similar_names import SimilarName
from agents.approvals.warnings.stale_targets import find_staleness
from agents.runs.models import Approval


@dataclass(frozen=True)
class Surroundings:
    """The warnings and facts that a page shows beside the content of one open card.

    Attributes:
        warnings: the signs of deception, including those that only the employee's words or current
            records show.
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

    warnings: tuple[CardWarning, ...] = ()
    similar_names: list[SimilarName] = field(default_factory=list)
    new_contacts: NewContacts = field(default_factory=NewContacts)
    same_target_cards: list[SameTargetCard] = field(default_factory=list)
    staleness: str | None = None
    done: DoneAlready | None = None
    total_objects: int | None = None
    claim: Claim | None = None


@dataclass(frozen=True)
class CardFacts:
    """Facts that are shown both in a list of open cards and on each of the cards. They are given by
    card id, but claims by call id."""

    cards: Collection[int]
    likenesses: Likenesses
    claims: Mapping[int, Claim]


def load_facts(organization_id: int, readings: Mapping[int, CardReading]) -> CardFacts:
    """Load the facts about the cards with these readings, in three queries, and one more if names
    are similar."""
    likenesses = find_likenesses(organization_id, readings)
    return CardFacts(readings.keys(), likenesses, find_claims(organization_id))


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
    organization_id = next(iter(cards)).organization_id
    readings, same_targets = (
        {card.pk: read_card(card) for card in cards},
        find_same_target_cards(cards),
    )
    facts = listed
    if facts is None or not readings.keys() <= set(facts.cards):
        facts = load_facts(organization_id, readings)
    records = load_record_states(
        organization_id, (each for reading in readings.values() for each in reading.records)
    )
    staleness = {card.pk: find_staleness(card, records) for card in cards}
    return {
        card.pk: Surroundings(
            warnings=_merge_card_warnings(
                card,
                words.get(card.pk, ""),
                [
                    *find_contact_likeness(readings[card.pk].records, records),
                    *facts.likenesses.people.get(card.pk, ()),
                ],
            ),
            similar_names=facts.likenesses.names.get(card.pk, []),
            new_contacts=find_new_contacts(card),
            same_target_cards=same_targets.get(card.pk, []),
            staleness=staleness[card.pk],
            done=find_done(card, is_stale=staleness[card.pk] is not None),
            total_objects=count_objects(card),
            claim=facts.claims.get(card.tool_call_id),
        )
        for card in cards
    }


def _merge_card_warnings(
    card: Approval, words: str, likeness: list[str]
) -> tuple[CardWarning, ...]:
    warnings, imitation = find_card_warnings(card), find_imitation(words)
    told = " ".join(warning.detail for warning in warnings if warning.kind == LIKENESS)
    fresh = [text for text in likeness if text.removesuffix(IN_RECORD) not in told]
    quoted = [f"the employee’s words: {quote_excerpt(imitation)}"] if imitation else []
    return add_details(warnings, {LIKENESS: fresh, IMITATION: quoted})
