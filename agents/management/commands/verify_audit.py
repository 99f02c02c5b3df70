"""`manage.py verify_audit`: reads the audit chain of every organisation and names what does not fit."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents import audit
from agents.models import Organization


class Command(BaseCommand):
    """Verifies the chains; ends with 1 if one does not hold."""

    help = "Check that no entry of the audit was changed, removed or put in between."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--organization", metavar="SLUG", help="only this one; otherwise all of them")

    def handle(self, *args: Any, **options: Any) -> None:
        slug = options["organization"]
        organizations = Organization.objects.filter(slug=slug) if slug else Organization.objects.all()
        if slug and not organizations:
            raise CommandError(f"There is no organisation with the slug {slug!r}.")
        broken = 0
        for organization in organizations:
            problems = audit.verify(organization.pk)
            broken += bool(problems)
            self.stdout.write(f"{organization.slug}: {'the chain does not hold' if problems else 'the chain holds'}")
            for problem in problems:
                self.stdout.write(f"  {problem}")
        if broken:
            raise CommandError(f"The audit of {broken} of {len(organizations)} organisations does not hold.")
