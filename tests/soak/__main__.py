"""Run the parts of `make soak`. On both databases: random permissions, races at limits, replayed
random runs, votes, notices while senders are killed, and kills during work. Only on SQLite: random
tool names, hostile Markdown, rules with conditions, and real MCP clients. Only on PostgreSQL: cuts
between five hosts.

The promises: no two tools look the same to a model, nothing starts without permission, and nothing
is lost or done twice.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys

from tests import services

PARTS = (
    *(
        "names",
        "markdown",
        "rules",
        "permissions",
        "limits",
        "policy",
        "votes",
        "notices",
        "clients",
    ),
    *("on_database", "hosts"),
)
ONCE = {
    "names": "sqlite",
    "markdown": "sqlite",
    "rules": "sqlite",
    "clients": "sqlite",
    "hosts": "postgresql",
}
"""The parts that run on one database only: four hardly use a database, and a SQLite file cannot
serve several hosts."""
KILLS = 200
CUTS = 20
MINUTES = 40


def main() -> int:
    """Run the parts; return 0 if every promise held on every database."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument(
        "--kills", type=int, default=KILLS, help="kills of workers, on each database"
    )
    parser.add_argument("--cuts", type=int, default=CUTS, help="cuts of a link between hosts")
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help="the time limit for each database"
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=secrets.randbelow(10**6),
        help="repeats the random choices, but not their timing",
    )
    parser.add_argument(
        "--database", choices=("sqlite", "postgresql"), help="run only on this database"
    )
    parser.add_argument(
        "--part",
        choices=PARTS,
        help="run only this part; on_database has the kills, hosts the cuts",
    )
    options = parser.parse_args()
    seed, minutes = f"--seed={options.seed}", f"--minutes={options.minutes}"
    kinds = [options.database] if options.database else ["sqlite", "postgresql"]
    given = {
        "names": [seed],
        "markdown": [seed],
        "rules": [seed],
        "permissions": [seed],
        "limits": [seed],
        "policy": [seed],
        "votes": [seed],
        "notices": [seed],
        "clients": [],
        "on_database": [f"--kills={options.kills}", minutes, seed],
        "hosts": [f"--cuts={options.cuts}", minutes, seed],
    }
    chosen = [
        (part, kind)
        for kind in kinds
        for part in PARTS
        if options.part in (None, part) and ONCE.get(part, kind) == kind
    ]
    if not chosen:
        parser.error(f"{options.part} runs with --database {ONCE[options.part]} only")
    failed = [f"{part} on {kind}" for part, kind in chosen if not _is_held(part, kind, given[part])]
    print(f"soak: {'failed: ' + ', '.join(failed) if failed else 'every promise held'}", flush=True)
    return 1 if failed else 0


def _is_held(part: str, kind: str, arguments: list[str]) -> bool:
    environment = {
        **os.environ,
        services.DATABASE_VARIABLE: kind,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
    }
    command = [sys.executable, "-m", f"tests.soak.{part}", *arguments]
    return subprocess.run(command, env=environment, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
