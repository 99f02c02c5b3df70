"""Tools of one source, in whose results the origin of a value can be looked up."""

from tools.contract.level import Level
from tools.contract.tool import Tool


def is_same_source(tool: Tool, other: Tool) -> bool:
    """Return True if both tools belong to the same connection or plugin, or both are built in."""
    return tool.source == other.source and (
        not tool.is_from_outside or tool.category == other.category
    )


def may_bring_values(tool: Tool) -> bool:
    """Return True if the tool is a read from whose results a suggested grant may take values."""
    return tool.level is Level.READ and has_own_fields(tool)


def has_own_fields(tool: Tool) -> bool:
    """Return True if the tool itself fills the fields of its results. Pages and files do not count,
    because they contain whatever strangers put there."""
    is_open = tool.open_world or (tool.returns_outside_text and not tool.is_from_outside)
    return not tool.is_system and not is_open
