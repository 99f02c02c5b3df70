"""Limits on wrong passwords: per account and address, per address, and per known browser.

Each try is counted before the password is checked, so that simultaneous tries cannot exceed a
limit; if the password is correct, the try is subtracted again. The counters are stored in the table
of django-axes, where a superuser may delete them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

import structlog
from axes.handlers.database import AxesDatabaseHandler
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.db.models import F
from django.http import HttpRequest
from django.utils import timezone

from agents.accounts.logins.hashing import is_for_known_browser
from agents.accounts.logins.known_browsers import read_browser_token

log = structlog.get_logger(__name__)

WINDOW = timedelta(minutes=15)
MAX_FOR_ACCOUNT = 8
"""The number of wrong passwords allowed for one account from one address."""
MAX_FROM_ADDRESS = 20
MAX_FROM_KNOWN_BROWSER = 8

ANY_ADDRESS = "::"
ANY_ACCOUNT = ""


@dataclass(frozen=True)
class TryCounter:
    """Counts tries in a window of time that begins with the first try."""

    username: str
    address: str
    browser: str
    most: int

    def count(self) -> bool:
        """Count a try. If there have already been too many, do not count it, and return False."""
        row = self._rows.first()
        if row is None or row.attempt_time <= _get_window_start():
            AccessAttempt.objects.filter(attempt_time__lte=_get_window_start()).delete()
            row, _ = AccessAttempt.objects.get_or_create(
                **self._key, defaults={"failures_since_start": 0}
            )
        if row.failures_since_start >= self.most:
            return False
        free = self._rows.filter(failures_since_start__lt=self.most)
        return bool(free.update(failures_since_start=F("failures_since_start") + 1))

    def uncount(self) -> None:
        """Subtract a counted try."""
        self._rows.filter(failures_since_start__gt=0).update(
            failures_since_start=F("failures_since_start") - 1
        )

    def reset(self) -> None:
        """Reset the counter."""
        self._rows.delete()

    def get_wait_s(self) -> int:
        """Return the number of seconds until the next try is allowed; 0 if it is allowed now."""
        full = self._rows.filter(failures_since_start__gte=self.most).first()
        return (
            0
            if full is None
            else max(1, int((full.attempt_time - _get_window_start()).total_seconds()) + 1)
        )

    @property
    def _key(self) -> dict[str, str]:
        return {"username": self.username, "ip_address": self.address, "user_agent": self.browser}

    @property
    def _rows(self) -> Any:
        return AccessAttempt.objects.filter(**self._key)


@dataclass(frozen=True)
class LoginTries:
    """The counters to which one login attempt is added."""

    counters: tuple[TryCounter, ...]

    @classmethod
    def for_request(cls, request: HttpRequest, username: str) -> LoginTries:
        """Choose the counters for a login. A known browser has its own counter, so that strangers
        cannot lock it out."""
        if token := read_browser_token(request, username):
            return cls((TryCounter(username, ANY_ADDRESS, token, MAX_FROM_KNOWN_BROWSER),))
        address = find_client_network(request)
        return cls(
            (
                TryCounter(ANY_ACCOUNT, address, "", MAX_FROM_ADDRESS),
                TryCounter(username, address, "", MAX_FOR_ACCOUNT),
            )
        )

    @property
    def is_from_known_browser(self) -> bool:
        return any(counter.browser for counter in self.counters)

    def count(self) -> bool:
        """Count a try in every counter. If one of the counters is full, leave all counters
        unchanged and return False."""
        for number, counter in enumerate(self.counters):
            if not counter.count():
                for counted in self.counters[:number]:
                    counted.uncount()
                return False
        return True

    def uncount(self) -> None:
        """Subtract a counted try whose password was never checked."""
        for counter in self.counters:
            counter.uncount()

    def accept(self) -> None:
        """Reset the account's counter after a correct password; the address's counter only drops by
        one, because the same client may be guessing passwords of other accounts."""
        for counter in self.counters:
            counter.uncount() if counter.username == ANY_ACCOUNT else counter.reset()

    def get_wait_s(self) -> int:
        return max(counter.get_wait_s() for counter in self.counters)


class LoginLimits(AxesDatabaseHandler):  # type: ignore[misc]
    """The handler that django-axes calls around each login; it applies these limits."""

    def is_allowed(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> bool:
        """Count the try that is about to happen; return False if it exceeds a limit."""
        tries = LoginTries.for_request(request, str((credentials or {}).get("username") or ""))
        request.login_tries = tries  # type: ignore[attr-defined]
        is_for_known_browser.set(tries.is_from_known_browser)
        request.axes_locked_out = not tries.count()  # type: ignore[attr-defined]
        return not request.axes_locked_out  # type: ignore[attr-defined]

    def user_login_failed(
        self,
        _sender: object,
        _credentials: object,
        request: HttpRequest | None = None,
        **_more: object,
    ) -> None:
        """Log the failed login; its try stays counted."""
        is_locked = bool(getattr(request, "axes_locked_out", False))
        address = request.META.get("REMOTE_ADDR", "") if request else ""
        log.warning("login failed", address=address, is_locked=is_locked)

    def user_logged_in(self, sender: object, request: HttpRequest, user: User, **more: Any) -> None:
        """Reset the account's counter, and let `LoginMiddleware` remember the browser."""
        super().user_logged_in(sender, request, user, **more)
        if tries := getattr(request, "login_tries", None):
            tries.accept()
        request.remembered_login = user.get_username()  # type: ignore[attr-defined]


def find_client_network(request: HttpRequest) -> str:
    """Return the client's IPv4 address, or its whole IPv6 network, because a client can use every
    address in that network.

    A server on `::` sees an IPv4 client as `::ffff:192.0.2.1`. If this were treated as an IPv6
    address, all IPv4 clients would be in the same network.
    """
    try:
        address = ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return ANY_ADDRESS
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return str(ip_network((int(address), 64), strict=False).network_address)
    return str(address)


def _get_window_start() -> datetime:
    return timezone.now() - WINDOW
