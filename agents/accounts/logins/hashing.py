"""Hash few passwords at a time: each takes a whole processor core for a while, which pages need too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import BoundedSemaphore

from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.db import connection

MOST_AT_ONCE = max(1, (os.cpu_count() or 1) // 2)
MOST_WAITING = 8
"""Each waiting login holds a thread, but no database connection."""
PATIENCE_S = 4.0
RETRY_AFTER_S = 5


class TooBusy(Exception):
    """Too many passwords are waiting to be hashed in this process."""


class Turns:
    """Admits a few threads at a time, and lets a few more wait briefly."""

    def __init__(self, most_at_once: int, most_waiting: int, patience_s: float) -> None:
        self._inside = BoundedSemaphore(most_at_once)
        self._here = BoundedSemaphore(most_at_once + most_waiting)
        self._patience_s = patience_s

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn and hold it during the block.

        Raises:
            TooBusy: too many wait already, or the wait took too long.
        """
        if not self._here.acquire(blocking=False):
            raise TooBusy
        try:
            if not self._inside.acquire(timeout=self._patience_s):
                raise TooBusy
            try:
                yield
            finally:
                self._inside.release()
        finally:
            self._here.release()


TURNS = Turns(MOST_AT_ONCE, MOST_WAITING, PATIENCE_S)
TURNS_OF_KNOWN_BROWSERS = Turns(1, MOST_WAITING, PATIENCE_S)
"""Separate, so that a flood of strangers keeps nobody out of a known browser."""

is_for_known_browser: ContextVar[bool] = ContextVar("is_for_known_browser", default=False)
"""True while a login from a known browser is checked."""


class BoundedPasswordHasher(PBKDF2PasswordHasher):
    """Django's own algorithm, in turns."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        """Hash the password.

        Raises:
            TooBusy
        """
        if not connection.in_atomic_block:
            connection.close()  # pages need the few that there are, and the wait may be long
        turns = TURNS_OF_KNOWN_BROWSERS if is_for_known_browser.get() else TURNS
        with turns.turn():
            return super().encode(password, salt, iterations)
