"""If many people approve a card at the same time, only as many votes are accepted as its rule
needs, and its call starts once."""

from __future__ import annotations

import pytest

from tests.approvals.vote_races import Crowd
from tests.features import feature
from tests.recorder import Recorder
from tests.workshop import Workshop

pytestmark = pytest.mark.django_db(transaction=True)

RACES = 2


@feature(
    "The gate",
    "Of fifty people who approve at once, exactly as many count as the rule needs",
    "agents/approvals/votes.py",
)
def test_only_the_votes_of_the_first_three_of_fifty_simultaneous_voters_are_accepted(
    workshop: Workshop, recorder: Recorder
) -> None:
    crowd = Crowd(workshop)
    for number in range(RACES):
        crowd.race(recorder, f"race {number}")
