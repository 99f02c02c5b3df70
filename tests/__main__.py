"""Run every test: `python -m tests [pytest arguments…]`. All on SQLite, those with a database on PostgreSQL too."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import browser, services

# More than the cores, because many tests wait for real processes; conftest.py groups the tests of one process.
SIDE_BY_SIDE = ("-n", "4")


def main(arguments: list[str]) -> int:
    """Run all parts; return 0 only if every one passed."""
    began = time.monotonic()
    try:
        os.environ[browser.PATH_VARIABLE] = browser.find_browser()
        if "TEST_DATABASE_URL" not in os.environ:
            os.environ[services.POSTGRESQL_VARIABLE] = services.start_postgresql().url
    except (browser.BrowserMissingError, services.ServerError) as error:
        print(error, file=sys.stderr)
        return 1
    codes = {}
    for database, extra in (("sqlite", []), ("postgresql", ["--database-tests-only"])):
        codes[f"{database}, side by side"] = _run(database, ["-m", "not alone", *SIDE_BY_SIDE, *extra, *arguments])
        codes[f"{database}, one by one"] = _run(
            database, ["-m", "alone", *extra, *(arguments or _list_files_with_alone())]
        )
    failed = [
        name for name, code in codes.items() if code not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}
    ]
    found_none = all(code == pytest.ExitCode.NO_TESTS_COLLECTED for code in codes.values())
    minutes, seconds = divmod(round(time.monotonic() - began), 60)
    verdict = f"failed: {'; '.join(failed)}" if failed else "no test was found" if found_none else "everything passed"
    print(f"Both databases, {minutes} min {seconds} s: {verdict}", flush=True)
    return 1 if failed or found_none else 0


def _list_files_with_alone() -> list[str]:
    """List the files with tests that run alone: collecting all files again would take longer than those tests."""
    tests = Path(__file__).parent
    return [str(path) for path in sorted(tests.rglob("test_*.py")) if "@pytest.mark.alone" in path.read_text()]


def _run(database: str, arguments: list[str]) -> int:
    print(f"\n$ {services.DATABASE_VARIABLE}={database} pytest {' '.join(arguments)}", flush=True)
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", services.DATABASE_VARIABLE: database}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # or each of many processes would compile everything again
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
