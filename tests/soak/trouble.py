"""Random trouble of one host: kill -9 and SIGSTOP of workers, dead sweepers, a wiped Redis."""

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
LINE_OF_LOG = re.compile(r"\d{4}-\d\d-\d\dT")
MAX_OF_TRACE = 12
"""Lines."""


def alarms_of(process: RealProcess) -> list[str]:
    """Each failure of the engine that the process has logged, with where and why."""
    found = [process.lines[at:] for at, line in enumerate(process.lines) if ALARM in line]
    return ["\n    ".join([f"{process.name}: {lines[0]}", *_trace(lines[1:])]) for lines in found]


def _trace(lines: list[str]) -> list[str]:
    """The end of the trace that these lines begin with."""
    return list(takewhile(lambda line: not LINE_OF_LOG.match(line), lines))[-MAX_OF_TRACE:]


class Trouble(Protocol):
    """Harms a running installation; `done` counts every kind of harm, and `unit` names the kind that goals count."""

    unit: str
    done: Counter[str]

    @property
    def alarms(self) -> list[str]: ...

    def replace_the_dead(self) -> None: ...

    def ready_workers(self) -> list[RealProcess]:
        """Return the workers that take runs now."""

    def act(self) -> None:
        """Harm somebody, if it is time again."""

    def calm_down(self) -> None:
        """Undo all harm."""


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
        """Start what is missing, without waiting for it."""
        processes = self._site.installation.processes
        for dead in [process for process in processes if not process.is_alive]:
            processes.remove(dead)
            self._alarms += alarms_of(dead)
            self._paused.pop(dead, None)
        if not any(process.name == "sweeper" for process in processes):
            self._site.installation.spawn(build_sweeper_process())
        for _ in range(WORKERS - len(self._site.workers())):
            self._number += 1
            self._site.installation.spawn(build_worker_process(self._number))

    @property
    def alarms(self) -> list[str]:
        """Of the dead and of the living."""
        return self._alarms + [alarm for each in self._site.installation.processes for alarm in alarms_of(each)]

    def ready_workers(self) -> list[RealProcess]:
        """Those that take runs now."""
        ready = [each for each in self._site.workers() if any("worker ready" in line for line in each.lines)]
        return [each for each in ready if each not in self._paused]

    def act(self) -> None:
        """Harm somebody, if it is time again."""
        now = time.monotonic()
        for process in [each for each, until in self._paused.items() if until < now]:
            process.resume()
            del self._paused[process]
        victims = self.ready_workers()
        if now < self._next_at or not victims or (len(victims) == 1 and self._chance.random() < 0.9):
            return
        self._next_at = now + self._chance.uniform(0, LONGEST_PEACE_S)
        self._harm(self._busiest(victims))

    def calm_down(self) -> None:
        """No more harm; whoever stands still goes on."""
        for process in self._paused:
            process.resume()
        self._paused.clear()

    def _harm(self, victim: RealProcess) -> None:
        kind = self._chance.choices(("kills", "pauses", "dead sweepers", "wiped Redis"), (84, 10, 4, 2))[0]
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

    def _busiest(self, victims: list[RealProcess]) -> RealProcess:
        """Mostly somebody who drives a run just now."""
        owners = Run.objects.filter(status=RunStatus.RUNNING).values_list("lease_owner", flat=True)
        pids = {owner.partition("-")[0] for owner in owners}
        busy = [victim for victim in victims if str(victim.pid) in pids]
        return self._chance.choice(busy if busy and self._chance.random() < 0.9 else victims)
