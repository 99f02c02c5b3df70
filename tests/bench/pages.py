"""The cost of pages over many rows, on PostgreSQL.

The pages are measured with 100,000 runs, a million calls and two million events, all of which have
been counted for the figures. Some pages are then measured again with a million runs and a million
audit entries.
"""

from __future__ import annotations

import statistics
import time
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connection, models
from django.db.backends.utils import CursorWrapper
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.accounts.models import AuditEntry, Membership, Role
from agents.insight import counting, metrics
from agents.insight.models import FiguresHead
from agents.runs.engine.loop import advance
from agents.runs.models import (
    Approval,
    ApprovalStatus,
    CallStatus,
    Event,
    ExitReason,
    Pass,
    Run,
    ToolCall,
)
from tests.bench.copying import copied, copying, insert
from tests.bench.figures import Figure, figure, rounds, say
from tests.bench.site import Worksite, passes_of_calls, worksite
from tools.office.records.models import Record

FEW = 12_000
"""The number of runs and of audit entries when queries are counted for the first time: more than
one page reads."""
RUNS = 100_000
MAX_RUNS = MAX_ENTRIES = 1_000_000
CALLS_A_RUN = 10
EVENTS_OF_A_LONG_RUN = 500
AIM_MS = 300.0
AIM_IDLE_MS = 20.0
PATIENCE_S = 20.0
COUNTING_PATIENCE_S = 300.0
WAITING = 200
MANY_WAITING, CARDS_A_RUN = 1_000, 20
PASSES, CALLS = 50, 5


