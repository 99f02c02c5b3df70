"""The soak of limits on a call's history: repeated races at a limit, and thousands of random
histories.

`python -m tests.soak` runs this module, `tests.soak.limits`, once on each database.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable

import django

django.setup()

from django.db import connection  # noqa: E402
from django.test.utils import setup_databases, teardown_databases  # noqa: E402
from hypothesis import HealthCheck, given, seed, settings  # noqa: E402

from tests.employees.limit_races import (  # noqa: E402
    EACH,
    MOST_IN_SUM,
    RUNS,
    race_reads,
    race_responses,
    race_sums,
    race_writes,
)
from tests.probes import RECORDER_VARIABLE  # noqa: E402
from tests.recorder import Recorder  # noqa: E402
from tests.tools.toolbox.test_limits_over_history import (  # noqa: E402
    LIMITS,
    REQUESTS,
    Limit,
    assert_same_verdicts,
)
from tests.workshop import Workshop, build_workshop  # noqa: E402

HISTORIES = 10_000
REPETITIONS = 20
CALLS_OF_AN_ANSWER = 5

Race = Callable[[Workshop, int], Counter[str]]


def main() -> int:
    """Run the soak; return 0 if every verdict was right, and exactly as many calls started as each
    limit allows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--repetitions", type=int, default=REPETITIONS, help="repetitions of each race"
    )
    parser.add_argument(
        "--histories", type=int, default=HISTORIES, help="random histories judged by the gate alone"
    )
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    print(f"{connection.vendor}: limits over history, seed {options.seed}", flush=True)
    began = time.monotonic()
    _judge(options.histories, options.seed)
    print(
        f"  {options.histories:,} histories judged alike, {time.monotonic() - began:.0f} s",
        flush=True,
    )
    faults = _race(options.repetitions, random.Random(options.seed))
    for fault in faults:
        print(f"  BROKEN {fault}", flush=True)
    return 1 if faults else 0


def _judge(count: int, chosen: int) -> None:
    @seed(chosen)
    @settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(LIMITS, REQUESTS)
    def judge(limits: list[Limit], requests: list[tuple[float, float]]) -> None:
        assert_same_verdicts(limits, requests)

    judge()


def _race(repetitions: int, chance: random.Random) -> list[str]:
    """Repeat every race with random limits; return a sentence for each race with a wrong result."""
    databases = setup_databases(verbosity=0, interactive=False)
    faults, races, began = [], 0, time.monotonic()
    try:
        with Recorder() as recorder:
            os.environ[RECORDER_VARIABLE] = recorder.url
            for number in range(repetitions):
                most = chance.randint(1, RUNS)
                for name, race, calls, fitting in _list_races(most):
                    found = race(build_workshop(f"org-{number}-{name}"), calls)
                    races += 1
                    if found != Counter(succeeded=fitting, awaiting_approval=calls - fitting):
                        faults.append(f"{name} with a limit of {most}: {dict(found)}")
        print(f"  {races} races of {RUNS} calls, {time.monotonic() - began:.0f} s", flush=True)
        return faults
    finally:
        connection.close()
        teardown_databases(databases, verbosity=0)


def _list_races(most: int) -> list[tuple[str, Race, int, int]]:
    """List the races at a limit: each with its name, its function, its number of calls, and the
    number of calls that may start."""
    return [
        ("reads", lambda shop, calls: race_reads(shop, calls, most), RUNS, most),
        ("sums", race_sums, RUNS, MOST_IN_SUM // EACH),
        (
            "answers",
            lambda shop, calls: race_responses(shop, calls // CALLS_OF_AN_ANSWER, most),
            RUNS,
            most,
        ),
        ("writes", lambda shop, calls: race_writes(shop, calls, most), RUNS, most),
    ]


if __name__ == "__main__":
    sys.exit(main())
