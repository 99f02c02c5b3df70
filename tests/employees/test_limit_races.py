"""Limits over history are enforced exactly, however many runs work simultaneously."""

from __future__ import annotations

import pytest

from tests.employees.limit_races import (
    EACH,
    MOST,
    MOST_IN_SUM,
    RUNS,
    race_reads,
    race_responses,
    race_sums,
    race_writes,
)
from tests.features import feature
from tests.recorder import Recorder
from tests.workshop import Workshop

pytestmark = pytest.mark.django_db(transaction=True)


@feature(
    "The gate",
    "Limits over history are exact when many runs work at once",
    "agents/runs/engine/judgment.py",
    whole_file=True,
)
def test_exactly_as_many_of_fifty_simultaneous_reads_start_as_the_limit_allows(
    workshop: Workshop,
) -> None:
    assert race_reads(workshop) == {"succeeded": MOST, "awaiting_approval": RUNS - MOST}


def test_the_sum_of_fifty_simultaneous_reads_stays_within_the_limit(workshop: Workshop) -> None:
    fitting = MOST_IN_SUM // EACH
    assert race_sums(workshop) == {"succeeded": fitting, "awaiting_approval": RUNS - fitting}


def test_simultaneous_responses_with_several_calls_respect_the_limit_exactly(
    workshop: Workshop,
) -> None:
    assert race_responses(workshop) == {"succeeded": MOST, "awaiting_approval": RUNS - MOST}


def test_exactly_as_many_simultaneous_writes_start_as_the_limit_allows(
    workshop: Workshop, recorder: Recorder
) -> None:
    assert race_writes(workshop, runs=20, most=8) == {"succeeded": 8, "awaiting_approval": 12}
    assert len(recorder.effects) == 8
