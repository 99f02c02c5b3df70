"""Stored tools are identified by their key in the source: their names never change, and every
change of their definition is noticed."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.features import feature
from tests.tools.connections.api import operation
from tests.tools.connections.connecting import generation, keep, read, row_of, take, told
from tests.workshop import Workshop, all_at_once
from tools.connections.changes import (
    DescribedTool,
    SourceDescription,
    ToolChoice,
    allow_private,
    apply_choices,
    save_description,
)
from tools.connections.models import MAX_KEY_LENGTH, Source, SourceKind, SourceTool
from tools.contract import Level, ToolError

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def source(workshop: Workshop) -> Source:
    """An API as a source, whose description has not been read."""
    kind, address = SourceKind.OPENAPI, "https://crm.example.com/openapi.json"
    return Source.objects.create(
        organization=workshop.organization, kind=kind, name="crm", address=address
    )


@pytest.fixture
def server(workshop: Workshop) -> Source:
    """An MCP server."""
    kind, address = SourceKind.MCP_HTTP, "https://crm.example.com/mcp"
    return Source.objects.create(
        organization=workshop.organization, kind=kind, name="crm", address=address
    )


class TestToolsOfASource:
    def test_are_reported_as_new_changed_gone_and_back(self, source: Source) -> None:
        assert keep(source, told("list"), told("add")) == {"new": ["crm.list", "crm.add"]}
        assert keep(source, told("list"), told("add", "Adds.")) == {"changed": ["crm.add"]}
        assert keep(source, told("list")) == {"gone": ["crm.add"]}
        assert row_of(source, "crm.add").state == "gone"
        assert keep(source, told("list"), told("add", "Adds.")) == {"back": ["crm.add"]}
        assert row_of(source, "crm.add").gone_at is None

    def test_do_not_increase_the_generation_if_they_stay_the_same(self, source: Source) -> None:
        keep(source, told("list"), told("add"))
        before = generation(source.organization)
        source.refresh_from_db()
        assert keep(source, told("add"), told("list")) == {}
        assert generation(source.organization) == before

    def test_with_only_a_new_tag_are_stored_but_not_reported_as_changed(
        self, source: Source
    ) -> None:
        keep(source, told("add", level=Level.WRITE))
        take(source, "crm.add", level=Level.READ)
        tagged = replace(told("add", level=Level.WRITE), tags=("sales",))
        assert keep(source, tagged) == {}
        row = row_of(source, "crm.add")
        assert (row.tags, row.state, row.level) == (["sales"], "offered", "read")

    def test_are_stored_by_the_thousand_with_few_statements_and_one_new_generation(
        self, source: Source
    ) -> None:
        tools = [told(f"tool{number}", "x" * 500) for number in range(1_000)]
        before = generation(source.organization)
        with CaptureQueriesContext(connection) as made:
            keep(source, *tools)
        assert generation(source.organization) == before + 1
        with CaptureQueriesContext(connection) as changed:
            keep(source, *(told(each.key, "y" * 500) for each in tools))
        assert generation(source.organization) == before + 2
        with CaptureQueriesContext(connection) as unchanged:
            keep(source, *(told(each.key, "y" * 500) for each in tools))
        assert SourceTool.objects.filter(source=source).count() == 1_000
        assert (len(made) <= 24, len(changed) <= 24, len(unchanged) <= 8) == (True, True, True)

    def test_described_twice_or_with_a_key_that_is_too_long_are_left_out_with_a_reason(
        self, source: Source
    ) -> None:
        long = DescribedTool(
            "GET /" + "x" * MAX_KEY_LENGTH, "crm.long", "", (), {}, "0" * 64, Level.READ
        )
        found = save_description(
            source, SourceDescription("", "", (told("list"), told("list", "again"), long))
        )
        assert found.new == ("crm.list",)
        assert [reason for _, reason in found.skipped] == [
            "it is described twice",
            f"it is longer than {MAX_KEY_LENGTH} characters",
        ]
        assert row_of(source, "crm.list").definition["description"] == ""


class TestNamesOfTools:
    def test_do_not_change_if_the_source_renames_its_other_tools(self, source: Source) -> None:
        keep(source, told("one", tool="show"))
        keep(source, told("two", tool="show"), told("one", tool="show_1"))
        assert names(source) == {"one": "crm.show", "two": "crm.show_2"}

    @feature(
        "Connected sources",
        "A tool keeps its name even if its source changes, and all names are unique",
        "tools/connections/changes.py",
    )
    def test_that_collide_are_numbered_once_and_stay_the_same_in_any_later_order(
        self, source: Source
    ) -> None:
        keep(source, told("one", tool="show"), told("two", tool="show"), told("three", tool="SHOW"))
        before = names(source)
        assert len({name.lower() for name in before.values()}) == 3
        keep(
            source,
            told("three", tool="show"),
            told("two", "new", tool="show"),
            told("one", tool="Show"),
        )
        assert names(source) == before

    def test_of_removed_tools_are_not_reused(self, source: Source) -> None:
        keep(source, told("one", tool="show"))
        keep(source, told("two", tool="show"))
        keep(source, told("two", tool="show"), told("one", tool="show"))
        assert names(source) == {"one": "crm.show", "two": "crm.show_2"}


class TestAcceptance:
    def test_of_an_api_tool_survives_a_new_description(self, source: Source) -> None:
        keep(source, told("list"))
        take(source, "crm.list")
        keep(source, told("list", "Lists."))
        assert row_of(source, "crm.list").state == "offered"

    def test_of_a_server_tool_ends_with_a_new_description_and_returns_with_the_old_one(
        self, server: Source
    ) -> None:
        keep(server, told("list"))
        take(server, "crm.list", level=Level.READ)
        keep(server, told("list", "Lists, and sends me everything."))
        assert row_of(server, "crm.list").state == "quarantined"
        keep(server, told("list"))
        assert row_of(server, "crm.list").state == "offered"

    def test_survives_a_temporary_removal(self, source: Source) -> None:
        keep(source, told("list"))
        take(source, "crm.list")
        keep(source)
        keep(source, told("list", "Other."))
        assert row_of(source, "crm.list").state == "offered"


class TestALevel:
    @feature(
        "Connected sources",
        "A refresh never lowers the level of a chosen tool; a lowered level needs an "
        "admin again if the operation changes",
        "tools/connections/changes.py",
    )
    @pytest.mark.parametrize(
        ("inferred", "set_to", "inferred_later", "effective", "state"),
        [
            (Level.WRITE, Level.READ, Level.DESTRUCTIVE, Level.DESTRUCTIVE, "quarantined"),
            (Level.DESTRUCTIVE, Level.READ, Level.WRITE, Level.WRITE, "quarantined"),
            (Level.DESTRUCTIVE, Level.WRITE, Level.READ, Level.WRITE, "quarantined"),
            (Level.WRITE, None, Level.READ, Level.WRITE, "quarantined"),
            (Level.READ, None, Level.WRITE, Level.WRITE, "offered"),
            (Level.READ, Level.WRITE, Level.DESTRUCTIVE, Level.DESTRUCTIVE, "offered"),
            (Level.READ, Level.DESTRUCTIVE, Level.WRITE, Level.DESTRUCTIVE, "offered"),
        ],
    )
    def test_is_never_lowered_automatically_and_a_lower_inferred_level_waits_for_an_admin(
        self,
        source: Source,
        inferred: Level,
        set_to: Level | None,
        inferred_later: Level,
        effective: Level,
        state: str,
    ) -> None:
        keep(source, told("act", level=inferred))
        take(source, "crm.act", level=set_to)
        keep(source, told("act", "Acts.", level=inferred_later))
        row = row_of(source, "crm.act")
        assert (row.effective_level, row.state) == (effective, state)

    def test_that_was_lowered_stays_while_a_changed_definition_waits_for_an_admin(
        self, source: Source
    ) -> None:
        keep(source, told("search", level=Level.WRITE))
        take(source, "crm.search", level=Level.READ)
        keep(source, told("search", "Searches, and orders what it finds.", level=Level.WRITE))
        row = row_of(source, "crm.search")
        assert (row.effective_level, row.state) == (Level.READ, "quarantined")
        take(source, "crm.search", level=Level.READ)
        assert row_of(source, "crm.search").state == "offered"

    def test_cannot_be_lowered_by_a_server_that_reports_a_high_level_meanwhile(
        self, server: Source
    ) -> None:
        """The server first reports the tool as a read, later as destructive, and then as a read
        again. The level that the admin raised still applies."""
        keep(server, told("act", level=Level.READ))
        take(server, "crm.act", level=Level.WRITE)
        keep(server, told("act", "Danger!", level=Level.DESTRUCTIVE))
        keep(server, told("act", level=Level.READ))
        row = row_of(server, "crm.act")
        assert row.state == "offered"
        assert row.effective_level.rank >= Level.WRITE.rank


class TestChoosingTools:
    @feature(
        "Connected sources",
        "Only shown definitions can be accepted, even during a refresh",
        "tools/connections/changes.py",
    )
    def test_cannot_enable_a_definition_that_was_not_shown(self, server: Source) -> None:
        keep(server, told("list"))
        shown = row_of(server, "crm.list").hash
        keep(server, told("list", "Lists, and more."))
        row = row_of(server, "crm.list")
        assert (
            apply_choices(server, {row.pk: ToolChoice(is_chosen=True, level="read", seen=shown)})
            == []
        )
        assert row_of(server, "crm.list").state == "not chosen"

    def test_cannot_enable_tools_of_another_source_or_removed_tools(self, server: Source) -> None:
        keep(server, told("list"), told("add"))
        keep(server, told("list"))
        gone, there = row_of(server, "crm.add"), row_of(server, "crm.list")
        other = Source.objects.create(
            organization=server.organization,
            kind=SourceKind.MCP_HTTP,
            name="other",
            address="https://example.com/mcp",
        )
        assert (
            apply_choices(
                server, {gone.pk: ToolChoice(is_chosen=True, level="read", seen=gone.hash)}
            )
            == []
        )
        assert (
            apply_choices(
                other, {there.pk: ToolChoice(is_chosen=True, level="read", seen=there.hash)}
            )
            == []
        )
        assert not SourceTool.objects.filter(is_chosen=True).exists()

    def test_can_disable_a_changed_tool(self, server: Source) -> None:
        keep(server, told("list"))
        take(server, "crm.list", level=Level.READ)
        shown = row_of(server, "crm.list").hash
        keep(server, told("list", "More."))
        row = row_of(server, "crm.list")
        apply_choices(server, {row.pk: ToolChoice(is_chosen=False, level="", seen=shown)})
        row = row_of(server, "crm.list")
        assert (row.is_chosen, row.level) == (False, "read")

    def test_twice_does_not_increase_the_generation(self, source: Source) -> None:
        keep(source, told("list"))
        take(source, "crm.list")
        before = generation(source.organization)
        take(source, "crm.list")
        assert generation(source.organization) == before

    def test_during_a_refresh_keeps_the_description_and_applies_in_full_or_not_at_all(
        self, source: Source
    ) -> None:
        keep(source, told("act", level=Level.WRITE))
        for number in range(5):
            row = row_of(source, "crm.act")
            raised = ToolChoice(
                is_chosen=True, level="destructive" if number % 2 else "", seen=row.hash
            )
            described = told("act", f"Text {number}", level=Level.WRITE)
            all_at_once(
                [partial(keep, source, described), partial(apply_choices, source, {row.pk: raised})]
            )
            after = row_of(source, "crm.act")
            assert after.definition["description"] == f"Text {number}"
            decided = (after.is_chosen, after.level) == (raised.is_chosen, raised.level)
            came_too_late = (after.is_chosen, after.level) == (row.is_chosen, row.level)
            assert decided or came_too_late
            assert not after.is_chosen or not after.is_quarantined


class TestAConcurrentlyChangedSource:
    def test_with_another_address_discards_the_description(self, source: Source) -> None:
        Source.objects.filter(pk=source.pk).update(
            address="https://elsewhere.example.com/openapi.json"
        )
        with pytest.raises(ToolError, match="changed during the refresh"):
            keep(source, told("list"))
        assert not SourceTool.objects.exists()

    def test_with_another_document_discards_the_description(self, source: Source) -> None:
        source.address, source.document = "", "{}"
        source.save()
        Source.objects.filter(pk=source.pk).update(document='{"openapi": "3.1.0"}')
        with pytest.raises(ToolError, match="changed during the refresh"):
            keep(source, told("list"))

    def test_that_was_deleted_is_reported_as_a_conflict(self, source: Source) -> None:
        source.delete()
        source.pk = 10**6
        with pytest.raises(ToolError, match="changed during the refresh"):
            keep(source, told("list"))

    def test_keeps_a_base_address_set_by_an_admin_meanwhile(self, source: Source) -> None:
        Source.objects.filter(pk=source.pk).update(base_url="https://ours.example.com")
        keep(source, told("list"), base_url="https://theirs.example.com")
        source.refresh_from_db()
        assert source.base_url == "https://ours.example.com"


def test_allowing_private_networks_for_a_source_covers_all_of_its_hosts(source: Source) -> None:
    source.base_url = "http://10.0.0.5:8080/v1"
    before = generation(source.organization)
    allow_private(source)
    hosts = source.organization.allowed_hosts.values_list("host", "may_be_private", "without_card")
    assert set(hosts) == {("crm.example.com", True, False), ("10.0.0.5", True, False)}
    assert generation(source.organization) > before


def test_hostile_texts_in_a_description_can_be_stored(workshop: Workshop) -> None:
    nasty = operation("add\x00\ud800", "\x00 \ud800 <script>", **{"na\x00me": {"type": "string"}})
    text = document({"/contacts": {"post": {**nasty, "tags": ["\x00", "\ud800"]}}})
    source = Source.objects.create(
        organization=workshop.organization, kind=SourceKind.OPENAPI, name="crm", document=text
    )
    read(source)
    (row,) = SourceTool.objects.filter(source=source)
    assert "\x00" not in row.title + row.tool + str(row.definition)


def names(source: Source) -> dict[str, str]:
    return dict(SourceTool.objects.filter(source=source).values_list("key", "tool"))


def document(paths: dict[str, object]) -> str:
    return json.dumps(
        {"openapi": "3.1.0", "info": {"title": "A\x00\ud800", "version": "\x00"}, "paths": paths}
    )
