"""The demo's accounts. While one of them still has the well-known password, only this machine may
reach Gadget."""

from ipaddress import ip_address

from django.conf import settings
from django.contrib.auth.hashers import check_password
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db.models import Q

from gadget_site.demo.names import EMAIL_DOMAIN, ORGANIZATIONS, PASSWORD
from gadget_site.demo.staff import OUTSIDER, PEOPLE

USERNAMES = (*PEOPLE, OUTSIDER)
MAX_CHECKED = 25
"""The maximum number of accounts to check: each check takes as long as a login. NotTheDemoPassword
prevents other accounts from getting the demo's password."""


class OpenDemoAccountsError(Exception):
    """Gadget would be open to everybody who knows the demo; the text says how to prevent that."""


class NotTheDemoPassword:
    """A validator that refuses the demo's password."""

    def validate(self, password: str, user: object = None) -> None:  # noqa: ARG002  (Django's own signature)
        """Raise ValidationError for the demo's password."""
        if password == PASSWORD:
            raise ValidationError(
                "This is the demo's password, which everybody knows.", code="demo_password"
            )

    def get_help_text(self) -> str:
        return "Your password can't be the demo's password."


def find_open_accounts() -> list[str]:
    """Return the names of active accounts that have the demo's password.

    Check at most 25 accounts: the demo's usernames first, then accounts with the demo's email
    domain (renamed ones, too), members of its organizations, and superusers.
    """
    users = User.objects.filter(is_active=True).order_by("pk")
    related = Q(email__endswith=f"@{EMAIL_DOMAIN}") | Q(is_superuser=True)
    related |= Q(memberships__organization__slug__in=ORGANIZATIONS)
    named = list(users.filter(username__in=USERNAMES))
    others = (
        users.filter(related).exclude(username__in=USERNAMES).distinct()[: MAX_CHECKED - len(named)]
    )
    return [user.username for user in (*named, *others) if check_password(PASSWORD, user.password)]


def check_before_listening() -> str:
    """Return a warning about open accounts; empty if there are none, or while DEBUG is on.

    Raises:
        OpenDemoAccountsError: there are open accounts, and other machines could connect to HOST.
    """
    names = [] if settings.DEBUG else find_open_accounts()
    if not names:
        return ""
    warning = f"{describe(names)} {FIX}"
    if not is_loopback(settings.GADGET_HOST):
        raise OpenDemoAccountsError(
            f"{warning} Until then, Gadget may only listen on this machine, for example with HOST=127.0.0.1."
        )
    return f"{warning} A proxy in front of Gadget would let everybody in."


FIX = "Change it with `manage.py changepassword NAME`, or remove the demo with `manage.py demo --remove`."


def describe(names: list[str]) -> str:
    """Return a warning such as `The demo's password, which everybody knows, still works for:
    viewer, admin.`"""
    return f"The demo's password, which everybody knows, still works for: {', '.join(names)}."


def is_loopback(host: str) -> bool:
    """Return True if only this machine can connect to a server that listens on this host."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
