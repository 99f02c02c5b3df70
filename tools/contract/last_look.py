"""The last look before an effect: the caller can stop a call until its effect begins."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from .errors import ErrorCode, ToolError


@dataclass
class LastLook:
    """Checks, right before a call's effect begins, that it may still begin.

    Attributes:
        may_begin: returns False once somebody may have settled that this call did nothing.
        is_read: the call only reads, so each of its requests counts as its effect; else only requests that change
            something.
        has_begun: a request that counts was let through.
    """

    may_begin: Callable[[], bool]
    is_read: bool = False
    has_begun: bool = field(default=False, init=False)

    def before_execution(self) -> None:
        """Look before the tool runs.

        Raises:
            ToolError: it is too late; nothing was attempted.
        """
        if not self.may_begin():
            raise self._too_late()

    def before_request(self, is_read: bool) -> None:
        """Look before the first byte of a request leaves.

        Raises:
            ToolError: it is too late; `attempted` is False unless an earlier request of the call was let through.
        """
        if is_read and not self.is_read:
            return
        if not self.may_begin():
            raise self._too_late()
        self.has_begun = True

    def _too_late(self) -> ToolError:
        if self.has_begun:
            return ToolError(ErrorCode.OUTCOME_UNKNOWN, "The worker stalled during this call.")
        return ToolError(
            ErrorCode.WORKER_LOST,
            "The worker stalled too long before this call began; nothing was done.",
            recovery_hint="Ask for it again; a person will decide again.",
            attempted=False,
        )


_LOOK: ContextVar[LastLook | None] = ContextVar("last_look", default=None)


@contextmanager
def looking(look: LastLook | None) -> Iterator[None]:
    """Make every request in the block look first; without a look, the outer block's look stays."""
    if look is None:
        yield
        return
    token = _LOOK.set(look)
    try:
        yield
    finally:
        _LOOK.reset(token)


def look_before_request(is_read: bool) -> None:
    """Look before the first byte of a request leaves, if the running call requires it; see `LastLook`."""
    look = _LOOK.get()
    if look is not None:
        look.before_request(is_read)
