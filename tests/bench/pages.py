"""What pages cost the server when there is much: 100,000 runs, a million calls and two million events."""

from __future__ import annotations

import statistics
import time

from django.contrib.auth import get_user_model
from django.db import connection, models
from django.db.backends.utils import CursorWrapper
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.engine.loop import advance
from agents.models import Approval, Event, Membership, Pass, Role, Run, ToolCall
from tests.bench.figures import Figure, figure, rounds, say
from tests.bench.site import Worksite, passes_of_calls, succeeded, worksite

RUNS = 100_000
CALLS_A_RUN = 10
EVENTS_OF_A_LONG_RUN = 500
AIM_MS = 300.0
PATIENCE_S = 20.0
COPIES = "copies.title = 'copy'"
WAITING = 200
PASSES, CALLS = 50, 5


def pages(repeats: int, runs: int = RUNS) -> list[Figure]:
    """Milliseconds and queries of each page, asked for by an approver who is logged in."""
    with worksite(passes_of_calls(PASSES, CALLS)) as site:
        short, long = _driven(site, CALLS_A_RUN), _driven(site, EVENTS_OF_A_LONG_RUN // 2)
        began = time.monotonic()
        _multiply(short, runs)
        say(f"  {runs:,} runs with their calls and events were made in {time.monotonic() - began:.0f} s")
        client = _client(site)
        addresses = {
            "start": "/",
            "runs": "/runs/",
            "runs that failed": "/runs/?status=failed",
            "approvals": "/approvals/",
            "decided approvals": "/approvals/?history=1",
            f"a run with {EVENTS_OF_A_LONG_RUN} events": f"/runs/{long.pk}/",
        }
        return [each for name, path in addresses.items() for each in _cost(client, name, path, repeats)]


def _driven(site: Worksite, calls: int) -> Run:
    """A run that made so many calls, driven in this process."""
    run = site.submit()
    Run.objects.filter(pk=run.pk).update(max_passes=max(1, calls // CALLS))
    advance(run.pk)
    return succeeded(run.pk)


def _client(site: Worksite) -> Client:
    user = get_user_model().objects.create_user("reader")
    Membership.objects.create(organization=site.member.organization, user=user, role=Role.APPROVER)
    client = Client(headers={"host": "localhost"})
    client.force_login(user)
    return client


def _cost(client: Client, name: str, path: str, repeats: int) -> list[Figure]:
    took, asked = [], []
    for number in rounds(5 * repeats, PATIENCE_S):
        began = time.perf_counter()
        answer = client.get(path)
        if number:
            took.append(1000 * (time.perf_counter() - began))
        assert answer.status_code == 200, f"{path}: {answer.status_code}"
    with CaptureQueriesContext(connection) as queries:
        client.get(path)
    asked.append(len(queries))
    say(f"  {path}: {statistics.median(took):.0f} ms")
    return [figure(f"page: {name}", "ms", took, AIM_MS), figure(f"queries of the page: {name}", "", asked)]


def _multiply(run: Run, count: int) -> None:
    """Copies of the run with its passes, calls and events, a minute apart; every 20th has a decided card, 200 wait."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")  # no look at the other table for each key
        _copy_runs(cursor, run, count)
        owned: tuple[type[models.Model], ...] = (Pass, ToolCall, Event)
        for model in owned:
            changed = {"run_id": "copies.id"}
            if model is ToolCall:
                changed |= {"idempotency_key": "gen_random_uuid()::text", "duplicate_of_id": "NULL"}
                changed["created_at"] = "copies.created_at"
            source = f"{model._meta.db_table} source, agents_run copies"
            _insert(cursor, _copied(model, changed), model, f"{source} WHERE source.run_id = {run.pk} AND {COPIES}")
        _add_cards(cursor, run)
        cursor.execute("SET session_replication_role = origin")
        cursor.execute("ANALYZE")


def _copy_runs(cursor: CursorWrapper, run: Run, count: int) -> None:
    changed = {
        "title": "'copy'",
        "status": "CASE WHEN mod(number, 50) = 0 THEN 'failed' ELSE status END",
        "created_at": "now() - number * interval '1 minute'",
    }
    numbered = f"agents_run source, generate_series(1, {count}) number WHERE source.id = {run.pk}"
    _insert(cursor, _copied(Run, changed), Run, numbered)


def _add_cards(cursor: CursorWrapper, run: Run) -> None:
    """On the first call of each run that gets one."""
    card = {
        "organization_id": "source.organization_id",
        "run_id": "source.run_id",
        "tool_call_id": "source.id",
        "sequence": "1",
        "kind": "'approval'",
        "level": "'write'",
        "params": "source.params",
        "sentence": "'Update a record'",
        "preview": """'{"effect": "update", "targets": [], "total": 0, "reversible": true}'""",
        "why": "'write level'",
        "digest": "source.params_hash",
        "expires_at": "now() + interval '7 days'",
        "reason": "''",
        "decision_id": "''",
    }
    decided = {"status": "'consumed'", "decided_by_id": str(run.created_by_id), "decided_at": "copies.created_at"}
    first = "agents_toolcall source, agents_run copies WHERE source.pass_number = 1 AND source.index = 0"
    of_copies = f"{first} AND source.run_id = copies.id AND {COPIES}"
    _insert(cursor, card | decided | {"consumed_at": "now()"}, Approval, f"{of_copies} AND mod(copies.id, 20) = 0")
    waiting = f"{of_copies} AND mod(copies.id, 20) = 1 ORDER BY copies.id DESC LIMIT {WAITING}"
    _insert(cursor, card | {"status": "'pending'"}, Approval, waiting)


def _insert(cursor: CursorWrapper, values: dict[str, str], model: type[models.Model], source: str) -> None:
    names = ", ".join(f'"{column}"' for column in values)
    cursor.execute(f"INSERT INTO {model._meta.db_table} ({names}) SELECT {', '.join(values.values())} FROM {source}")


def _copied(model: type[models.Model], changed: dict[str, str]) -> dict[str, str]:
    """Every column of the source but its own key, some of them changed."""
    columns = [str(field.column) for field in model._meta.concrete_fields if not field.primary_key]
    return {column: changed.get(column, f'source."{column}"') for column in columns}