def pages(repeats: int) -> list[Figure]:
    """Measure milliseconds and queries of each page, for a logged-in admin.

    Raises:
        AssertionError: a page sends more queries when there are more rows.
    """
    with worksite(passes_of_calls(PASSES, CALLS)) as site:
        short, long = _driven(site, CALLS_A_RUN), _driven(site, EVENTS_OF_A_LONG_RUN // 2)
        client = make_client(site)
        many, most = _with_many(long), _with_most(site)
        _multiply(short, FEW)
        _add_entries(short, FEW, "3 years")
        few = {path: _questions(client, path) for path in (*many.values(), *most.values())}
        began = time.monotonic()
        _multiply(short, RUNS - FEW)
        say(
            f"  {RUNS:,} runs with their calls and events were created in {time.monotonic() - began:.0f} s"
        )
        found = _counting(repeats)
        found += [
            each for name, path in many.items() for each in _cost(client, name, path, repeats)
        ]
        began = time.monotonic()
        _add_runs(short, MAX_RUNS - RUNS)
        _add_entries(short, MAX_ENTRIES - FEW, "2 years")
        say(
            f"  {MAX_RUNS:,} runs and {MAX_ENTRIES:,} entries were created in {time.monotonic() - began:.0f} s"
        )
        found += [
            each for name, path in most.items() for each in _cost(client, name, path, repeats)
        ]
        now = {path: _questions(client, path) for path in few}
        more = {path: (few[path], now[path]) for path in few if now[path] > few[path]}
        assert not more, f"pages send more queries when there are more rows: {more}"
        request_cards(
            site, MANY_WAITING - Approval.objects.filter(status=ApprovalStatus.PENDING).count()
        )
        found += _cost(client, f"approvals, {MANY_WAITING:,} waiting", "/approvals/", repeats)
    return found


def _with_many(long: Run) -> dict[str, str]:
    """Return the paths of the pages to measure with 100,000 runs, by the name of the figure."""
    return {
        "start": "/",
        "runs": "/runs/",
        "failed runs": "/runs/?status=failed",
        "approvals": "/approvals/",
        "history of approvals": "/approvals/?history=1",
        "history, a tool that nobody used": "/approvals/?history=1&tool=nobody.usedThis",
        "history, denied by one person": f"/approvals/?history=1&outcome=denied&by={long.created_by_id}",
        f"a run with {EVENTS_OF_A_LONG_RUN} events": f"/runs/{long.pk}/",
        "catalog of tools": "/tools/",
        "one employee": f"/employees/{long.employee_id}/",
        "trust in one employee": f"/employees/{long.employee_id}/trust/",
        "oversight": "/oversight/",
        "oversight, 90 days": "/oversight/?days=90",
        "tools over REST": "/api/tools",
    }


def _with_most(site: Worksite) -> dict[str, str]:
    """Return the paths of the pages to measure with a million runs and a million entries, by the
    name of the figure."""
    yesterday = timezone.now().date() - timedelta(days=1)
    return {
        "runs, of a million": "/runs/",
        "failed runs, of a million": "/runs/?status=failed",
        "runs of one employee, of a million": f"/runs/?employee={site.employee.pk}",
        "runs with a rare text, of a million": "/runs/?q=needle",
        "audit, of a million entries": "/audit/",
        "audit, a rare action": "/audit/?action=token_created",
        "audit, one person": "/audit/?actor=rare",
        "audit, an action of one person": "/audit/?actor=rare&action=call_started",
        "audit, up to a day": f"/audit/?to={yesterday}",
    }


def _counting(repeats: int) -> list[Figure]:
    """Measure a counting step, a counting step without new events, and a response of /metrics."""
    FiguresHead.objects.get_or_create(
        pk=FiguresHead.ONLY, defaults={"looked_at": timezone.now(), "due_at": timezone.now()}
    )
    began, steps, idle = time.monotonic(), [], []
    newest, counted = Event.objects.latest("pk").pk, -1
    while (reached := _counted()) < newest:
        assert time.monotonic() - began < COUNTING_PATIENCE_S, (
            f"counted up to {reached} of {newest}"
        )
        if reached == counted:
            time.sleep(0.05)  # another process is counting
        start = time.perf_counter()
        counting.count_batch()
        if _counted() > reached:
            steps.append(1000 * (time.perf_counter() - start))
        counted = reached
    say(f"  everything was counted in {len(steps)} steps and {time.monotonic() - began:.0f} s")
    told = []
    for _ in rounds(5 * repeats, PATIENCE_S):
        start = time.perf_counter()
        counting.count_batch()
        middle = time.perf_counter()
        metrics.render_metrics()
        idle.append(1000 * (middle - start))
        told.append(1000 * (time.perf_counter() - middle))
    return [
        figure(f"counting: a step of {counting.AT_ONCE:,} events", "ms", steps),
        figure("counting: nothing new", "ms", idle[1:], AIM_IDLE_MS),
        figure("response of /metrics", "ms", told[1:], AIM_MS),
    ]


def _counted() -> int:
    return FiguresHead.objects.get(pk=FiguresHead.ONLY).event_id


def _driven(site: Worksite, calls: int) -> Run:
    """Drive a run in this process until it has made this number of calls and is out of passes."""
    run, passes = site.submit(), max(1, calls // CALLS)
    Run.objects.filter(pk=run.pk).update(max_passes=passes)
    advance(run.pk)
    run.refresh_from_db()
    # Count only successful calls, because the closing pass's calls are rejected.
    succeeded = run.tool_calls.filter(status=CallStatus.SUCCEEDED)
    assert (run.exit_reason, succeeded.count()) == (ExitReason.MAX_PASSES, passes * CALLS)
    return run


def request_cards(site: Worksite, count: int) -> None:
    """Create this many different waiting cards, each about its own record."""
    records = Record.objects.bulk_create(
        Record(organization=site.member.organization, name=f"Waiting {number}")
        for number in range(count)
    )
    for at in range(0, count, CARDS_A_RUN):
        site.enqueue({"calls": [change_phone(record) for record in records[at : at + CARDS_A_RUN]]})
        advance(site.submit().pk)
    assert Approval.objects.filter(status=ApprovalStatus.PENDING).count() >= count


def change_phone(record: Record) -> dict[str, Any]:
    params = {"record_id": str(record.pk), "changes": {"phone": f"+1 555 {record.pk:05}"}}
    return {"tool": "data.updateRecord", "params": params}


def make_client(site: Worksite) -> Client:
    user = get_user_model().objects.create_user("reader")
    Membership.objects.create(organization=site.member.organization, user=user, role=Role.ADMIN)
    client = Client(headers={"host": "localhost"})
    client.force_login(user)
    return client


def _cost(client: Client, name: str, path: str, repeats: int) -> list[Figure]:
    """Measure a page; the first view is a separate figure, because later views find their rows in
    the cache."""
    took = []
    for _ in rounds(5 * repeats, PATIENCE_S):
        began = time.perf_counter()
        response = client.get(path)
        took.append(1000 * (time.perf_counter() - began))
        assert response.status_code == 200, f"{path}: {response.status_code}"
    say(f"  {path}: {statistics.median(took[1:]):.0f} ms, at first {took[0]:.0f} ms")
    return [
        figure(f"page: {name}", "ms", took[1:], AIM_MS),
        figure(f"page, first view: {name}", "ms", took[:1]),
        figure(f"page, queries: {name}", "", [_questions(client, path)]),
    ]


def _questions(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        assert client.get(path).status_code == 200, path
    return len(queries)


_OF_THE_COPYS_CALL = """
    CASE WHEN source.payload ? 'call_id' THEN jsonb_set(source.payload, '{call_id}', (
        SELECT to_jsonb(mine.id::text) FROM runs_toolcall original JOIN runs_toolcall mine
        ON (mine.run_id, mine.pass_number, mine.index) = (copies.id, original.pass_number, original.index)
        WHERE original.id = (source.payload->>'call_id')::bigint
    )) ELSE source.payload END
"""
"""The payload of a copied event: the id of the original call in it is replaced by the id of the
copied call."""


def _multiply(run: Run, count: int) -> None:
    """Copy the run with its passes, calls and events; every 5th copy has a decided card, and some
    copies have a waiting card."""
    with copying() as cursor:
        copies = f"copies.id > {_copy_runs(cursor, run, count)}"
        owned: tuple[type[models.Model], ...] = (Pass, ToolCall, Event)
        for model in owned:
            changed = {"run_id": "copies.id"}
            if model is ToolCall:
                changed |= {"idempotency_key": "gen_random_uuid()::text", "duplicate_of_id": "NULL"}
            if model is not Pass:
                changed["created_at"] = "copies.created_at"
            if model is Event:
                changed["payload"] = _OF_THE_COPYS_CALL
            source = f"{model._meta.db_table} source, runs_run copies"
            insert(
                cursor,
                copied(model, changed),
                model,
                f"{source} WHERE source.run_id = {run.pk} AND {copies}",
            )
        _add_cards(cursor, run, copies)


def _add_runs(run: Run, count: int) -> None:
    """Copy the run without its passes, calls and events."""
    with copying() as cursor:
        _copy_runs(cursor, run, count)


def _add_entries(run: Run, count: int, ago: str) -> None:
    """Add audit entries after the existing ones, half a minute apart, beginning this long ago."""
    entry = {
        "organization_id": str(run.organization_id),
        "seq": "newest + number",
        "actor": "CASE WHEN mod(number, 5000) = 0 THEN 'user:rare' ELSE 'user:reader' END",
        "action": "CASE mod(number, 7000) WHEN 0 THEN 'token_created' ELSE 'call_started' END",
        "subject": f"'run:{run.pk}'",
        "payload": "'{}'",
        "previous_hash": "''",
        "hash": "''",
        "key_id": "''",
        "at": f"now() - interval '{ago}' + number * interval '30 seconds'",
    }
    own = f"accounts_auditentry WHERE organization_id = {run.organization_id}"
    newest = f"(SELECT coalesce(max(seq), 0) AS newest FROM {own}) last"
    with copying() as cursor:
        insert(cursor, entry, AuditEntry, f"generate_series(1, {count}) number, {newest}")


def _copy_runs(cursor: CursorWrapper, run: Run, count: int) -> int:
    """Copy the run `count` times, a minute apart; return the newest id before the copies."""
    newest: int = Run.objects.order_by("-pk").values_list("pk", flat=True)[0]
    changed = {
        "title": "CASE WHEN mod(number, 5000) = 0 THEN 'needle' ELSE 'copy' END",
        "status": "CASE WHEN mod(number, 50) = 0 THEN 'failed' ELSE status END",
        "created_at": "now() - number * interval '1 minute'",
    }
    numbered = f"runs_run source, generate_series(1, {count}) number WHERE source.id = {run.pk}"
    insert(cursor, copied(Run, changed), Run, numbered)
    return newest


def _add_cards(cursor: CursorWrapper, run: Run, copies: str) -> None:
    """Add cards to the first call of some copies."""
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
        "why": "'this changes data'",
        "digest": "source.params_hash",
        "shape": "source.params_hash",
        "requested_at": "copies.created_at - interval '20 seconds'",
        "expires_at": "now() + interval '7 days'",
        "reason": "''",
        "decision_id": "''",
    }
    decided = {
        "status": "'consumed'",
        "decided_by_id": str(run.created_by_id),
        "decided_at": "copies.created_at",
    }
    first = (
        "runs_toolcall source, runs_run copies WHERE source.pass_number = 1 AND source.index = 0"
    )
    of_copies = f"{first} AND source.run_id = copies.id AND {copies}"
    insert(
        cursor,
        card | decided | {"consumed_at": "now()"},
        Approval,
        f"{of_copies} AND mod(copies.id, 5) = 0",
    )
    waiting = f"{of_copies} AND mod(copies.id, 5) = 1 ORDER BY copies.id DESC LIMIT {WAITING // 2}"
    insert(cursor, card | {"status": "'pending'"}, Approval, waiting)
