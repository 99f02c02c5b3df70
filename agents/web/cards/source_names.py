"""The names of tools that do not ship with Gadget."""

from tools.contract import Tool


def find_source_name(tool: Tool | None) -> str:
    """Return the name of a tool from outside, which starts with its source's name; empty for
    built-in tools."""
    return tool.name if tool and tool.source != Tool.source else ""
