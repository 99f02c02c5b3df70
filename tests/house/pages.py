"""Counts of the words and pictures of the documentation."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.house.table import Figure, Listing, Part
from tests.source_tree import ROOT

DOCS = ROOT / "docs"
INTERNALS = DOCS / "internals"
PICTURES = frozenset({".gif", ".jpeg", ".jpg", ".png", ".webp"})
SHOWN = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)|<img[^>]+src=\"([^\"]+)\"")


def count_words(page: Path) -> int:
    """Count the words between spaces, as `wc -w` does."""
    return len(page.read_text(encoding="utf-8").split())


def list_pictures() -> list[Path]:
    """List the pictures under docs/ that git tracks."""
    tracked = subprocess.run(
        ["git", "ls-files", "docs"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [ROOT / name for name in tracked.stdout.splitlines() if Path(name).suffix in PICTURES]


def find_shown(page: Path) -> set[Path]:
    """Find the picture files that the page shows."""
    targets = [first or second for first, second in SHOWN.findall(page.read_text(encoding="utf-8"))]
    return {(page.parent / target).resolve() for target in targets if "://" not in target}


def measure_pages() -> Part:
    """Count the words of the pages for people and under docs/internals/, and the pictures."""
    words = {page: count_words(page) for page in sorted(DOCS.rglob("*.md"))}
    internal = {page: number for page, number in words.items() if INTERNALS in page.parents}
    pictures = list_pictures()
    shown = {picture for page in [*words, *ROOT.glob("*.md")] for picture in find_shown(page)}
    size = sum(picture.stat().st_size for picture in pictures if picture.exists())
    figures = (
        Figure(
            "docs: words for people",
            f"{sum(words.values()) - sum(internal.values()):,}",
            "at most 30,000",
        ),
        Figure("docs: words under docs/internals", f"{sum(internal.values()):,}"),
        Figure(
            "docs: pictures that git tracks",
            f"{len(pictures)}, {size / 1_000_000:.1f} MB",
            "those that are shown",
        ),
        Figure("docs: pictures that a page shows", str(len(shown.intersection(pictures)))),
    )
    longest = sorted(words.items(), key=lambda item: -item[1])
    lines = tuple(f"{number:>6,}  {page.relative_to(ROOT)}" for page, number in longest)
    return Part(figures, (Listing("Words by page:", lines),))
