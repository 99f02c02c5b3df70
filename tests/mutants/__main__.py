"""Weaken guards one by one in a copy of the project, run the tests next to each guard, and list the
guards that can be weakened without a failing test."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import pytest

from tests import services
from tests.mutants.equivalents import EQUIVALENT
from tests.mutants.targets import ROOT, TARGETS, Mutant

AIM = 0.95
LONGEST_S = 420.0


@dataclass(frozen=True)
class Verdict:
    """The result of the tests on a mutant."""

    mutant: Mutant
    exit_code: int
    seconds: float

    @property
    def survived(self) -> bool:
        return self.exit_code == pytest.ExitCode.OK

    @property
    def is_valid(self) -> bool:
        """True unless the edited file cannot even be imported."""
        return self.exit_code in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}


def main() -> int:
    """Run the mutants; return 0 if at least 95% of the guards have a test that fails without
    them."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", default="", help="mutants whose name contains this")
    parser.add_argument("--all", action="store_true", help="run every mutant instead of a sample")
    parser.add_argument(
        "--list", action="store_true", help="print the names of the mutants, and run nothing"
    )
    parser.add_argument(
        "--side-by-side", type=int, default=2, help="copies of the project that run tests at a time"
    )
    options = parser.parse_args()
    mutants = [
        each for target in TARGETS for each in (target.edits() if options.all else target.sample())
    ]
    mutants = [
        each for each in mutants if options.only in each.name and each.name not in EQUIVALENT
    ]
    if options.list:
        print("\n".join(each.name for each in mutants))
        return 0
    began = time.monotonic()
    if red := _red_without_edits({each.tests for each in mutants}):
        print(f"These tests fail without any edit, so mutants prove nothing: {', '.join(red)}")
        return 1
    verdicts = [each for each in _verdicts(mutants, options.side_by_side) if each.is_valid]
    survivors = [each.mutant.name for each in verdicts if each.survived]
    killed = len(verdicts) - len(survivors)
    share = killed / len(verdicts) if verdicts else 0.0
    print(*("", "Unnoticed:", *survivors) if survivors else (), sep="\n")
    print(
        f"\n{killed} of {len(verdicts)} weakened guards were noticed ({share:.1%}), {time.monotonic() - began:.0f} s"
    )
    return 0 if share >= AIM else 1


def _red_without_edits(lists: set[tuple[str, ...]]) -> list[str]:
    files = sorted({file for tests in lists for file in tests})
    with _copies(1) as copies:
        code = _run_tests(copies.get(), files)
    return [] if code == pytest.ExitCode.OK else [f"exit code {code} of {' '.join(files)}"]


def _verdicts(mutants: Iterable[Mutant], side_by_side: int) -> Iterator[Verdict]:
    with _copies(side_by_side) as copies, ThreadPoolExecutor(side_by_side) as threads:
        for verdict in threads.map(lambda each: _try(copies, each), mutants):
            word = "UNNOTICED" if verdict.survived else "noticed" if verdict.is_valid else "invalid"
            print(f"{word:9} {verdict.seconds:4.0f} s  {verdict.mutant.name[:200]}", flush=True)
            yield verdict


def _try(copies: SimpleQueue[Path], mutant: Mutant) -> Verdict:
    """Run the tests on one mutant, in an exclusive copy."""
    copy = copies.get()
    began = time.monotonic()
    source = (copy / mutant.file).read_text()
    try:
        (copy / mutant.file).write_text(mutant.edit.apply(source))
        code = _run_tests(copy, mutant.tests)
    finally:
        (copy / mutant.file).write_text(source)
        copies.put(copy)
    return Verdict(mutant, code, time.monotonic() - began)


def _run_tests(copy: Path, files: Iterable[str]) -> int:
    environment = {
        name: value for name, value in os.environ.items() if name != services.FOLDER_VARIABLE
    }
    environment |= {"DJANGO_SETTINGS_MODULE": "tests.settings"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "--timeout=60",
        *files,
    ]
    try:
        return subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, check=False, timeout=LONGEST_S
        ).returncode
    except subprocess.TimeoutExpired:
        return int(pytest.ExitCode.TESTS_FAILED)


@contextmanager
def _copies(count: int) -> Iterator[SimpleQueue[Path]]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    copies: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="gadget-mutants-") as folder:
        for number in range(count):
            for name in listed.stdout.splitlines():
                if not name.startswith("docs/screens") and (ROOT / name).is_file():
                    target = Path(folder) / str(number) / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(ROOT / name, target)
            copies.put(Path(folder) / str(number))
        yield copies


if __name__ == "__main__":
    sys.exit(main())
