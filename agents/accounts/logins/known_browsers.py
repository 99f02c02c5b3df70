"""Remember the browsers in which people have logged in to an account, with a signed cookie for each
account."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.conf import settings
from django.core import signing
from django.http import HttpRequest
from django.http.response import HttpResponseBase

LIFETIME = timedelta(days=180)
SALT = "agents.accounts.logins.known_browsers"


def remember(response: HttpResponseBase, username: str) -> None:
    """Set a cookie that identifies the browser for this account."""
    response.set_cookie(
        build_cookie_name(username),
        signing.dumps([username, secrets.token_urlsafe(12)], salt=SALT),
        max_age=LIFETIME,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def read_browser_token(request: HttpRequest, username: str) -> str:
    """Return the token that this browser got at an earlier login to this account; empty if it has
    no valid cookie."""
    try:
        owner, token = signing.loads(
            request.COOKIES.get(build_cookie_name(username), ""), salt=SALT, max_age=LIFETIME
        )
    except signing.BadSignature:
        return ""
    return str(token) if owner == username else ""


def build_cookie_name(username: str) -> str:
    """Return a cookie name that is valid for any username and does not reveal it."""
    return f"gadget_known_{hashlib.sha256(username.encode()).hexdigest()[:16]}"
