"""Who is asking: an API token, or a browser's session with its CSRF token."""

import math
import time
from typing import cast

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest
from ninja.errors import AuthenticationError
from ninja.security import APIKeyCookie, HttpBearer
from ninja.utils import check_csrf

from agents.accounts.membership import member_in_session, member_with_token
from agents.accounts.models import Membership
from agents.platform.refusals import Forbidden, Refusal

WRONG_TOKENS_A_MINUTE = 30
MINUTE_S = 60


class MemberRequest(HttpRequest):
    """A request whose asker is known."""

    auth: Membership


class NotGenuine(Forbidden):
    """A browser's request without the token that only our own pages know."""

    code = "csrf"


class TooManyWrongTokens(Refusal):
    """Somebody guesses; a right token is never refused for it."""

    status, code = 429, "too_many_requests"


class BearerToken(HttpBearer):
    """`Authorization: Bearer TOKEN`, made by `python manage.py create_api_token`. Needs no CSRF token."""

    openapi_description = "A token made by `python manage.py create_api_token`."

    def authenticate(self, request: HttpRequest, token: str) -> Membership:
        """The token's membership; a wrong token is an error even when a session is there too."""
        member = member_with_token(token.strip())
        if member is None:
            _count_wrong_token(request)
            raise AuthenticationError
        return member


class SessionCookie(APIKeyCookie):
    """The browser's session; whatever changes something also needs the header X-CSRFToken."""

    param_name = settings.SESSION_COOKIE_NAME
    openapi_description = "The session of a logged-in browser; changes also need the header `X-CSRFToken`."

    def __call__(self, request: HttpRequest) -> Membership | None:
        """The member of the session's active organisation; asked for the CSRF token only once it is somebody."""
        if not request.user.is_authenticated:
            return None
        if check_csrf(request) is not None:
            raise NotGenuine("The CSRF token is missing or wrong: send the cookie csrftoken's value as X-CSRFToken.")
        return self.authenticate(request, None)

    def authenticate(self, request: HttpRequest, key: str | None) -> Membership:
        """The session's member; a user without any organisation may do nothing."""
        member = member_in_session(request.user, request.session)
        if member is None:
            raise Forbidden("You are not a member of any organisation.")
        return member


def member_of(request: HttpRequest) -> Membership:
    """Who is asking, inside an operation."""
    return cast("MemberRequest", request).auth


def _count_wrong_token(request: HttpRequest) -> None:
    now = time.time()
    key = f"wrong-tokens:{request.META.get('REMOTE_ADDR', '')}:{math.floor(now / MINUTE_S)}"
    count = cache.get(key, 0) + 1
    cache.set(key, count, MINUTE_S)
    if count > WRONG_TOKENS_A_MINUTE:
        wait_s = math.ceil(MINUTE_S - now % MINUTE_S)
        raise TooManyWrongTokens(f"Too many wrong tokens; try again in {wait_s} s.", retry_after=wait_s)
