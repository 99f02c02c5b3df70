"""The names of tools that do not ship with Gadget."""

from tools.contract import Tool
from tools.contract.outside_text import OutsideText


def find_source_name(tool: Tool | None) -> str:
    """Return the name of a tool from outside, which starts with its source's name; empty for
    built-in tools."""
    return OutsideText(tool.name) if tool and tool.is_from_outside else ""
