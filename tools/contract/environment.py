"""The installation's credentials, by service."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

SHORTEST_SECRET = 6
"""The minimum length of a value that is treated as a secret, because shorter values also occur in
ordinary text."""


@dataclass(frozen=True)
class Environment:
    """The part of the installation's settings that tools may use.

    Attributes:
        credentials: by service, e.g. {"google.cse": {"api_key": …, "engine_id": …}}; never printed.
    """

    credentials: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)

    @classmethod
    def empty(cls) -> Self:
        """Build an environment without credentials, for tests."""
        return cls()

    @property
    def secrets(self) -> frozenset[str]:
        """The values that must not appear in any output, except values that are too short to be
        recognized."""
        return collect_secrets(self.credentials)


def collect_secrets(credentials: Mapping[str, Mapping[str, str]]) -> frozenset[str]:
    """Collect the values with at least SHORTEST_SECRET characters."""
    values = (value for fields in credentials.values() for value in fields.values())
    return frozenset(value for value in values if len(value) >= SHORTEST_SECRET)
