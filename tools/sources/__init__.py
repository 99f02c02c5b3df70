"""Where tools come from."""

from .base import ToolSource, fill
from .builtin import BuiltinSource

__all__ = ["BuiltinSource", "ToolSource", "fill"]
