"""100 simultaneous runs as hand-written loops: one process for each of Gadget's workers, and one
thread for each run."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import django

django.setup()

from django.db import connection  # noqa: E402
from openai import OpenAI  # noqa: E402

from tests.bench.by_hand import assert_all_is_kept, messages_by_hand, run_by_hand  # noqa: E402

PROCESSES = 2


def crowd_by_hand(model_url: str, runs: int, passes: int, calls: int) -> float:
    """Measure the seconds from the start of all runs to the end of the last one; the processes are
    ready before the start.

    Raises:
        AssertionError: a message was not stored.
    """
    each = runs // PROCESSES
    with messages_by_hand():
        processes = [_start(model_url, number * each, each) for number in range(PROCESSES)]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        began = time.monotonic()
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        codes = [process.wait() for process in processes]
        seconds = time.monotonic() - began
        assert not any(codes)
        assert_all_is_kept(runs, passes, calls)
    return seconds


def _start(model_url: str, first: int, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.bench.crowd_by_hand", model_url, str(first), str(count)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def main(model_url: str, first: int, count: int) -> None:
    """Get ready, wait for a line of input, and run this number of loops at the same time."""
    start = threading.Event()
    with OpenAI(base_url=model_url, api_key="sk-bench") as client:

        def work(run: int) -> None:
            start.wait()
            try:
                run_by_hand(client, run)
            finally:
                connection.close()

        threads = [threading.Thread(target=work, args=(first + number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        print("ready", flush=True)
        sys.stdin.readline()
        start.set()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
