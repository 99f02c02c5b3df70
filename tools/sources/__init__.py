"""Where tools come from."""

from .base import ToolSource
from .builtin import BuiltinSource
from .combined import CombinedSource, fill
from .plugins import Broken, PluginSource, plugin_sources

__all__ = ["Broken", "BuiltinSource", "CombinedSource", "PluginSource", "ToolSource", "fill", "plugin_sources"]
