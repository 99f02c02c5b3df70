"""Every label that the documentation quotes in italics is on a page, in a form, in a demo script or
in a message."""

import re
from functools import cache
from pathlib import Path

import pytest

from tests.docs.pages import PAGES
from tests.source_tree import ROOT, assert_none

SOURCES = ("agents", "gadget_site", "static/js", "templates", "tools")
SUFFIXES = frozenset({".html", ".js", ".py", ".yaml"})
LABEL = re.compile(r"(?<![*\w])\*([A-Z][^*|]+)\*(?!\*)")
OTHERS = frozenset(
    {
        "A worker is reading the description",
        "Access attempts",
        "Dana, Data steward",
        "Loops by hand",
        "ModuleNotFoundError",
        "Morgan, Office manager",
        "Sam, Security tester",
        "SyntaxError",
    }
)
"""Labels of libraries and of Python, a name in the benchmark, and texts that are composed of
several parts."""


def normalize(text: str) -> str:
    return " ".join(text.split()).lower()


def find_labels(text: str) -> list[str]:
    """Find the labels in italics, outside code and bold text."""
    without_code = re.sub(r"^```.*?^```$|`[^`\n]*`|\*\*", "", text, flags=re.MULTILINE | re.DOTALL)
    return [" ".join(label.split()) for label in LABEL.findall(without_code)]


@cache
def read_sources() -> str:
    """Read all texts of the sources as one text, joining strings that the code splits over several
    lines."""
    files = sorted(
        path for folder in SOURCES for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES
    )
    texts = [path.read_text(encoding="utf-8") for path in files if "migrations" not in path.parts]
    joined = [re.sub(r"(?<![\"'])[\"']\s*\n\s*f?[\"'](?![\"'])", "", text) for text in texts]
    return normalize("\n".join(joined))


def is_shown(label: str) -> bool:
    """Return True if the sources contain every part of the label; ellipses and quoted values
    separate the parts."""
    parts = [normalize(part) for part in re.split(r"…|'\w+'|: \w+ is ", label)]
    return all(part in read_sources() for part in parts)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_quoted_label_exists(page: Path) -> None:
    labels = set(find_labels(page.read_text(encoding="utf-8"))) - OTHERS
    assert_none(
        sorted(label for label in labels if not is_shown(label)),
        "a label in italics is in the product",
    )


def test_a_wrong_label_is_detected() -> None:
    assert find_labels("Press *Preview next\nruns*, **not** `*args*`.") == ["Preview next runs"]
    assert is_shown("Preview next runs")
    assert not is_shown("Look at the next runs")
