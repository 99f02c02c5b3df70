"""The soak of tool names on the wire: random names, including similar ones, and the names of
published APIs.

`python -m tests.soak.names` is a part of `python -m tests.soak`.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

import django

django.setup()

from hypothesis import HealthCheck, given, seed, settings  # noqa: E402

from agents.providers.wire_names import MAX_TOOLS  # noqa: E402
from tests.providers.random_names import SETS_OF_NAMES, assert_reversible  # noqa: E402
from tests.tools.sources.descriptions import PUBLISHED  # noqa: E402
from tools.sources.openapi import read_description  # noqa: E402

NAMES = 100_000
SETS_AT_ONCE = 1_000
SHUFFLES = 20


def main() -> int:
    """Check the names; return 0 if each was valid and unique on the wire and could be converted
    back."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", type=int, default=NAMES, help="the number of random names")
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    began = time.monotonic()
    print(f"names on the wire, seed {options.seed}", flush=True)
    try:
        random_count = _check_random(options.names, options.seed)
        published_count = _check_published(random.Random(options.seed))
    except AssertionError as error:
        print(f"  BROKEN {error} {' '.join(getattr(error, '__notes__', ()))}", flush=True)
        return 1
    print(
        f"  {random_count:,} random, {published_count:,} published, {time.monotonic() - began:.0f} s",
        flush=True,
    )
    return 0


def _check_random(count: int, first_seed: int) -> int:
    """Check at least this number of random names, and return the number of names checked. For a
    fault, raise AssertionError with the smallest set that shows it."""
    checked, rounds = 0, 0

    def check(names: list[str]) -> None:
        nonlocal checked
        assert_reversible(names)
        checked += len(names)

    while checked < count:
        bounded = settings(
            max_examples=SETS_AT_ONCE,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        seed(first_seed + rounds)(bounded(given(SETS_OF_NAMES)(check)))()
        rounds += 1
    return checked


def _check_published(chance: random.Random) -> int:
    """Check the names from published APIs in several random sets; return the number of names."""
    operations = [
        each for published in PUBLISHED for each in read_description(published.text).operations
    ]
    names = sorted(
        {
            name
            for each in operations
            for name in (f"api.{each.name}", each.operation_id, each.key)
            if name
        }
    )
    for _ in range(SHUFFLES):
        chance.shuffle(names)
        for start in range(0, len(names), MAX_TOOLS):
            assert_reversible(names[start : start + MAX_TOOLS])
    return len(names)


if __name__ == "__main__":
    sys.exit(main())
