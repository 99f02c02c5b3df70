"""Tool sources, which do not need Django."""

from tools.sources.base import ToolSource
from tools.sources.combined import CombinedSource, fill_toolbox
from tools.sources.plugins import (
    OFFICE,
    OFFICE_DEMO,
    SHIPPED_CATEGORIES,
    BrokenPlugin,
    PluginSource,
    start_plugins,
)

__all__ = [
    "OFFICE",
    "OFFICE_DEMO",
    "SHIPPED_CATEGORIES",
    "BrokenPlugin",
    "CombinedSource",
    "PluginSource",
    "ToolSource",
    "fill_toolbox",
    "start_plugins",
]
