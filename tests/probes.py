"""Tools of the tests' own: they reach a recorder over real HTTP, wait until it lets them go, sleep, fail or hang."""

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

from tools.contract import ErrorCode, Level, Preview, Target, Tool, ToolContext, ToolError, ToolResult, tool
from tools.records.models import Record, RecordChange

RECORDER_VARIABLE = "GADGET_TEST_RECORDER"


def reach(name: str, key: str = "") -> None:
    """Ask the recorder to pass; with a key, the effect is counted there."""
    query = urllib.parse.urlencode({"name": name, "key": key})
    address = f"{os.environ[RECORDER_VARIABLE]}/?{query}"
    request = urllib.request.Request(address, data=b"" if key else None)
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()


def record_of(params: Any, context: ToolContext) -> Record:
    found = Record.objects.filter(organization_id=context.organization_id, pk=params.record_id).first()
    if found is None:
        raise ToolError(ErrorCode.NOT_FOUND, f"There is no record {params.record_id}.", attempted=False)
    return found


class Named(BaseModel):
    name: str = Field(description="Which gate to pass")


class Gate(Tool):
    """A read that holds until the recorder lets it go."""

    name = "probe.gate"
    description = "Waits at a gate."
    level = Level.READ
    Params = Named

    def execute(self, params: Named, context: ToolContext) -> ToolResult:
        reach(params.name)
        return ToolResult.ok({"passed": params.name}, f"Passed {params.name}")


class Draw(Gate):
    """A draft that holds like the gate."""

    name = "probe.draw"
    level = Level.DRAFT


class Effect(Tool):
    """A write beyond our database: the recorder counts it by its idempotency key."""

    name = "probe.effect"
    description = "Has an effect outside."
    level = Level.WRITE
    Params = Named
    timeout_s = 20.0

    def execute(self, params: Named, context: ToolContext) -> ToolResult:
        reach(params.name, context.idempotency_key)
        return ToolResult.ok({"done": params.name}, f"Did {params.name}")


class Knock(Effect):
    """The same, but it may be asked for twice at once, and it says how far it has come."""

    name = "probe.knock"
    volatile = True

    def execute(self, params: Named, context: ToolContext) -> ToolResult:
        context.progress(0.5, "half")
        return super().execute(params, context)


class ShortEffect(Effect):
    """The same with little patience, so that its outcome becomes unknown when the reply is withheld."""

    name = "probe.shortEffect"
    timeout_s = 0.3


class Doom(Effect):
    """The same at destructive level."""

    name = "probe.doom"
    level = Level.DESTRUCTIVE


class Rename(Tool):
    """A transactional write that may hold inside its transaction."""

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
            (Target(str(record.pk), record.name, record.version, {"name": record.name}, {"name": params.to}),),
        )

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        record = record_of(params, context)
        record.name, record.version = params.to, record.version + 1
        record.save(update_fields=("name", "version"))
        if params.gate:
            reach(params.gate)
        return ToolResult.ok({"id": str(record.pk)}, f"Renamed to {params.to}")


class Sleep(Tool):
    """A read that takes a while."""

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
    """A read that never ends by itself; given up after 0.3 s."""

    name = "probe.hang"
    description = "Hangs."
    level = Level.READ
    timeout_s = 0.3
    Params = Named

    def execute(self, params: Named, context: ToolContext) -> ToolResult:
        threading.Event().wait(5)
        return ToolResult.ok()


class Freeze(Tool):
    """A read that holds the interpreter at its first attempt, so that no other thread of its worker runs."""

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
    """A read that fails as it is told to."""

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
    """A read that reports progress, and may then hold at a gate."""

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
    """A write beyond our database that fails as it is told to."""

    name = "probe.failingEffect"
    description = "Fails outside."
    level = Level.WRITE

    class Params(BaseModel):
        code: str = ""
        attempted: bool = True

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        if not params.code:
            raise RuntimeError("the secret is hunter2")
        raise ToolError(ErrorCode(params.code), f"failed with {params.code}", attempted=params.attempted)


class Announce(Effect):
    """A write beyond our database about a record, whose preview shows the record as it is."""

    name = "probe.announce"

    class Params(BaseModel):
        record_id: int
        to: str = ""

    def preview(self, params: Any, context: ToolContext) -> Preview:
        record = record_of(params, context)
        return Preview("announce", (Target(str(record.pk), record.name, record.version),), reversible=False)

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        reach("announce", context.idempotency_key)
        return ToolResult.ok({}, "Announced")


class Spoil(Rename):
    """A transactional write that does its work and then goes wrong as it is told to."""

    name = "probe.spoil"
    tries: Counter[str] = Counter()
    """How often each call was begun, by its id."""

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
                Record.objects.create(organization_id=context.organization_id, name="Too good", score=500)
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
    """A read that reaches a host chosen by its params, and fails as it is told to."""

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
    """A read that cannot say what it does."""

    name = "probe.tongueTied"
    description = "Stays silent."
    level = Level.READ

    def running_summary(self, params: Any) -> str:
        raise RuntimeError("the secret is hunter2")

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        return ToolResult.ok({}, "Done in silence")


@tool("probe.big", level=Level.READ)
def big(characters: int) -> ToolResult:
    """Returns much.

    Args:
        characters: How many.
    """
    return ToolResult.ok({"text": "x" * characters}, f"{characters} characters")


PROBES = (
    Gate,
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
