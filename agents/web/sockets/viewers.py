"""Viewers of sockets: authentication when a socket opens, and repeated checks of their access."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agents.accounts.membership import authenticate_token, hash_secret, load_session_member
from agents.accounts.queries import ACTIVE_MEMBERS, VALID_SESSIONS, VALID_TOKENS
from agents.web.sockets.database import database_to_async

Scope = dict[str, Any]


@dataclass(frozen=True)
class Viewer:
    """A member who watches, with the credentials that every check needs.

    Attributes:
        session_key, password_hash: the browser's session, which ends when the password changes.
        token_hash: the API token, if the client sent one instead.
    """

    membership_id: int
    organization_id: int
    username: str
    session_key: str = ""
    password_hash: str = ""
    token_hash: str = ""


@database_to_async
def find_viewer(scope: Scope) -> Viewer | None:
    """Find the viewer by their API token if the client sent one, else by their session; None if that is invalid."""
    headers = {name.lower(): value for name, value in scope["headers"]}
    scheme, _, secret = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    if scheme.lower() == "bearer":
        member = authenticate_token(secret.strip())
        if member is None:
            return None
        name = member.user.get_username()
        return Viewer(member.pk, member.organization_id, name, token_hash=hash_secret(secret.strip()))
    session = scope["session"]
    member = load_session_member(scope["user"], session)
    if member is None:
        return None
    password_hash = hash_secret(member.user.password)
    name = member.user.get_username()
    return Viewer(member.pk, member.organization_id, name, session.session_key or "", password_hash)


def filter_allowed(viewers: set[Viewer]) -> set[Viewer]:
    """Return the viewers whose membership, user and session or token are still valid, with two or three queries."""
    members = ACTIVE_MEMBERS.fetch_matching({viewer.membership_id for viewer in viewers})
    passwords = {(member.membership_id, member.organization_id): hash_secret(member.password) for member in members}
    sessions = VALID_SESSIONS.fetch_matching({viewer.session_key for viewer in viewers} - {""})
    tokens = VALID_TOKENS.fetch_matching({viewer.token_hash for viewer in viewers} - {""})
    session_keys, token_hashes = {row.session_key for row in sessions}, {row.hash for row in tokens}

    def is_allowed(viewer: Viewer) -> bool:
        password_hash = passwords.get((viewer.membership_id, viewer.organization_id))
        if password_hash is None:
            return False
        has_session = viewer.session_key in session_keys and viewer.password_hash == password_hash
        return has_session or viewer.token_hash in token_hashes

    return {viewer for viewer in viewers if is_allowed(viewer)}
