"""The compiled query that finds the owner of an API token."""

from datetime import datetime
from typing import NamedTuple

from django.contrib.auth.models import User

from agents.accounts.models import ApiToken, Membership, Organization
from agents.platform.queries.compiled import CompiledQuery, ModelColumns


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
