"""Run the tests on SQLite, and the tests that use a database also on PostgreSQL: `python -m tests
[pytest arguments…]`.

Without paths, the fixed set runs, which has only samples of the largest sets of tests (see
`tests/sampling.py`); with `--all`, all tests run. If tests of at most three files fail in parallel
runs, they are run again alone. A test that then passes is listed at the end and does not fail the
run.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

import pytest

from tests import browser, sampling, services

ALL = "--all"
PROCESSES = {"sqlite": 2, "postgresql": 1}
"""The number of test processes for each database. There are more processes than cores, because many
tests wait for real processes. conftest.py distributes the tests among them.

More processes do not help: five took as long as four, and each additional one lengthens the waits
of the others.
"""
EXTRA = {"sqlite": [], "postgresql": ["--database-tests-only"]}
MOST_FILES_AGAIN = 3
"""The maximum number of files, on each database, whose failed tests are run again alone. If only a
few files fail, the machine may be at fault: if one process does not start, all tests of its file
fail."""
LONGEST_FIXED_MIN = 15
ROOT = Path(__file__).parents[1]


def main(arguments: list[str]) -> int:
    """Run the tests in parallel, then those that must run alone; return 0 only if all of them
    passed."""
    began = time.monotonic()
    if ALL in arguments:
        arguments = [argument for argument in arguments if argument != ALL]
        os.environ[sampling.WHOLE_VARIABLE] = "1"
    elif all(argument.startswith("-") for argument in arguments):
        os.environ[sampling.FIXED_VARIABLE] = "1"
    try:
        os.environ[browser.PATH_VARIABLE] = browser.find_browser()
        if "TEST_DATABASE_URL" not in os.environ:
            os.environ[services.POSTGRESQL_VARIABLE] = services.start_postgresql().url
    except (browser.BrowserMissingError, services.ServerError) as error:
        print(error, file=sys.stderr)
        return 1
    is_fixed = sampling.is_fixed_set()
    codes = _run_side_by_side(arguments)
    for database, extra in EXTRA.items():
        alone = ["-m", "alone", *extra, *(arguments or _list_files_with_alone(database))]
        codes[f"{database}, one by one"] = _start(database, alone).wait()
    os.environ.pop(sampling.FIXED_VARIABLE, None)  # or the second attempt would skip failed cases
    unsteady = [test for database in EXTRA for test in _run_again(database, codes)]
    failed = [
        name
        for name, code in codes.items()
        if code not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}
    ]
    found_none = all(code == pytest.ExitCode.NO_TESTS_COLLECTED for code in codes.values())
    minutes, seconds = divmod(round(time.monotonic() - began), 60)
    verdict = (
        f"failed: {'; '.join(failed)}"
        if failed
        else "no test was found"
        if found_none
        else "everything passed"
    )
    for test in unsteady:
        print(f"Failed beside others, passed by itself: {test}")
    print(f"Both databases, {minutes} min {seconds} s: {verdict}", flush=True)
    if is_fixed and minutes >= LONGEST_FIXED_MIN:
        print(f"The fixed set takes more than {LONGEST_FIXED_MIN} minutes: make it faster.")
    return 1 if failed or found_none else 0


def _run_side_by_side(arguments: list[str]) -> dict[str, int]:
    """Run the tests on both databases at the same time and return the exit codes by name. Tests on
    one database use the processor while tests on the other wait.

    The output on PostgreSQL is shown at the end.
    """
    given = {
        database: [
            "-m",
            "not alone",
            "-n",
            str(PROCESSES[database]),
            *_cache_of(database),
            *extra,
            *arguments,
        ]
        for database, extra in EXTRA.items()
    }
    for database in EXTRA:
        _failures_of(database).unlink(missing_ok=True)
    with (
        tempfile.TemporaryFile() as output,
        _start("postgresql", given["postgresql"], output) as beside,
        _start("sqlite", given["sqlite"]) as first,
    ):
        codes = {"sqlite, side by side": first.wait(), "postgresql, side by side": beside.wait()}
        output.seek(0)
        shutil.copyfileobj(output, sys.stdout.buffer)
    return codes


def _run_again(database: str, codes: dict[str, int]) -> list[str]:
    """Run the failed tests once more, if there are few, one at a time; return those that passed."""
    part = f"{database}, side by side"
    if codes[part] != pytest.ExitCode.TESTS_FAILED or not _failures_of(database).exists():
        return []
    failed = sorted(json.loads(_failures_of(database).read_text()))
    if len({test.partition("::")[0] for test in failed}) > MOST_FILES_AGAIN:
        return []
    codes[part] = _start(database, [*_cache_of(database), *failed]).wait()
    left = json.loads(_failures_of(database).read_text()) if codes[part] else {}
    return [f"{test} ({database})" for test in failed if test not in left]


def _cache_of(database: str) -> list[str]:
    return ["-o", f"cache_dir=.pytest_cache/{database}"]


def _failures_of(database: str) -> Path:
    return ROOT / ".pytest_cache" / database / "v/cache/lastfailed"


def _list_files_with_alone(database: str) -> list[str]:
    """List the files with tests that run alone, so that pytest collects only these: collecting all
    files again would take longer than running those tests."""
    found = [
        path
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if "@pytest.mark.alone" in path.read_text()
    ]
    files = [path.relative_to(ROOT).as_posix() for path in found]
    return [file for file in files if sampling.has_file(file, database)]


def _start(
    database: str, arguments: list[str], output: IO[bytes] | None = None
) -> subprocess.Popen[bytes]:
    print(f"\n$ {services.DATABASE_VARIABLE}={database} pytest {' '.join(arguments)}", flush=True)
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        services.DATABASE_VARIABLE: database,
    }
    # Without bytecode, each of many processes would compile everything again.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.Popen(
        command, env=environment, stdout=output, stderr=output and subprocess.STDOUT
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
