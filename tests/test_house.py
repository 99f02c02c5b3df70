"""The figures that `make house` prints are correct for small examples."""

import ast
from collections import Counter
from pathlib import Path

from tests.house.hops import Hop
from tests.house.knots import count_floors, find_knots
from tests.house.pages import find_shown
from tests.house.sizes import count_comments, count_docstring_lines, count_lines, describe_lengths
from tests.house.speed import COMPILED, list_caches, list_calls
from tests.house.table import Figure, format_figures
from tests.house.way import list_most, list_way
from tests.source_tree import ROOT, Module

SOURCE = '''"""A module."""

FEW = 1  # because more are slow
"""A note."""
MANY = 2  # noqa: F841
_cache: dict[int, int] = {}
BY_NAME = CompiledQuery(Row, lambda: rows)
BY_ID = CompiledQuery[Row](Row, lambda: rows)


@functools.lru_cache(maxsize=1)
def find() -> int:
    return _cache.get(1, 2)


twice = lru_cache(find)
'''


def read(text: str) -> Module:
    return Module(ROOT / "agents" / "example.py", "agents.example", text, ast.parse(text))


def test_folders_that_import_each_other_form_one_cycle_and_one_layer() -> None:
    arrows = {
        "web": {"runs"},
        "runs": {"cards"},
        "cards": {"people", "runs"},
        "people": set(),
        "alone": set(),
    }
    graph = {folder: frozenset(below) for folder, below in arrows.items()}
    assert find_knots(graph) == [frozenset({"runs", "cards"})]
    assert count_floors(graph) == 3
    untied = {**graph, "cards": frozenset({"people"})}
    assert find_knots(untied) == []
    assert count_floors(untied) == 4


def test_caches_and_compiled_queries_are_found_in_a_file() -> None:
    module = read(SOURCE)
    assert sorted(cache.partition(" ")[2] for cache in list_caches(module)) == [
        "_cache",
        "find",
        "line 16",
    ]
    assert len(list_calls(module, COMPILED)) == 2


def test_comments_for_people_and_docstrings_are_counted() -> None:
    assert count_comments(SOURCE) == 1
    assert count_docstring_lines(SOURCE) == 2
    assert count_lines([SOURCE, "\n\n"]) == 11


def test_the_write_path_has_a_line_each_time_it_enters_a_module() -> None:
    entered = (
        ("b.py", "find"),
        ("b.py", "find"),
        ("b.py", "store"),
        ("c.py", "send"),
        ("b.py", "find"),
    )
    hops = [Hop("a.py", module, function) for module, function in entered]
    assert list_way("task", hops).lines == ("b.py find (2 times), store", "c.py send", "b.py find")
    assert list_most("Hops", Counter(hop.function for hop in hops)).lines[0] == "   3  find"


def test_lengths_are_described_by_median_95th_percentile_and_maximum() -> None:
    assert describe_lengths([*range(1, 20), 57]) == "10.5 / 55 / 57"


def test_pictures_on_a_page_are_found_in_markdown_and_html(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        '![A run](run.png) [a link](other.png)\n<img alt="" src="card.png">\n![far](https://example.com/x.png)',
        encoding="utf-8",
    )
    assert find_shown(page) == {tmp_path / "run.png", tmp_path / "card.png"}


def test_the_table_has_aligned_columns() -> None:
    assert format_figures([Figure("knots", "13", "0"), Figure("hops", "1,579")]).splitlines() == [
        "         now  aim",
        "knots     13  0",
        "hops   1,579",
    ]
