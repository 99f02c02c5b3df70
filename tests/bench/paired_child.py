"""Measure actions in one checkout; each line of standard input names the next action.

`tests/bench/paired.py` starts this file by its path, once in today's checkout and once in the older
one. The file therefore uses only code that both checkouts have, and imports nothing from its own
folder.
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
from asgiref.sync import async_to_sync

django.setup()

from django.core.management import call_command  # noqa: E402
from django.test import Client  # noqa: E402

from agents.accounts.membership import hash_secret, issue_token  # noqa: E402
from agents.gateway.keys import authenticate_key, issue_key  # noqa: E402
from agents.gateway.requests import ToolRequest, record_request  # noqa: E402
from agents.gateway.tickets import Ticket, find_ticket  # noqa: E402
from agents.runs.engine.loop import advance  # noqa: E402
from agents.web.sockets.run_feed import read_messages  # noqa: E402
from agents.web.sockets.viewers import Viewer  # noqa: E402
from agents.worker.sweeper import Sweeper  # noqa: E402
from tests.workshop import Workshop, asking, build_workshop, call, statuses  # noqa: E402

READS = 5
CROWD = 50
"""The number of runs that wait while the sweeper searches for due work."""
TIMES = 4
"""The number of repetitions of an action in one measurement."""


def main() -> None:
    """Prepare the database, then measure the action that each line of standard input names."""
    logging.disable(logging.WARNING)
    call_command("migrate", verbosity=0)
    acts = build_acts(build_workshop()) | build_acts_beside_runs(build_workshop("crowd"))
    for act in acts.values():
        act()
    print(json.dumps(sorted(acts)), flush=True)
    for line in sys.stdin:
        print(json.dumps(measure(acts[line.strip()])), flush=True)


def measure(act: Callable[[], object]) -> float:
    """Return the processor time of one action, in milliseconds."""
    began = time.process_time()
    for _ in range(TIMES):
        act()
    return 1000 * (time.process_time() - began) / TIMES


def open_page(client: Client, path: str) -> None:
    """Open a page as a person would; raise RuntimeError if its status is not OK."""
    response = client.get(path)
    if response.status_code != HTTPStatus.OK:
        raise RuntimeError(f"{path} answered {response.status_code}")


def build_acts(workshop: Workshop) -> dict[str, Callable[[], object]]:
    """Build the actions that are measured, by name."""
    client = Client(headers={"host": "localhost"})
    client.force_login(workshop.approver.user)
    reads = [
        asking(*[call("utility.calculate", operation="add", a=one, b=turn) for one in range(READS)])
        for turn in range(2)
    ]
    record = workshop.record(name="Company")

    def read() -> None:
        workshop.play(*reads)
        if statuses(workshop.work()) != ["succeeded"] * 2 * READS:
            raise RuntimeError("a read did not succeed")

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
    read_lines = async_to_sync(read_messages)
    session = str(client.session.session_key)
    member = workshop.approver
    viewer = Viewer(
        member.pk, member.organization_id, "", session, hash_secret(member.user.password)
    )

    def watch() -> None:
        allowed, lines = read_lines(1, 2, {viewer})
        if not allowed or not lines:
            raise RuntimeError("the socket got no lines")

    _, token = issue_token(member, "script")
    script = Client(headers={"host": "localhost", "authorization": f"Bearer {token}"})
    pages = {
        "start": "/",
        "inbox": "/approvals/",
        "runs": "/runs/",
        "one run": "/runs/1/",
        "tools": "/tools/",
    }
    return {
        f"run of two passes and {2 * READS} reads": read,
        "card, approval and write": write,
        "lines of a run for a browser": watch,
        "REST: runs": partial(open_page, script, "/api/runs"),
        **{f"page: {name}": partial(open_page, client, path) for name, path in pages.items()},
    }


def build_acts_beside_runs(workshop: Workshop) -> dict[str, Callable[[], object]]:
    """Build the actions of an external agent, and those of the sweeper while many runs wait."""
    record = workshop.record(name="Company")
    workshop.play(asking(call("data.bulkDelete", record_ids=[str(record.pk)])))
    for _ in range(CROWD):
        workshop.work()
    _, secret = issue_key(workshop.operator, workshop.employee.pk, "Laptop", 30)

    def request() -> None:
        key = authenticate_key(secret)
        assert key is not None
        requested = record_request(
            key, None, ToolRequest("utility.calculate", {"operation": "add", "a": 1, "b": 1})
        )
        advance(requested.run_id)
        status = find_ticket(key, Ticket(requested, "").id).status
        if status != "succeeded":
            raise RuntimeError(f"the call is {status}")

    return {f"sweep beside {CROWD} waiting runs": Sweeper().sweep, "read as over MCP": request}


if __name__ == "__main__":
    main()
