"""Tools of the tests' own that misbehave in every way that a process can live through, and one that does not."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tools.contract import ErrorCode, Level, Tool, ToolContext, ToolError, ToolResult

HUNDRED_MB = 100_000_000
SERVICE = "bad.service"
SECRET = "hunter2-of-the-bad-service"


class Unspeakable(Exception):
    """Cannot even be shown."""

    def __str__(self) -> str:
        raise RuntimeError("its __str__ raises")

    __repr__ = __str__


class FallingList(list[int]):
    """Raises as soon as somebody reads it."""

    def __iter__(self) -> Iterator[int]:
        raise RuntimeError("its __iter__ raises")


class FallingModel(BaseModel):
    """Raises when it is dumped."""

    n: int = 1

    def model_dump(self, **_: Any) -> dict[str, Any]:
        raise SystemExit("its model_dump exits")


class NotJson:
    """Something that JSON cannot hold."""


def _raises(context: ToolContext) -> ToolResult:
    raise RuntimeError(f"refused {context.credentials[SERVICE]['token']}")


def _exits(context: ToolContext) -> ToolResult:
    sys.exit(3)


def _runs_out(context: ToolContext) -> ToolResult:
    raise MemoryError


def _is_unspeakable(context: ToolContext) -> ToolResult:
    raise Unspeakable


def _hangs(context: ToolContext) -> ToolResult:
    threading.Event().wait(3)
    return ToolResult.ok("too late")


def _is_huge(context: ToolContext) -> ToolResult:
    return ToolResult.ok({"text": "x" * HUNDRED_MB})


def _is_no_json(context: ToolContext) -> ToolResult:
    return ToolResult.ok({"what": NotJson()})


def _is_endless(context: ToolContext) -> ToolResult:
    data: dict[str, Any] = {}
    data["me"] = data
    return ToolResult.ok(data)


def _cannot_be_read(context: ToolContext) -> ToolResult:
    return ToolResult.ok({"rows": FallingList([1])})


def _cannot_be_dumped(context: ToolContext) -> ToolResult:
    return ToolResult.ok({"row": FallingModel()})


def _is_nothing(context: ToolContext) -> ToolResult:
    return None  # type: ignore[return-value]  # that is what it does wrong


def _prints(context: ToolContext) -> ToolResult:
    token = context.credentials[SERVICE]["token"]
    print(f"stdout {token}")
    print(f"stderr {token}", file=sys.stderr)
    return ToolResult.ok({}, f"Printed {token}")


def _babbles(context: ToolContext) -> ToolResult:
    token = context.credentials[SERVICE]["token"]
    context.logger.warning("logged %s", token)
    context.progress(0.5, f"with {token}")
    return ToolResult.ok({"token": token, token: 1}, f"Used {token}", f"# {token}", source=token)


def _tells(context: ToolContext) -> ToolResult:
    raise ToolError(ErrorCode.UNAUTHORIZED, f"{context.credentials[SERVICE]['token']} was refused.")


WAYS: dict[str, Callable[[ToolContext], ToolResult]] = {
    "raises": _raises,
    "exits": _exits,
    "runs out": _runs_out,
    "is unspeakable": _is_unspeakable,
    "hangs": _hangs,
    "is huge": _is_huge,
    "is no JSON": _is_no_json,
    "is endless": _is_endless,
    "cannot be read": _cannot_be_read,
    "cannot be dumped": _cannot_be_dumped,
    "is nothing": _is_nothing,
    "prints": _prints,
    "babbles": _babbles,
    "tells": _tells,
}


class Misbehave(Tool):
    """A read that does it in the way that it is told."""

    name = "bad.read"
    description = "Misbehaves."
    level = Level.READ
    timeout_s = 20.0

    class Params(BaseModel):
        how: str

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        return WAYS[params.how](context)


class MisbehaveLater(Misbehave):
    """The same in an `async def`; the hanging one does not heed its cancellation."""

    name = "bad.async"

    async def execute(self, params: Any, context: ToolContext) -> ToolResult:  # type: ignore[override]
        await asyncio.sleep(0)
        return WAYS[params.how](context)


class MisbehaveOutside(Misbehave):
    """The same after a change outside, so that nobody may say that nothing was done."""

    name = "bad.write"
    level = Level.WRITE


class MisbehaveBriefly(Misbehave):
    """The same, given up soon."""

    name = "bad.brief"
    timeout_s = 0.3


class MisbehaveBrieflyLater(MisbehaveLater):
    """The same in an `async def`."""

    name = "bad.briefAsync"
    timeout_s = 0.3


class Behave(Tool):
    """A read that tells in which process it runs and how much memory that uses now, in MB."""

    name = "bad.good"
    description = "Behaves."
    level = Level.READ
    volatile = True

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        memory = pages * os.sysconf("SC_PAGE_SIZE") // 1_000_000
        return ToolResult.ok({"pid": os.getpid(), "memory": memory, "json": json.dumps([1])}, "Behaved")


PROBES = (Misbehave, MisbehaveLater, MisbehaveOutside, MisbehaveBriefly, MisbehaveBrieflyLater, Behave)
