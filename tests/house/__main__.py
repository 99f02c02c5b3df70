"""`make house`: print figures about the code, and the lists behind them. None of the figures can
fail a test."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial

from tests.house.knots import measure_knots
from tests.house.pages import measure_pages
from tests.house.repeated import measure_repeated
from tests.house.sizes import measure_sizes
from tests.house.speed import measure_caches, measure_queries
from tests.house.table import Part, format_figures, format_listing
from tests.house.way import measure_way
from tests.source_tree import ROOT

MEASURES: Mapping[str, tuple[Callable[[], Part], ...]] = {
    "knots": (partial(measure_knots, "agents"), partial(measure_knots, "tools")),
    "way": (measure_way,),
    "repeated": (measure_repeated,),
    "speed": (measure_queries, measure_caches),
    "sizes": (measure_sizes,),
    "pages": (measure_pages,),
}
"""The measures by name, in the order of the table."""


def describe_checkout() -> str:
    """Name the commit, and mention changed files."""
    answers = [
        subprocess.run(
            ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.strip()
        for arguments in (
            ("rev-parse", "--short=8", "HEAD"),
            ("status", "--porcelain", "--untracked-files=no"),
        )
    ]
    return f"{answers[0]}, with changes" if answers[1] else answers[0]


def main() -> int:
    """Run the chosen measures, print their figures and lists, and return 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.house", description=__doc__)
    parser.add_argument("--only", choices=MEASURES, help="run one measure only")
    parser.add_argument("--short", action="store_true", help="print only the table")
    options = parser.parse_args()
    parts = [
        measure()
        for name, measures in MEASURES.items()
        if options.only in {None, name}
        for measure in measures
    ]
    print(f"The house at {describe_checkout()}\n")
    print(format_figures(figure for part in parts for figure in part.figures))
    if not options.short:
        print(*(format_listing(listing) for part in parts for listing in part.listings), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
