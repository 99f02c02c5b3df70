"""The list of features: tests name the features that they show with `@feature`, and
docs/internals/features.md is generated from these names.

`python -m tests.features` writes the page.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "internals" / "features.md"
SECTIONS = (
    "Tool contract",
    "Results and errors",
    "The toolbox and its settings",
    "The gate",
    "Execution",
    "The inbox",
    "Questions and delegation",
    "Schedules",
    "Models",
    "Built-in tools",
    "Network access",
    "Tools from API descriptions",
    "Connected sources",
    "Plugins",
    "Costs, budgets, long runs",
    "Agents elsewhere",
    "Pages",
    "Figures and metrics",
)
HEAD = """# Features, with the code and the test of each

Made by `python -m tests.features` from the marks of the tests. Paths start at the top of the project; a test is named
`file::function`.
"""


@dataclass(frozen=True)
class Feature:
    """One row of the page.

    Attributes:
        code: the files that implement it, separated by commas.
        test: the test, or the file if all of its tests show the feature.
    """

    section: str
    sentence: str
    code: str
    test: str

    @property
    def row(self) -> str:
        return f"| {self.sentence} | {self.code} | {self.test} |"


def feature(
    section: str, sentence: str, code: str, *, whole_file: bool = False
) -> pytest.MarkDecorator:
    """Mark a test as the one that shows a feature.

    Args:
        section: one of SECTIONS.
        sentence: a description of the feature for people.
        code: the paths of the files that implement it, separated by commas.
        whole_file: all tests of the file show the feature; the decorated test is only the first.
    """
    return pytest.mark.feature(section, sentence, code, whole_file=whole_file)


def collect() -> list[Feature]:
    """Collect the features of all tests, in the order of the files, without importing them."""
    paths = sorted((ROOT / "tests").rglob("*.py"))
    return [each for path in paths if "node_modules" not in path.parts for each in _read(path)]


def _read(path: Path) -> list[Feature]:
    text = path.read_text(encoding="utf-8")
    if "@feature(" not in text:
        return []
    name, found = str(path.relative_to(ROOT)), []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            for mark in node.decorator_list:
                if (
                    isinstance(mark, ast.Call)
                    and isinstance(mark.func, ast.Name)
                    and mark.func.id == "feature"
                ):
                    section, sentence, code = (ast.literal_eval(argument) for argument in mark.args)
                    test = name if mark.keywords else f"{name}::{node.name}"
                    found.append((mark.lineno, Feature(section, sentence, code, test)))
    return [each for _, each in sorted(found, key=lambda pair: pair[0])]


def render(features: list[Feature]) -> str:
    """Render the page.

    Raises:
        ValueError: a feature has no known section.
    """
    if unknown := {each.section for each in features} - set(SECTIONS):
        raise ValueError(f"no such section: {', '.join(sorted(unknown))}")
    page = HEAD
    for section in SECTIONS:
        rows = [each.row for each in features if each.section == section]
        page += "\n".join(
            [f"\n## {section}\n", "| feature | file | test |", "|---|---|---|", *rows, ""]
        )
    return page


if __name__ == "__main__":
    PAGE.write_text(render(collect()), encoding="utf-8")
