"""Tool sources. Import built-in tools from `tools.sources.builtin`: only they need Django."""

from tools.sources.base import ToolSource
from tools.sources.combined import CombinedSource, fill_toolbox
from tools.sources.plugins import BrokenPlugin, PluginSource, start_plugins

__all__ = ["BrokenPlugin", "CombinedSource", "PluginSource", "ToolSource", "fill_toolbox", "start_plugins"]
