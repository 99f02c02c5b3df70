"""What admins do about the members of their organisation: who is one, roles, removal, links to a new password."""

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
from agents.accounts.membership import hash_of
from agents.accounts.models import ApiToken, Membership, Organization, PasswordReset, Role
from agents.platform.refusals import Conflict, Forbidden, Invalid, NotFound

RESET_LASTS = timedelta(days=1)
GONE = "This link does not work any more. Ask for a new one."


@dataclass(frozen=True)
class Superuser:
    """Somebody who rules an organisation from outside of it, as an admin does within."""

    user: User
    organization_id: int


Ruler = Membership | Superuser


def members_of(organization_id: int) -> QuerySet[Membership]:
    """The organisation's members by name; `is_elsewhere` tells whether the account serves another one too."""
    others = Membership.objects.filter(user=OuterRef("user")).exclude(organization=OuterRef("organization"))
    mine = Membership.objects.filter(organization_id=organization_id).select_related("user", "organization")
    return mine.annotate(is_elsewhere=Exists(others)).order_by("user__username")


def add(by: Superuser, user: User, role: str) -> Membership:
    """Make somebody a member, with a new, unsaved account or an existing one.

    Only superusers do: an admin invites people, and so learns nothing about who has an account.

    Raises:
        Forbidden, Invalid: there is no such role, Conflict: is a member already.
    """
    with ruling(by):
        check_role(role)
        if user._state.adding:
            user.save()
        elif Membership.objects.filter(organization_id=by.organization_id, user=user).exists():
            raise Conflict(f"{user.get_username()} is a member already.")
        made = Membership.objects.create(organization_id=by.organization_id, user=user, role=role)
        let_into_admin(user)
        _record(by, "membership_added", made, role=role)
    return made


def consequence(by: Ruler, membership_id: int, role: str) -> str:
    """What it means, in one sentence, to give a member this role; empty if nothing has to be confirmed.

    Raises:
        Forbidden, NotFound, Invalid: there is no such role.
    """
    _check_rules(by)
    found = _found(by, membership_id)
    check_role(role)
    name = found.user.get_username()
    if found.role != Role.ADMIN == role:
        return of_an_admin(name)
    if found.role == Role.ADMIN != role:
        return (
            f"{name} may not configure anything here any more, and the invitations and links to a new password "
            f"that {name} has made stop working."
        )
    return ""


def of_an_admin(name: str) -> str:
    """What it means that this person is admin."""
    return f"{name} may change everything here: employees, what they may do, members, keys of models."


def change_role(by: Ruler, membership_id: int, role: str) -> Membership:
    """Give a member another role; the last admin keeps theirs.

    Raises:
        Forbidden, NotFound, Invalid: there is no such role, Conflict
    """
    with ruling(by):
        found = _found(by, membership_id)
        check_role(role)
        if found.role == role:
            return found
        _keep_an_admin(found)
        before, found.role = found.role, role
        found.save(update_fields=["role"])
        let_into_admin(found.user)
        _record(by, "membership_changed", found, role={"before": before, "after": role})
    return found


def remove(by: Ruler, membership_id: int) -> Membership:
    """Take a member out of the organisation, with their API tokens; the account itself stays.

    Raises:
        Forbidden, NotFound, Conflict
    """
    with ruling(by):
        found = _found(by, membership_id)
        _keep_an_admin(found)
        _record(by, "membership_deleted", found, role=found.role)
        Membership.objects.filter(pk=found.pk).delete()
        let_into_admin(found.user)
    return found


def let_into_admin(user: User) -> None:
    """Whoever is admin of an organisation, or superuser, may log in to the admin; nobody else."""
    admitted = user.is_superuser or user.memberships.filter(role=Role.ADMIN).exists()
    User.objects.filter(pk=user.pk).exclude(is_staff=admitted).update(is_staff=admitted)


def may_reset(member: Membership, found: Membership) -> bool:
    """Whether a link to a new password may be made: a password also opens what the account may do elsewhere.

    Args:
        found: a row of `members_of`.
    """
    if found.user_id == member.user_id or not found.user.is_active:
        return False
    return _is_within_reach(member.user, found)


def make_reset(member: Membership, membership_id: int) -> tuple[PasswordReset, str]:
    """A link with which this member chooses a new password, and its secret, which is kept nowhere.

    Earlier links of the same member end.

    Raises:
        Forbidden, NotFound
    """
    with ruling(member):
        found = _found(member, membership_id)
        if not may_reset(member, found):
            raise Forbidden(f"The password of {found.user.get_username()!r} can only be reset by a superuser.")
        PasswordReset.objects.filter(membership__user=found.user, used_at=None, revoked_at=None).update(
            revoked_at=Now()
        )
        secret = token_urlsafe(32)
        made = PasswordReset.objects.create(
            membership=found, hash=hash_of(secret), made_by=member.user, expires_at=timezone.now() + RESET_LASTS
        )
        _record(member, "password_link_made", found, expires_at=made.expires_at.isoformat(timespec="seconds"))
    return made, secret


