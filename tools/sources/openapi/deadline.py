"""The deadline of one call with all of its requests."""

import time

from tools.contract import ErrorCode, ToolError


class Deadline:
    """A deadline that all requests of a call share; requests are not sent after it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends_at = time.monotonic() + seconds

    def remaining(self) -> float:
        """Return the seconds left, always more than 0.

        Raises:
            ToolError: TIMEOUT with `attempted` False: no time is left, so the next request is not
                sent.
        """
        left = self._ends_at - time.monotonic()
        if left > 0:
            return left
        raise ToolError(
            ErrorCode.TIMEOUT,
            f"The call's time limit of {self._seconds:g} s passed before its request could be sent.",
            recovery_hint="Try again later.",
            attempted=False,
        )
