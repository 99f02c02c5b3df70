"""Fences, which prevent a call from starting its effect after its worker has lost the lease."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from tools.contract.errors import ErrorCode, ToolError


@dataclass
class Fence:
    """A check that is made immediately before a call's effect begins.

    Attributes:
        may_begin: returns False once another worker may have recorded that this call did nothing.
        is_read: True for a call that only reads: each of its requests is counted as its effect. For
            any other call, only requests that change something are counted.
        has_begun: True once a counted request has passed.
    """

    may_begin: Callable[[], bool]
    is_read: bool = False
    has_begun: bool = field(default=False, init=False)

    def check_execution(self) -> None:
        """Check before the tool runs.

        Raises:
            ToolError: WORKER_LOST if it is too late; nothing was attempted.
        """
        if not self.may_begin():
            raise self._build_error()

    def check_request(self, is_read: bool) -> None:
        """Check before the first byte of a request is sent.

        Raises:
            ToolError: WORKER_LOST if it is too late, or OUTCOME_UNKNOWN if an earlier request of
                the call has passed.
        """
        if is_read and not self.is_read:
            return
        if not self.may_begin():
            raise self._build_error()
        self.has_begun = True

    def _build_error(self) -> ToolError:
        if self.has_begun:
            return ToolError(ErrorCode.OUTCOME_UNKNOWN, "The worker stalled during this call.")
        return ToolError(
            ErrorCode.WORKER_LOST,
            "The worker stalled too long before this call began; nothing was done.",
            recovery_hint="Request the call again; a person will decide again.",
            attempted=False,
        )


_FENCE: ContextVar[Fence | None] = ContextVar("fence", default=None)


@contextmanager
def fencing(fence: Fence | None) -> Iterator[None]:
    """Check the fence before every request in the block; None keeps the outer block's fence."""
    if fence is None:
        yield
        return
    token = _FENCE.set(fence)
    try:
        yield
    finally:
        _FENCE.reset(token)


def check_fence(is_read: bool) -> None:
    """Check the running call's fence, if any, before the first byte of a request is sent."""
    fence = _FENCE.get()
    if fence is not None:
        fence.check_request(is_read)
