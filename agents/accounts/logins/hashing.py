"""Limit how many passwords are hashed at the same time. Each hash occupies a processor core, and
pages need the cores too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import BoundedSemaphore

from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.db import connection

MAX_AT_ONCE = max(1, (os.cpu_count() or 1) // 2)
MAX_WAITING = 8
"""The maximum number of logins that wait for a slot; each occupies a thread but does not hold a
database connection."""
MAX_WAIT_S = 4.0
RETRY_AFTER_S = 5


class TooBusy(Exception):
    """Too many passwords wait to be hashed in this process."""


class ThreadLimit:
    """A limit that admits a few threads at a time, and lets a few more wait briefly."""

    def __init__(self, most_at_once: int, most_waiting: int, max_wait_s: float) -> None:
        self._inside = BoundedSemaphore(most_at_once)
        self._inside_or_waiting = BoundedSemaphore(most_at_once + most_waiting)
        self._max_wait_s = max_wait_s

    @contextmanager
    def holding_slot(self) -> Iterator[None]:
        """Wait for a slot and hold it during the block.

        Raises:
            TooBusy: too many threads are already waiting, or the wait took too long.
        """
        if not self._inside_or_waiting.acquire(blocking=False):
            raise TooBusy
        try:
            if not self._inside.acquire(timeout=self._max_wait_s):
                raise TooBusy
            try:
                yield
            finally:
                self._inside.release()
        finally:
            self._inside_or_waiting.release()


LIMIT = ThreadLimit(MAX_AT_ONCE, MAX_WAITING, MAX_WAIT_S)
LIMIT_FOR_KNOWN_BROWSERS = ThreadLimit(1, MAX_WAITING, MAX_WAIT_S)
"""A separate limit, so that a flood of logins by strangers cannot delay people with a known
browser."""

is_for_known_browser: ContextVar[bool] = ContextVar("is_for_known_browser", default=False)
"""True while a password from a known browser is being checked."""


class BoundedPasswordHasher(PBKDF2PasswordHasher):
    """Django's password hasher, limited to a few threads at a time."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        """Hash the password.

        Raises:
            TooBusy
        """
        if not connection.in_atomic_block:
            connection.close()  # the wait may be long, and pages need the few connections
        limit = LIMIT_FOR_KNOWN_BROWSERS if is_for_known_browser.get() else LIMIT
        with limit.holding_slot():
            return super().encode(password, salt, iterations)
