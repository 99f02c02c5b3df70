"""Rows of employees, their model providers, and their permissions."""

from .employee import Employee, Grant, ModelProvider, ProviderKind
from .tool_rule import ToolRule

__all__ = [
    "Employee",
    "Grant",
    "ModelProvider",
    "ProviderKind",
    "ToolRule",
]
