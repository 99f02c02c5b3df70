"""The soak of permissions: thousands of calls are judged by the gate alone, and then hundreds of
runs work while permissions change.

`python -m tests.soak` runs this module, `tests.soak.permissions`, once on each database.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import django

django.setup()

from django.db import connection  # noqa: E402
from django.test.utils import setup_databases, teardown_databases  # noqa: E402
from hypothesis import HealthCheck, given, seed, settings  # noqa: E402

from tests.employees.random_permissions import World  # noqa: E402
from tests.probes import RECORDER_VARIABLE  # noqa: E402
from tests.recorder import Recorder  # noqa: E402
from tests.tools.toolbox.configurations import CONFIGURATIONS, Configuration, assert_as_documented  # noqa: E402
from tests.workshop import build_workshop  # noqa: E402
from tests.workshop.invariants import assert_invariants  # noqa: E402

PURE = 10_000
RUNS = 300
CHECK_EVERY = 50
LEAST_SHARE = 0.05


def main() -> int:
    """Run the soak; return 0 if every verdict was as documented, every kind of verdict was frequent
    enough, and nothing started without permission."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--pure", type=int, default=PURE, help="configurations judged by the gate alone"
    )
    parser.add_argument("--runs", type=int, default=RUNS, help="configurations of runs")
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    print(f"{connection.vendor}: permissions, seed {options.seed}", flush=True)
    faults: list[str] = []
    with _report("judged by the gate alone") as figures:
        figures.update(_judge(options.pure, options.seed))
    faults += [
        f"only {count} are {decision}"
        for decision, count in figures.items()
        if count < LEAST_SHARE * options.pure
    ]
    with _report("through the engine") as figures:
        faults += _work(options.runs, random.Random(options.seed), figures)
    for fault in faults:
        print(f"  BROKEN {fault}", flush=True)
    return 1 if faults else 0


@contextmanager
def _report(what: str) -> Iterator[Counter[str]]:
    """Yield a counter for figures; after the block, print the figures and the seconds
    that it took."""
    began, figures = time.monotonic(), Counter[str]()
    yield figures
    print(
        f"  {what}, {time.monotonic() - began:.0f} s: {dict(sorted(figures.items()))}", flush=True
    )


def _judge(count: int, chosen: int) -> Counter[str]:
    """Count the correct verdicts by permission; raise AssertionError with the smallest call whose
    verdict is wrong."""
    decisions: Counter[str] = Counter()

    @seed(chosen)
    @settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(CONFIGURATIONS)
    def judge(call: Configuration) -> None:
        decisions[assert_as_documented(call).permission.value] += 1

    judge()
    return decisions


def _work(runs: int, chance: random.Random, figures: Counter[str]) -> list[str]:
    databases = setup_databases(verbosity=0, interactive=False)
    try:
        with Recorder() as recorder:
            os.environ[RECORDER_VARIABLE] = recorder.url
            world = World(build_workshop(), recorder, chance)
            with world:
                for number in range(1, runs + 1):
                    world.live()
                    if number % CHECK_EVERY == 0 or number == runs:
                        world.faults += _list_broken_invariants()
            figures.update(world.figures)
            return world.faults
    finally:
        connection.close()
        teardown_databases(databases, verbosity=0)


def _list_broken_invariants() -> list[str]:
    try:
        assert_invariants()
    except AssertionError as error:
        return str(error).splitlines()
    return []


if __name__ == "__main__":
    sys.exit(main())
