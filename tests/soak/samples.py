"""The whole sets of tests of which `make test` runs samples; `python -m tests.soak` starts this."""

from __future__ import annotations

import os
import subprocess
import sys

from tests import browser, sampling, services
from tests.source_tree import ROOT

MARKS = ("from tests.hostile", "take_sample(")
SIDE_BY_SIDE = ("-n", "2")


def main() -> int:
    """Run them; return 0 if every test passed."""
    on_database = ["--database-tests-only"] if os.environ.get(services.DATABASE_VARIABLE) == "postgresql" else []
    command = [sys.executable, "-m", "pytest", *SIDE_BY_SIDE, "-m", "not alone", *on_database, *list_sampled_files()]
    environment = {**os.environ, sampling.WHOLE_VARIABLE: "1", browser.PATH_VARIABLE: browser.find_browser()}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def list_sampled_files() -> list[str]:
    """List the test files that take a sample, use the hostile strings (also a sample), or run on one database only."""
    files = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "tests").rglob("test_*.py"))]
    return [
        file
        for file in files
        if file.startswith((*sampling.HALVED, *sampling.ONE_OF))
        or any(mark in (ROOT / file).read_text() for mark in MARKS)
    ]


if __name__ == "__main__":
    sys.exit(main())
