"""Count the hops between modules that a driver takes through our code: `python -m tests.hops [--verbose]`.

The run asks its model, runs one read, and asks again for the answer, on a scratch SQLite database with warm caches.

A *hop* is a call of a named function in another module than that of its caller. Only our own functions count, so a call
through Django or the standard library belongs to our function that made it. Properties, comprehensions and resumed
generators do not count. Threads of tools are not followed.

A *return* is a hop to a module to which an earlier hop led, where hops to the same module in a row count as one visit.

Hops are counted for two:

- The *driver* makes every call, as the interpreter does.
- The *reader* follows `advance` too, but reads each function once. These are the places at which a reader has to open
  another file.

Each is counted in the engine, which is the steps of a run and its events, and in all of our code that the run reaches:
the engine with its queries, its provider and its tools.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType

ROOT = Path(__file__).resolve().parent.parent
OURS = tuple(f"{ROOT / folder}/" for folder in ("agents", "tools", "gadget_site"))
ENGINE = ("agents/runs/engine/", "agents/runs/events.py", "agents/runs/model_events.py")
DURATIONS = "agents/runs/engine/timing.py"
"""Holds durations and a clock alone: names that are read in passing."""


@dataclass(frozen=True)
class Hop:
    """A call from one module into another; `is_first` says that the function had not been entered before."""

    caller: str
    module: str
    function: str
    is_first: bool


@dataclass
class HopRecorder:
    """Records the hops of one thread between the modules that `is_counted` accepts; `note` is for `sys.setprofile`."""

    is_counted: Callable[[str], bool]
    hops: list[Hop] = field(default_factory=list)
    _entered: set[CodeType] = field(default_factory=set)
    _generators: set[FrameType] = field(default_factory=set)
    _modules: dict[CodeType, str] = field(default_factory=dict)

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call if it is a hop."""
        code = frame.f_code
        if event != "call" or frame in self._generators or not (module := self._find_module(code)):
            return
        if code.co_flags & inspect.CO_GENERATOR:
            self._generators.add(frame)
        if is_property(frame):
            return
        is_first = code not in self._entered
        self._entered.add(code)
        caller = self._find_caller(frame)
        if caller and caller != module:
            self.hops.append(Hop(caller, module, code.co_qualname, is_first))

    def _find_caller(self, frame: FrameType) -> str:
        """Return the module of the nearest counted function below in the stack; empty if there is none."""
        back = frame.f_back
        while back is not None:
            if module := self._find_module(back.f_code):
                return module
            back = back.f_back
        return ""

    def _find_module(self, code: CodeType) -> str:
        """Return the path of the code's module; empty if it is not counted."""
        if code not in self._modules:
            is_ours = code.co_filename.startswith(OURS) and not code.co_name.startswith("<")
            path = str(Path(code.co_filename).relative_to(ROOT)) if is_ours else ""
            self._modules[code] = path if path and self.is_counted(path) else ""
        return self._modules[code]


def is_property(frame: FrameType) -> bool:
    """Return True for the call of a property."""
    owner = type(frame.f_locals.get("self"))
    found = inspect.getattr_static(owner, frame.f_code.co_name, None)
    return isinstance(found, property) or type(found).__name__ == "cached_property"


def is_engine(path: str) -> bool:
    """Return True for a module that takes part in the steps of a run."""
    return path.startswith(ENGINE) and path != DURATIONS


def is_ours(path: str) -> bool:
    """Return True for every module of ours."""
    return bool(path)


def read_once(hops: list[Hop]) -> list[Hop]:
    """Return the hops that a reader takes, who reads each function once."""
    return [hop for hop in hops if hop.is_first]


def list_visits(hops: list[Hop]) -> list[str]:
    """List the modules in the order in which the hops led to them, one visit for hops in a row."""
    visits: list[str] = []
    for hop in hops:
        if not visits or visits[-1] != hop.module:
            visits.append(hop.module)
    return visits


def count_returns(hops: list[Hop]) -> Counter[str]:
    """Count the returns to each module."""
    visits = Counter(list_visits(hops))
    return Counter({module: times - 1 for module, times in visits.items() if times > 1})


def record_hops(act: Callable[[], object], is_counted: Callable[[str], bool]) -> list[Hop]:
    """Record the hops of an act in this thread."""
    recorder = HopRecorder(is_counted)
    sys.setprofile(recorder.note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return recorder.hops


def describe_hops(hops: list[Hop]) -> str:
    """Describe hops in one line: their number, the returns, and the modules that were returned to most often."""
    returns = count_returns(hops)
    most = ", ".join(f"{Path(module).name} {times}" for module, times in returns.most_common(4)) or "none"
    return f"{len(hops):>4} hops, {returns.total():>4} returns; most: {most}"


def drive_one(is_counted: Callable[[str], bool], slug: str) -> list[Hop]:
    """Drive the run on the database as it is, after another one that warmed the caches; return its hops."""
    loop, models = (importlib.import_module(f"agents.runs.{name}") for name in ("engine.loop", "models"))
    tests = importlib.import_module("tests.workshop")
    workshop = tests.build_workshop(slug)
    workshop.play(tests.asking(tests.call("probe.clock")))
    workshop.work()
    run = workshop.submit()
    hops = record_hops(lambda: loop.advance(run.pk), is_counted)
    assert tests.again(run).status == models.RunStatus.SUCCEEDED
    return hops


def main() -> int:
    """Count on a scratch database and print the figures; return 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.hops", description="Count the hops of a driver.")
    parser.add_argument("--verbose", action="store_true", help="print each hop")
    options = parser.parse_args()
    os.environ["GADGET_TEST_DATABASE"] = "sqlite"
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    importlib.import_module("django").setup()
    scratch = importlib.import_module("django.test.utils")
    databases = scratch.setup_databases(verbosity=0, interactive=False)
    try:
        for name, is_counted in (("engine", is_engine), ("all code", is_ours)):
            driven = drive_one(is_counted, name.replace(" ", "-"))
            for who, hops in (("driver", driven), ("reader", read_once(driven))):
                print(f"{name + ', ' + who:<18}{describe_hops(hops)}")
                if options.verbose:
                    print(*(f"    {hop.caller} → {hop.module} {hop.function}" for hop in hops), sep="\n")
    finally:
        scratch.teardown_databases(databases, verbosity=0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
