"""`make soak`: random permissions, and random kills under a mixed workload, on SQLite and on PostgreSQL.

Nothing may start that is not permitted; nothing may be lost or done twice.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys

from tests import services

KILLS = 200
MINUTES = 40


def main() -> int:
    """0 if every promise held on every database."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--kills", type=int, default=KILLS, help="kill -9 of workers, on each database")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="the most that each database may take")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="repeats the choices, not the times")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), help="only this one")
    parser.add_argument("--part", choices=("permissions", "on_database"), help="only this one; the latter is the kills")
    options = parser.parse_args()
    arguments = [f"--kills={options.kills}", f"--minutes={options.minutes}", f"--seed={options.seed}"]
    failed = []
    for kind in [options.database] if options.database else ["sqlite", "postgresql"]:
        environment = {**os.environ, services.DATABASE_VARIABLE: kind, "DJANGO_SETTINGS_MODULE": "tests.settings"}
        parts = {"permissions": arguments[-1:], "on_database": arguments}
        failed += [
            f"{part} on {kind}"
            for part, given in parts.items()
            if options.part in (None, part)
            and subprocess.run(
                [sys.executable, "-m", f"tests.soak.{part}", *given], env=environment, check=False
            ).returncode
        ]
    print(f"soak: {'failed: ' + ', '.join(failed) if failed else 'every promise held'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
