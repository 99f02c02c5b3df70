"""A process that starts from one with loaded libraries (tests/nursery.py) is as one that was started alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from tests.faults.awaiting import await_that
from tests.nursery import Nursling, nursery

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every process is started alone")

TELLS = """
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
from tests.faults.awaiting import await_that
from tests.nursery import Nursery
process = Nursery(Path.cwd()).start([sys.executable, sys.argv[1]], {})
process.stdout.readline()
print(process.pid, flush=True)
time.sleep(60)
"""


def start(tmp_path: Path, program: str, *arguments: str, **variables: str) -> Nursling:
    file = tmp_path / "program.py"
    file.write_text(program)
    return nursery(settings.BASE_DIR).start([sys.executable, str(file), *arguments], variables)


def test_it_has_its_own_variables_arguments_session_and_none_of_our_modules(tmp_path: Path) -> None:
    process = start(tmp_path, TELLS, "one", "two", GADGET_QUEUE="x")
    told = json.loads(process.stdout.read())
    assert process.wait(10) == 3
    assert told["ours"] == []
    assert told["variables"] == {"GADGET_QUEUE": "x"}
    assert told["arguments"] == [str(tmp_path / "program.py"), "one", "two"]
    assert told["name"] == "__main__"
    assert told["settings"], "the libraries are there"
    assert told["session"] == process.pid
    assert told["parent"] == os.getpid()
    assert len(told["files"]) == 4, "input, output, errors, and the folder that is listed"


def test_who_started_it_sees_how_it_ended(tmp_path: Path) -> None:
    process = start(tmp_path, WAITS)
    assert process.stdout.readline() == "here\n"
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.05)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(10) == -signal.SIGKILL


def test_it_ends_with_who_started_it(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(WAITS)
    command = [sys.executable, "-c", STARTS, str(program)]
    with subprocess.Popen(command, cwd=settings.BASE_DIR, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        process = Path(f"/proc/{int(starter.stdout.readline())}")
        assert process.exists()
        starter.kill()
    await_that(lambda: not process.exists(), "it has ended", seconds=20)
