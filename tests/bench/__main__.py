"""`make bench`: measures Gadget on PostgreSQL and SQLite, prints a table, and writes
docs/internals/performance.md."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests import services
from tests.bench.databases import POSTGRESQL, SQLITE, fresh_database
from tests.bench.figures import say
from tests.bench.machine import this_machine
from tests.bench.paired import compare
from tests.bench.report import PAGE, Column, table, write_page

NAMES = (
    *(
        "passes",
        "history",
        "arrival",
        "notices",
        "elsewhere",
        "decisions",
        "desk",
        "crowd",
        "slow_model",
        "policy",
    ),
    *("bulk", "pages"),
)
ONLY_IF_NAMED = ("million", "compiled")
"""Benchmarks that run only if they are named: `million` needs minutes and gigabytes, and `compiled`
is useful only for deciding which queries to compile."""
REPEATS = 5
QUICK_REPEATS = 2


def main() -> int:
    """Run the benchmarks; return 0 if all of them worked."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK_REPEATS} repetitions instead of {REPEATS}"
    )
    parser.add_argument(
        "--only", choices=(*NAMES, *ONLY_IF_NAMED), default="", help="run only this benchmark"
    )
    parser.add_argument(
        "--database", choices=(POSTGRESQL, SQLITE), help="run only on this database"
    )
    parser.add_argument(
        "--against",
        default="",
        metavar="COMMIT",
        help="compare some actions with this older commit, alternately",
    )
    options = parser.parse_args()
    if options.against:
        compare(options.against, options.database or SQLITE)
        return 0
    began, machine = time.monotonic(), this_machine()
    arguments = [
        "--repeats",
        str(QUICK_REPEATS if options.quick else REPEATS),
        "--only",
        options.only,
    ]
    columns = []
    for kind in [options.database] if options.database else [POSTGRESQL, SQLITE]:
        say(f"{kind}:")
        try:
            columns.append(_on(kind, arguments))
        except (services.ServerError, subprocess.CalledProcessError) as error:
            say(f"{kind} was not measured: {error}")
            return 1
    print(
        f"\n{table(columns)}\n\nMedian (smallest to largest), in {time.monotonic() - began:.0f} s."
    )
    if options.quick or options.only or options.database:
        print(f"{PAGE.name} is only written by a complete run.")
    else:
        write_page(machine, columns)
        print(f"Written to docs/internals/{PAGE.name}.")
    if machine.is_busy:
        print(
            f"The machine was busy before the start (load {machine.load:.1f}): the figures are provisional."
        )
    return 0


def _on(kind: str, arguments: list[str]) -> Column:
    with tempfile.TemporaryDirectory(prefix="gadget-bench-") as name:
        folder = Path(name)
        output = folder / "results.json"
        with fresh_database(kind, folder) as address:
            command = [sys.executable, "-m", "tests.bench.on_database", str(output), *arguments]
            subprocess.run(command, env=_environment(folder, address), check=True)
        return Column.from_json(json.loads(output.read_text()))


def _environment(folder: Path, address: str) -> dict[str, str]:
    """Return the environment for the product's own settings with this data folder and database;
    tests/settings.py adds the test tools."""
    kept = {
        name: value for name, value in os.environ.items() if name not in services.FOREIGN_VARIABLES
    }
    return {
        **kept,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        services.GIVEN_VARIABLE: "1",
        "GADGET_TIMING_SCALE": "1.0",
        "GADGET_DATA_DIR": str(folder),
        "DATABASE_URL": address,
        "GADGET_QUEUE": f"bench-{secrets.token_hex(4)}",
        "LOG_LEVEL": "INFO",
    }


if __name__ == "__main__":
    sys.exit(main())
