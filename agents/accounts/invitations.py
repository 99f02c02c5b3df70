"""Invitations: links that make whoever opens one a member, once. The person accepts; nobody is pulled in.

An invitation names no account, so that an admin learns nothing about who has one. It works while it is unused, in
time, and made by somebody who still is admin.
"""

from dataclasses import dataclass
from datetime import timedelta
from secrets import token_urlsafe

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet, Sum
from django.db.models.functions import Now

from agents.accounts import audit
from agents.accounts.members import GONE, admins_of, check_password, check_role, let_into_admin, ruling
from agents.accounts.membership import hash_of
from agents.accounts.models import Invitation, Membership
from agents.platform.refusals import Conflict, Invalid, NotFound

DAYS = (1, 7, 30)
LONGEST_NOTE = 120
LONGEST_USERNAME = 150
MOST_OPEN = 100
MOST_TRIES_TOGETHER = 50
"""For all of an organization's invitations together: its admin can create and use any number of them."""
MOST_TRIES = 10
"""So often a name may be asked for that is taken: a link must not be a way to learn who has an account."""


class NameTaken(Invalid):
    """Another account has this name."""


@dataclass(frozen=True)
class Offer:
    """What an admin invites somebody to.

    Attributes:
        note: whom it is for, in the admin's own words.
        days: how long the link works.
    """

    role: str
    note: str = ""
    days: int = 7


def open_invitations(organization_id: int | None = None) -> QuerySet[Invitation]:
    """Invitations that work now, newest first; of one organisation or of all."""
    rows = Invitation.objects.filter(
        admins_of("organization"),
        accepted_at=None,
        revoked_at=None,
        expires_at__gt=Now(),
        tries__lt=MOST_TRIES,
    )
    if organization_id is not None:
        rows = rows.filter(organization_id=organization_id)
    return rows.select_related("organization", "made_by").order_by("-pk")


def invite(member: Membership, offer: Offer) -> tuple[Invitation, str]:
    """A new invitation, and the secret of its link, which is kept nowhere.

    Raises:
        Forbidden, Invalid, Conflict: too many are open.
    """
    with ruling(member) as now:
        _check_offer(offer)
        if open_invitations(member.organization_id).count() >= MOST_OPEN:
            raise Conflict(f"{MOST_OPEN} invitations are open. Revoke some of them first.")
        secret = token_urlsafe(32)
        made = Invitation.objects.create(
            organization_id=member.organization_id,
            role=offer.role,
            note=offer.note,
            hash=hash_of(secret),
            made_by=member.user,
            expires_at=now + timedelta(days=offer.days),
        )
        expires = made.expires_at.isoformat(timespec="seconds")
        _record(made, member.user, "invitation_made", role=offer.role, note=offer.note, expires_at=expires)
    return made, secret


def revoke(member: Membership, invitation_id: int) -> None:
    """The link opens nothing from now on.

    Raises:
        Forbidden, NotFound, Conflict: it was used, has expired or was revoked.
    """
    with ruling(member):
        found = Invitation.objects.filter(organization_id=member.organization_id, pk=invitation_id).first()
        if found is None:
            raise NotFound(f"There is no invitation {invitation_id}.")
        still = Invitation.objects.filter(pk=found.pk, accepted_at=None, revoked_at=None, expires_at__gt=Now())
        if not still.update(revoked_at=Now()):
            raise Conflict("This invitation is not open any more.")
        _record(found, member.user, "invitation_revoked", role=found.role, note=found.note)


def open_invitation(hash_: str) -> Invitation:
    """The invitation whose link has this hash, while it works.

    Raises:
        NotFound
    """
    found = open_invitations().filter(hash=hash_).first()
    if found is None:
        raise NotFound(GONE)
    return found


def join(hash_: str, user: User) -> Membership:
    """The person accepts with the account that they are logged in with.

    Raises:
        NotFound, Conflict: they are a member already; the link stays as it is.
    """
    with transaction.atomic():
        return _let_in(_locked(hash_), user, account="existing")


def join_anew(hash_: str, username: str, password: str) -> Membership:
    """The person accepts and gets an account with it.

    Raises:
        NotFound, Invalid: the name or the password is not allowed, and why, Conflict: too many names were taken.
    """
    account = _new_account(username, password)  # hashed before others have to wait for the transaction
    try:
        with transaction.atomic():
            invitation = _locked(hash_)
            _check_tries(invitation.organization_id)
            return _let_in(invitation, _save_account(account), account="new")
    except NameTaken:
        Invitation.objects.filter(hash=hash_).update(tries=F("tries") + 1)
        raise


def _check_offer(offer: Offer) -> None:
    check_role(offer.role)
    if offer.days not in DAYS:
        raise Invalid("days", f"An invitation lasts {', '.join(map(str, DAYS[:-1]))} or {DAYS[-1]} days.")
    if len(offer.note) > LONGEST_NOTE or "\0" in offer.note:
        raise Invalid("note", f"The note may have at most {LONGEST_NOTE} characters.")


def _locked(hash_: str) -> Invitation:
    """The invitation, with its row locked, so that it is used once."""
    list(Invitation.objects.select_for_update().filter(hash=hash_))
    return open_invitation(hash_)


def _let_in(invitation: Invitation, user: User, account: str) -> Membership:
    if Membership.objects.filter(organization=invitation.organization, user=user).exists():
        raise Conflict(f"{user.get_username()} is a member of {invitation.organization.name} already.")
    member = Membership.objects.create(organization=invitation.organization, user=user, role=invitation.role)
    Invitation.objects.filter(pk=invitation.pk).update(accepted_by=user, accepted_at=Now())
    let_into_admin(user)
    told = {"membership": str(member.pk), "role": invitation.role, "account": account}
    _record(invitation, user, "invitation_accepted", **told, invited_by=invitation.made_by.get_username())
    return member


def _new_account(username: str, password: str) -> User:
    name = User.normalize_username(username)
    if not name or len(name) > LONGEST_USERNAME:
        raise Invalid("username", f"Choose a name of 1 to {LONGEST_USERNAME} characters.")
    try:
        UnicodeUsernameValidator()(name)
    except ValidationError as error:
        raise Invalid("username", "A name has letters, digits and @ . + - _ only.") from error
    check_password(password, User(username=name))
    return User(username=name, password=make_password(password))


def _save_account(account: User) -> User:
    name = account.get_username()
    if User.objects.filter(username__iexact=name).exists():
        raise NameTaken("username", f"The name {name!r} is taken. Choose another one.")
    try:
        with transaction.atomic():
            account.save()
    except IntegrityError as error:
        raise NameTaken("username", f"The name {name!r} is taken. Choose another one.") from error
    return account


def _check_tries(organization_id: int) -> None:
    """Refuse new names, free or taken, once too many taken ones were tried with the organization's invitations."""
    recent = Invitation.objects.filter(
        organization_id=organization_id, created_at__gt=Now() - timedelta(days=max(DAYS) + 1)
    )
    if (recent.aggregate(tries=Sum("tries"))["tries"] or 0) >= MOST_TRIES_TOGETHER:
        raise Conflict("New accounts cannot be created right now. Log in with an account you already have.")


def _record(invitation: Invitation, by: User, action: str, **payload: str) -> None:
    entry = audit.Entry(f"user:{by.get_username()}", action, f"invitation:{invitation.pk}", payload)
    audit.append(invitation.organization_id, [entry])
