"""Test tools that return facts of their context, one of them as an `async def`."""

import asyncio

from pydantic import BaseModel

from tools.contract import Level, Tool, ToolContext, ToolResult
from tools.contract.excerpts import format_handle


class Describe(Tool):
    """Returns the facts of its context."""

    name = "probe.describe"
    description = "Describes its context."
    level = Level.READ
    volatile = True

    def execute(self, params: object, context: ToolContext) -> ToolResult:
        context.logger.warning("Described its context")
        return ToolResult.ok(
            {
                "organization_name": context.organization_name,
                "mode": context.mode,
                "environment": context.environment,
                "user": context.user.name,
                "preferences": dict(context.user.preferences),
                "correlation_id": context.correlation_id,
            }
        )


class DescribeInLoop(Describe):
    """Returns everything in its context that needs the database, in an event loop."""

    name = "probe.describeInLoop"

    class Params(BaseModel):
        inner: str = Describe.name

    async def execute(self, params: Params, context: ToolContext) -> ToolResult:  # type: ignore[override]
        await asyncio.sleep(0)
        context.progress(0.5, "Half")
        context.session["seen"] = True
        inner = context.call_tool(params.inner, {})
        earlier = context.earlier_result(format_handle(int(context.call_id) + 1))
        return ToolResult.ok(
            {
                "preferences": dict(context.user.preferences),
                "inner": inner.as_json(),
                "earlier": earlier.as_json() if earlier else None,
                "token": context.services.github.token,
            }
        )


PROBES = (Describe, DescribeInLoop)
