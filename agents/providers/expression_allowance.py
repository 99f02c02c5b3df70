"""A limit on the work and memory that the expressions of a scripted answer may use."""

from collections.abc import Callable
from typing import Any

from agents.providers.base import CallOutcome

WORK = 10_000_000
"""Units per answer: about a second of work, or 10 MB of values."""
STEP = 20
"""Units for each step of an evaluation, and for each item of a list that it creates."""
CHARACTER = 4
"""Units for each character that an evaluation creates."""
MAX_DEPTH = 50
MAX_BITS = 256
_CHECK_EVERY = 50_000
_READ_SHARE = 8


class ExpressionError(ValueError):
    """An expression cannot be parsed or evaluated; the text quotes it."""


class Allowance:
    """Counts down while expressions are evaluated, so that no script blocks a worker or fills its memory.

    Args:
        check: called every few milliseconds; raises if the answer is no longer wanted.
    """

    def __init__(self, check: Callable[[], None] = lambda: None) -> None:
        self._check = check
        self._left = WORK
        self._check_at = WORK - _CHECK_EVERY

    def spend(self, units: int) -> None:
        """Pay for work before it is done; raise ExpressionError if nothing is left."""
        self._left -= units
        if self._left < 0:
            raise ExpressionError("the script does too much work for one answer: shorten its loops or texts")
        if self._left < self._check_at:
            self._check_at = self._left - _CHECK_EVERY
            self._check()

    def pay(self, value: Any) -> None:
        """Pay for a deep copy of a value."""
        self._weigh(value, 1)

    def pay_to_read(self, value: Any) -> None:
        """Pay for reading a whole value, for example to compare it."""
        self._weigh(value, _READ_SHARE)

    def _weigh(self, value: Any, share: int) -> None:
        waiting = [(value, 0)]
        while waiting:
            each, depth = waiting.pop()
            if depth > MAX_DEPTH:
                raise ExpressionError(f"lists are nested more than {MAX_DEPTH} deep")
            if isinstance(each, str):
                self.spend(1 + CHARACTER * len(each) // share)
                continue
            if isinstance(each, int) and each.bit_length() > MAX_BITS:
                raise ExpressionError(f"a number has more than {MAX_BITS} bits")
            parts = _list_parts(each)
            self.spend(1 + STEP * (1 + len(parts)) // share)
            waiting.extend((part, depth + 1) for part in parts)


def _list_parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | range):
        return list(value)
    return list(vars(value).values()) if isinstance(value, CallOutcome) else []
