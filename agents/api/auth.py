"""Authentication of API requests: an API token, or a browser session with its CSRF token."""

from typing import cast

from django.conf import settings
from django.http import HttpRequest
from ninja.errors import AuthenticationError
from ninja.security import APIKeyCookie, HttpBearer
from ninja.utils import check_csrf

from agents.accounts.membership import authenticate_token, load_session_member
from agents.accounts.models import Membership
from agents.gateway.keys import KEY_PREFIX, authenticate_key, refuse_flood
from agents.gateway.models import AgentKey
from agents.platform.rate_limits import count_or_wait
from agents.platform.refusals import Forbidden, TooManyRequests

MAX_INVALID_TOKENS_PER_MINUTE = 30


class MemberRequest(HttpRequest):
    """An API request whose sender has been authenticated."""

    auth: Membership


class InvalidCsrfToken(Forbidden):
    """A browser sent a request without a valid CSRF token."""

    code = "csrf"


class TooManyInvalidTokens(TooManyRequests):
    """One address has sent too many invalid tokens; valid tokens from it are still accepted."""


class BearerToken(HttpBearer):
    """A token in the header `Authorization: Bearer TOKEN`, which does not need a CSRF token.

    Args:
        takes_agent_keys: True to accept agent keys, too.
    """

    openapi_description = (
        "A token created in the admin or by `python manage.py create_api_token`. "
        "For asks, also an agent key."
    )

    def __init__(self, *, takes_agent_keys: bool = False) -> None:
        super().__init__()
        self._takes_agent_keys = takes_agent_keys

    def authenticate(self, request: HttpRequest, token: str) -> AgentKey | Membership:
        """Return the agent key itself, or the membership of the token.

        Raises:
            AuthenticationError: the token is invalid, even if the session is valid.
            TooManyRequests: the address has sent too many invalid tokens, or the agent key too many
                requests.
        """
        is_key = self._takes_agent_keys and token.strip().startswith(KEY_PREFIX)
        caller = authenticate_key(token.strip()) if is_key else authenticate_token(token.strip())
        if caller is None:
            _count_invalid_token(request)
            raise AuthenticationError
        if isinstance(caller, AgentKey):
            refuse_flood(caller)
        return caller


class SessionCookie(APIKeyCookie):
    """The browser's session; requests that change something also need the header X-CSRFToken."""

    param_name = settings.SESSION_COOKIE_NAME
    openapi_description = (
        "The session of a logged-in browser; changes also need the header `X-CSRFToken`."
    )

    def __call__(self, request: HttpRequest) -> Membership | None:
        """Return the session's member, or None if nobody is logged in. The CSRF token is checked
        only for users who are logged in."""
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
            raise Forbidden(
                "You are not a member of any organization. Ask an admin for an invitation."
            )
        return member


def get_member(request: HttpRequest) -> Membership:
    """Return the member who sent the request."""
    return cast("MemberRequest", request).auth


def _count_invalid_token(request: HttpRequest) -> None:
    address = request.META.get("REMOTE_ADDR", "")
    if wait_s := count_or_wait(f"wrong-tokens:{address}", MAX_INVALID_TOKENS_PER_MINUTE):
        raise TooManyInvalidTokens(
            f"Too many wrong tokens. Try again in {wait_s} s.", retry_after=wait_s
        )
