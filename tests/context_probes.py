"""A test tool that returns facts of its context."""

from tools.contract import Level, Tool, ToolContext, ToolResult


class Describe(Tool):
    """Returns the facts of its context."""

    name = "probe.describe"
    description = "Describes its context."
    level = Level.READ
    volatile = True

    def execute(self, params: object, context: ToolContext) -> ToolResult:
        return ToolResult.ok(
            {
                "environment": context.environment,
                "user": context.user.name,
                "preferences": dict(context.user.preferences),
                "correlation_id": context.correlation_id,
            }
        )


PROBES = (Describe,)
