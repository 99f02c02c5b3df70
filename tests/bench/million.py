"""An installation after years of use: a million runs with eleven million events, and a card for
each run.

The engine drives ten runs, and these are copied in turn over half a year, for five employees and
five deciders; every 20th card was denied. The ids of copied rows are computed from the number of
the copy, so that no row has to be looked up.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db import models
from django.db.backends.utils import CursorWrapper
from django.test import Client

from agents.accounts.models import Membership, Role
from agents.approvals.decisions import Decision, approve, deny
from agents.employees.models import Employee, Grant
from agents.insight.decision_counts import count_decisions
from agents.runs.engine.loop import advance
from agents.runs.models import Approval, ApprovalStatus, Event, Message, Pass, Run, ToolCall
from tests.bench.copying import copied, copying, insert
from tests.bench.figures import Figure, figure, latency, rounds, say
from tests.bench.pages import make_client, request_cards
from tests.bench.site import TOOLS, Worksite, passes_of_calls, worksite
from tools.office.records.models import Record

AIM_MS = 200.0
PATIENCE_S = 10.0
LEAST_VIEWS = 12
"""The minimum number of views of a page. From the ninth execution on, PostgreSQL may use a plan
that does not depend on a statement's params."""
WAITING = 1_000
RUNS = 1_000_000
DAYS = 180
DENIED_EVERY = 20
SOURCES = 10
PEOPLE = EMPLOYEES = 5


def pages_after_years(repeats: int) -> list[Figure]:
    """Measure the pages and lists over a million runs, with their 95th percentiles, for a logged-in
    admin."""
    with worksite(passes_of_calls(1, 1)) as site:
        build(site)
        request_cards(site, WAITING)
        began = time.monotonic()
        count_decisions()
        say(f"  the decisions were counted in {time.monotonic() - began:.0f} s")
        client = make_client(site)
        found = [_measure(client, path, LEAST_VIEWS + repeats) for path in _list_paths(site)]
        began_s, views = time.process_time(), 10
        for _ in range(views):
            client.get(INBOX)
        cost = 1000 * (time.process_time() - began_s) / views
    return [
        *found,
        figure(f"{INBOX} with {WAITING:,} waiting: processor time", "ms", [cost], AIM_MS),
    ]


INBOX = "/approvals/"


