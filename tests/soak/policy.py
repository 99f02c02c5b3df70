"""The soak of policy snapshots: rules change during random runs; the replay of the runs must
reproduce every recorded verdict.

`python -m tests.soak` runs this module, `tests.soak.policy`, once on each database.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time

import django

django.setup()

from django.db import connection  # noqa: E402
from django.test.utils import setup_databases, teardown_databases  # noqa: E402

from agents.policy.recorded_calls import CallFilter  # noqa: E402
from agents.policy.replay import ReplayReport, find_bounds, replay  # noqa: E402
from agents.runs.models import PolicySnapshot, ToolCall  # noqa: E402
from tests.policy.random_runs import RandomRuns  # noqa: E402
from tests.workshop import build_workshop  # noqa: E402

RUNS = 10_000
REPORT_EVERY = 1_000


def main() -> int:
    """Run the soak; return 0 if the replay reproduced every verdict."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    print(f"{connection.vendor}: policy snapshots, seed {options.seed}", flush=True)
    databases = setup_databases(verbosity=0, interactive=False)
    try:
        runs = RandomRuns(build_workshop(), random.Random(options.seed))
        began = time.monotonic()
        for number in range(1, options.runs + 1):
            runs.live()
            if number % REPORT_EVERY == 0:
                print(f"  {number:,} runs, {time.monotonic() - began:.0f} s", flush=True)
        return _report(runs)
    finally:
        connection.close()
        teardown_databases(databases, verbosity=0)


def _report(runs: RandomRuns) -> int:
    whole = ReplayReport()
    bounded = find_bounds(CallFilter(None), None)
    for part in replay(bounded) if bounded else ():
        whole.counts += part.counts
        whole.differences += part.differences[:20]
    calls, kept = ToolCall.objects.count(), PolicySnapshot.objects.count()
    print(
        f"  {dict(sorted(runs.figures.items()))}; {calls:,} calls, {kept:,} snapshots: {dict(whole.counts)}",
        flush=True,
    )
    for line in whole.differences[:20]:
        print(f"  BROKEN {line}", flush=True)
    return 0 if whole.counts["equal"] == calls > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
