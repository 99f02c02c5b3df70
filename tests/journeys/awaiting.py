"""Waiting for a condition, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

LOOK_EVERY_S = 0.03

Found = TypeVar("Found")


def await_that(look: Callable[[], Found], what: str | Callable[[], str], seconds: float = 30) -> Found:
    """What the look finds, once that is true; AssertionError naming `what` if it does not come in time."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what() if callable(what) else what}"
        time.sleep(LOOK_EVERY_S)
    return found
