"""All benchmarks on the database that DATABASE_URL names; `python -m tests.bench` starts this as a
separate process.

Measurements in this process come first, while no worker is running that could drive their runs.
Then the installation starts: web, two workers and the sweeper, with the product's own settings.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402

from gadget_site.garbage_collection import freeze_loaded_objects  # noqa: E402
from tests import services  # noqa: E402
from tests.bench import (  # noqa: E402
    arrival,
    bulk,
    compiled,
    crowd,
    decisions,
    desk,
    elsewhere,
    history,
    million,
    notices,
    origins,
    pages,
    passes,
    policy,
    slow_model,
)
from tests.bench.figures import Figure, say  # noqa: E402
from tests.mail_server import MailServer  # noqa: E402
from tests.probes import RECORDER_VARIABLE  # noqa: E402
from tests.processes import Installation  # noqa: E402
from tests.recorder import Recorder  # noqa: E402
from tests.workshop.invariants import assert_invariants  # noqa: E402

WORKERS = 2
LATENCY_SAMPLES = 8
"""The number of decisions in each repetition."""
ARRIVALS = 40
"""The number of events in each repetition."""
MINUTES_OF_MESSAGES = {"postgresql": 2, "sqlite": 0.2}
"""The number of minutes for which messages are sent in each repetition; the aim is ten on
PostgreSQL."""


@dataclass
class Results:
    """The figures measured on one database, and the parts of a pass if passes were measured."""

    figures: list[Figure]
    anatomy: passes.Anatomy | None = None

    def add(self, figures: list[Figure]) -> None:
        self.figures += figures
        for each in figures:
            say(f"  {each.name}: {each.text} {each.unit}")


def main() -> None:
    """Run the benchmarks, and write the results as JSON to the given file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=Path)
    parser.add_argument("--repeats", type=int, required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    call_command("migrate", verbosity=0)
    redis = services.start_redis(Path(settings.GADGET_DATA_DIR))
    results = Results([])
    try:
        if options.only == "compiled":
            results.add(compiled.shares())
        _measure(results, options.repeats, options.only)
        assert_invariants()
        if options.only in ("", "policy"):
            results.add([*policy.snapshots(), *origins.origins()])
        if options.only in ("", "pages") and connection.vendor == "postgresql":
            # This comes last, because it fills the database with copied runs that the engine never
            # wrote.
            results.add(pages.pages(options.repeats))
        if options.only == "million" and connection.vendor == "postgresql":
            results.add(million.pages_after_years(options.repeats))
    finally:
        redis.stop()
    anatomy = asdict(results.anatomy) if results.anatomy else None
    told = {
        "version": _database_version(),
        "figures": [asdict(each) for each in results.figures],
        "anatomy": anatomy,
    }
    options.output.write_text(json.dumps(told))


def _measure(results: Results, repeats: int, only: str) -> None:
    if only in ("", "passes"):
        figures, results.anatomy = passes.in_process(repeats)
        results.add(figures)
    if only in ("", "history"):
        results.add(history.earlier_results(repeats))
    mail = MailServer()
    live: dict[str, Callable[[Installation], list[Figure]]] = {
        "passes": lambda site: passes.in_worker(site, repeats),
        "arrival": lambda site: arrival.events(site, ARRIVALS * repeats),
        "notices": lambda site: notices.told(site, mail, ARRIVALS * repeats),
        "elsewhere": lambda site: [
            *elsewhere.reads(site, repeats),
            *elsewhere.messages(site, MINUTES_OF_MESSAGES[connection.vendor] * repeats),
        ],
        "decisions": lambda site: decisions.approvals(site, LATENCY_SAMPLES * repeats),
        "bulk": bulk.thousand,
        "desk": desk.decide_all,
        "crowd": lambda site: crowd.at_once(site, repeats),
        "slow_model": slow_model.on_a_slow_model,
    }
    wanted = [measure for name, measure in live.items() if only in ("", name)]
    if wanted:
        # Otherwise garbage collection in this process, which acts as the browsers, would scan all
        # its objects during the measurements.
        freeze_loaded_objects()
        with mail, _installation(mail) as running:
            for measure in wanted:
                results.add(measure(running))
    results.add(passes.compared_with_by_hand(results.figures))


@contextmanager
def _installation(mail: MailServer) -> Iterator[Installation]:
    """Yield a running installation that uses this process's Redis and queue. If an assertion fails,
    print the output of its processes."""
    with Recorder() as outside:
        variables = {
            "REDIS_URL": settings.REDIS_URL,
            "GADGET_QUEUE": settings.GADGET_QUEUE,
            RECORDER_VARIABLE: outside.url,
            "MAIL_URL": mail.url,
            "MAIL_FROM": "gadget@example.com",
            "ALLOWED_PRIVATE_HOSTS": "127.0.0.1",
        }
        with Installation(timing_scale=1.0, variables=variables) as running:
            running.start_all(workers=WORKERS)
            try:
                yield running
            except AssertionError:
                for process in running.processes:
                    say(f"--- {process.name}\n" + "\n".join(process.lines[-30:]))
                raise


def _database_version() -> dict[str, Any]:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT sqlite_version()")
            name, durable = f"SQLite {cursor.fetchone()[0]}", _pragma("synchronous") == 2
        else:
            cursor.execute("SHOW server_version")
            name = f"PostgreSQL {str(cursor.fetchone()[0]).split()[0]}"
            cursor.execute(
                "SELECT current_setting('fsync') = 'on' AND current_setting('synchronous_commit') = 'on'"
            )
            durable = bool(cursor.fetchone()[0])
    return {"name": name, "durable": durable}


def _pragma(name: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA {name}")
        return int(cursor.fetchone()[0])


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    main()
