"""The admin site: configuration, and what happened, for the organisations in which a person is admin."""

from . import credentials, employees, history, hosts, organizations, people, providers, records, rules, sources, tokens

__all__ = [
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
