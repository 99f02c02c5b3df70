"""Samples of the largest sets of tests: `make test` runs the same one each time, `make test ARGS=--all` the whole sets.

Two commits that pass have passed the same tests. GADGET_TESTS_SAMPLE=word takes another sample.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TypeVar

WHOLE_VARIABLE = "GADGET_TESTS_WHOLE"
SAMPLE_VARIABLE = "GADGET_TESTS_SAMPLE"
USUAL_SAMPLE = "usual"
HALVES_VARIABLE = "GADGET_TESTS_HALVES"
"""Set by a run of all tests: the files at `HALVED` then run on one of the two databases each."""
HALVED = (
    "tests/accounts/",
    "tests/admin/",
    "tests/deceptions/",
    "tests/deployment/",
    "tests/employees/",
    "tests/faults/",
    "tests/gateway/live/",
    "tests/gadget_site/",
    "tests/hostile/",
    "tests/insight/",
    "tests/journeys/",
    "tests/notices/",
    "tests/policy/",
    "tests/standing_grants/",
    "tests/tools/",
    "tests/triggers/live/",
    "tests/web/",
    "tests/webhooks/live/",
)
"""Files whose tests run on one of the two databases, which the sample chooses; the whole sets run them on both.

Those of kills, outages and browsers take long; the others hardly depend on the database.
"""
ON_SQLITE = 0.6
"""The share of these files on SQLite, where two processes share the tests; on PostgreSQL one process runs all."""
ONE_OF = {
    "tests/journeys/": 8,
    "tests/faults/": 8,
    "tests/hostile/": 4,
    "tests/deceptions/": 4,
    "tests/deployment/": 2,
    "tests/gadget_site/test_up": 2,
}
"""N by path: `make test` runs one in N tests there; the whole sets run all of them.

They drive browsers, kill processes, try hundreds of texts on every page, or start a whole installation.
"""
Item = TypeVar("Item")


def is_whole() -> bool:
    """Return True if GADGET_TESTS_WHOLE=1 asks for the whole sets."""
    return os.environ.get(WHOLE_VARIABLE) == "1"


def get_seed() -> str:
    """Return GADGET_TESTS_SAMPLE, or the word of the default sample."""
    return os.environ.get(SAMPLE_VARIABLE, USUAL_SAMPLE)


def describe() -> str:
    """Name the sample in one line."""
    return "whole sets" if is_whole() else f"sample: {get_seed()}"


def take_sample(items: Sequence[Item], one_of: int, name: str) -> tuple[Item, ...]:
    """Return every nth item on average, in order and at least one; all of them with GADGET_TESTS_WHOLE=1.

    Args:
        name: what the items are; sets with different names are sampled independently.
    """
    if is_whole():
        return tuple(items)
    chance = random.Random(f"{get_seed()} {name}")
    chosen = chance.sample(range(len(items)), -(-len(items) // one_of))
    return tuple(items[place] for place in sorted(chosen))


def is_turn_of(database: str, name: str) -> bool:
    """Return True if a test runs on this database: on one of the two, which the seed chooses; on both if whole."""
    is_first = random.Random(f"{get_seed()} {name}").random() < ON_SQLITE
    return is_whole() or is_first == (database == "sqlite")


def is_in_share(name: str) -> bool:
    """Return True if a test is in the share of `ONE_OF` that the seed chooses; always if whole."""
    one_of = next((share for path, share in ONE_OF.items() if name.startswith(path)), 1)
    return is_whole() or random.Random(f"{get_seed()} share {name}").random() * one_of < 1
