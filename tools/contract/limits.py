"""How often a tool may be called."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RateLimit:
    """At most `calls` in any `seconds`, for each organisation."""

    calls: int
    seconds: float
