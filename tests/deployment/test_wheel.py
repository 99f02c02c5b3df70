"""The package that `make wheel` builds contains only Gadget, completely; once installed, it runs
the main job."""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from gadget_site.demo.staff import DATA_STEWARD
from gadget_site.version import VERSION
from tests.deployment.package import ROOT, Installed
from tests.deployment.person import Person
from tests.http import get
from tests.processes import RealProcess, find_free_port

PACKAGES = ("agents", "gadget_site", "tools")
ASSETS = ("static", "templates")
LONGEST_MAIN_JOB_S = 60.0


def files_in(folder: Path) -> set[str]:
    """Return the paths of all files below the folder, relative to the checkout; compiled files are
    skipped."""
    found = (
        path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )
    return {path.relative_to(ROOT).as_posix() for path in found}


def requirements_in(name: str) -> set[Requirement]:
    lines = (
        line.partition("#")[0].strip()
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines()
    )
    return {Requirement(line) for line in lines if line}


def test_the_wheel_contains_every_file_of_the_product_and_nothing_else(wheel: Path) -> None:
    assets = {f"gadget_site/assets/{name}" for folder in ASSETS for name in files_in(ROOT / folder)}
    modules = {name for package in PACKAGES for name in files_in(ROOT / package)}
    assert any("/migrations/0001_" in name for name in modules)
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
    metadata = {name for name in names if name.startswith(f"gadget-{VERSION}.dist-info/")}
    assert names - metadata == assets | modules
    assert {name.partition("/")[2] for name in metadata} == {
        "METADATA",
        "WHEEL",
        "RECORD",
        "entry_points.txt",
    }


def test_the_wheel_requires_the_packages_of_requirements_in(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        text = archive.read(f"gadget-{VERSION}.dist-info/METADATA").decode()
    metadata = Parser().parsestr(text)
    assert {Requirement(line) for line in metadata.get_all("Requires-Dist", [])} == requirements_in(
        "requirements.in"
    )
    assert metadata["Version"] == VERSION


def test_build_requirements_are_pinned_to_the_same_versions_in_pyproject_and_both_lock_files() -> (
    None
):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pinned = {Requirement(line) for line in project["build-system"]["requires"]}
    assert pinned == requirements_in("requirements-build.in")
    for lock in ("requirements-build.lock", "requirements-dev.lock"):
        text = (ROOT / lock).read_text(encoding="utf-8")
        assert all(
            re.search(rf"^{re.escape(str(each))} ", text, flags=re.MULTILINE) for each in pinned
        ), lock


def test_the_installed_command_has_the_commands_of_manage_py(
    installed: Installed, tmp_path: Path
) -> None:
    assert installed.run(tmp_path, "--version").stdout == f"Gadget {VERSION}\n"
    told = installed.run(tmp_path, "--help")
    assert told.returncode == 0, told.stderr
    assert {"up", "doctor", "sweep", "backup", "migrate"} <= set(told.stdout.split())
    assert installed.run(tmp_path, "check").stdout.startswith("System check identified no issues")


def test_the_installed_command_creates_the_database_in_the_current_folder(
    installed: Installed, tmp_path: Path
) -> None:
    done = installed.run(tmp_path, "migrate")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "var" / "gadget.sqlite3").is_file()
    unchanged = installed.run(tmp_path, "makemigrations", "--check", "--dry-run")
    assert unchanged.returncode == 0, unchanged.stdout


def test_the_installed_command_reads_gadget_yaml_in_the_current_folder(
    installed: Installed, tmp_path: Path
) -> None:
    (tmp_path / "gadget.yaml").write_text("tools:\n  default_timeout: soon\n")
    done = installed.run(tmp_path, "check")
    assert done.returncode == 1
    assert done.stderr.startswith("Gadget cannot start. GADGET_CONFIG: gadget.yaml, line 2")


def test_the_installed_command_refuses_a_folder_with_packages_that_shadow_its_own(
    installed: Installed, tmp_path: Path
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "__init__.py").touch()
    done = installed.run(tmp_path, "check")
    assert done.returncode == 1
    hiding = tmp_path / "tools"
    assert done.stderr == (
        f"Gadget cannot start. {str(hiding)!r} would hide Gadget's own package. Start from another folder.\n"
    )
    assert not (tmp_path / "var").exists()


@pytest.fixture
def port() -> int:
    return find_free_port()


@pytest.fixture
def demo(installed: Installed, tmp_path: Path, port: int) -> Iterator[RealProcess]:
    """Run `gadget up --demo` in an empty folder."""
    running = installed.start(tmp_path, "up", "--demo", PORT=str(port))
    yield running
    running.stop(20)


@pytest.mark.alone
def test_the_installed_command_runs_the_main_job_from_an_empty_folder(
    demo: RealProcess, port: int, tmp_path: Path
) -> None:
    began, url = time.monotonic(), f"http://127.0.0.1:{port}"
    demo.await_line(f"Gadget is ready: {url}/", LONGEST_MAIN_JOB_S)
    for path in ("/static/icon.svg", "/static/css/tokens.css", "/static/vendor/pico/pico.min.css"):
        assert get(url + path).body == (ROOT / path.removeprefix("/")).read_bytes()

    approver = Person(url, "approver")
    run, approved = approver.approve_until_the_end(approver.start_example(DATA_STEWARD.name))
    assert (run["status"], approved) == ("succeeded", 2)
    assert run["answer"]
    assert time.monotonic() - began <= LONGEST_MAIN_JOB_S

    demo.stop(20)
    assert demo.exit_code == 0
    assert demo.lines[-1] == "Gadget has stopped."
    assert "Traceback" not in demo.output
    assert {path.name for path in tmp_path.iterdir()} == {"var"}
