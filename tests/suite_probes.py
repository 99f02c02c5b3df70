"""The tools that the conformance suite of MCP looks for, as far as tools of Gadget can do what it asks of them."""

import time
from typing import Any

from tools.contract import ErrorCode, Level, Tool, ToolContext, ToolError, ToolResult


class SimpleText(Tool):
    name = "test_simple_text"
    description = "Answers with a text."
    level = Level.READ

    def execute(self, params: Any, context: ToolContext) -> str:
        return "This is a simple text response for testing."


class FailingText(Tool):
    name = "test_error_handling"
    description = "Always fails."
    level = Level.READ

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        raise ToolError(ErrorCode.OPERATION_FAILED, "This tool intentionally returns an error for testing")


class ReportingText(Tool):
    name = "test_tool_with_progress"
    description = "Reports its progress."
    level = Level.READ

    def execute(self, params: Any, context: ToolContext) -> str:
        for fraction in (0.0, 0.5, 1.0):
            context.progress(fraction, f"{fraction:.0%}")
            time.sleep(0.2)  # two reports at once would be one
        return "Done."


PROBES = (SimpleText, FailingText, ReportingText)
