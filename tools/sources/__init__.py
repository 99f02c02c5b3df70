"""Where tools come from."""

from .base import ToolSource, fill
from .builtin import BuiltinSource
from .combined import CombinedSource
from .plugins import Broken, PluginSource, plugin_sources

__all__ = ["Broken", "BuiltinSource", "CombinedSource", "PluginSource", "ToolSource", "fill", "plugin_sources"]
