"""Random histories of cards with approval rules have the same outcomes as in a second, slow
implementation."""

from __future__ import annotations

import random

import pytest

from tests.approvals.stored_histories import Office
from tests.features import feature
from tests.sampling import get_seed
from tests.workshop import Workshop

pytestmark = pytest.mark.django_db(transaction=True)

HISTORIES = 25


@feature(
    "The gate",
    "Random histories of votes are decided as a second implementation decides them",
    "agents/approvals/votes.py",
)
def test_random_histories_are_decided_as_the_slow_judge_decides_them(workshop: Workshop) -> None:
    office = Office(workshop)
    ends = {office.play(random.Random(f"{get_seed()} {number}")) for number in range(HISTORIES)}
    assert "approved" in ends
