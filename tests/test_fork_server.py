"""A process from the fork server (tests/fork_server.py) behaves like a process that was started on
its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from tests.awaiting import await_that
from tests.fork_server import ForkedProcess, fork_server

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="other systems start every process alone"
)

PRINTS_STATE = """
import json, os, sys
print(json.dumps({
    "ours": sorted(name for name in sys.modules if name.partition(".")[0] in {"agents", "gadget_site", "tools"}),
    "variables": dict(os.environ), "arguments": sys.argv, "name": __name__, "settings": "django.conf" in sys.modules,
    "session": os.getsid(0), "parent": os.getppid(), "files": sorted(os.listdir("/proc/self/fd")),
}))
sys.exit(3)
"""
WAITS = "import time\nprint('here', flush=True)\ntime.sleep(60)\n"
STARTS = """
import sys, time
from pathlib import Path
from tests.awaiting import await_that
from tests.fork_server import ForkServer
process = ForkServer(Path.cwd()).start([sys.executable, sys.argv[1]], {})
process.stdout.readline()
print(process.pid, flush=True)
time.sleep(60)
"""


def start(tmp_path: Path, program: str, *arguments: str, **variables: str) -> ForkedProcess:
    file = tmp_path / "program.py"
    file.write_text(program)
    return fork_server(settings.BASE_DIR).start([sys.executable, str(file), *arguments], variables)


def test_a_forked_process_has_its_own_variables_arguments_and_session_without_our_modules(
    tmp_path: Path,
) -> None:
    process = start(tmp_path, PRINTS_STATE, "one", "two", GADGET_QUEUE="x")
    state = json.loads(process.stdout.read())
    assert process.wait(10) == 3
    assert state["ours"] == []
    assert state["variables"] == {"GADGET_QUEUE": "x"}
    assert state["arguments"] == [str(tmp_path / "program.py"), "one", "two"]
    assert state["name"] == "__main__"
    assert state["settings"], "the libraries are there"
    assert state["session"] == process.pid
    assert state["parent"] == os.getpid()
    assert len(state["files"]) == 4, "input, output, errors, and the folder that is listed"


def test_the_exit_code_is_returned_to_the_starter(tmp_path: Path) -> None:
    process = start(tmp_path, WAITS)
    assert process.stdout.readline() == "here\n"
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.05)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(10) == -signal.SIGKILL


def test_a_forked_process_ends_with_its_starter(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(WAITS)
    command = [sys.executable, "-c", STARTS, str(program)]
    with subprocess.Popen(
        command, cwd=settings.BASE_DIR, stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdout is not None
        process = Path(f"/proc/{int(starter.stdout.readline())}")
        assert process.exists()
        starter.kill()
    await_that(lambda: not process.exists(), "it has ended", seconds=20)
