"""The installation's credentials, by service, as tools get them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

SHORTEST_SECRET = 6
"""What is shorter is found in ordinary text too, so it cannot be told from it."""


@dataclass(frozen=True)
class Environment:
    """What tools may know of the installation.

    Attributes:
        credentials: by service, e.g. {"google.cse": {"api_key": …, "engine_id": …}}; never printed.
    """

    credentials: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)

    @classmethod
    def empty(cls) -> Self:
        """Without any credentials, for tests."""
        return cls()

    @property
    def secrets(self) -> frozenset[str]:
        """Every value that must appear nowhere."""
        return secrets_of(self.credentials)


def secrets_of(credentials: Mapping[str, Mapping[str, str]]) -> frozenset[str]:
    """The values that are long enough to be told from ordinary text."""
    values = (value for fields in credentials.values() for value in fields.values())
    return frozenset(value for value in values if len(value) >= SHORTEST_SECRET)
