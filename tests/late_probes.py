"""Test writes that wait just before their effect, so that a test can stop their worker there."""

import os
from typing import Any
from urllib.parse import urlencode

from django.db import connection
from typing_extensions import override

from agents.runs.models import CallStatus, ToolCall
from tests.probes import RECORDER_VARIABLE, Effect, Named, reach
from tools.contract import Level, NetworkAccess, ToolContext, ToolResult
from tools.network import request

LOCAL = NetworkAccess(private=frozenset({"127.0.0.1"}))


class Dawdle(Effect):
    """Waits at the gate `NAME-begin` after its start is committed and before it runs."""

    name = "probe.dawdle"

    @override
    def load_params(self, canonical: dict[str, Any]) -> Any:
        params = super().load_params(canonical)
        started = ToolCall.objects.filter(
            tool=self.name, params=canonical, status=CallStatus.EXECUTING
        )
        if not connection.in_atomic_block and started.exists():
            reach(f"{params.name}-begin")
        return params


class DawdlingRead(Dawdle):
    """`Dawdle` as a read of a host that needs approval."""

    name = "probe.dawdlingRead"
    level = Level.READ
    open_world = True

    @override
    def hosts(self, params: Named) -> frozenset[str]:
        return frozenset({"elsewhere.example"})


class ThroughTheDoor(Effect):
    """Sends a read to the gate `NAME-begin`, then its write, both through `tools.network`."""

    name = "probe.throughTheDoor"

    @override
    def execute(self, params: Named, context: ToolContext) -> ToolResult:
        outside = os.environ[RECORDER_VARIABLE]
        request("GET", f"{outside}/?{urlencode({'name': f'{params.name}-begin'})}", reach=LOCAL)
        effect = urlencode({"name": params.name, "key": context.idempotency_key})
        request("POST", f"{outside}/?{effect}", reach=LOCAL, body=b"")
        return ToolResult.ok({}, f"Did {params.name}")


PROBES = (Dawdle, DawdlingRead, ThroughTheDoor)
