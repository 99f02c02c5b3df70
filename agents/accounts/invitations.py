"""Invitations: links that make one person a member, once that person accepts.

An invitation does not name an account, so that admins cannot find out who has one. It works until
it is used, is revoked or expires, and only while its creator is an admin.
"""

from dataclasses import dataclass
from datetime import timedelta
from secrets import token_urlsafe

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet, Sum
from django.db.models.functions import Now

from agents.accounts import audit
from agents.accounts.members import (
    LINK_EXPIRED,
    acting_as_admin,
    check_password,
    check_role,
    is_made_by_admin,
    update_admin_access,
)
from agents.accounts.membership import hash_secret
from agents.accounts.models import Invitation, Membership
from agents.platform.refusals import Conflict, Invalid, NotFound
from agents.platform.row_ids import get_row

DAYS = (1, 7, 30)
LONGEST_NOTE = 120
LONGEST_ADDRESS = 200
LONGEST_USERNAME = 150
MAX_OPEN = 100
MAX_TRIES_TOGETHER = 50
"""The maximum number of times that people may enter a username that is already taken, counted over
all links of an organization. A limit per link is not enough, because admins can create any number
of links."""
MAX_TRIES = 10
"""The maximum number of times that people may enter a username that is already taken, through one
link. It is small, because a link must not reveal who has an account."""


class NameTaken(Invalid):
    """Another account has this name."""


@dataclass(frozen=True)
class Offer:
    """The terms of a new invitation.

    Attributes:
        note: a description of the invited person, in the admin's words.
        days: the number of days for which the link works.
    """

    role: str
    note: str = ""
    address: str = ""
    days: int = 7


def list_open_invitations(organization_id: int | None = None) -> QuerySet[Invitation]:
    """Return the invitations that work now, newest first, of one organization, or of all
    organizations if no id is given."""
    rows = Invitation.objects.filter(
        is_made_by_admin("organization"),
        accepted_at=None,
        revoked_at=None,
        expires_at__gt=Now(),
        tries__lt=MAX_TRIES,
    )
    if organization_id is not None:
        rows = rows.filter(organization_id=organization_id)
    return rows.select_related("organization", "made_by").order_by("-pk")


def invite(member: Membership, offer: Offer) -> tuple[Invitation, str]:
    """Create an invitation; return it with the secret of its link, which is not stored.

    Raises:
        Forbidden, Invalid
        Conflict: too many invitations are open.
    """
    with acting_as_admin(member) as now:
        _check_offer(offer)
        if list_open_invitations(member.organization_id).count() >= MAX_OPEN:
            raise Conflict(f"{MAX_OPEN} invitations are open. Revoke some of them first.")
        secret = token_urlsafe(32)
        created = Invitation.objects.create(
            organization_id=member.organization_id,
            role=offer.role,
            note=offer.note,
            address=offer.address,
            hash=hash_secret(secret),
            made_by=member.user,
            expires_at=now + timedelta(days=offer.days),
        )
        expires = created.expires_at.isoformat(timespec="seconds")
        audit.record(
            member,
            "invitation_made",
            f"invitation:{created.pk}",
            role=offer.role,
            note=offer.note,
            expires_at=expires,
        )
    return created, secret


def revoke(member: Membership, invitation_id: int) -> None:
    """Revoke an invitation, so that its link no longer works.

    Raises:
        Forbidden, NotFound
        Conflict: the invitation was used, has expired or was revoked.
    """
    with acting_as_admin(member):
        invitations = Invitation.objects.filter(organization_id=member.organization_id)
        found = get_row(invitations, invitation_id, "invitation")
        open_invitation = Invitation.objects.filter(
            pk=found.pk, accepted_at=None, revoked_at=None, expires_at__gt=Now()
        )
        if not open_invitation.update(revoked_at=Now()):
            raise Conflict("This invitation is no longer open.")
        subject = f"invitation:{found.pk}"
        audit.record(member, "invitation_revoked", subject, role=found.role, note=found.note)


def find_open_invitation(hash_: str) -> Invitation:
    """Return the invitation whose link has this hash, if it works.

    Raises:
        NotFound
    """
    found = list_open_invitations().filter(hash=hash_).first()
    if found is None:
        raise NotFound(LINK_EXPIRED)
    return found


