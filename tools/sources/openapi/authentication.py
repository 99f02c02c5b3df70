"""Authentication of requests to an API, with the organization's credentials.

| kind | fields of the service's credentials |
|---|---|
| api_key | `api_key` |
| bearer | `token` |
| basic | `username`, `password` |
| oauth2 (client credentials) | `client_id`, `client_secret` |
"""

import base64
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus, urlencode

from tools.caches import Cache
from tools.contract import SHORTEST_SECRET, ErrorCode, ToolContext, ToolError
from tools.network import ClientResponse, NetworkLimits, request
from tools.sources.credentials import require_credentials
from tools.sources.openapi.deadline import Deadline
from tools.sources.openapi.requests import has_control_characters

_MAX_FETCH_S = 15.0
_EXPIRY_MARGIN_S = 30.0
_DEFAULT_LIFETIME_S = 300.0
_MAX_TOKENS = 1_000
_REFUSALS = (400, 401)
"""Statuses with which token servers refuse an authentication method that they do not support."""


class AuthenticationKind(StrEnum):
    """A method of authentication; the values are stored in the settings."""

    NONE = "none"
    API_KEY = "api_key"
    BEARER = "bearer"
    BASIC = "basic"
    OAUTH2 = "oauth2"
    """The client credentials grant, which needs no person to log in."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that the service's credentials must have."""
        return _FIELDS[self]


_FIELDS = {
    AuthenticationKind.NONE: (),
    AuthenticationKind.API_KEY: ("api_key",),
    AuthenticationKind.BEARER: ("token",),
    AuthenticationKind.BASIC: ("username", "password"),
    AuthenticationKind.OAUTH2: ("client_id", "client_secret"),
}


@dataclass(frozen=True)
class AuthenticationSettings:
    """The settings of a source's authentication, without secrets.

    Attributes:
        service: the name of the organization's credentials.
        place, name: for an API key: header, query, cookie or body, and its name there.
        token_url, scopes: for OAuth 2.
    """

    kind: AuthenticationKind = AuthenticationKind.NONE
    service: str = ""
    place: str = "header"
    name: str = "X-API-Key"
    token_url: str = ""
    scopes: tuple[str, ...] = ()

    @property
    def body_names(self) -> frozenset[str]:
        """The body fields that the connection fills; a model may not set them."""
        in_body = self.kind is AuthenticationKind.API_KEY and self.place == "body"
        return frozenset({self.name} if in_body else ())


@dataclass(frozen=True)
class RequestCredentials:
    """The additions to one request that authenticate it.

    Attributes:
        query: one encoded `name=value` pair, or empty.
        body: fields of the body.
        secrets: encoded secrets to hide in the response; the credentials themselves are always
            hidden.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: str = field(default="", repr=False)
    body: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: frozenset[str] = field(default_factory=frozenset, repr=False)


class _TokenRequest(NamedTuple):
    """A token request, in which the client authenticates by a header or by form fields."""

    form: Mapping[str, str]
    headers: Mapping[str, str]


class TokenCache:
    """An in-memory cache of access tokens, each kept until 30 s before it expires."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._cached: Cache[str, tuple[float, str]] = Cache(_MAX_TOKENS)

    def get_token(self, key: str, fetch: Callable[[], tuple[str, float]]) -> str:
        """Return the cached token, or call `fetch`, which returns (token, lifetime in seconds)."""
        until, token = self._cached.get(key) or (0.0, "")
        if token and self._clock() < until:
            return token
        token, lifetime_s = fetch()
        self._cached.put(key, (self._clock() + lifetime_s - _EXPIRY_MARGIN_S, token))
        return token

    def forget(self, key: str) -> None:
        """Remove a token that the API refused."""
        self._cached.remove(key)


TOKEN_CACHE = TokenCache()
"""The cache that all calls of this process share."""


def authenticate(
    settings: AuthenticationSettings,
    context: ToolContext,
    deadline: Deadline,
    tokens: TokenCache = TOKEN_CACHE,
) -> RequestCredentials:
    """Build the additions that authenticate a request.

    Args:
        deadline: the deadline of the whole call, including the request for a token.

    Raises:
        ToolError: UNAUTHORIZED, credentials are missing or the token server refuses them;
            NETWORK_ERROR, TIMEOUT or a similar error, the token server cannot be reached.
            `attempted` is always False.
    """
    values = _load_credentials(settings, context)
    if settings.kind is AuthenticationKind.API_KEY:
        return _build_api_key(settings, values["api_key"])
    if settings.kind is AuthenticationKind.BEARER:
        return _build_authorization("Bearer", values["token"])
    if settings.kind is AuthenticationKind.BASIC:
        return _build_authorization("Basic", _encode_basic(values["username"], values["password"]))
    if settings.kind is AuthenticationKind.OAUTH2:
        key = _build_token_key(settings, context, values)
        return _build_authorization(
            "Bearer",
            tokens.get_token(key, lambda: _fetch_token(settings, context, values, deadline)),
        )
    return RequestCredentials()


def discard_token(
    settings: AuthenticationSettings, context: ToolContext, tokens: TokenCache = TOKEN_CACHE
) -> bool:
    """Discard the token after a 401; return True if a retry with a new token makes sense."""
    if settings.kind is not AuthenticationKind.OAUTH2:
        return False
    tokens.forget(_build_token_key(settings, context, _load_credentials(settings, context)))
    return True