def open_reset(hash_: str) -> PasswordReset:
    """The link of this hash, while it works: unused, in time, and its maker could still make it.

    Raises:
        NotFound
    """
    rows = PasswordReset.objects.filter(hash=hash_, used_at=None, revoked_at=None, expires_at__gt=Now())
    made_here = admins_of("membership__organization")
    found = rows.filter(made_here).select_related("membership__user", "membership__organization", "made_by").first()
    if found is None:
        raise NotFound(GONE)
    person = members_of(found.membership.organization_id).get(pk=found.membership_id)
    if not person.user.is_active or not _is_within_reach(found.made_by, person):
        raise NotFound(GONE)
    return found


def set_password(hash_: str, password: str) -> User:
    """Use the link up: from now on the account has this password, all its sessions have ended, and so have its API
    tokens in the organisation that made the link.

    Raises:
        NotFound, Invalid: the password is too weak, and why.
    """
    check_password(password, open_reset(hash_).membership.user)
    hashed = make_password(password)  # before others have to wait for the transaction
    with transaction.atomic():
        list(PasswordReset.objects.select_for_update().filter(hash=hash_))
        reset = open_reset(hash_)
        user = reset.membership.user
        user.password = hashed
        user.save(update_fields=["password"])
        PasswordReset.objects.filter(pk=reset.pk).update(used_at=Now())
        tokens = ApiToken.objects.filter(membership=reset.membership_id, revoked_at=None)
        revoked = list(tokens.select_for_update().values_list("name", flat=True))
        tokens.update(revoked_at=Now())
        payload = {"link_made_by": reset.made_by.get_username(), "api_tokens_revoked": revoked}
        entry = audit.Entry(
            f"user:{user.get_username()}", "password_reset", f"membership:{reset.membership_id}", payload
        )
        audit.append(reset.membership.organization_id, [entry])
    return user


def record_own_password(member: Membership) -> None:
    """Write to the audit that this person has chosen another password, in the transaction that keeps it."""
    actor = f"user:{member.user.get_username()}"
    audit.append(member.organization_id, [audit.Entry(actor, "password_changed", f"membership:{member.pk}")])


def check_role(role: str) -> None:
    """Refuse what is not a role.

    Raises:
        Invalid
    """
    if role not in Role.values:
        raise Invalid("role", f"{role[:40]!r} is not a role. There are: {', '.join(Role.values)}.")


def check_password(password: str, user: User) -> None:
    """Refuse a password that is too weak for this account.

    Raises:
        Invalid
    """
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise Invalid("password", " ".join(error.messages)) from error


def admins_of(organization: str) -> Exists:
    """A condition on links: whoever made it still administers the organisation at this path of the row."""
    return Exists(
        Membership.objects.filter(
            organization=OuterRef(organization), user=OuterRef("made_by"), role=Role.ADMIN, user__is_active=True
        )
    )


@contextmanager
def ruling(by: Ruler) -> Iterator[datetime]:
    """One act of an admin at a time in this organisation; the role counts as it is once nobody else acts.

    Yields the time. An `audit.append` has to come last.

    Raises:
        Forbidden: this person is no admin, or not any more.
    """
    with transaction.atomic():
        Organization.objects.select_for_update(no_key=True).get(pk=by.organization_id)
        _check_rules(by)
        yield timezone.now()


def _check_rules(by: Ruler) -> None:
    if isinstance(by, Superuser):
        rules = User.objects.filter(pk=by.user.pk, is_superuser=True, is_active=True).exists()
    else:
        rules = Membership.objects.filter(pk=by.pk, role=Role.ADMIN).exists()
    if not rules:
        raise Forbidden("Only admins of the organisation do this.")


def _found(by: Ruler, membership_id: int) -> Membership:
    found = members_of(by.organization_id).filter(pk=membership_id).first()
    if found is None:
        raise NotFound(f"There is no member {membership_id}.")
    return found


def _keep_an_admin(leaving: Membership) -> None:
    others = Membership.objects.filter(organization_id=leaving.organization_id, role=Role.ADMIN, user__is_active=True)
    if leaving.role == Role.ADMIN and not others.exclude(pk=leaving.pk).exists():
        raise Conflict(f"{leaving.user.get_username()} is the last admin: make somebody else admin first.")


def _is_within_reach(by: User, found: Membership) -> bool:
    is_elsewhere: bool = found.is_elsewhere  # type: ignore[attr-defined]
    return by.is_superuser or not (found.user.is_superuser or is_elsewhere)


def _record(by: Ruler, action: str, found: Membership, **fields: object) -> None:
    payload = {"row": str(found)[:200], "fields": fields}
    entry = audit.Entry(f"user:{by.user.get_username()}", action, f"membership:{found.pk}", payload)
    audit.append(by.organization_id, [entry])
