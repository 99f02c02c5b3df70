"""Actions of admins on the members of their organization: roles, removal, links for a new
password."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from secrets import token_urlsafe

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from agents.accounts import audit
from agents.accounts.membership import hash_secret
from agents.accounts.models import ApiToken, Membership, Organization, PasswordReset, Role
from agents.platform.refusals import Conflict, Forbidden, Invalid, NotFound
from agents.platform.row_ids import get_row

RESET_LIFETIME = timedelta(days=1)
LINK_EXPIRED = "This link no longer works. Ask for a new one."


@dataclass(frozen=True)
class Superuser:
    """A superuser who administers an organization without being its member."""

    user: User
    organization_id: int


Administrator = Membership | Superuser


def list_members(organization_id: int) -> QuerySet[Membership]:
    """Return the organization's members, sorted by name; `is_elsewhere` is True if the account also
    belongs to another organization."""
    others = Membership.objects.filter(user=OuterRef("user")).exclude(
        organization=OuterRef("organization")
    )
    mine = Membership.objects.filter(organization_id=organization_id).select_related(
        "user", "organization"
    )
    return mine.annotate(is_elsewhere=Exists(others)).order_by("user__username")


def add_member(by: Superuser, user: User, role: str) -> Membership:
    """Add a member with a new, unsaved account or an existing one.

    Only superusers can do this: admins invite people instead, because an invitation does not reveal
    who has an account.

    Raises:
        Forbidden
        Invalid: there is no such role.
        Conflict: the account is already a member.
    """
    with acting_as_admin(by):
        check_role(role)
        if user._state.adding:
            user.save()
        elif Membership.objects.filter(organization_id=by.organization_id, user=user).exists():
            raise Conflict(f"{user.get_username()} is already a member.")
        created = Membership.objects.create(
            organization_id=by.organization_id, user=user, role=role
        )
        update_admin_access(user)
        _record(by, "membership_added", created, role=role)
    return created


def describe_role_change(by: Administrator, membership_id: int, role: str) -> str | None:
    """Return a sentence that explains the consequence of giving a member this role; None if the
    change does not have to be confirmed.

    Raises:
        Forbidden, NotFound
        Invalid: there is no such role.
    """
    _check_is_admin(by)
    found = _find_member(by, membership_id)
    check_role(role)
    name = found.user.get_username()
    if found.role != Role.ADMIN == role:
        return describe_admin_rights(name)
    if found.role == Role.ADMIN != role:
        return (
            f"{name} can no longer configure anything here. The invitations and password links "
            f"that {name} created stop working."
        )
    return None


def describe_admin_rights(name: str) -> str:
    """Return a sentence about the rights of an admin."""
    return (
        f"{name} can change everything here: employees, their permissions, members and model keys."
    )


def change_role(by: Administrator, membership_id: int, role: str) -> Membership:
    """Give a member another role, unless this is the last admin.

    Raises:
        Forbidden, NotFound
        Invalid: there is no such role.
        Conflict: this is the last admin.
    """
    with acting_as_admin(by):
        found = _find_member(by, membership_id)
        check_role(role)
        if found.role == role:
            return found
        _check_not_last_admin(found)
        before, found.role = found.role, role
        found.save(update_fields=["role"])
        update_admin_access(found.user)
        _record(by, "membership_changed", found, role={"before": before, "after": role})
    return found


def remove_member(by: Administrator, membership_id: int) -> Membership:
    """Remove a member and their API tokens from the organization; the account itself stays.

    Raises:
        Forbidden, NotFound
        Conflict: this is the last admin.
    """
    with acting_as_admin(by):
        found = _find_member(by, membership_id)
        _check_not_last_admin(found)
        _record(by, "membership_deleted", found, role=found.role)
        Membership.objects.filter(pk=found.pk).delete()
        update_admin_access(found.user)
    return found


def update_admin_access(user: User) -> None:
    """Allow a user to log in to the admin if they are a superuser or administer an organization;
    otherwise forbid it."""
    is_admin = user.is_superuser or user.memberships.filter(role=Role.ADMIN).exists()
    User.objects.filter(pk=user.pk).exclude(is_staff=is_admin).update(is_staff=is_admin)


def may_reset_password(member: Membership, found: Membership) -> bool:
    """Return True if the member may reset another member's password.

    A password gives access to the whole account, including in other organizations. So only
    superusers may reset the password of a superuser or of a member of several organizations.

    Args:
        found: a row of `list_members`.
    """
    if found.user_id == member.user_id or not found.user.is_active:
        return False
    return _may_administer_account(member.user, found)


def create_password_reset(member: Membership, membership_id: int) -> tuple[PasswordReset, str]:
    """Create a link for choosing a member's new password; return it with its secret, which is not
    stored.

    Earlier links for the same member stop working.

    Raises:
        Forbidden, NotFound
    """
    with acting_as_admin(member):
        found = _find_member(member, membership_id)
        if not may_reset_password(member, found):
            raise Forbidden(
                f"Only a superuser can reset the password of {found.user.get_username()!r}."
            )
        PasswordReset.objects.filter(
            membership__user=found.user, used_at=None, revoked_at=None
        ).update(revoked_at=Now())
        secret = token_urlsafe(32)
        created = PasswordReset.objects.create(
            membership=found,
            hash=hash_secret(secret),
            made_by=member.user,
            expires_at=timezone.now() + RESET_LIFETIME,
        )
        _record(
            member,
            "password_link_made",
            found,
            expires_at=created.expires_at.isoformat(timespec="seconds"),
        )
    return created, secret


def find_open_reset(hash_: str) -> PasswordReset:
    """Return the link with this hash, if it is unused and has not expired, and if its creator may
    still create a link for this member.

    Raises:
        NotFound
    """
    rows = PasswordReset.objects.filter(
        hash=hash_, used_at=None, revoked_at=None, expires_at__gt=Now()
    )
    by_admin = is_made_by_admin("membership__organization")
    found = (
        rows.filter(by_admin)
        .select_related("membership__user", "membership__organization", "made_by")
        .first()
    )
    if found is None:
        raise NotFound(LINK_EXPIRED)
    person = list_members(found.membership.organization_id).get(pk=found.membership_id)
    if not person.user.is_active or not _may_administer_account(found.made_by, person):
        raise NotFound(LINK_EXPIRED)
    return found


def use_password_reset(hash_: str, password: str) -> User:
    """Set the password, and make the link unusable.

    This ends all sessions of the account, and revokes its API tokens in the link's organization.

    Raises:
        NotFound
        Invalid: the password is too weak; the text says why.
    """
    check_password(password, find_open_reset(hash_).membership.user)
    hashed = make_password(password)  # hashing is slow, so it is done before the transaction
    with transaction.atomic():
        list(PasswordReset.objects.select_for_update().filter(hash=hash_))
        reset = find_open_reset(hash_)
        user = reset.membership.user
        user.password = hashed
        user.save(update_fields=["password"])
        PasswordReset.objects.filter(pk=reset.pk).update(used_at=Now())
        tokens = ApiToken.objects.filter(membership=reset.membership_id, revoked_at=None)
        revoked = list(tokens.select_for_update().values_list("name", flat=True))
        tokens.update(revoked_at=Now())
        audit.record(
            reset.membership,
            "password_reset",
            f"membership:{reset.membership_id}",
            link_made_by=reset.made_by.get_username(),
            api_tokens_revoked=revoked,
        )
    return user


def record_own_password(member: Membership) -> None:
    """Record in the audit that a member changed their own password; call it in the transaction of
    the change."""
    audit.record(member, "password_changed", f"membership:{member.pk}")


def check_role(role: str) -> None:
    """Check that this is a role.

    Raises:
        Invalid
    """
    if role not in Role.values:
        raise Invalid(
            "role", f"{role[:40]!r} is not a role. Choose one of: {', '.join(Role.values)}."
        )


def check_password(password: str, user: User) -> None:
    """Check that a password is strong enough for this account.

    Raises:
        Invalid
    """
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise Invalid("password", " ".join(error.messages)) from error


def is_made_by_admin(organization: str) -> Exists:
    """Return a filter for links whose creator is still an active admin of the link's organization;
    `organization` is the field path to that organization."""
    return Exists(
        Membership.objects.filter(
            organization=OuterRef(organization),
            user=OuterRef("made_by"),
            role=Role.ADMIN,
            user__is_active=True,
        )
    )


@contextmanager
def acting_as_admin(by: Administrator) -> Iterator[datetime]:
    """Run the block as an admin's action, with the organization locked and the admin's current role
    checked.

    Yield the current time. If the block calls `audit.append`, it must do so at its end.

    Raises:
        Forbidden: this person is not an admin, or is no longer one.
    """
    with transaction.atomic():
        Organization.objects.select_for_update(no_key=True).get(pk=by.organization_id)
        _check_is_admin(by)
        yield timezone.now()


def _check_is_admin(by: Administrator) -> None:
    if isinstance(by, Superuser):
        is_admin = User.objects.filter(pk=by.user.pk, is_superuser=True, is_active=True).exists()
    else:
        is_admin = Membership.objects.filter(pk=by.pk, role=Role.ADMIN).exists()
    if not is_admin:
        raise Forbidden("Only admins of the organization can do this.")


def _find_member(by: Administrator, membership_id: int) -> Membership:
    return get_row(list_members(by.organization_id), membership_id, "member")


def _check_not_last_admin(leaving: Membership) -> None:
    others = Membership.objects.filter(
        organization_id=leaving.organization_id, role=Role.ADMIN, user__is_active=True
    )
    if leaving.role == Role.ADMIN and not others.exclude(pk=leaving.pk).exists():
        raise Conflict(
            f"Make someone else an admin first: {leaving.user.get_username()} is the last admin."
        )


def _may_administer_account(by: User, found: Membership) -> bool:
    is_elsewhere: bool = found.is_elsewhere  # type: ignore[attr-defined]
    return by.is_superuser or not (found.user.is_superuser or is_elsewhere)


def _record(by: Administrator, action: str, found: Membership, **fields: object) -> None:
    payload = {"row": str(found)[:200], "fields": fields}
    entry = audit.NewEntry(
        f"user:{by.user.get_username()}", action, f"membership:{found.pk}", payload
    )
    audit.append(by.organization_id, [entry])
