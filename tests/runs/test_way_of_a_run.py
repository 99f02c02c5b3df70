"""The way of a run through the engine: how often a driver goes from one of its files into another."""

import inspect
import sys
from pathlib import Path
from types import FrameType

from agents.runs.engine.loop import advance
from agents.runs.models import RunStatus
from tests.workshop import Workshop, again, asking, call

ROOT = Path(__file__).resolve().parent.parent.parent
ENGINE = ("agents/runs/engine/", "agents/runs/events.py")
NUMBERS = "timing.py"
"""Holds durations and the clock alone."""
MOST_HOPS = 110


class Way:
    """The engine's files in the order in which a driver enters them.

    A hop is a call of a function in another file than that of the call before it; a return is a hop into a file that
    was entered before. A generator that continues is no call.
    """

    def __init__(self) -> None:
        self.files: list[str] = []
        self._generators: set[FrameType] = set()

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call of one of the engine's named functions; for `sys.setprofile`."""
        code = frame.f_code
        if event != "call" or code.co_name.startswith("<") or frame in self._generators:
            return
        if not code.co_filename.startswith(tuple(f"{ROOT / path}" for path in ENGINE)):
            return
        if code.co_flags & inspect.CO_GENERATOR:
            self._generators.add(frame)
        name = Path(code.co_filename).name
        if name != NUMBERS and (not self.files or self.files[-1] != name):
            self.files.append(name)

    @property
    def returns(self) -> int:
        return len(self.files) - len(set(self.files))


def way_of_a_read(workshop: Workshop) -> Way:
    """Drive a run that asks its model, runs a read, and asks again for the answer; its caches are warm."""
    workshop.play(asking(call("probe.clock")))
    workshop.work()
    run, way = workshop.submit(), Way()
    sys.setprofile(way.note)
    try:
        advance(run.pk)
    finally:
        sys.setprofile(None)
    assert again(run).status == RunStatus.SUCCEEDED
    return way


def test_a_driver_reaches_the_end_of_a_run_in_few_hops(workshop: Workshop) -> None:
    way = way_of_a_read(workshop)
    told = f"{len(way.files)} hops, {way.returns} of them returns: {' '.join(way.files)}"
    print(told)
    assert len(way.files) < MOST_HOPS, told
