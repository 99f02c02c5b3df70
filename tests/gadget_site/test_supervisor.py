"""A part that ends unexpectedly is restarted, parts that keep crashing stop everything, and nothing
outlives the supervisor."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gadget_site.management.parts_output import PartsOutput
from gadget_site.management.processes import ProcessSpec
from gadget_site.management.supervisor import DEATHS_ALLOWED, Supervisor, TooManyDeathsError

ROOT = Path(__file__).resolve().parents[2]
SLEEPER = "import os, time; print('pid', os.getpid(), flush=True); time.sleep(60)"
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
PARENT = (
    "import os, time, subprocess, sys; p = subprocess.Popen(['sleep', '60']); "
    "print('pid', p.pid, flush=True); p.wait()"
)
FROZEN = (
    "import ctypes, os; from pathlib import Path; print('pid', os.getpid(), flush=True);"
    "Path(os.environ['HEARTBEAT_FILE']).touch(); ctypes.PyDLL(None).sleep(60)"
)
KEEPER = f"""
import sys, time
from pathlib import Path
from gadget_site.management.parts_output import PartsOutput
from gadget_site.management.processes import ProcessSpec
from gadget_site.management.parts_output import PartsOutput
from gadget_site.management.supervisor import Supervisor
supervisor = Supervisor(Path({str(ROOT)!r}), PartsOutput(sys.stdout))
supervisor.start(ProcessSpec("sleeper", (sys.executable, "-c", {SLEEPER!r})))
time.sleep(60)
"""


def test_lines_are_prefixed_with_the_name_of_their_part() -> None:
    output = io.StringIO()
    supervisor = Supervisor(ROOT, PartsOutput(output))
    supervisor.start(python("web", SLEEPER))
    until(lambda: "web      | pid " in output.getvalue())
    supervisor.stop()


def test_a_killed_part_is_started_again() -> None:
    output = io.StringIO()
    supervisor = Supervisor(ROOT, PartsOutput(output))
    supervisor.start(python("web", SLEEPER))
    until(lambda: output.getvalue().count("pid ") == 1)
    os.kill(pids(output)[0], signal.SIGKILL)
    until(lambda: output.getvalue().count("pid ") == 2, supervisor)
    assert "web      | ended by SIGKILL; restarting it" in output.getvalue()
    supervisor.stop()
    assert not any(is_alive(pid) for pid in pids(output))


def test_five_crashes_in_a_minute_stop_everything_and_the_last_lines_give_the_reason() -> None:
    output = io.StringIO()
    supervisor = Supervisor(ROOT, PartsOutput(output))
    supervisor.start(python("sweeper", "print('no database'); raise SystemExit(3)"))
    with pytest.raises(
        TooManyDeathsError,
        match=r"5 processes died .* sweeper \(ended with code 3\)[\s\S]*no database",
    ):
        supervisor.watch(30)
    supervisor.stop()


def test_a_part_whose_heartbeat_stopped_is_replaced_as_often_as_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gadget_site.management.supervisor.FROZEN_AFTER_S", 0.1)
    output = io.StringIO()
    supervisor = Supervisor(ROOT, PartsOutput(output))
    supervisor.start(python("worker1", FROZEN))
    until(lambda: output.getvalue().count("pid ") > DEATHS_ALLOWED, supervisor)
    assert "worker1  | no heartbeat for 0 s; killing it" in output.getvalue()
    assert "worker1  | ended by SIGKILL; restarting it" in output.getvalue()
    supervisor.stop()
    assert not any(is_alive(pid) for pid in pids(output))


def test_a_part_that_never_had_a_heartbeat_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gadget_site.management.supervisor.FROZEN_AFTER_S", 0.1)
    output = io.StringIO()
    supervisor = Supervisor(ROOT, PartsOutput(output))
    supervisor.start(python("redis", SLEEPER))
    until(lambda: "pid " in output.getvalue())
    supervisor.watch(0.5)
    assert "killed" not in output.getvalue()
    supervisor.stop()


def test_time_while_the_supervisor_was_suspended_is_not_treated_as_a_missed_heartbeat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gadget_site.management.supervisor.FROZEN_AFTER_S", 0.3)
    monkeypatch.setattr("gadget_site.management.supervisor.CHECK_EVERY_S", 0.1)
    output = io.StringIO()
    supervisor = Supervisor(ROOT, PartsOutput(output))
    supervisor.start(python("worker1", FROZEN))
    until(lambda: "pid " in output.getvalue())
    supervisor.watch(0.01)
    time.sleep(0.5)
    supervisor.watch(0.01)
    assert "killed" not in output.getvalue()
    supervisor.stop()


def test_the_output_of_a_quiet_part_is_printed_only_when_the_part_ends() -> None:
    output = io.StringIO()
    supervisor = Supervisor(ROOT, PartsOutput(output))
    supervisor.start(
        ProcessSpec(
            "redis", (sys.executable, "-c", "print('secret of a good night')"), is_quiet=True
        )
    )
    until(lambda: "restarting it" in output.getvalue(), supervisor)
    assert output.getvalue().startswith(
        "redis    | secret of a good night\nredis    | ended with code 0"
    )
    supervisor.stop()


def test_a_part_that_ignores_sigterm_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gadget_site.management.supervisor.STOP_PATIENCE_S", 0.3)
    output = io.StringIO()
    supervisor = Supervisor(ROOT, PartsOutput(output))
    supervisor.start(python("worker1", DEAF))
    until(lambda: "deaf" in output.getvalue())
    supervisor.stop()
    assert "did not stop in time; killing it" in output.getvalue()


def test_processes_started_by_a_part_end_with_it() -> None:
    output = io.StringIO()
    supervisor = Supervisor(ROOT, PartsOutput(output))
    supervisor.start(python("web", PARENT))
    until(lambda: "pid " in output.getvalue())
    supervisor.stop()
    until(lambda: not is_alive(pids(output)[0]))


def test_parts_end_when_their_supervisor_is_killed() -> None:
    keeper = subprocess.Popen(
        [sys.executable, "-c", KEEPER], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert keeper.stdout is not None
    pid = int(keeper.stdout.readline().split()[-1])
    assert is_alive(pid)
    keeper.kill()
    keeper.wait()
    until(lambda: not is_alive(pid))


def python(name: str, code: str) -> ProcessSpec:
    return ProcessSpec(name, (sys.executable, "-c", code))


def pids(output: io.StringIO) -> list[int]:
    return [int(line.split()[-1]) for line in output.getvalue().splitlines() if "| pid " in line]


def is_alive(pid: int) -> bool:
    """Return True if the process runs; an unreaped zombie does not."""
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout
    return bool(state.strip()) and "Z" not in state


def until(
    condition: Callable[[], bool], supervisor: Supervisor | None = None, seconds: float = 15
) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        if supervisor:
            supervisor.watch(0.02)
        else:
            time.sleep(0.02)
