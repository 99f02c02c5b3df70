"""Find what the values on many cards resemble: the names of records, and members."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agents.approvals.warnings.card_reading import CardReading
from agents.approvals.warnings.similar_names import SimilarName, find_similar_names
from agents.approvals.warnings.similar_people import find_similar_people


@dataclass(frozen=True)
class Likenesses:
    """Similar names and people, by card id.

    Attributes:
        names: values that resemble the name of a record.
        people: descriptions of values that resemble a member.
    """

    names: Mapping[int, list[SimilarName]]
    people: Mapping[int, list[str]]


def find_likenesses(organization_id: int, readings: Mapping[int, CardReading]) -> Likenesses:
    """Find what the values on cards of one organization resemble, with two queries, and one more if
    names are similar."""
    names = {pk: reading.names for pk, reading in readings.items()}
    return Likenesses(
        find_similar_names(organization_id, names), find_similar_people(organization_id, readings)
    )
