"""Find the membership behind a browser session or an API token."""

import hashlib
import secrets
from collections.abc import MutableMapping
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from agents.accounts.models import ApiToken, Membership
from agents.accounts.queries import TOKEN_OWNER
from agents.platform.log_context import log_for_organization

ACTIVE_ORGANIZATION = "active_organization"
"""The session key that holds the id of the active organization."""

TOKEN_PREFIX = "gadget_"  # noqa: S105
USE_RECORDED_EVERY = timedelta(minutes=1)

Session = MutableMapping[str, Any]


def list_memberships(user: AbstractBaseUser | AnonymousUser) -> QuerySet[Membership]:
    """Return all memberships of an active user, sorted by organization; none for anyone else."""
    if not user.is_authenticated:
        return Membership.objects.none()
    rows = Membership.objects.filter(user_id=user.pk, user__is_active=True)
    return rows.select_related("organization", "user").order_by("organization__name", "id")


def load_session_member(
    user: AbstractBaseUser | AnonymousUser, session: Session
) -> Membership | None:
    """Return the user's membership in the session's active organization, or else their first
    membership; None if they have none.

    The membership is read from the database each time, so that a changed role or a deactivation
    takes effect immediately.
    """
    mine = list(list_memberships(user))
    active = session.get(ACTIVE_ORGANIZATION)
    chosen = [member for member in mine if member.organization_id == active] or mine
    if not chosen:
        return None
    log_for_organization(chosen[0].organization_id)
    return chosen[0]


def switch_organization(
    user: AbstractBaseUser | AnonymousUser, session: Session, organization_id: int
) -> Membership | None:
    """Switch the session to another organization; if the user is not a member of it, return None
    and leave the session unchanged."""
    member = list_memberships(user).filter(organization_id=organization_id).first()
    if member is not None:
        session[ACTIVE_ORGANIZATION] = member.organization_id
    return member


def authenticate_token(secret: str) -> Membership | None:
    """Return the membership that a token belongs to, and record that the token was used. Return
    None if the token is unknown or revoked, or if its user is not active."""
    owner = TOKEN_OWNER.fetch_one(hash_secret(secret))
    if owner is None:
        return None
    if owner.last_used_at is None or owner.last_used_at < timezone.now() - USE_RECORDED_EVERY:
        ApiToken.objects.filter(pk=owner.token_id).update(last_used_at=Now())
    owner.member.organization, owner.member.user = owner.organization, owner.user
    log_for_organization(owner.organization.pk)
    return owner.member


def issue_token(member: Membership, name: str) -> tuple[ApiToken, str]:
    """Create a token for this membership; return it with its secret, which is not stored."""
    secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
    return ApiToken.objects.create(membership=member, name=name, hash=hash_secret(secret)), secret


def hash_secret(secret: str) -> str:
    """Return the hash that is stored for a secret. It need not be a slow hash, because the secret
    has 256 random bits."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
