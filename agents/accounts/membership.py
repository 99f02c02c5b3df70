"""Who is asking: the current membership behind a browser's session or an API token."""

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
from agents.platform.queries.accounts import TOKEN_OWNER

ACTIVE_ORGANIZATION = "active_organization"
"""Key of the session's active organisation, an id."""

TOKEN_PREFIX = "gadget_"  # noqa: S105
USE_NOTED_EVERY = timedelta(minutes=1)

Session = MutableMapping[str, Any]


def memberships_of(user: AbstractBaseUser | AnonymousUser) -> QuerySet[Membership]:
    """All memberships of an active user, by the organisation's name; none for anybody else."""
    if not user.is_authenticated:
        return Membership.objects.none()
    rows = Membership.objects.filter(user_id=user.pk, user__is_active=True)
    return rows.select_related("organization", "user").order_by("organization__name", "id")


def member_in_session(user: AbstractBaseUser | AnonymousUser, session: Session) -> Membership | None:
    """The user's membership in the session's active organisation, else in the first; None without any.

    Read afresh each time: a role that was taken away, or a user who was switched off, counts at once.
    """
    mine = list(memberships_of(user))
    active = session.get(ACTIVE_ORGANIZATION)
    chosen = [member for member in mine if member.organization_id == active] or mine
    return chosen[0] if chosen else None


def switch_organization(
    user: AbstractBaseUser | AnonymousUser, session: Session, organization_id: int
) -> Membership | None:
    """Makes an organisation the session's active one; None, and no change, if the user is no member of it."""
    member = memberships_of(user).filter(organization_id=organization_id).first()
    if member is not None:
        session[ACTIVE_ORGANIZATION] = member.organization_id
    return member


def member_with_token(secret: str) -> Membership | None:
    """The membership that a token belongs to; None if it is unknown, revoked or its user is switched off."""
    owner = TOKEN_OWNER.row(hash_of(secret))
    if owner is None:
        return None
    if owner.last_used_at is None or owner.last_used_at < timezone.now() - USE_NOTED_EVERY:
        ApiToken.objects.filter(pk=owner.token_id).update(last_used_at=Now())
    owner.member.organization, owner.member.user = owner.organization, owner.user
    return owner.member


def issue_token(member: Membership, name: str) -> tuple[ApiToken, str]:
    """A new token of this membership, and its secret, which is kept nowhere."""
    secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
    return ApiToken.objects.create(membership=member, name=name, hash=hash_of(secret)), secret


def hash_of(secret: str) -> str:
    """What is kept of a token; its 256 random bits need no slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