def _load_credentials(settings: AuthenticationSettings, context: ToolContext) -> Mapping[str, str]:
    values = context.credentials.get(settings.service, {})
    require_credentials(settings.service, settings.kind.fields, values)
    broken = [name for name in settings.kind.fields if has_control_characters(values[name])]
    if broken:
        raise _build_unauthorized_error(
            f"The {broken[0]} of {settings.service!r} contains a line break or another control character.",
            f"An admin must enter {broken[0]} again for the service {settings.service!r}.",
        )
    return values


def _build_api_key(settings: AuthenticationSettings, key: str) -> RequestCredentials:
    encoded = quote(key, safe="")
    if settings.place == "query":
        return RequestCredentials(
            query=f"{quote(settings.name, safe='')}={encoded}",
            secrets=_select_secrets(key, encoded),
        )
    if settings.place == "body":
        written = (
            json.dumps(key)[1:-1],
            json.dumps(key, ensure_ascii=False)[1:-1],
            quote_plus(key),
        )
        return RequestCredentials(
            body={settings.name: key}, secrets=_select_secrets(key, encoded, *written)
        )
    if settings.place == "cookie":
        return RequestCredentials(
            {"Cookie": f"{settings.name}={encoded}"}, secrets=_select_secrets(key, encoded)
        )
    return RequestCredentials({settings.name: key}, secrets=_select_secrets(key))


def _build_authorization(scheme: str, value: str) -> RequestCredentials:
    return RequestCredentials(
        {"Authorization": f"{scheme} {value}"}, secrets=_select_secrets(value)
    )


def _select_secrets(*values: str) -> frozenset[str]:
    return frozenset(value for value in values if len(value) >= SHORTEST_SECRET)


def _encode_basic(username: str, password: str) -> str:
    return base64.b64encode(f"{username}:{password}".encode()).decode()


def _build_token_key(
    settings: AuthenticationSettings, context: ToolContext, values: Mapping[str, str]
) -> str:
    """Hash the organization, the token server, the scopes and the credentials."""
    parts = [str(context.organization_id), settings.token_url, *settings.scopes]
    parts += [values[name] for name in settings.kind.fields]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _fetch_token(
    settings: AuthenticationSettings,
    context: ToolContext,
    values: Mapping[str, str],
    deadline: Deadline,
) -> tuple[str, float]:
    """Fetch a token and its lifetime in seconds, as in RFC 6749, 4.4.

    The client uses Basic authentication, with its id and secret form-encoded. A server that refuses
    this gets the credentials in the body, as 2.3.1 allows.
    """
    form = {"grant_type": "client_credentials"}
    if settings.scopes:
        form["scope"] = " ".join(settings.scopes)
    basic = _encode_basic(
        quote(values["client_id"], safe=""), quote(values["client_secret"], safe="")
    )
    response = _ask_for_token(
        settings, context, deadline, _TokenRequest(form, {"Authorization": f"Basic {basic}"})
    )
    if response.status in _REFUSALS:
        client = {name: values[name] for name in settings.kind.fields}
        response = _ask_for_token(
            settings, context, deadline, _TokenRequest({**form, **client}, {})
        )
    return _parse_token(response, settings.service)


def _ask_for_token(
    settings: AuthenticationSettings,
    context: ToolContext,
    deadline: Deadline,
    sent: _TokenRequest,
) -> ClientResponse:
    try:
        seconds = min(_MAX_FETCH_S, deadline.remaining())
        limits = NetworkLimits(total_s=seconds, response_bytes=100_000, redirects=0)
        return request(
            "POST",
            settings.token_url,
            reach=context.reach,
            headers={
                **sent.headers,
                "Content-Type": "application/x-www-form-urlencoded",
                "Accept": "application/json",
            },
            body=urlencode(sent.form).encode(),
            limits=limits,
        )
    except ToolError as error:
        raise ToolError(
            error.code,
            f"No access token: {error.message}",
            recovery_hint=error.recovery_hint,
            attempted=False,
        ) from error


def _parse_token(response: ClientResponse, service: str) -> tuple[str, float]:
    try:
        document: Any = json.loads(response.content)
    except (ValueError, RecursionError):
        document = None
    token = document.get("access_token") if isinstance(document, dict) else None
    if (
        response.status != 200
        or not isinstance(token, str)
        or not token
        or has_control_characters(token)
        or not token.isascii()
    ):
        fault = (
            f" returned status {response.status}"
            if response.status != 200
            else "'s response contains no valid token"
        )
        raise _build_unauthorized_error(
            f"No access token for {service!r}: its token server{fault}.",
            f"An admin must check the client id and secret of the service {service!r}.",
        )
    lifetime = document.get("expires_in")
    return token, float(lifetime) if isinstance(
        lifetime, int | float
    ) and 0 < lifetime < 1e9 else _DEFAULT_LIFETIME_S


def _build_unauthorized_error(message: str, hint: str) -> ToolError:
    return ToolError(ErrorCode.UNAUTHORIZED, message, recovery_hint=hint, attempted=False)
