"""The catalog: every tool with its level, params, users and figures, found by category, level and text."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client

from agents.desk.schema_table import params_of
from agents.engine.toolbox import installed_toolbox
from agents.models import CallStatus, RunStatus, ToolCall
from agents.views import tools
from tests.web.world import DELETE, SEARCH, UPDATE, World, make_world

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    return make_world()


def text_of(client: Client, query: str = "") -> str:
    answer = client.get(f"/tools/{query}")
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def entry(html: str, tool: str) -> str:
    return html.partition(f'<code class="small">{tool}</code>')[2].partition("</details></li>")[0]


def test_every_tool_is_there_with_its_level(world: World) -> None:
    html = text_of(world.client("viewer"))
    for tool in installed_toolbox().tools():
        assert f'<code class="small">{tool.name}</code>' in html
    assert 'class="level destructive"' in html


def test_it_says_what_a_tool_takes_and_who_may_use_it(world: World) -> None:
    update = entry(text_of(world.client("viewer")), UPDATE)
    for part in ("changes.status", "one of active, inactive, pending", "required", "JSON schema", "every mode"):
        assert part in update
    assert f'<a href="/employees/{world.employee.pk}/">Dana</a>' in update
    assert "No employee." in entry(text_of(world.client("outsider")), UPDATE)


@pytest.mark.parametrize(
    ("query", "there", "not_there"),
    [
        ("?level=destructive", DELETE, SEARCH),
        ("?category=data", SEARCH, "utility.now"),
        ("?q=delete+RECORDS", DELETE, SEARCH),
        ("?level=read&category=data&q=search", SEARCH, UPDATE),
        ("?after=data.searchRecords@1.0", UPDATE, SEARCH),
    ],
)
def test_it_is_filtered_by_category_level_and_text(world: World, query: str, there: str, not_there: str) -> None:
    html = text_of(world.client("viewer"), query)
    assert f'<code class="small">{there}</code>' in html
    assert f'<code class="small">{not_there}</code>' not in html


def test_what_nothing_fits_is_said(world: World) -> None:
    for query in ("?q=zzz", "?level=nonsense", "?category=%00", "?after=zzz"):
        assert "No tool fits" in text_of(world.client("viewer"), query)


def test_a_large_catalog_goes_on_behind_its_cursor(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "PAGE_SIZE", 2)
    ids = sorted(installed_toolbox().tools(), key=lambda tool: (tool.category, tool.id))
    html = text_of(world.client("viewer"))
    assert html.count('class="tool surface"') == 2
    assert f"after={ids[1].id.replace('@', '%40')}" in html
    assert f'<code class="small">{ids[2].name}</code>' in text_of(world.client("viewer"), f"?after={ids[1].id}")


class TestFigures:
    def test_they_count_what_started_and_ended_here_lately(self, world: World) -> None:
        run = world.run(RunStatus.SUCCEEDED)
        for duration in (10, 20, 300):
            world.call(run, duration_ms=duration)
        world.call(run, status=CallStatus.FAILED, duration_ms=20)
        world.call(run, status=CallStatus.DENIED, duration_ms=None)
        old = world.call(run)
        ToolCall.objects.filter(pk=old.pk).update(created_at=Now() - timedelta(days=31))
        html = entry(text_of(world.client("viewer")), SEARCH)
        for part in ("4 calls", "1 failed", "half within 20 ms", "95 % within 258 ms"):
            assert part in html
        assert "not called" in entry(text_of(world.client("outsider")), SEARCH)

    def test_only_the_newest_calls_are_read(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tools, "MOST_COUNTED", 3)
        run = world.run(RunStatus.SUCCEEDED)
        for _ in range(5):
            world.call(run)
        assert "3 calls" in entry(text_of(world.client("viewer")), SEARCH)

    def test_the_page_asks_few_questions(self, world: World, django_assert_max_num_queries: Any) -> None:
        run = world.run(RunStatus.SUCCEEDED)
        for _ in range(20):
            world.call(run)
        client = world.client("viewer")
        text_of(client)
        with django_assert_max_num_queries(7):
            text_of(client)


class TestParams:
    def test_kinds_limits_and_defaults_are_words(self) -> None:
        schema = {
            "properties": {
                "n": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 5},
                "maybe": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
                "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                "free": {},
            },
            "required": ["n"],
        }
        rows = {row.name: row for row in params_of(schema)}
        assert (rows["n"].kind, rows["n"].is_required) == ("whole number", True)
        assert rows["n"].limits == "at least 1, at most 9, otherwise 3"
        assert (rows["tags"].kind, rows["tags"].limits) == ("list of text", "at most 5 values")
        assert (rows["maybe"].kind, rows["maybe"].limits) == ("number", "")
        assert rows["either"].kind == "whole number or text"
        assert rows["free"].kind == "any value"

    def test_a_schema_that_holds_itself_ends(self) -> None:
        node = {"properties": {"child": {"$ref": "#/$defs/Node"}, "all": {"items": {"$ref": "#/$defs/Node"}}}}
        rows = params_of({**node, "$defs": {"Node": {"type": "object", **node}, "Loop": {"$ref": "#/$defs/Loop"}}})
        assert rows[1].name == "child.child"
        assert len(rows) < 200
