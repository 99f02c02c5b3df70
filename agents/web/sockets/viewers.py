"""Viewers of sockets: authentication when a socket opens, and repeated checks of their access."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.sessions.models import Session
from django.db.models.functions import Now

from agents.accounts.membership import authenticate_token, hash_secret, load_session_member
from agents.accounts.models import ApiToken, Membership
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
def authenticate_viewer(scope: Scope) -> Viewer | None:
    """Return the viewer of a valid API token, whose use is recorded, or of the session if the
    client sent no token; else None."""
    headers = {name.lower(): value for name, value in scope["headers"]}
    scheme, _, secret = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    if scheme.lower() == "bearer":
        member = authenticate_token(secret.strip())
        if member is None:
            return None
        name = member.user.get_username()
        return Viewer(
            member.pk, member.organization_id, name, token_hash=hash_secret(secret.strip())
        )
    session = scope["session"]
    member = load_session_member(scope["user"], session)
    if member is None:
        return None
    password_hash = hash_secret(member.user.password)
    name = member.user.get_username()
    return Viewer(member.pk, member.organization_id, name, session.session_key or "", password_hash)


def filter_allowed(viewers: set[Viewer]) -> set[Viewer]:
    """Return the viewers whose membership, user and session or token are still valid, with two or
    three queries."""
    members = Membership.objects.filter(
        pk__in={viewer.membership_id for viewer in viewers}, user__is_active=True
    )
    columns = members.values_list("pk", "organization_id", "user__password")
    passwords = {
        (pk, organization_id): hash_secret(password) for pk, organization_id, password in columns
    }
    session_keys = {viewer.session_key for viewer in viewers} - {""}
    if session_keys:
        sessions = Session.objects.filter(session_key__in=session_keys, expire_date__gt=Now())
        session_keys = set(sessions.values_list("session_key", flat=True))
    token_hashes = {viewer.token_hash for viewer in viewers} - {""}
    if token_hashes:
        tokens = ApiToken.objects.filter(hash__in=token_hashes, revoked_at=None)
        token_hashes = set(tokens.values_list("hash", flat=True))

    def is_allowed(viewer: Viewer) -> bool:
        password_hash = passwords.get((viewer.membership_id, viewer.organization_id))
        if password_hash is None:
            return False
        has_session = viewer.session_key in session_keys and viewer.password_hash == password_hash
        return has_session or viewer.token_hash in token_hashes

    return {viewer for viewer in viewers if is_allowed(viewer)}
