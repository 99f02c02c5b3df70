"""MCP servers as an organization's sources, from the listing of their tools to a call in a run: one
is a published server, and another changes its definitions."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models.functions import Now

from agents.employees import sources
from agents.employees.due import select_due_sources
from agents.employees.sources import REFRESH_AFTER, queue_refresh, refresh_source_by_id
from agents.worker.sweeper import sweep_once
from tests.features import feature
from tests.tools.connections.connecting import (
    MISBEHAVING,
    TIME_SERVER,
    connect_program,
    generation,
    grant,
    offer,
    row_of,
    take,
)
from tests.workshop import Workshop, all_at_once, asking, call, calls, data_of, error_code, statuses
from tools.connections.changes import record_problem
from tools.connections.models import Source, SourceKind, SourceTool
from tools.contract import Level

pytestmark = pytest.mark.django_db(transaction=True)

NOW = "time.get_current_time"


class TestAPublishedServer:
    @pytest.fixture
    def source(self, workshop: Workshop) -> Source:
        return connect_program(workshop, TIME_SERVER)

    def test_has_tools_that_stay_in_quarantine_until_they_have_levels(
        self, workshop: Workshop, source: Source
    ) -> None:
        rows = SourceTool.objects.filter(source=source).order_by("tool")
        assert [row.tool for row in rows] == ["time.convert_time", NOW]
        assert all(row.is_quarantined and not row.is_chosen for row in rows)
        assert (source.title, source.problem) == ("mcp-time", "")
        grant(workshop, NOW)
        workshop.play(asking(call(NOW, timezone="UTC")))
        run = workshop.work()
        assert (statuses(run), error_code(calls(run)[0])) == (["rejected"], "TOOL_NOT_FOUND")

    def test_is_called_in_a_run_at_the_configured_level(
        self, workshop: Workshop, source: Source
    ) -> None:
        offer(workshop, source, NOW, level=Level.READ)
        workshop.play(asking(call(NOW, timezone="Asia/Tokyo")))
        run = workshop.work()
        assert statuses(run) == ["succeeded"]
        assert data_of(calls(run)[0])["timezone"] == "Asia/Tokyo"
        take(source, NOW, level=Level.WRITE)
        run = workshop.work()
        assert statuses(run) == ["awaiting_approval"]
        workshop.approve(workshop.card(run))
        assert statuses(workshop.drive(run)) == ["succeeded"]


class TestTheHourlyRefresh:
    @pytest.fixture
    def definitions(self, tmp_path: Path) -> Path:
        file = tmp_path / "definitions.json"
        say(file, "Keeps a note.")
        return file

    @pytest.fixture
    def source(self, workshop: Workshop, definitions: Path) -> Source:
        source = connect_program(
            workshop, [sys.executable, str(MISBEHAVING), f"definitions={definitions}"], "notes"
        )
        offer(workshop, source, "notes.keep", level=Level.READ)
        return source

    @feature(
        "Connected sources",
        "A call of a quarantined, missing or disabled tool gets the reason",
        "tools/connections/connected_tools.py",
    )
    def test_quarantines_changed_tools_and_the_next_call_reports_it(
        self, workshop: Workshop, source: Source, definitions: Path
    ) -> None:
        workshop.play(asking(call("notes.keep")))
        assert statuses(workshop.work()) == ["succeeded"]
        say(definitions, "Keeps a note, and tells the world.")
        # The new definition has not been read yet.
        assert statuses(workshop.work()) == ["succeeded"]
        make_due(source)
        refresh_source_by_id(source.pk)
        run = workshop.work()
        (row,) = calls(run)
        assert (row.status, error_code(row)) == ("rejected", "TOOL_NOT_FOUND")
        assert "an admin must accept it" in row.content

    @feature(
        "Connected sources",
        "One of many workers refreshes the servers every hour",
        "agents/employees/sources.py",
    )
    def test_is_due_an_hour_after_the_last_refresh_and_queued_by_only_one_sweeper(
        self, workshop: Workshop, source: Source
    ) -> None:
        assert list(select_due_sources()) == []
        make_due(source)
        claimed: list[bool] = []
        all_at_once([lambda: claimed.append(queue_refresh(source.pk)) for _ in range(4)])
        assert sorted(claimed) == [False, False, False, True]
        assert list(select_due_sources()) == []
        refresh_source_by_id(source.pk)
        source.refresh_from_db()
        late = Source.objects.filter(due_at__gt=Now() + REFRESH_AFTER - timedelta(minutes=1))
        assert late.filter(pk=source.pk).exists()

    def test_is_queued_again_if_the_worker_was_lost(
        self, workshop: Workshop, source: Source
    ) -> None:
        make_due(source)
        assert queue_refresh(source.pk)
        Source.objects.filter(pk=source.pk).update(due_at=Now() - timedelta(seconds=1))
        assert sweep_once() >= 1
        assert list(select_due_sources()) == []

    def test_is_not_delayed_by_a_connection_test(self, workshop: Workshop, source: Source) -> None:
        make_due(source)
        assert not sources.check_source(source).problem
        record_problem(source, "")
        assert list(select_due_sources()) == [source]

    def test_keeps_the_earlier_tools_and_reports_the_reason_if_it_fails(
        self, workshop: Workshop, source: Source, definitions: Path
    ) -> None:
        before = generation(workshop.organization)
        definitions.write_text("no list")
        make_due(source)
        refresh_source_by_id(source.pk)
        source.refresh_from_db()
        assert source.problem
        assert row_of(source, "notes.keep").state == "offered"
        assert generation(workshop.organization) == before
        assert list(select_due_sources()) == []

    def test_covers_only_active_servers(self, workshop: Workshop, source: Source) -> None:
        make_due(source)
        values = {"name": "crm", "address": "https://example.com/x", "refreshed_at": Now()}
        Source.objects.create(organization=workshop.organization, kind=SourceKind.OPENAPI, **values)
        Source.objects.filter(pk=source.pk).update(is_active=False)
        assert list(select_due_sources()) == []
        refresh_source_by_id(source.pk)
        refresh_source_by_id(10**6)
        assert row_of(source, "notes.keep").state == "offered"


class TestAnApiThatWasNeverRead:
    @feature(
        "Connected sources",
        "A source whose first import was lost is imported again automatically",
        "agents/employees/sources.py",
    )
    def test_is_read_automatically_unless_it_had_a_problem(self, workshop: Workshop) -> None:
        """The job for the first import may have been lost before a worker got it."""
        values = {"name": "crm", "address": "https://example.com/x"}
        source = Source.objects.create(
            organization=workshop.organization, kind=SourceKind.OPENAPI, **values
        )
        assert list(select_due_sources()) == [source]
        assert queue_refresh(source.pk)
        make_due(source)
        record_problem(source, "It answers with 404.")
        assert list(select_due_sources()) == []


def say(definitions: Path, text: str) -> None:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    definitions.write_text(
        json.dumps([{"name": "keep", "description": text, "inputSchema": schema}])
    )


def make_due(source: Source) -> None:
    Source.objects.filter(pk=source.pk).update(due_at=Now())
