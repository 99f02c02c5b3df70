"""The soak of external agents: real MCP clients from different vendors list tools, read, request
writes with tickets, and cancel them.

Meanwhile, people approve and deny the writes. `python -m tests.soak.clients` is a part of `python
-m tests.soak`; it installs the newest version of each client from PyPI or npm.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable

import django

django.setup()

from django.db import connection  # noqa: E402
from django.test.utils import setup_databases, teardown_databases  # noqa: E402

from agents.gateway.keys import issue_key  # noqa: E402
from agents.gateway.models import AgentKey  # noqa: E402
from agents.runs.models import Approval, ApprovalStatus, CallStatus, ToolCall  # noqa: E402
from tests.awaiting import await_that  # noqa: E402
from tests.faults.site import Site  # noqa: E402
from tests.features import feature  # noqa: E402
from tests.model_server import ModelServer  # noqa: E402
from tests.probes import RECORDER_VARIABLE  # noqa: E402
from tests.processes import Installation  # noqa: E402
from tests.recorder import Recorder  # noqa: E402
from tests.soak.assistants import ASSISTANTS  # noqa: E402
from tests.soak.client_kinds import LIBRARIES, Client  # noqa: E402
from tests.strict_model import LEGAL_NAME  # noqa: E402
from tests.workshop import build_workshop  # noqa: E402
from tests.workshop.invariants import assert_invariants  # noqa: E402
from tools.office.records.models import Record  # noqa: E402

KINDS = {kind.name: kind for kind in (*LIBRARIES, *ASSISTANTS)}
GUIDANCE = "Do not ask for the same call again"
TICKET = re.compile(r"\bt-\d+\b")
MANY = 60
"""The number of records in a long list: a result that contained it twice, as text and as structured
content, would be too long."""


def main() -> int:
    """Let each client work; return 0 if all of them did everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--client", choices=KINDS, action="append", help="run only this client; can be repeated"
    )
    options = parser.parse_args()
    databases = setup_databases(verbosity=0, interactive=False)
    try:
        return _soak(options.client or list(KINDS))
    finally:
        connection.close()
        teardown_databases(databases, verbosity=0)


def _soak(names: list[str]) -> int:
    print(f"{connection.vendor}: {len(names)} clients", flush=True)
    failed = 0
    with (
        Recorder() as recorder,
        ModelServer() as model,
        Installation(variables={RECORDER_VARIABLE: recorder.url}) as installation,
    ):
        installation.start_all()
        site = Site(installation, build_workshop(), recorder, model)
        for number in range(MANY):
            site.workshop.record(name=f"Listed {number}", region="US")
        for name in names:
            failed += not _is_held(name, lambda name=name: drive(site, name))  # type: ignore[misc]
        assert_invariants()
    return 1 if failed else 0


def _is_held(name: str, work: Callable[[], None]) -> bool:
    began = time.monotonic()
    try:
        work()
    except Exception as error:  # noqa: BLE001 - whatever goes wrong with one client, the others run
        print(f"  BROKEN {name}: {type(error).__name__}: {error}", flush=True)
        return False
    print(f"  {name}: {time.monotonic() - began:.0f} s", flush=True)
    return True


@feature(
    "Agents elsewhere",
    "Six MCP libraries and three assistants list, read, write, get denied and cancel in the soak",
    "tests/soak/clients.py",
)
def drive(site: Site, name: str) -> None:
    """Let one client do everything that the protocol offers; raise AssertionError at the first
    mistake."""
    secret = issue_key(site.workshop.operator, site.workshop.employee.pk, name, 30)[1]
    with KINDS[name].connect(f"{site.installation.url}/mcp", secret) as client:
        record = site.workshop.record(name=f"Of {name}", region="EU")
        names = client.list_tools()
        wrong = [each for each in names if not LEGAL_NAME.fullmatch(each)]
        assert not wrong, f"names that no model takes: {wrong}"
        for tool in (
            "data__searchRecords",
            "data__updateRecord",
            "gadget__ticket",
            "gadget__cancel",
        ):
            assert any(each.endswith(tool) for each in names), f"{tool} is not among {names}"
        read = client.call("data__searchRecords", {"region": "EU", "limit": 50})
        assert record.name in read, read
        _read_much(client)
        _write(site, client, record)
        _get_denied(site, client, record)
        _cancel(site, client, record)
    key = AgentKey.objects.get(name=name)
    calls = ToolCall.objects.filter(run__agent_run__key=key)
    assert not calls.exclude(
        status__in=(CallStatus.SUCCEEDED, CallStatus.DENIED, CallStatus.CANCELLED)
    ).exists()


def _read_much(client: Client) -> None:
    """Read a long list, and check that the result for the client's model has a bounded length."""
    said = client.call("data__searchRecords", {"region": "US", "limit": 50})
    assert "Listed" in said, said
    assert len(said) < 40_000, f"{len(said)} characters"


def _write(site: Site, client: Client, record: Record) -> None:
    ticket = _ask(client, record, "+49 1")
    site.workshop.approve(_find_card(ticket))
    done = client.call("gadget__ticket", {"ticket": ticket, "wait_s": 30})
    assert "+49 1" in done, done
    record.refresh_from_db()
    assert record.phone == "+49 1"


def _get_denied(site: Site, client: Client, record: Record) -> None:
    ticket = _ask(client, record, "+49 2")
    site.workshop.deny(_find_card(ticket), reason="Ask Ann first")
    done = client.call("gadget__ticket", {"ticket": ticket, "wait_s": 30})
    assert "Ask Ann first" in done, done
    record.refresh_from_db()
    assert record.phone == "+49 1"


def _cancel(site: Site, client: Client, record: Record) -> None:
    ticket = _ask(client, record, "+49 3")
    card = _find_card(ticket)
    done = client.call("gadget__cancel", {"ticket": ticket})
    assert "It did not run" in done, done
    await_that(
        lambda: Approval.objects.get(pk=card.pk).status == ApprovalStatus.CANCELLED,
        "the card is closed",
    )


def _ask(client: Client, record: Record, phone: str) -> str:
    """Request a write, and check that the model reads a ticket and the instructions for it; return
    the ticket."""
    said = client.call(
        "data__updateRecord", {"record_id": str(record.pk), "changes": {"phone": phone}}
    )
    assert GUIDANCE in said, said
    found = TICKET.search(said)
    assert found is not None, said
    return found[0]


def _find_card(ticket: str) -> Approval:
    return Approval.objects.get(
        tool_call_id=int(ticket.removeprefix("t-")), status=ApprovalStatus.PENDING
    )


if __name__ == "__main__":
    sys.exit(main())
