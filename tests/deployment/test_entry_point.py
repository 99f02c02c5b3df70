"""The entry point starts every part as an unprivileged user on a read-only tree, and health checks
find parts that fail."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from django.db import connection

from tests.deployment.container import USER, Image, build_image, build_tree, find_obstacle
from tests.deployment.package import ROOT
from tests.http import get
from tests.processes import RealProcess, current_database_url, find_free_port
from tests.services import TEST_ENVIRONMENT

DOMAIN = "gadget.example.com"
KEYS = ("SECRET_KEY", "GADGET_ENCRYPTION_KEYS", "GADGET_AUDIT_KEYS")
HEALTH_CHECK = ROOT / "deploy" / "healthcheck.py"


@pytest.fixture
def port() -> int:
    return find_free_port()


@contextmanager
def open_folder() -> Iterator[Path]:
    """Yield a temporary folder that every user can read."""
    folder = Path(tempfile.mkdtemp(prefix="gadget-image-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def tree(wheel: Path) -> Iterator[Path]:
    """The installed tree, which no container can write to."""
    if obstacle := find_obstacle():
        pytest.skip(obstacle)
    with open_folder() as folder:
        build_tree(wheel, folder / "tree")
        yield folder / "tree"


@pytest.fixture
def image(tree: Path, port: int) -> Iterator[Image]:
    keys = {name: TEST_ENVIRONMENT[name] for name in KEYS}
    with open_folder() as folder:
        yield build_image(tree, folder, {**keys, "ALLOWED_HOSTS": DOMAIN, "PORT": str(port)})


@pytest.fixture
def deployed(image: Image, transactional_db: None) -> Image:
    """The image on the tests' own PostgreSQL, or on SQLite in its volume."""
    if connection.vendor == "sqlite":
        return image
    return replace(image, settings={**image.settings, "DATABASE_URL": current_database_url()})


@pytest.fixture
def running() -> Iterator[ExitStack]:
    """Collect the containers that a test starts, and stop them in reverse order."""
    with ExitStack() as stack:
        yield stack


def start(image: Image, running: ExitStack, *words: str) -> RealProcess:
    container = image.start(*words)
    running.callback(container.stop, 20)
    return container


def test_only_the_volume_and_tmp_are_writable(image: Image) -> None:
    told = image.run(
        "sh", "-c", 'id -u; touch "$GADGET_DATA_DIR/file" "$TMPDIR/file" && echo written'
    )
    assert told.stdout.split() == [str(USER), "written"], told.stderr
    open_to_all = image.tree / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    for place in (open_to_all, Path("/var/tmp")):
        refused = image.run("touch", str(place / "file"))
        assert refused.returncode == 1
        assert "Read-only file system" in refused.stderr
    open_to_all.rmdir()


def test_every_part_starts_becomes_healthy_and_stops_cleanly(
    deployed: Image, running: ExitStack, port: int
) -> None:
    migrated = deployed.run("entrypoint", "migrate")
    assert migrated.returncode == 0, migrated.stderr
    start(deployed, running, "python", "-m", "gadget_site.redis_server", str(deployed.volume))
    parts = {
        name: start(deployed, running, "entrypoint", name) for name in ("web", "worker", "sweeper")
    }
    for part in parts.values():
        part.await_line(" ready")

    for name, subject in (("web", "web"), ("worker", "heartbeat"), ("sweeper", "heartbeat")):
        checked = deployed.execute(parts[name], "healthcheck", subject)
        assert (checked.returncode, checked.stderr) == (0, ""), name
    ready = get(f"http://127.0.0.1:{port}/api/ready", {"Host": DOMAIN})
    assert (ready.status, ready.json()["degraded"]) == (200, [])
    assert get(f"http://127.0.0.1:{port}/static/icon.svg", {"Host": DOMAIN}).status == 200
    assert {path.stat().st_uid for path in deployed.volume.rglob("*")} == {USER}

    examined = deployed.execute(parts["web"], "gadget", "doctor", "--json")
    wrong = {
        finding["subject"]: finding["text"]
        for finding in json.loads(examined.stdout)
        if not finding["is_well"]
    }
    assert wrong == {"provider": "there is no provider yet"}

    for part in parts.values():
        part.stop(60)
        assert part.exit_code == 0, part.output
        assert "Traceback" not in part.output


def test_without_a_command_all_parts_start_in_one_container(
    deployed: Image, running: ExitStack
) -> None:
    whole = start(deployed, running, "entrypoint")
    whole.await_line("Gadget is ready: ")
    assert deployed.execute(whole, "healthcheck", "web").returncode == 0
    whole.stop(60)
    assert whole.exit_code == 0, whole.output
    assert whole.lines[-1] == "Gadget has stopped."


def check(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HEALTH_CHECK), *words]
    return subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )


def test_a_part_without_a_heartbeat_is_unhealthy(tmp_path: Path) -> None:
    file = tmp_path / "heartbeat"
    absent = check("heartbeat", HEARTBEAT_FILE=str(file))
    assert absent.returncode == 1
    assert "No such file" in absent.stderr
    file.touch()
    assert check("heartbeat", HEARTBEAT_FILE=str(file)).returncode == 0
    os.utime(file, (0, 0))
    frozen = check("heartbeat", HEARTBEAT_FILE=str(file))
    assert frozen.returncode == 1
    assert frozen.stderr.startswith("no heartbeat for ")


def test_a_web_part_that_does_not_respond_is_unhealthy(port: int) -> None:
    silent = check("web", PORT=str(port))
    assert silent.returncode == 1
    assert "Connection refused" in silent.stderr
