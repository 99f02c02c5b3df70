"""The models of employees, their model providers, and their permissions."""

from agents.employees.models.employee import (
    LONGEST_RESPONSE_S,
    Employee,
    Grant,
    ModelProvider,
    ProviderKind,
)
from agents.employees.models.tool_rule import ToolRule

__all__ = [
    "LONGEST_RESPONSE_S",
    "Employee",
    "Grant",
    "ModelProvider",
    "ProviderKind",
    "ToolRule",
]
