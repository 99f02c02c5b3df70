"""Rate limits that a tool declares."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RateLimit:
    """A limit of `calls` within any `seconds`, counted for each organization."""

    calls: int
    seconds: float
