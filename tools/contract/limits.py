"""Limits that a tool declares."""

from dataclasses import dataclass
from typing import ClassVar

from pydantic import ConfigDict

from tools.contract.values import CHECKED_AGAIN, Count, Number

LONGEST_TIMEOUT_S = 7 * 86_400
LONGEST_CACHED_S = 366 * 86_400


@dataclass(frozen=True)
class RateLimit:
    """At most `calls` calls in any period of `seconds`, counted for each organization."""

    __pydantic_config__: ClassVar[ConfigDict] = CHECKED_AGAIN

    calls: Count
    seconds: Number
