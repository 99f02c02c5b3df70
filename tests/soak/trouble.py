"""Random trouble on one host: SIGKILL and SIGSTOP for workers, killed sweepers, an emptied
Redis."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from itertools import takewhile
from typing import Protocol

from agents.runs.models import Run, RunStatus
from gadget_site.management.processes import build_sweeper_process, build_worker_process
from tests.faults.site import Site
from tests.processes import RealProcess

WORKERS = 3
LONGER_THAN_A_LEASE_S = (3.5, 6.0)
LONGEST_PEACE_S = 1.5
ALARM = "the engine failed"
LOG_LINE = re.compile(r"\d{4}-\d\d-\d\dT")
MAX_TRACE_LINES = 12


def list_alarms(process: RealProcess) -> list[str]:
    """List the failures of the engine in the process's log, each with the end of its traceback."""
    found = [process.lines[at:] for at, line in enumerate(process.lines) if ALARM in line]
    return [
        "\n    ".join([f"{process.name}: {lines[0]}", *_cut_trace(lines[1:])]) for lines in found
    ]


def _cut_trace(lines: list[str]) -> list[str]:
    """Return the end of the traceback at the beginning of these lines."""
    return list(takewhile(lambda line: not LOG_LINE.match(line), lines))[-MAX_TRACE_LINES:]


class Trouble(Protocol):
    """Harms a running installation; `done` counts each kind of harm, and the soak continues until
    the kind in `unit` has happened often enough."""

    unit: str
    done: Counter[str]

    @property
    def alarms(self) -> list[str]: ...

    def replace_the_dead(self) -> None: ...

    def ready_workers(self) -> list[RealProcess]:
        """Return the workers that currently take runs."""

    def act(self) -> None:
        """Harm a process, if it is time."""

    def calm_down(self) -> None:
        """Undo all harm that can be undone, so that the runs can end."""


class Kills:
    """Keeps three workers and a sweeper running, and harms them at random moments."""

    unit = "kills"

    def __init__(self, site: Site, chance: random.Random) -> None:
        self.done: Counter[str] = Counter()
        self._alarms: list[str] = []
        self._site, self._chance = site, chance
        self._number = 0
        self._paused: dict[RealProcess, float] = {}
        self._next_at = time.monotonic()

    def replace_the_dead(self) -> None:
        """Replace processes that have ended, without waiting until the new ones are ready."""
        processes = self._site.installation.processes
        for dead in [process for process in processes if not process.is_alive]:
            processes.remove(dead)
            self._alarms += list_alarms(dead)
            self._paused.pop(dead, None)
        if not any(process.name == "sweeper" for process in processes):
            self._site.installation.spawn(build_sweeper_process())
        for _ in range(WORKERS - len(self._site.workers())):
            self._number += 1
            self._site.installation.spawn(build_worker_process(self._number))

    @property
    def alarms(self) -> list[str]:
        """Failures logged by ended and running processes."""
        return self._alarms + [
            alarm for each in self._site.installation.processes for alarm in list_alarms(each)
        ]

    def ready_workers(self) -> list[RealProcess]:
        """Return the workers that currently take runs."""
        ready = [
            each
            for each in self._site.workers()
            if any("worker ready" in line for line in each.lines)
        ]
        return [each for each in ready if each not in self._paused]

    def act(self) -> None:
        """Resume workers whose pause is over, and harm a process if it is time to do so."""
        now = time.monotonic()
        for process in [each for each, until in self._paused.items() if until < now]:
            process.resume()
            del self._paused[process]
        victims = self.ready_workers()
        if (
            now < self._next_at
            or not victims
            or (len(victims) == 1 and self._chance.random() < 0.9)
        ):
            return
        self._next_at = now + self._chance.uniform(0, LONGEST_PEACE_S)
        self._harm(self._choose_victim(victims))

    def calm_down(self) -> None:
        """Resume all paused processes."""
        for process in self._paused:
            process.resume()
        self._paused.clear()

    def _harm(self, victim: RealProcess) -> None:
        kind = self._chance.choices(
            ("kills", "pauses", "dead sweepers", "wiped Redis"), (84, 10, 4, 2)
        )[0]
        self.done[kind] += 1
        if kind == "kills":
            victim.kill()
        elif kind == "pauses":
            self._site.pause(victim)
            self._paused[victim] = time.monotonic() + self._chance.uniform(*LONGER_THAN_A_LEASE_S)
        elif kind == "dead sweepers":
            self._site.installation.process("sweeper").kill()
        else:
            self._site.installation.wipe_redis()

    def _choose_victim(self, victims: list[RealProcess]) -> RealProcess:
        """Choose a victim, usually a worker that drives a run."""
        owners = Run.objects.filter(status=RunStatus.RUNNING).values_list("lease_owner", flat=True)
        pids = {owner.partition("-")[0] for owner in owners}
        busy = [victim for victim in victims if str(victim.pid) in pids]
        return self._chance.choice(busy if busy and self._chance.random() < 0.9 else victims)
