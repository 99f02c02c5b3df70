"""Measures a few acts in the checkout that it is started in, one round for each line that it reads.

`tests/bench/paired.py` starts it by its path, once in today's checkout and once in an older one. So it uses only
what both of them have, and imports nothing from beside it.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus

import django

django.setup()

from django.core.management import call_command  # noqa: E402
from django.test import Client  # noqa: E402

from tests.workshop import Workshop, asking, build_workshop, call  # noqa: E402

READS = 5
TIMES = 12
"""Repetitions of an act in one round."""


def main() -> None:
    """Prepare the database, then measure each act once for each line of standard input."""
    logging.disable(logging.WARNING)
    call_command("migrate", verbosity=0)
    acts = build_acts(build_workshop())
    for act in acts.values():
        act()
    print(json.dumps(sorted(acts)), flush=True)
    for _ in sys.stdin:
        print(json.dumps({name: measure(act) for name, act in acts.items()}), flush=True)


def measure(act: Callable[[], object]) -> float:
    """Return the processor time of one act, in milliseconds."""
    began = time.process_time()
    for _ in range(TIMES):
        act()
    return 1000 * (time.process_time() - began) / TIMES


def open_page(client: Client, path: str) -> None:
    """Open a page as a person does; anything but the page is an error."""
    answer = client.get(path)
    if answer.status_code != HTTPStatus.OK:
        raise RuntimeError(f"{path} answered {answer.status_code}")


def build_acts(workshop: Workshop) -> dict[str, Callable[[], object]]:
    """Build the acts that are measured, by name."""
    client = Client(headers={"host": "localhost"})
    client.force_login(workshop.approver.user)
    reads = asking(*[call("utility.calculate", expression=f"{number} + 1") for number in range(READS)])
    record = workshop.record(name="Company")

    def read() -> None:
        workshop.play(reads, reads)
        workshop.work()

    def write() -> None:
        changes = {"status": "inactive" if record.status == "active" else "active"}
        record.status = changes["status"]
        workshop.play(asking(call("data.updateRecord", record_id=str(record.pk), changes=changes)))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        workshop.drive(run)

    def ask() -> None:
        workshop.play(asking(call("data.bulkDelete", record_ids=[str(record.pk)])))
        workshop.work()

    ask()
    pages = {"start": "/", "inbox": "/approvals/", "runs": "/runs/", "one run": "/runs/1/", "tools": "/tools/"}
    return {
        f"run of two passes and {2 * READS} reads": read,
        "card, approval and write": write,
        **{f"page: {name}": partial(open_page, client, path) for name, path in pages.items()},
    }


if __name__ == "__main__":
    main()
