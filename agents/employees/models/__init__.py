"""Employees, the models they run on, and what they may use."""

from .employee import Employee, Grant, ModelProvider, ProviderKind
from .tool_rule import ToolRule

__all__ = [
    "Employee",
    "Grant",
    "ModelProvider",
    "ProviderKind",
    "ToolRule",
]
