"""The tools that MCP's conformance suite expects, as far as Gadget's tools can implement them."""

import time
from typing import Any

from pydantic import BaseModel

from tools.contract import ErrorCode, Level, Tool, ToolContext, ToolError, ToolResult

LONG_S = 60
"""The duration of a long job in seconds; the suite starts such jobs only to cancel them."""
WIDE_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
"""The schema that the suite expects, with all these keywords, in the listing of tools."""


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
        raise ToolError(
            ErrorCode.OPERATION_FAILED, "This tool intentionally returns an error for testing"
        )


class ReportingText(Tool):
    name = "test_tool_with_progress"
    description = "Reports its progress."
    level = Level.READ

    def execute(self, params: Any, context: ToolContext) -> str:
        for fraction in (0.0, 0.5, 1.0):
            context.progress(fraction, f"{fraction:.0%}")
            time.sleep(0.2)  # two reports at once would become one
        return "Done."


class WideText(Tool):
    name = "json_schema_2020_12_tool"
    description = "Has a schema with many keywords."
    level = Level.READ
    schema = WIDE_SCHEMA  # given as JSON, as outside tools give theirs

    def execute(self, params: Any, context: ToolContext) -> str:
        return "Done."


class Greeting(Tool):
    name = "greet"
    description = "Greets, at once."
    level = Level.READ

    class Params(BaseModel):
        name: str

    def execute(self, params: Params, context: ToolContext) -> str:
        return f"Hello, {params.name}!"


class Confirmation(Tool):
    name = "confirm_delete"
    description = "Would ask the agent's own user, which no tool here does, and so answers at once."
    level = Level.READ

    class Params(BaseModel):
        filename: str

    def execute(self, params: Params, context: ToolContext) -> str:
        return f"{params.filename} is still there."


class SlowJob(Tool):
    name = "slow_compute"
    description = "Asks a person, and then takes as long as it is told."
    level = Level.WRITE

    class Params(BaseModel):
        seconds: float
        label: str

    def execute(self, params: Params, context: ToolContext) -> str:
        time.sleep(params.seconds)
        return "Done."


class FailingJob(Tool):
    name = "failing_job"
    description = "Asks a person, and then fails."
    level = Level.WRITE

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        raise ToolError(ErrorCode.OPERATION_FAILED, "This job fails on purpose")


class CrashingJob(Tool):
    name = "protocol_error_job"
    description = "Takes longer than a client that knows tasks is made to wait, and then crashes."
    level = Level.READ

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        time.sleep(5)
        raise RuntimeError("crashed on purpose")


PROBES = (
    *(SimpleText, FailingText, ReportingText, WideText),
    *(Greeting, Confirmation, SlowJob, FailingJob, CrashingJob),
)
