"""The soak of approval rules: random histories of votes are judged by a second implementation, and
many people race for the last vote.

`python -m tests.soak` runs this module, `tests.soak.votes`, once on each database.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import sys
import time
from collections import Counter

import django

django.setup()

from django.db import connection  # noqa: E402
from django.test.utils import setup_databases, teardown_databases  # noqa: E402

from tests.approvals.stored_histories import Office  # noqa: E402
from tests.approvals.vote_races import NEEDED, VOTERS, Crowd  # noqa: E402
from tests.probes import RECORDER_VARIABLE  # noqa: E402
from tests.recorder import Recorder  # noqa: E402
from tests.tools.toolbox.voting_histories import play_history  # noqa: E402
from tests.workshop import build_workshop  # noqa: E402

HISTORIES = 100_000
STORED = 2_000
RACES = 200


def main() -> int:
    """Run the soak; return 0 if every decision was right, and exactly the first votes of each race
    counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--histories", type=int, default=HISTORIES, help="histories judged without a database"
    )
    parser.add_argument("--stored", type=int, default=STORED, help="histories on the database")
    parser.add_argument("--races", type=int, default=RACES, help="races for the last vote")
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    print(f"{connection.vendor}: approval rules, seed {options.seed}", flush=True)
    began = time.monotonic()
    ends = Counter(
        play_history(random.Random(f"{options.seed} {number}"))
        for number in range(options.histories)
    )
    print(
        f"  {options.histories:,} histories alike {dict(ends)}, {time.monotonic() - began:.0f} s",
        flush=True,
    )
    databases = setup_databases(verbosity=0, interactive=False)
    try:
        with Recorder() as recorder:
            os.environ[RECORDER_VARIABLE] = recorder.url
            _play_stored(options.stored, options.seed)
            _race(options.races, recorder)
    finally:
        connection.close()
        teardown_databases(databases, verbosity=0)
    return 0


def _play_stored(count: int, seed: int) -> None:
    began, office = time.monotonic(), Office(build_workshop("histories"))
    ends = Counter(office.play(random.Random(f"{seed} stored {number}")) for number in range(count))
    print(
        f"  {count:,} histories on the database alike {dict(ends)}, {time.monotonic() - began:.0f} s",
        flush=True,
    )


def _race(count: int, recorder: Recorder) -> None:
    began, crowd = time.monotonic(), Crowd(build_workshop("races"))
    for number in range(count):
        crowd.race(recorder, f"race {number}")
    print(
        f"  {count} races of {VOTERS} voters for {NEEDED} votes, {time.monotonic() - began:.0f} s",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
