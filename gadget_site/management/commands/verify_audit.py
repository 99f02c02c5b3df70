"""`manage.py verify_audit`: checks every signature of the audit, and heads that were printed
earlier."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.accounts import audit
from agents.accounts.models import Organization
from agents.platform import signatures

MAX_FAULTS = 20


class Command(BaseCommand):
    """Checks the chains of all organizations, or of one; exits with 1 if a chain is broken."""

    help = "Check that no entry of the audit was changed or inserted, and with --head that none was removed."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--organization", metavar="SLUG", help="check only this organization")
        parser.add_argument(
            "--head",
            metavar="ORGANIZATION:NUMBER:HASH",
            action="append",
            default=[],
            help="a head that this command or the sweeper printed earlier; may be given several times",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        printed = [_parse(text) for text in options["head"]]
        slug = options["organization"]
        organizations = (
            Organization.objects.filter(slug=slug) if slug else Organization.objects.all()
        )
        if slug and not organizations:
            raise CommandError(f"There is no organization with the slug {slug!r}.")
        broken = sum(self._report(audit.read_chain(organization)) for organization in organizations)
        missing = [fault for head in printed if (fault := head.fault) is not None]
        for fault in missing:
            self.stdout.write(f"head: {fault}")
        if broken:
            raise CommandError(
                f"The audit chain is broken in {broken} of {len(organizations)} organizations."
            )
        if missing:
            raise CommandError(
                f"{len(missing)} of {len(printed)} printed heads are not in the audit."
            )

    def _report(self, chain: audit.AuditChain) -> bool:
        """Print the findings; return True if the chain is broken."""
        self.stdout.write(
            f"{chain.slug}: {'the chain is broken' if chain.faults else 'the chain is intact'}"
        )
        for fault in chain.faults[:MAX_FAULTS]:
            self.stdout.write(f"  {fault}")
        if len(chain.faults) > MAX_FAULTS:
            self.stdout.write(f"  and {len(chain.faults) - MAX_FAULTS} more")
        for key_id, signed in chain.keys.items():
            now = " (the current key)" if key_id == signatures.get_current_key_id() else ""
            entries = (
                f"{signed.count} entries, from {signed.first} to {signed.last}"
                if signed.count > 1
                else "1 entry"
            )
            self.stdout.write(f"  signed with the key {key_id}{now}: {entries}")
        if chain.seq:
            self.stdout.write(f"  head: {chain.head}")
        return bool(chain.faults)


def _parse(text: str) -> audit.PrintedHead:
    try:
        return audit.PrintedHead.parse(text)
    except ValueError as error:
        raise CommandError(f"--head {error}.") from error
