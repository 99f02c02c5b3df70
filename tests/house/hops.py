"""Record how an action hops between the modules of our code.

A *hop* is a call to a named function that is in a different module than its caller. Only our own
functions count, so a call through Django or the standard library is attributed to our function that
made it. Properties, comprehensions and resumed generators do not count. Threads of tools are not
followed.

A *return* is a hop to a module that an earlier hop has visited; consecutive hops to the same module
count as one visit.
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType

ROOT = Path(__file__).resolve().parents[2]
OURS = tuple(f"{ROOT / folder}/" for folder in ("agents", "tools", "gadget_site"))


@dataclass(frozen=True)
class Hop:
    """A call from one module into another."""

    caller: str
    module: str
    function: str


@dataclass
class HopRecorder:
    """Records the hops of one thread, once `note` is passed to `sys.setprofile`."""

    hops: list[Hop] = field(default_factory=list)
    _generators: set[FrameType] = field(default_factory=set)
    _modules: dict[CodeType, str] = field(default_factory=dict)

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Record a call if it is a hop."""
        code = frame.f_code
        if event != "call" or frame in self._generators or not (module := self._find_module(code)):
            return
        if code.co_flags & inspect.CO_GENERATOR:
            self._generators.add(frame)
        if is_property(frame):
            return
        caller = self._find_caller(frame)
        if caller and caller != module:
            self.hops.append(Hop(caller, module, code.co_qualname))

    def _find_caller(self, frame: FrameType) -> str:
        """Return the module of the nearest calling function that is ours; empty if there is
        none."""
        back = frame.f_back
        while back is not None:
            if module := self._find_module(back.f_code):
                return module
            back = back.f_back
        return ""

    def _find_module(self, code: CodeType) -> str:
        """Return the path of the code's module; empty if it is not ours."""
        if code not in self._modules:
            is_ours = code.co_filename.startswith(OURS) and not code.co_name.startswith("<")
            self._modules[code] = str(Path(code.co_filename).relative_to(ROOT)) if is_ours else ""
        return self._modules[code]


def is_property(frame: FrameType) -> bool:
    """Return True if the frame belongs to a property."""
    owner = type(frame.f_locals.get("self"))
    found = inspect.getattr_static(owner, frame.f_code.co_name, None)
    return isinstance(found, property) or type(found).__name__ == "cached_property"


def count_returns(hops: list[Hop]) -> Counter[str]:
    """Count the returns to each module."""
    visits: list[str] = []
    for hop in hops:
        if not visits or visits[-1] != hop.module:
            visits.append(hop.module)
    return Counter({module: times - 1 for module, times in Counter(visits).items() if times > 1})


def record_hops(act: Callable[[], object]) -> list[Hop]:
    """Record the hops of an action in this thread."""
    recorder = HopRecorder()
    sys.setprofile(recorder.note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return recorder.hops