def accept(hash_: str, user: User) -> Membership:
    """Accept an invitation with an existing account.

    Raises:
        NotFound
        Conflict: the account is already a member; the link still works.
    """
    with transaction.atomic():
        return _add_member(_lock_invitation(hash_), user, account="existing")


def accept_with_new_account(hash_: str, username: str, password: str) -> Membership:
    """Accept an invitation with a new account.

    Raises:
        NotFound
        Invalid: the name or the password is not allowed; the text says why.
        Conflict: too many taken names were entered.
    """
    # Hashing is slow, so it is done before the transaction, whose locks would make others wait.
    account = _build_account(username, password)
    try:
        with transaction.atomic():
            invitation = _lock_invitation(hash_)
            _check_tries(invitation.organization_id)
            return _add_member(invitation, _save_account(account), account="new")
    except NameTaken:
        Invitation.objects.filter(hash=hash_).update(tries=F("tries") + 1)
        raise


def _check_offer(offer: Offer) -> None:
    check_role(offer.role)
    if offer.days not in DAYS:
        raise Invalid(
            "days", f"An invitation lasts {', '.join(map(str, DAYS[:-1]))} or {DAYS[-1]} days."
        )
    if len(offer.note) > LONGEST_NOTE or "\0" in offer.note:
        raise Invalid("note", f"Use at most {LONGEST_NOTE} characters.")
    if offer.address and (len(offer.address) > LONGEST_ADDRESS or not _is_address(offer.address)):
        raise Invalid("address", "This is not an e-mail address.")


def _is_address(text: str) -> bool:
    try:
        validate_email(text)
    except ValidationError:
        return False
    return True


def _lock_invitation(hash_: str) -> Invitation:
    """Return the invitation and lock its row, so that it is used only once."""
    list(Invitation.objects.select_for_update().filter(hash=hash_))
    return find_open_invitation(hash_)


def _add_member(invitation: Invitation, user: User, account: str) -> Membership:
    if Membership.objects.filter(organization=invitation.organization, user=user).exists():
        raise Conflict(
            f"{user.get_username()} is already a member of {invitation.organization.name}."
        )
    member = Membership.objects.create(
        organization=invitation.organization, user=user, role=invitation.role
    )
    Invitation.objects.filter(pk=invitation.pk).update(accepted_by=user, accepted_at=Now())
    update_admin_access(user)
    audit.record(
        member,
        "invitation_accepted",
        f"invitation:{invitation.pk}",
        membership=str(member.pk),
        role=invitation.role,
        account=account,
        invited_by=invitation.made_by.get_username(),
    )
    return member


def _build_account(username: str, password: str) -> User:
    name = User.normalize_username(username)
    if not name or len(name) > LONGEST_USERNAME:
        raise Invalid("username", f"Choose a username of 1 to {LONGEST_USERNAME} characters.")
    try:
        UnicodeUsernameValidator()(name)
    except ValidationError as error:
        raise Invalid(
            "username", "Use only letters, digits and @ . + - _ in the username."
        ) from error
    check_password(password, User(username=name))
    return User(username=name, password=make_password(password))


def _save_account(account: User) -> User:
    name = account.get_username()
    if User.objects.filter(username__iexact=name).exists():
        raise NameTaken("username", f"The username {name!r} is taken. Choose another one.")
    try:
        with transaction.atomic():
            account.save()
    except IntegrityError as error:
        raise NameTaken(
            "username", f"The username {name!r} is taken. Choose another one."
        ) from error
    return account


def _check_tries(organization_id: int) -> None:
    """Refuse a new account if too many taken usernames were entered through the organization's
    recent invitations."""
    recent = Invitation.objects.filter(
        organization_id=organization_id, created_at__gt=Now() - timedelta(days=max(DAYS) + 1)
    )
    if (recent.aggregate(tries=Sum("tries"))["tries"] or 0) >= MAX_TRIES_TOGETHER:
        raise Conflict(
            "New accounts cannot be created right now. Log in with an account you already have."
        )
