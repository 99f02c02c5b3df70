"""`manage.py restore FILE`: restores a backup, and stops everything until an admin lifts the
stop."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from gadget_site.backup.archive import BackupError
from gadget_site.backup.restoring import restore
from gadget_site.management.restore_report import describe_restore


class Command(BaseCommand):
    """Checks the whole archive before it changes anything."""

    help = "Restore a backup into an empty database and an empty folder. Stop Gadget on every machine first."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", type=Path)
        parser.add_argument(
            "--force", action="store_true", help="replace the existing database and files"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            done = restore(options["file"], force=options["force"])
        except BackupError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Restored the backup of {done.manifest.made_at}.")
        for line in describe_restore(done.counts):
            self.stdout.write(line)
