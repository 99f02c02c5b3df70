"""Kinto, a published HTTP API with its own description, as a real process on loopback with an empty
store."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tests.processes import find_free_port

PATIENCE_S = 40.0


@contextmanager
def running_kinto(folder: Path) -> Iterator[str]:
    """Run Kinto during the block, and yield its base address."""
    settings, log = folder / "kinto.ini", folder / "kinto.log"
    program = str(Path(sys.executable).with_name("kinto"))
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    backends = ["--backend=memory", "--cache-backend=memory"]
    subprocess.run(
        [program, "init", "--ini", str(settings), *backends],
        check=True,
        capture_output=True,
        env=environment,
    )
    port = find_free_port()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program, "start", "--ini", str(settings), "--port", str(port)],
            stdout=output,
            stderr=output,
            env=environment,
        )
    try:
        _await(f"http://127.0.0.1:{port}/v1/__api__", process, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def _await(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urlopen(url, timeout=5):
                return
        except (URLError, OSError):
            told = log.read_text(errors="replace")
            assert process.poll() is None, f"Kinto ended:\n{told}"
            assert time.monotonic() < deadline, f"Kinto did not respond:\n{told}"
            time.sleep(0.05)