def _list_paths(site: Worksite) -> list[str]:
    """List every page and REST list that shows many rows, including some with filters that match
    little or nothing."""
    employee = site.employee.pk
    run = Run.objects.filter(pk__gte=RUNS // 2).order_by("pk").values_list("pk", flat=True)[0]
    decider = User.objects.get(username="decider-0-0").pk
    return [
        *(
            "/",
            "/?live=1",
            "/stop/",
            "/employees/",
            "/tools/",
            "/users/",
            "/records/",
            "/notices/",
            "/simulator/",
        ),
        *("/oversight/", "/oversight/?days=90", "/oversight/export/?table=tools&days=90"),
        *("/grants/", f"/employees/{employee}/", f"/employees/{employee}/trust/"),
        *(
            INBOX,
            "/approvals/?card=5",
            "/approvals/?history=1",
            "/approvals/?history=1&tool=nobody.usedThis",
        ),
        *(
            "/approvals/?history=1&outcome=expired",
            f"/approvals/?history=1&outcome=denied&by={decider}",
        ),
        *(
            "/runs/",
            "/runs/?status=failed",
            "/runs/?q=nowhere",
            f"/runs/?employee={employee}&status=waiting",
        ),
        *(
            f"/runs/{run}/",
            f"/runs/{run}/replay/",
            "/search/?q=nowhere",
            "/audit/",
            "/agents/asks/",
            "/triggers/",
        ),
        *("/schedules/", "/webhooks/", "/api/runs", "/api/runs?q=needle", "/api/runs?q=nowhere"),
        *(f"/api/runs?employee_id={employee}&status=waiting", "/api/runs?status=failed&q=nowhere"),
        *("/api/approvals", "/api/approvals?status=pending", "/api/approvals?status=denied"),
        *(
            "/api/approvals?tool=nobody.usedThis",
            f"/api/approvals?employee_id={employee}",
            "/api/approvals?kind=question",
        ),
        *("/api/standing_grants", "/api/notices", "/api/asks", "/api/employees", "/api/tools"),
    ]


def _measure(client: Client, path: str, views: int) -> Figure:
    """Measure repeated views of a page, except the first view, which only fills the caches of the
    process."""
    took = []
    for _ in rounds(views, PATIENCE_S):
        began = time.perf_counter()
        response = client.get(path)
        took.append(time.perf_counter() - began)
        assert response.status_code == 200, f"{path}: {response.status_code}"
    return latency(f"a million runs: {path}", took[1:], AIM_MS)


def build(site: Worksite, runs: int = RUNS) -> None:
    """Fill the database with this many runs of the organization."""
    began = time.monotonic()
    employees, people = _employ(site), _add_people(site)
    sources = [_drive(site, people[place], place) for place in range(SOURCES)]
    with copying() as cursor:
        _number_sources(cursor, sources)
        _Copies(cursor, runs, employees, [person.user_id for person in people]).add_all()
    say(f"  {runs:,} runs were created in {time.monotonic() - began:.0f} s")


def _employ(site: Worksite) -> list[int]:
    """Hire more employees with the same tools; return the ids of all employees."""
    found = [site.employee.pk]
    for number in range(1, EMPLOYEES):
        other = Employee.objects.create(
            organization_id=site.employee.organization_id,
            name=f"Colleague {number}",
            provider_id=site.employee.provider_id,
            model="fake",
        )
        Grant.objects.bulk_create(Grant(employee=other, tool=name) for name in TOOLS)
        found.append(other.pk)
    return found


def _add_people(site: Worksite) -> list[Membership]:
    organization = site.member.organization
    users = [
        User.objects.create_user(f"decider-{number % PEOPLE}-{number}") for number in range(SOURCES)
    ]
    return [
        Membership.objects.create(organization=organization, user=user, role=Role.APPROVER)
        for user in users
    ]


def _drive(site: Worksite, decider: Membership, place: int) -> int:
    """Drive a run whose card is decided, and return its id. The card is approved, except that of
    the last of the ten runs, which is denied."""
    record = Record.objects.create(organization=site.member.organization, name=f"Company {place}")
    change: dict[str, Any] = (
        {"phone": f"+1 555 {place:05}"} if place % 2 else {"email": f"a{place}@example.com"}
    )
    call = {"tool": "data.updateRecord", "params": {"record_id": str(record.pk), "changes": change}}
    site.enqueue({"calls": [call]}, {"text": "Done."})
    run = site.submit()
    advance(run.pk)
    card = Approval.objects.get(run=run, status=ApprovalStatus.PENDING)
    (deny if place == SOURCES - 1 else approve)(decider, card.pk, Decision(card.digest))
    advance(run.pk)
    return run.pk


_OWNED: Mapping[type[models.Model], str] = {
    Pass: "number",
    ToolCall: "id",
    Approval: "id",
    Event: "seq",
    Message: "id",
}


_COPIED: tuple[type[models.Model], ...] = (Run, *_OWNED)


def _number_sources(cursor: CursorWrapper, sources: list[int]) -> None:
    """Copy the rows of the driven runs to temporary tables, with the number of the run and the
    row's place in that run."""
    for model in _COPIED:
        table = model._meta.db_table
        run = "id" if model is Run else "run_id"
        order = "id" if model is Run else _OWNED[model]
        places = ", ".join(f"({run_id}, {place})" for place, run_id in enumerate(sources))
        cursor.execute(
            f"CREATE TEMP TABLE source_{table} AS SELECT row.*, sources.turn, "
            f"row_number() OVER (PARTITION BY row.{run} ORDER BY row.{order}) - 1 AS place "
            f"FROM {table} row JOIN (VALUES {places}) sources(run_id, turn) ON sources.run_id = row.{run}"
        )
        cursor.execute(f"CREATE INDEX ON source_{table} (turn, place)")
        cursor.execute(f"ANALYZE source_{table}")


class _Copies:
    """The copies of the driven runs, from the oldest to the newest."""

    def __init__(
        self, cursor: CursorWrapper, runs: int, employees: list[int], people: list[int]
    ) -> None:
        self._cursor = cursor
        self._runs = runs
        self._employee = f"(ARRAY{employees})[1 + mod(nth / 7, {len(employees)})]"
        self._decider = f"(ARRAY{people})[1 + mod(nth / 11, {PEOPLE})]"
        self._at = (
            f"now() - ({runs} - nth) * interval '{DAYS * 24 * 3600 * 1000 // runs} milliseconds'"
        )
        self._turn = f"CASE WHEN mod(nth, {DENIED_EVERY}) = 0 THEN {SOURCES - 1} ELSE mod(nth, {SOURCES - 1}) END"
        self._first = {model: self._find_first(model) for model in _COPIED}
        self._many = {model: self._count_most(model) for model in _COPIED}

    def add_all(self) -> None:
        """Add the runs with all their rows."""
        run, call, at = self._number(Run), self._number(ToolCall), self._at
        varied = "jsonb_set(source.params, '{record_id}', to_jsonb(nth::text))"
        of_run = {"run_id": run, "created_at": at}
        self._add(
            Run,
            {
                "employee_id": self._employee,
                "created_at": at,
                "started_at": at,
                "finished_at": f"{at} + interval '1 minute'",
                "title": "CASE WHEN mod(nth, 5000) = 0 THEN 'needle' ELSE 'Do the work ' || nth END",
                "status": "CASE WHEN mod(nth, 50) = 1 THEN 'failed' ELSE source.status END",
            },
        )
        self._add(Message, of_run)
        self._add(Pass, of_run)
        unique = {"idempotency_key": "gen_random_uuid()::text"}
        self._add(ToolCall, of_run | unique | {"params": varied, "started_at": at})
        asked = f"{at} + interval '5 seconds'"
        decided = f"{at} + (7 + mod(nth, 30)) * interval '1 second'"
        decision = {"decided_by_id": self._decider, "decided_at": decided, "requested_at": asked}
        self._add(Approval, {"run_id": run, "tool_call_id": call, "params": varied} | decision)
        own_call = f"source.payload || jsonb_build_object('call_id', ({call})::text)"
        payload = f"CASE WHEN source.payload ? 'call_id' THEN {own_call} ELSE source.payload END"
        self._add(Event, of_run | {"payload": payload})

    def _add(self, model: type[models.Model], changed: dict[str, str]) -> None:
        table = model._meta.db_table
        each = f"SELECT * FROM source_{table} source WHERE source.turn = {self._turn} ORDER BY source.place"
        source = f"generate_series(1, {self._runs}) nth CROSS JOIN LATERAL ({each}) source"
        began = time.monotonic()
        insert(
            self._cursor,
            copied(model, {"id": self._number(model, "source.place"), **changed}, with_id=True),
            model,
            source,
        )
        newest = f"setval(pg_get_serial_sequence('{table}', 'id'), (SELECT max(id) FROM {table}))"
        self._cursor.execute(f"SELECT {newest}")
        say(f"  {table}: {time.monotonic() - began:.0f} s")

    def _number(self, model: type[models.Model], place: str = "0") -> str:
        """Return the expression for the id of the copied row with this place in its run, the first
        one by default."""
        return f"{self._first[model]} + (nth - 1)::bigint * {self._many[model]} + {place}"

    def _find_first(self, model: type[models.Model]) -> int:
        return int(model._default_manager.aggregate(newest=models.Max("pk"))["newest"]) + 1

    def _count_most(self, model: type[models.Model]) -> int:
        self._cursor.execute(f"SELECT max(place) + 1 FROM source_{model._meta.db_table}")
        return int(self._cursor.fetchone()[0])
