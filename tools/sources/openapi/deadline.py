"""When one call ends, whatever it still has to ask."""

import time

from tools.contract import ErrorCode, ToolError


class Deadline:
    """So many seconds from now, shared by every request of a call: nothing is sent after them."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends_at = time.monotonic() + seconds

    def left(self) -> float:
        """More than no seconds.

        Raises:
            ToolError: TIMEOUT with `attempted` False: none are left, so what was about to be sent never is.
        """
        left = self._ends_at - time.monotonic()
        if left > 0:
            return left
        raise ToolError(
            ErrorCode.TIMEOUT,
            f"The {self._seconds:g} s of the call were over before its request could be sent.",
            recovery_hint="Try again later.",
            attempted=False,
        )
