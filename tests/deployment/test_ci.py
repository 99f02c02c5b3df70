"""Continuous integration runs lint, then the fixed set of tests or the whole sets."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.source_tree import ROOT

OF_MAKE = frozenset({"ARGS", "MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS"})
IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.com")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose Makefile prints the targets that it is asked to make."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    (tmp_path / "Makefile").write_text("lint test:\n\t@echo $@ $(ARGS)\n")
    return tmp_path


def commit(project: Path, message: str) -> None:
    for command in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", message)):
        subprocess.run(["git", *IDENTITY, *command], cwd=project, check=True)


def run_ci(project: Path) -> subprocess.CompletedProcess[str]:
    """Run the project's `.ci/run` as it runs in a terminal, even if `make` started the tests with
    arguments."""
    environment = {name: value for name, value in os.environ.items() if name not in OF_MAKE}
    return subprocess.run(
        [project / ".ci" / "run"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment,
    )


def test_a_commit_message_with_the_line_tests_all_runs_the_whole_sets(project: Path) -> None:
    commit(project, "Mend it\n\nTests: all")
    assert run_ci(project).stdout.split() == ["lint", "test", "--all"]


def test_the_fixed_set_runs_without_a_history_or_if_the_message_does_not_ask_for_all_tests(
    project: Path,
) -> None:
    assert run_ci(project).stdout.split() == ["lint", "test"]
    commit(project, "Mend it")
    assert run_ci(project).stdout.split() == ["lint", "test"]
