"""The soak of kills on one database, which is created for it and removed afterwards; `python -m
tests.soak` starts this script."""

from __future__ import annotations

import argparse
import random
import sys

import django

django.setup()

from django.db import connection  # noqa: E402
from django.test.utils import setup_databases, teardown_databases  # noqa: E402

from tests.faults.site import Site  # noqa: E402
from tests.model_server import ModelServer  # noqa: E402
from tests.probes import RECORDER_VARIABLE  # noqa: E402
from tests.processes import Installation  # noqa: E402
from tests.soak.soaking import Plan, report, soak  # noqa: E402
from tests.soak.trouble import Kills  # noqa: E402
from tests.soak.world import SlowRecorder  # noqa: E402
from tests.workshop import build_workshop  # noqa: E402


def main() -> int:
    """Run the soak; return 0 if every promise held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, required=True)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    databases = setup_databases(verbosity=0, interactive=False)
    try:
        return _soak(
            Plan(options.kills, options.minutes * 60, random.Random(options.seed)), options.seed
        )
    finally:
        connection.close()
        teardown_databases(databases, verbosity=0)


def _soak(plan: Plan, seed: int) -> int:
    print(f"{connection.vendor}: {plan.harms} kills, seed {seed}", flush=True)
    with (
        SlowRecorder(plan.chance) as recorder,
        ModelServer() as model,
        Installation(variables={RECORDER_VARIABLE: recorder.url}) as installation,
    ):
        site = Site(installation, build_workshop(), recorder, model)
        return report(*soak(site, Kills(site, plan.chance), plan))


if __name__ == "__main__":
    sys.exit(main())
