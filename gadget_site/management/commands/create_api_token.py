"""`manage.py create_api_token`: creates an API token for one membership and prints it once; only
its hash is stored."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from agents.accounts import audit
from agents.accounts.membership import issue_token, list_memberships
from agents.accounts.models import ApiToken, Membership

LONGEST_NAME = ApiToken._meta.get_field("name").max_length or 0


class Command(BaseCommand):
    """`create_api_token USERNAME [--organization SLUG] [--name N]`."""

    help = "Create an API token for a user in one organization, and print it. It cannot be shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument(
            "--organization", metavar="SLUG", default="", help="required for members of several"
        )
        parser.add_argument("--name", default="command line", help="a name for the token")

    def handle(self, *args: Any, **options: Any) -> str:
        name = options["name"].strip()
        if not 1 <= len(name) <= LONGEST_NAME:
            raise CommandError(f"--name {name[:40]!r} must have 1 to {LONGEST_NAME} characters.")
        member = _choose_membership(options["username"], options["organization"])
        with transaction.atomic():
            token, secret = issue_token(member, name)
            subject = f"api token {token.pk}"
            payload = {"name": name, "user": member.user.get_username(), "role": member.role}
            audit.append(
                member.organization_id,
                [audit.NewEntry("command line", "token_created", subject, payload)],
            )
        self.stderr.write(f"The token for {member}. It will not be shown again:")
        return secret


def _choose_membership(username: str, slug: str) -> Membership:
    users = get_user_model().objects
    user = users.filter(username=username).first()
    if user is None:
        known = ", ".join(users.order_by("username").values_list("username", flat=True)[:10])
        raise CommandError(f"There is no user {username!r}. Users: {known or 'none'}.")
    if not user.is_active:
        raise CommandError(f"The user {username!r} is inactive, so a token would not work.")
    mine = list(list_memberships(user))
    chosen = [member for member in mine if slug in ("", member.organization.slug)]
    slugs = ", ".join(member.organization.slug for member in mine)
    if not chosen:
        where = f"{slug!r}" if slug else "any organization"
        raise CommandError(
            f"{username!r} is not a member of {where}. Member of: {slugs or 'none'}."
        )
    if len(chosen) > 1:
        raise CommandError(f"{username!r} is a member of {slugs}: choose with --organization SLUG.")
    return chosen[0]
