"""The compiled queries of access: the owner of a token, and the proofs of access that sockets check again."""

from datetime import datetime
from typing import NamedTuple

from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db.models.functions import Now

from agents.accounts.models import ApiToken, Membership, Organization
from agents.platform.queries.compiled import CompiledListQuery, CompiledQuery, ModelColumns


class TokenOwner(NamedTuple):
    """A valid token and its owner."""

    token_id: int
    last_used_at: datetime | None
    member: Membership
    organization: Organization
    user: User


TOKEN_OWNER = CompiledQuery(
    TokenOwner,
    lambda token_hash: ApiToken.objects.filter(
        hash=token_hash, revoked_at=None, membership__user__is_active=True
    ).order_by(),
    placeholders=("the hash of a token",),
    token_id="id",  # noqa: S106 (the name of a column)
    member=ModelColumns(Membership, "membership__"),
    organization=ModelColumns(Organization, "membership__organization__"),
    user=ModelColumns(User, "membership__user__"),
)


class ActiveMember(NamedTuple):
    """A member whose account is active, with the hash of the account's password."""

    membership_id: int
    organization_id: int
    password: str


ACTIVE_MEMBERS = CompiledListQuery(
    ActiveMember,
    lambda membership_id: Membership.objects.filter(pk__in=[membership_id], user__is_active=True).order_by(),
    membership_id="pk",
    password="user__password",  # noqa: S106 (the name of a column)
)


class ValidSession(NamedTuple):
    """A browser session that has not expired."""

    session_key: str


VALID_SESSIONS = CompiledListQuery(
    ValidSession,
    lambda session_key: Session.objects.filter(session_key__in=[session_key], expire_date__gt=Now()).order_by(),
    placeholders=("the key of a session",),
)


class ValidToken(NamedTuple):
    """An API token that is not revoked."""

    hash: str


VALID_TOKENS = CompiledListQuery(
    ValidToken,
    lambda token_hash: ApiToken.objects.filter(hash__in=[token_hash], revoked_at=None).order_by(),
    placeholders=("the hash of a token",),
)
