"""The admin site: configuration, and what happened, for the organisations in which a person is admin."""

from . import employees, history, organizations, people, providers, records, tokens

__all__ = ["employees", "history", "organizations", "people", "providers", "records", "tokens"]
