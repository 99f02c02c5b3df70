"""For people who write tools: run one without a database, an employee or a run."""

from typing import Any

from tools.contract import Tool, ToolContext, ToolError, ToolResult
from tools.toolbox import PreparedCall, isolated, run_call


def run_tool(tool: Tool | type[Tool], params: dict[str, Any] | None = None, **context: Any) -> ToolResult:
    """The result of one call, exactly as a model would get it: params checked, failures made into results.

    Args:
        tool: an instance, or a class that needs no arguments.
        params: as the model would send them.
        context: attributes of `ToolContext`; the organization's id is 1 unless given.
    """
    instance = tool() if isinstance(tool, type) else tool
    told = ToolContext(**{"organization_id": 1, **context})
    try:
        canonical = isolated(instance, "check_params", lambda: instance.check_params(params or {}))
    except ToolError as error:
        return ToolResult.failed(error)
    return run_call(PreparedCall(0, instance, canonical, told, instance.timeout_s or 30.0))
