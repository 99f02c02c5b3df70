"""Test tools that misbehave in every way that a process can survive, and one correct tool."""

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


class UnprintableError(Exception):
    """An exception whose text cannot be read."""

    def __str__(self) -> str:
        raise RuntimeError("its __str__ raises")

    __repr__ = __str__


class RaisingList(list[int]):
    """A list that raises when it is read."""

    def __iter__(self) -> Iterator[int]:
        raise RuntimeError("its __iter__ raises")


class RaisingModel(BaseModel):
    """A model that raises when it is dumped."""

    n: int = 1

    def model_dump(self, **_: Any) -> dict[str, Any]:
        raise SystemExit("its model_dump exits")


class NotJson:
    """An object without a JSON form."""


def _raise_error(context: ToolContext) -> ToolResult:
    raise RuntimeError(f"refused {context.credentials[SERVICE]['token']}")


def _exit(context: ToolContext) -> ToolResult:
    sys.exit(3)


def _run_out_of_memory(context: ToolContext) -> ToolResult:
    raise MemoryError


def _raise_unprintable(context: ToolContext) -> ToolResult:
    raise UnprintableError


def _hang(context: ToolContext) -> ToolResult:
    threading.Event().wait(3)
    return ToolResult.ok("too late")


def _return_huge(context: ToolContext) -> ToolResult:
    return ToolResult.ok({"text": "x" * HUNDRED_MB})


def _return_no_json(context: ToolContext) -> ToolResult:
    return ToolResult.ok({"what": NotJson()})


def _return_cycle(context: ToolContext) -> ToolResult:
    data: dict[str, Any] = {}
    data["me"] = data
    return ToolResult.ok(data)


def _return_raising_list(context: ToolContext) -> ToolResult:
    return ToolResult.ok({"rows": RaisingList([1])})


def _return_raising_model(context: ToolContext) -> ToolResult:
    return ToolResult.ok({"row": RaisingModel()})


def _return_none(context: ToolContext) -> ToolResult:
    return None  # type: ignore[return-value]  # the fault of this probe


def _print_secret(context: ToolContext) -> ToolResult:
    token = context.credentials[SERVICE]["token"]
    print(f"stdout {token}")
    print(f"stderr {token}", file=sys.stderr)
    return ToolResult.ok({}, f"Printed {token}")


def _leak_secret(context: ToolContext) -> ToolResult:
    token = context.credentials[SERVICE]["token"]
    context.logger.warning("logged %s", token)
    context.progress(0.5, f"with {token}")
    return ToolResult.ok({"token": token, token: 1}, f"Used {token}", f"# {token}", source=token)


def _raise_with_secret(context: ToolContext) -> ToolResult:
    raise ToolError(ErrorCode.UNAUTHORIZED, f"{context.credentials[SERVICE]['token']} was refused.")


MISBEHAVIORS: dict[str, Callable[[ToolContext], ToolResult]] = {
    "raises": _raise_error,
    "exits": _exit,
    "runs out": _run_out_of_memory,
    "raises unprintable": _raise_unprintable,
    "hangs": _hang,
    "is huge": _return_huge,
    "is no JSON": _return_no_json,
    "is endless": _return_cycle,
    "cannot be read": _return_raising_list,
    "cannot be dumped": _return_raising_model,
    "is nothing": _return_none,
    "prints": _print_secret,
    "leaks a secret": _leak_secret,
    "raises with a secret": _raise_with_secret,
}


class Misbehave(Tool):
    """A read that misbehaves in the given way."""

    name = "bad.read"
    description = "Misbehaves."
    level = Level.READ
    timeout_s = 20.0

    class Params(BaseModel):
        how: str

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        return MISBEHAVIORS[params.how](context)


class MisbehaveLater(Misbehave):
    """`Misbehave` as an `async def`; when it hangs, it ignores its cancellation."""

    name = "bad.async"

    async def execute(self, params: Any, context: ToolContext) -> ToolResult:  # type: ignore[override]
        await asyncio.sleep(0)
        return MISBEHAVIORS[params.how](context)


class MisbehaveOutside(Misbehave):
    """`Misbehave` as a write outside Gadget, so its outcome may be unknown."""

    name = "bad.write"
    level = Level.WRITE


class MisbehaveBriefly(Misbehave):
    """`Misbehave` with a short timeout."""

    name = "bad.brief"
    timeout_s = 0.3


class MisbehaveBrieflyLater(MisbehaveLater):
    """`MisbehaveBriefly` as an `async def`."""

    name = "bad.briefAsync"
    timeout_s = 0.3


class Behave(Tool):
    """A read tool that returns its process id and the memory of that process in MB."""

    name = "bad.good"
    description = "Behaves."
    level = Level.READ
    volatile = True

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        memory = pages * os.sysconf("SC_PAGE_SIZE") // 1_000_000
        return ToolResult.ok(
            {"pid": os.getpid(), "memory": memory, "json": json.dumps([1])}, "Behaved"
        )


PROBES = (
    Misbehave,
    MisbehaveLater,
    MisbehaveOutside,
    MisbehaveBriefly,
    MisbehaveBrieflyLater,
    Behave,
)
