"""The sources of tools. Only `.builtin`, the tools that ship, needs Django, so import it from there."""

from .base import ToolSource
from .combined import CombinedSource, fill
from .plugins import Broken, PluginSource, plugin_sources

__all__ = ["Broken", "CombinedSource", "PluginSource", "ToolSource", "fill", "plugin_sources"]
