"""The caller of an MCP request: its agent key, and its session if it has one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from django.core import signing

from agents.gateway.keys import authenticate_key
from agents.gateway.models import AgentKey, AgentSession
from agents.gateway.sessions import find_or_create_session, has_ended

SCOPE_KEY = "gadget.caller"
"""The key of the caller in the ASGI scope of a request."""
_SALT = "mcp session"
_MAX_AGE_S = 7 * 24 * 3600


@dataclass(frozen=True)
class SessionToken:
    """The session that a client names in `Mcp-Session-Id`. The token is signed, so the session
    needs no row before its first call."""

    key_id: int
    nonce: str

    @classmethod
    def create(cls, key: AgentKey) -> SessionToken:
        """Create a token for a new session."""
        return cls(key.pk, uuid4().hex)

    @classmethod
    def parse(cls, text: str) -> SessionToken | None:
        """Parse the header's value; return None if its signature is wrong or older than seven
        days."""
        try:
            return cls(*signing.loads(text, salt=_SALT, max_age=_MAX_AGE_S))
        except (signing.BadSignature, TypeError, ValueError):
            return None

    def __str__(self) -> str:
        return signing.dumps([self.key_id, self.nonce], salt=_SALT)


@dataclass(frozen=True)
class Caller:
    """The agent that sent a request.

    Attributes:
        site: the origin of this installation, as the agent reaches it.
        token: the session that the agent named; None if it named none.
        has_session: False if the agent named a session that is not its own or has ended.
    """

    key: AgentKey
    site: str = ""
    token: SessionToken | None = None
    has_session: bool = True

    def open_session(self) -> AgentSession | None:
        """Return the session, and create its row if it is missing; None for a client without a
        session."""
        return find_or_create_session(self.key, self.token.nonce) if self.token else None


def authenticate_caller(secret: str, session_text: str | None, site: str) -> Caller | None:
    """Return the caller, and record the use of its key; None if the key does not work."""
    key = authenticate_key(secret)
    if key is None:
        return None
    if session_text is None:
        return Caller(key, site)
    token = SessionToken.parse(session_text)
    if token is None or token.key_id != key.pk or has_ended(key, token.nonce):
        return Caller(key, site, has_session=False)
    return Caller(key, site, token)


def get_caller(context: Any) -> Caller:
    """Return the caller of a request, given the SDK's context."""
    caller = context.request.scope[SCOPE_KEY]
    assert isinstance(caller, Caller)
    return caller
