"""The catalog: every tool with its level, params, users and figures, filtered by category, level
and text."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from django.test import Client

from agents.employees.toolboxes import get_installed_toolbox
from agents.web.cards.param_table import MAX_ROWS, build_param_rows
from agents.web.views import tools
from tests.features import feature
from tests.web.counted import count_calls, last_error, sweep_at
from tests.world import DELETE, SEARCH, UPDATE, World

pytestmark = pytest.mark.django_db


def read_page(client: Client, query: str = "") -> str:
    response = client.get(f"/tools/{query}")
    assert response.status_code == 200, response.content
    return response.content.decode()


def entry(html: str, tool: str) -> str:
    return html.partition(f'<code class="small">{tool}</code>')[2].partition("</details></li>")[0]


def test_every_tool_is_listed_with_its_level(world: World) -> None:
    html = read_page(world.client("viewer"))
    for tool in get_installed_toolbox().tools():
        assert f'<code class="small">{tool.name}</code>' in html
    assert 'class="level destructive"' in html


def test_an_entry_shows_the_params_and_users_of_a_tool(world: World) -> None:
    update = entry(read_page(world.client("viewer")), UPDATE)
    for part in (
        "changes.status",
        "one of active, inactive, pending",
        "required",
        "JSON schema",
        "all modes",
    ):
        assert part in update
    assert f'<a href="/employees/{world.employee.pk}/">Dana</a>' in update
    assert "No employees." in entry(read_page(world.client("outsider")), UPDATE)


@feature(
    "Tool contract",
    "The catalog shows author, version, level and traits of every tool",
    "templates/tools/tool.html",
)
def test_an_entry_shows_id_author_side_effects_and_output(world: World) -> None:
    html = read_page(world.client("viewer"))
    for part in (f"{UPDATE}@1.0", "by Gadget", "changes data, so it needs approval"):
        assert part in entry(html, UPDATE)
    search = entry(html, SEARCH)
    assert "changes nothing" in search
    assert "<summary>Output schema</summary>" in search
    assert "filters_applied" in search


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
def test_the_catalog_can_be_filtered_by_category_level_and_text(
    world: World, query: str, there: str, not_there: str
) -> None:
    html = read_page(world.client("viewer"), query)
    assert f'<code class="small">{there}</code>' in html
    assert f'<code class="small">{not_there}</code>' not in html


def test_an_empty_result_says_so(world: World) -> None:
    for query in ("?q=zzz", "?level=nonsense", "?category=%00", "?after=zzz"):
        assert "No matching tools" in read_page(world.client("viewer"), query)


def test_a_large_catalog_has_further_pages(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "PAGE_SIZE", 2)
    ids = sorted(get_installed_toolbox().tools(), key=lambda tool: (tool.category, tool.id))
    html = read_page(world.client("viewer"))
    assert html.count('class="tool surface"') == 2
    assert f"after={ids[1].id.replace('@', '%40')}" in html
    assert f'<code class="small">{ids[2].name}</code>' in read_page(
        world.client("viewer"), f"?after={ids[1].id}"
    )


class TestFiguresInTheCatalog:
    @feature(
        "Figures and metrics",
        "Calls, success, durations, cards, cost and last error of a tool, in the catalog",
        "agents/web/views/tools.py",
    )
    def test_cover_the_last_30_days(self, world: World) -> None:
        count_calls(world.employee, SEARCH, succeeded=9, within_20=7, within_500=2, slowest_ms=300)
        count_calls(world.employee, SEARCH, days_ago=29, **last_error())
        count_calls(world.employee, SEARCH, days_ago=30, succeeded=1000)
        html = entry(read_page(world.client("viewer")), SEARCH)
        for part in ("10 calls", "1 failed", "90%", "p50 about 16 ms", "p95 about 277 ms"):
            assert part in html
        assert re.search(
            r"<dt>Last error</dt>\s*<dd>\s*<time[^>]*>[^<]*</time>:\s*<code[^>]*>NOT_FOUND</code> There is no",
            html,
        )
        assert "no calls" in entry(read_page(world.client("outsider")), SEARCH)

    def test_include_cards_and_cost_if_there_are_any(self, world: World) -> None:
        count_calls(
            world.employee,
            UPDATE,
            asked=1500,
            approved=3,
            denied=2,
            succeeded=3,
            cost_micros=2_500_000,
        )
        count_calls(world.employee, SEARCH, succeeded=1)
        html = read_page(world.client("viewer"))
        assert "1,500 requested, 3 approved," in entry(html, UPDATE)
        assert "2.50 USD" in entry(html, UPDATE)
        assert "<dt>Approvals</dt>" not in entry(html, SEARCH)
        assert "<dt>Cost</dt>" not in entry(html, SEARCH)

    @feature(
        "Figures and metrics",
        "A chart of calls by day, with failures marked, and the same in words",
        "agents/web/charts/bar_charts.py",
    )
    def test_have_a_chart_that_labels_and_describes_failures(self, world: World) -> None:
        count_calls(world.employee, SEARCH, days_ago=1, succeeded=3, failed=1)
        count_calls(world.employee, SEARCH, succeeded=2)
        html = entry(read_page(world.client("viewer")), SEARCH)
        chart = html.split("<svg")[1].split("</svg>")[0]
        assert "Finished calls on each of the last 30 days" in chart
        assert "6 in total, 2 today. Highest: " in chart
        assert "Total: 5 succeeded, 1 failed." in chart
        assert chart.count("<path") == 2
        assert re.search(r'<path class="bar failed" d="M281.25 0h7.5v12h-7.5z"/>', chart)

    def test_escape_the_message_of_an_error(self, world: World) -> None:
        count_calls(world.employee, SEARCH, **last_error(message="<script>alert(1)</script>\u202e"))
        html = entry(read_page(world.client("viewer")), SEARCH)
        assert "<script>" not in html
        assert "⟦U+202E⟧" in html

    def test_say_if_there_are_no_data_yet(self, world: World) -> None:
        assert "No data yet" in read_page(world.client("viewer"))
        sweep_at()
        assert "No data yet" not in read_page(world.client("viewer"))

    def test_need_at_most_nine_queries(
        self, world: World, django_assert_max_num_queries: Any
    ) -> None:
        for days_ago in range(20):
            count_calls(world.employee, SEARCH, days_ago=days_ago, succeeded=3, **last_error())
        client = world.client("viewer")
        read_page(client)
        with django_assert_max_num_queries(9):
            read_page(client)


class TestParamsInTheCatalog:
    def test_are_shown_with_their_types_limits_and_defaults_in_words(self) -> None:
        schema = {
            "properties": {
                "n": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 5},
                "code": {"type": "string", "minLength": 1, "maxLength": 20000, "default": ""},
                "maybe": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
                "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                "free": {},
            },
            "required": ["n"],
        }
        rows = {row.name: row for row in build_param_rows(schema)}
        assert (rows["n"].kind, rows["n"].is_required) == ("whole number", True)
        assert rows["n"].limits == "at least 1, at most 9, default 3"
        assert (rows["tags"].kind, rows["tags"].limits) == ("list of text", "at most 5 values")
        assert rows["code"].limits == "at least 1 character, at most 20,000 characters"
        assert (rows["maybe"].kind, rows["maybe"].limits) == ("number", "")
        assert rows["either"].kind == "whole number or text"
        assert rows["free"].kind == "any value"

    def test_of_a_recursive_schema_are_listed_up_to_a_maximum_number(self) -> None:
        node = {
            "properties": {
                "child": {"$ref": "#/$defs/Node"},
                "all": {"items": {"$ref": "#/$defs/Node"}},
            }
        }
        rows = build_param_rows(
            {
                **node,
                "$defs": {"Node": {"type": "object", **node}, "Loop": {"$ref": "#/$defs/Loop"}},
            }
        )
        assert rows[1].name == "child.child"
        assert len(rows) < 200

    def test_of_a_list_that_contains_itself_are_shown_as_a_list_of_any_value(self) -> None:
        tree = {"type": "array", "items": {"$ref": "#/$defs/Tree"}}
        (row,) = build_param_rows(
            {"properties": {"tree": {"$ref": "#/$defs/Tree"}}, "$defs": {"Tree": tree}}
        )
        assert row.kind == "list of any value"

    def test_of_a_schema_with_millions_of_params_are_cut_at_the_row_limit_within_a_second(
        self,
    ) -> None:
        node = {
            "type": "object",
            "properties": {f"p{number}": {"$ref": "#/$defs/N"} for number in range(40)},
        }
        began = time.process_time()
        rows = build_param_rows({"properties": {"a": {"$ref": "#/$defs/N"}}, "$defs": {"N": node}})
        assert len(rows) == MAX_ROWS
        assert time.process_time() - began < 1

    def test_include_references_to_any_part_of_the_schema(self) -> None:
        schema = {
            "properties": {"a": {"$ref": "#/definitions/A"}, "b": {"$ref": "#/properties/a"}},
            "definitions": {"A": {"type": "integer"}},
        }
        assert [row.kind for row in build_param_rows(schema)] == ["whole number", "whole number"]
