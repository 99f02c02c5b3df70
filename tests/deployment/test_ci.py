"""Continuous integration checks the newest commit's subject before it runs lint and tests."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.source_tree import ROOT

IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.com")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose Makefile prints the targets that it was asked for."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    (tmp_path / "Makefile").write_text("lint test:\n\t@echo $@ $(ARGS)\n")
    return tmp_path


def commit(project: Path, message: str) -> None:
    for command in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", message)):
        subprocess.run(["git", *IDENTITY, *command], cwd=project, check=True)


def run_ci(project: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [project / ".ci" / "run"], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("message", ["a" * 72, "a" * 72 + "\n\n" + "b" * 100])
def test_a_subject_of_72_characters_is_accepted(project: Path, message: str) -> None:
    commit(project, message)
    assert run_ci(project).stdout.split() == ["lint", "test"]


def test_a_longer_subject_fails_before_anything_runs(project: Path) -> None:
    commit(project, "a" * 73)
    done = run_ci(project)
    assert (done.returncode, done.stdout) == (1, "")
    assert "has 73 characters" in done.stderr


def test_the_line_tests_all_runs_the_whole_sets(project: Path) -> None:
    commit(project, "Mend it\n\nTests: all")
    assert run_ci(project).stdout.split() == ["lint", "test", "--all"]


def test_no_history_has_no_subject_to_check(project: Path) -> None:
    assert run_ci(project).stdout.split() == ["lint", "test"]
