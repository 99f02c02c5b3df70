"""Proves to an outside API who is calling, with the organisation's credentials.

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
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import quote, urlencode

from tools.contract import SHORTEST_SECRET, ErrorCode, ToolContext, ToolError
from tools.network import Answer, NetworkLimits, request
from tools.sources.credentials import refuse_missing

from .deadline import Deadline
from .requests import line_break_in

_LONGEST_FETCH_S = 15.0
_ENDS_EARLY_S = 30.0
_UNSAID_LIFE_S = 300.0
_MOST_TOKENS = 1_000


class Kind(StrEnum):
    """How callers prove who they are; the value is what the settings hold."""

    NONE = "none"
    API_KEY = "api_key"
    BEARER = "bearer"
    BASIC = "basic"
    OAUTH2 = "oauth2"
    """Client credentials: no person is there to log in."""

    @property
    def fields(self) -> tuple[str, ...]:
        """What the credentials of the service have to hold."""
        return _FIELDS[self]


_FIELDS = {
    Kind.NONE: (),
    Kind.API_KEY: ("api_key",),
    Kind.BEARER: ("token",),
    Kind.BASIC: ("username", "password"),
    Kind.OAUTH2: ("client_id", "client_secret"),
}


@dataclass(frozen=True)
class Authentication:
    """The settings, without a secret in them.

    Attributes:
        service: under which the organisation keeps the credentials.
        place, name: of an API key: header, query or cookie, and its name there.
        token_url, scopes: of OAuth2.
    """

    kind: Kind = Kind.NONE
    service: str = ""
    place: str = "header"
    name: str = "X-API-Key"
    token_url: str = ""
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Proof:
    """What is added to one request.

    Attributes:
        query: one encoded pair, or empty.
        secrets: what must not be in the answer, as it is sent; the credentials themselves are known anyhow.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: str = field(default="", repr=False)
    secrets: frozenset[str] = field(default_factory=frozenset, repr=False)


class Tokens:
    """Access tokens in memory, until 30 s before they expire: by organisation, settings and credentials."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[float, str]] = {}

    def token(self, key: str, fetch: Callable[[], tuple[str, float]]) -> str:
        """The kept one, else what `fetch` gives: a token, and the seconds that it lives."""
        with self._lock:
            until, token = self._kept.get(key, (0.0, ""))
        if token and self._clock() < until:
            return token
        token, life_s = fetch()
        with self._lock:
            now = self._clock()
            self._kept = {name: kept for name, kept in self._kept.items() if kept[0] > now}
            if len(self._kept) < _MOST_TOKENS:
                self._kept[key] = (now + life_s - _ENDS_EARLY_S, token)
        return token

    def forget(self, key: str) -> None:
        """It was refused."""
        with self._lock:
            self._kept.pop(key, None)


TOKENS = Tokens()
"""Of this process."""


def prove(settings: Authentication, context: ToolContext, deadline: Deadline, tokens: Tokens = TOKENS) -> Proof:
    """What the request needs.

    Args:
        deadline: of the whole call, which asking for a token is a part of.

    Raises:
        ToolError: UNAUTHORIZED, if credentials are missing or the token's server refuses them; NETWORK_ERROR, TIMEOUT
            and the like, if that server cannot be asked. Always with `attempted` False.
    """
    values = _credentials(settings, context)
    if settings.kind is Kind.API_KEY:
        return _with_key(settings, values["api_key"])
    if settings.kind is Kind.BEARER:
        return _with_authorization("Bearer", values["token"])
    if settings.kind is Kind.BASIC:
        return _with_authorization("Basic", _basic(values["username"], values["password"]))
    if settings.kind is Kind.OAUTH2:
        key = _token_key(settings, context, values)
        return _with_authorization(
            "Bearer", tokens.token(key, lambda: _fetched_token(settings, context, values, deadline))
        )
    return Proof()


def forget(settings: Authentication, context: ToolContext, tokens: Tokens = TOKENS) -> bool:
    """After a 401: whether another try with a fresh token makes sense."""
    if settings.kind is not Kind.OAUTH2:
        return False
    tokens.forget(_token_key(settings, context, _credentials(settings, context)))
    return True


def _credentials(settings: Authentication, context: ToolContext) -> Mapping[str, str]:
    values = context.credentials.get(settings.service, {})
    refuse_missing(settings.service, settings.kind.fields, values)
    broken = [name for name in settings.kind.fields if line_break_in(values[name])]
    if broken:
        raise _unauthorized(
            f"The {broken[0]} of {settings.service!r} holds a line break or another control character.",
            f"An admin has to enter {broken[0]} anew for the service {settings.service!r}.",
        )
    return values


def _with_key(settings: Authentication, key: str) -> Proof:
    encoded = quote(key, safe="")
    if settings.place == "query":
        return Proof(query=f"{quote(settings.name, safe='')}={encoded}", secrets=_hidden(key, encoded))
    if settings.place == "cookie":
        return Proof({"Cookie": f"{settings.name}={encoded}"}, secrets=_hidden(key, encoded))
    return Proof({settings.name: key}, secrets=_hidden(key))


def _with_authorization(scheme: str, value: str) -> Proof:
    return Proof({"Authorization": f"{scheme} {value}"}, secrets=_hidden(value))


def _hidden(*values: str) -> frozenset[str]:
    return frozenset(value for value in values if len(value) >= SHORTEST_SECRET)


def _basic(username: str, password: str) -> str:
    return base64.b64encode(f"{username}:{password}".encode()).decode()


def _token_key(settings: Authentication, context: ToolContext, values: Mapping[str, str]) -> str:
    parts = [str(context.organization_id), settings.token_url, *settings.scopes]
    parts += [values[name] for name in settings.kind.fields]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _fetched_token(
    settings: Authentication, context: ToolContext, values: Mapping[str, str], deadline: Deadline
) -> tuple[str, float]:
    """By RFC 6749, 4.4: the client names itself with Basic, its parts encoded as forms are."""
    form = {"grant_type": "client_credentials"}
    if settings.scopes:
        form["scope"] = " ".join(settings.scopes)
    basic = _basic(quote(values["client_id"], safe=""), quote(values["client_secret"], safe=""))
    headers = {
        "Authorization": f"Basic {basic}",
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
    }
    try:
        seconds = min(_LONGEST_FETCH_S, deadline.left())
        limits = NetworkLimits(total_s=seconds, answer_bytes=100_000, redirects=0)
        answer = request(
            "POST",
            settings.token_url,
            reach=context.reach,
            headers=headers,
            body=urlencode(form).encode(),
            limits=limits,
        )
    except ToolError as error:
        raise ToolError(
            error.code, f"No access token: {error.message}", recovery_hint=error.recovery_hint, attempted=False
        ) from error
    return _token_in(answer, settings.service)


def _token_in(answer: Answer, service: str) -> tuple[str, float]:
    try:
        told: Any = json.loads(answer.content)
    except (ValueError, RecursionError):
        told = None
    token = told.get("access_token") if isinstance(told, dict) else None
    if answer.status != 200 or not isinstance(token, str) or not token or line_break_in(token) or not token.isascii():
        raise _unauthorized(
            f"No access token for {service!r}: its server answered {answer.status}.",
            f"An admin has to check the client id and secret of the service {service!r}.",
        )
    life = told.get("expires_in")
    return token, float(life) if isinstance(life, int | float) and 0 < life < 1e9 else _UNSAID_LIFE_S


def _unauthorized(message: str, hint: str) -> ToolError:
    return ToolError(ErrorCode.UNAUTHORIZED, message, recovery_hint=hint, attempted=False)
