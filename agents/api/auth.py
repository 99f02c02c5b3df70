"""Authentication of API requests: an API token, or a browser session with its CSRF token."""

import math
import time
from typing import cast

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest
from ninja.errors import AuthenticationError
from ninja.security import APIKeyCookie, HttpBearer
from ninja.utils import check_csrf

from agents.accounts.membership import authenticate_token, load_session_member
from agents.accounts.models import Membership
from agents.platform.refusals import Forbidden, Refusal

MAX_INVALID_TOKENS_PER_MINUTE = 30
MINUTE_S = 60


class MemberRequest(HttpRequest):
    """An authenticated request."""

    auth: Membership


class InvalidCsrfToken(Forbidden):
    """A browser request without a valid CSRF token."""

    code = "csrf"


class TooManyInvalidTokens(Refusal):
    """Too many invalid tokens from one address; a valid token is still accepted."""

    status, code = 429, "too_many_requests"


class BearerToken(HttpBearer):
    """A token in the header `Authorization: Bearer TOKEN`, which needs no CSRF token."""

    openapi_description = "A token created in the admin or by `python manage.py create_api_token`."

    def authenticate(self, request: HttpRequest, token: str) -> Membership:
        """Return the token's membership; an invalid token is an error even with a valid session."""
        member = authenticate_token(token.strip())
        if member is None:
            _count_invalid_token(request)
            raise AuthenticationError
        return member


class SessionCookie(APIKeyCookie):
    """The browser's session; requests that change something also need the header X-CSRFToken."""

    param_name = settings.SESSION_COOKIE_NAME
    openapi_description = "The session of a logged-in browser; changes also need the header `X-CSRFToken`."

    def __call__(self, request: HttpRequest) -> Membership | None:
        """Return the session's member; the CSRF token is checked only for logged-in users."""
        if not request.user.is_authenticated:
            return None
        if check_csrf(request) is not None:
            raise InvalidCsrfToken(
                "The CSRF token is missing or wrong. Send the value of the cookie csrftoken as X-CSRFToken."
            )
        return self.authenticate(request, None)

    def authenticate(self, request: HttpRequest, key: str | None) -> Membership:
        """Return the session's member; a user without an organization is refused."""
        member = load_session_member(request.user, request.session)
        if member is None:
            raise Forbidden("You are not a member of any organization. Ask an admin for an invitation.")
        return member


def get_member(request: HttpRequest) -> Membership:
    """Return the member who sent the request."""
    return cast("MemberRequest", request).auth


def _count_invalid_token(request: HttpRequest) -> None:
    now = time.time()
    key = f"wrong-tokens:{request.META.get('REMOTE_ADDR', '')}:{math.floor(now / MINUTE_S)}"
    count = cache.get(key, 0) + 1
    cache.set(key, count, MINUTE_S)
    if count > MAX_INVALID_TOKENS_PER_MINUTE:
        wait_s = math.ceil(MINUTE_S - now % MINUTE_S)
        raise TooManyInvalidTokens(f"Too many wrong tokens. Try again in {wait_s} s.", retry_after=wait_s)
