"""Test tools: they send requests to a recorder and wait for its reply, sleep, fail or hang."""

import ctypes
import os
import threading
import time
import urllib.parse
import urllib.request
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.db import DatabaseError, IntegrityError, OperationalError, connection
from pydantic import BaseModel, Field
from typing_extensions import override

from tools.contract import (
    ErrorCode,
    Level,
    Preview,
    ResultFile,
    Target,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    tool,
)
from tools.office.records.models import Record, RecordChange

RECORDER_VARIABLE = "GADGET_TEST_RECORDER"


def reach(name: str, key: str = "") -> None:
    """Send a request to the recorder and wait for its reply; if there is a key, the recorder counts
    an effect."""
    query = urllib.parse.urlencode({"name": name, "key": key})
    address = f"{os.environ[RECORDER_VARIABLE]}/?{query}"
    request = urllib.request.Request(address, data=b"" if key else None)
    with urllib.request.urlopen(request, timeout=60) as response:
        response.read()


def record_of(params: Any, context: ToolContext) -> Record:
    found = Record.objects.filter(
        organization_id=context.organization_id, pk=params.record_id
    ).first()
    if found is None:
        raise ToolError(
            ErrorCode.NOT_FOUND, f"There is no record {params.record_id}.", attempted=False
        )
    return found


class Named(BaseModel):
    name: str = Field(description="Which gate to pass")


class Gate(Tool):
    """A read that waits until the recorder replies."""

    name = "probe.gate"
    description = "Waits at a gate."
    level = Level.READ
    Params = Named

    def execute(self, params: Named, context: ToolContext) -> ToolResult:
        reach(params.name)
        return ToolResult.ok({"passed": params.name}, f"Passed {params.name}")


class Print(Gate):
    """A read that waits at the gate, and returns a file."""

    name = "probe.print"

    @override
    def execute(self, params: Named, context: ToolContext) -> ToolResult:
        reach(params.name)
        return ToolResult.ok(
            {}, "Printed", files=[ResultFile("page.txt", b"A page.", "text/plain")]
        )


class Draw(Gate):
    """A draft that waits like `Gate`."""

    name = "probe.draw"
    level = Level.DRAFT


class Effect(Tool):
    """A write outside our database: the recorder counts it by its idempotency key."""

    name = "probe.effect"
    description = "Has an effect outside."
    level = Level.WRITE
    Params = Named
    timeout_s = 20.0

    def execute(self, params: Named, context: ToolContext) -> ToolResult:
        reach(params.name, context.idempotency_key)
        return ToolResult.ok({"done": params.name}, f"Did {params.name}")


class Knock(Effect):
    """Like `Effect`, but volatile, so it may be called twice at once; it also reports progress."""

    name = "probe.knock"
    volatile = True

    def execute(self, params: Named, context: ToolContext) -> ToolResult:
        context.progress(0.5, "half")
        return super().execute(params, context)


class ShortEffect(Effect):
    """Like `Effect`, with a short timeout: its outcome becomes unknown when the reply is
    withheld."""

    name = "probe.shortEffect"
    timeout_s = 0.3


class Doom(Effect):
    """Like `Effect`, at destructive level."""

    name = "probe.doom"
    level = Level.DESTRUCTIVE


class Rename(Tool):
    """A transactional write that may wait inside its transaction."""

    name = "probe.rename"
    description = "Renames a record."
    level = Level.WRITE
    transactional = True

    class Params(BaseModel):
        record_id: int
        to: str
        gate: str = ""

    def preview(self, params: Any, context: ToolContext) -> Preview:
        record = record_of(params, context)
        return Preview(
            "update",
            (
                Target(
                    str(record.pk),
                    record.name,
                    record.version,
                    {"name": record.name},
                    {"name": params.to},
                ),
            ),
        )

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        record = record_of(params, context)
        record.name, record.version = params.to, record.version + 1
        record.save(update_fields=("name", "version"))
        if params.gate:
            reach(params.gate)
        return ToolResult.ok({"id": str(record.pk)}, f"Renamed to {params.to}")


class Sleep(Tool):
    """A read that takes a configurable time."""

    name = "probe.sleep"
    description = "Sleeps."
    level = Level.READ

    class Params(BaseModel):
        ms: int
        tag: str = ""

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        time.sleep(params.ms / 1000)
        return ToolResult.ok({"tag": params.tag}, f"Slept {params.ms} ms")


class Hang(Tool):
    """A read that does not return before its timeout of 0.3 s."""

    name = "probe.hang"
    description = "Hangs."
    level = Level.READ
    timeout_s = 0.3
    Params = Named

    def execute(self, params: Named, context: ToolContext) -> ToolResult:
        threading.Event().wait(5)
        return ToolResult.ok()


class Freeze(Tool):
    """A read that holds the GIL on its first attempt, so that no other thread of its worker can
    run."""

    name = "probe.freeze"
    description = "Freezes its worker."
    level = Level.READ
    Params = Named

    def execute(self, params: Named, context: ToolContext) -> ToolResult:
        mark = Path(os.environ["GADGET_DATA_DIR"], f"frozen-{params.name}")
        if not mark.exists():
            mark.touch()
            ctypes.PyDLL(None).sleep(60)
        return ToolResult.ok({"thawed": True}, "Thawed")


