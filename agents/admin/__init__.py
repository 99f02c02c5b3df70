"""The admin site: configuration and history of the organizations in which a person is an admin."""

from agents.admin import (
    approval_rules,
    credentials,
    employees,
    history,
    hosts,
    organizations,
    people,
    providers,
    records,
    rules,
    sources,
    tokens,
)

__all__ = [
    "approval_rules",
    "credentials",
    "employees",
    "history",
    "hosts",
    "organizations",
    "people",
    "providers",
    "records",
    "rules",
    "sources",
    "tokens",
]
