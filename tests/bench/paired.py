"""Compare this checkout with an older commit: both perform the same actions alternately, and their
processor times are compared.

`make bench ARGS="--against COMMIT"` is for questions such as "does a pass still cost the same?",
where two separate runs would differ by more than the effect. The two measurements of a pair
directly follow each other, because other work on the machine changes within seconds. Every other
pair starts with the older code.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from tests import services
from tests.bench.databases import fresh_database
from tests.source_tree import ROOT

CHILD = Path(__file__).with_name("paired_child.py")
PAIRS = 25


class Side:
    """One of the two checkouts, with its own process and database."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.names: list[str] = self._read()

    def measure(self, name: str) -> float:
        """Measure this action; return milliseconds of processor time."""
        assert self._process.stdin is not None
        print(name, file=self._process.stdin, flush=True)
        return float(self._read())

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the measured process ended with {self._process.wait()}")
        return json.loads(line)


@contextmanager
def _started(checkout: Path, kind: str) -> Iterator[Side]:
    with (
        tempfile.TemporaryDirectory(prefix="gadget-paired-") as name,
        fresh_database(kind, Path(name)) as address,
    ):
        kept = {
            key: value for key, value in os.environ.items() if key not in services.FOREIGN_VARIABLES
        }
        own = {
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "PYTHONPATH": str(checkout),
            services.GIVEN_VARIABLE: "1",
        }
        own |= {"GADGET_DATA_DIR": name, "DATABASE_URL": address}
        process = subprocess.Popen(
            [sys.executable, str(CHILD)],
            cwd=checkout,
            env=kept | own,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            yield Side(process)
        finally:
            process.kill()
            process.wait()


@contextmanager
def _checked_out(commit: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="gadget-paired-") as name:
        folder = Path(name) / "before"
        subprocess.run(
            ["git", "worktree", "add", "--quiet", "--detach", str(folder), commit],
            cwd=ROOT,
            check=True,
        )
        try:
            yield folder
        finally:
            subprocess.run(
                ["git", "worktree", "remove", "--force", str(folder)], cwd=ROOT, check=True
            )


def compare(commit: str, kind: str) -> None:
    """Measure all actions, and print a line for each: the median ratio with its interval, and both
    medians."""
    with ExitStack() as stack:
        folder = stack.enter_context(_checked_out(commit))
        before, after = (stack.enter_context(_started(each, kind)) for each in (folder, ROOT))
        print(
            f"{kind}, {PAIRS} pairs in turns, processor time, after / before {commit}:", flush=True
        )
        for name in after.names:
            print(_compare_act(name, before, after), flush=True)


def _compare_act(name: str, before: Side, after: Side) -> str:
    """Measure one action alternately in both checkouts, and return its line. The interval contains
    the true median with 95 % probability."""
    pairs = []
    for number in range(PAIRS):
        sides = (before, after) if number % 2 else (after, before)
        measured = {side: side.measure(name) for side in sides}
        pairs.append((measured[before], measured[after]))
    ratios = sorted(new / old for old, new in pairs)
    lowest = int((PAIRS - 1.96 * PAIRS**0.5) / 2)
    old_ms, new_ms = (median(pair[side] for pair in pairs) for side in (0, 1))
    spread = f"{median(ratios):.2f} ({ratios[lowest]:.2f} to {ratios[-1 - lowest]:.2f})"
    return f"{name:36} {spread:24} {old_ms:.2f} → {new_ms:.2f} ms"
