"""Tool sources; none of them needs Django."""

from tools.sources.base import ToolSource
from tools.sources.combined import CombinedSource, fill_toolbox
from tools.sources.plugins import OFFICE, BrokenPlugin, PluginSource, start_plugins

__all__ = [
    "OFFICE",
    "BrokenPlugin",
    "CombinedSource",
    "PluginSource",
    "ToolSource",
    "fill_toolbox",
    "start_plugins",
]