class Fail(Tool):
    """A read that fails with the given code."""

    name = "probe.fail"
    description = "Fails."
    level = Level.READ

    class Params(BaseModel):
        code: str = ""
        tag: str = ""

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        if not params.code:
            raise RuntimeError("the secret is hunter2")
        raise ToolError(ErrorCode(params.code), f"failed with {params.code}")


class Clock(Tool):
    """A volatile read."""

    name = "probe.clock"
    description = "Tells a number that changes."
    level = Level.READ
    volatile = True

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        return ToolResult.ok({"now": time.time_ns()}, "Told the time")


class Report(Tool):
    """A read that reports progress, and may then wait at a gate."""

    name = "probe.progress"
    description = "Reports progress."
    level = Level.READ

    class Params(BaseModel):
        gate: str = ""

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        context.progress(0.5, "half")
        if params.gate:
            reach(params.gate)
        return ToolResult.ok({}, "Reported")


class FailingEffect(Tool):
    """A write outside our database that fails with the given code."""

    name = "probe.failingEffect"
    description = "Fails outside."
    level = Level.WRITE

    class Params(BaseModel):
        code: str = ""
        attempted: bool = True

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        if not params.code:
            raise RuntimeError("the secret is hunter2")
        raise ToolError(
            ErrorCode(params.code), f"failed with {params.code}", attempted=params.attempted
        )


class Announce(Effect):
    """A write outside our database about a record, with the current record in its preview."""

    name = "probe.announce"

    class Params(BaseModel):
        record_id: int
        to: str = ""

    def preview(self, params: Any, context: ToolContext) -> Preview:
        record = record_of(params, context)
        return Preview(
            "announce", (Target(str(record.pk), record.name, record.version),), reversible=False
        )

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        reach("announce", context.idempotency_key)
        return ToolResult.ok({}, "Announced")


class Spoil(Rename):
    """A transactional write that fails in the given way after its work."""

    name = "probe.spoil"
    tries: Counter[str] = Counter()
    """The number of attempts, by the id of the call."""

    class Params(BaseModel):
        record_id: int
        to: str
        how: str
        gate: str = ""

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        done = super().execute(params, context)
        self.tries[context.call_id] += 1
        if params.how == "raise":
            raise RuntimeError("the secret is hunter2")
        if params.how == "fail":
            raise ToolError(ErrorCode.NETWORK_ERROR, "The network is away.")
        if params.how == "progress":
            context.progress(0.5, "half")
        if params.how == "call":
            context.call_tool("utility.calculate", {"expression": "1 + 1"})
        if params.how == "busy" or (params.how == "busy once" and self.tries[context.call_id] == 1):
            raise OperationalError("deadlock detected")
        if params.how == "swallow":
            with suppress(IntegrityError):
                Record.objects.create(
                    organization_id=context.organization_id, name="Too good", score=500
                )
        if params.how == "dangle":
            RecordChange.objects.create(record_id=-1, version=1)
        if params.how == "swallow sql":
            with suppress(DatabaseError), connection.cursor() as cursor:
                cursor.execute("SELECT nothing FROM nowhere")
        return done


class Crowded(Rename):
    """A transactional write whose preview meets a deadlock when it locks its target."""

    name = "probe.crowded"

    def preview(self, params: Any, context: ToolContext) -> Preview:
        if connection.in_atomic_block:
            raise OperationalError("deadlock detected")
        return super().preview(params, context)


class Visit(Tool):
    """A read of a host chosen by its params; it may fail with the given code."""

    name = "probe.visit"
    description = "Visits a host."
    level = Level.READ
    open_world = True

    class Params(BaseModel):
        host: str
        code: str = ""

    def hosts(self, params: Any) -> frozenset[str]:
        return frozenset({params.host})

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        if params.code:
            raise ToolError(ErrorCode(params.code), f"failed with {params.code}")
        return ToolResult.ok({"host": params.host}, f"Visited {params.host}")


class TongueTied(Tool):
    """A read whose running summary raises."""

    name = "probe.tongueTied"
    description = "Stays silent."
    level = Level.READ

    def running_summary(self, params: Any) -> str:
        raise RuntimeError("the secret is hunter2")

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        return ToolResult.ok({}, "Done in silence")


@tool("probe.big", level=Level.READ)
def big(characters: int) -> ToolResult:
    """Returns a long text.

    Args:
        characters: Number of characters to return.
    """
    return ToolResult.ok({"text": "x" * characters}, f"{characters} characters")


PROBES = (
    Gate,
    Print,
    Draw,
    Effect,
    ShortEffect,
    Doom,
    Rename,
    Sleep,
    Hang,
    Freeze,
    Fail,
    Clock,
    Report,
    FailingEffect,
    Announce,
    Spoil,
    Crowded,
    Visit,
    TongueTied,
    big,
    Knock,
)
