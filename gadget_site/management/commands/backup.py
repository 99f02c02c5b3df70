"""`manage.py backup FILE`: the database and all files in one archive, taken while everything
runs."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from gadget_site.backup.archive import FILES, BackupError
from gadget_site.backup.taking import back_up


class Command(BaseCommand):
    """Writes the archive, reads it back, and warns that it holds no keys."""

    help = "Write the database and all files to one consistent archive while everything runs. It holds no keys."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", type=Path)
        parser.add_argument("--force", action="store_true", help="replace FILE if it exists")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        try:
            manifest = back_up(path, force=options["force"])
        except BackupError as error:
            raise CommandError(str(error)) from error
        files = sum(name.startswith(f"{FILES}/") for name in manifest.members)
        count = f"{files:,} file{'' if files == 1 else 's'}"
        self.stdout.write(
            f"{path}: {path.stat().st_size:,} bytes, {count}, read back and verified."
        )
        for head in manifest.heads:
            self.stdout.write(f"audit head: {head}")
        self.stdout.write(
            "IT HOLDS NO KEYS. Keep SECRET_KEY, GADGET_ENCRYPTION_KEYS and GADGET_AUDIT_KEYS elsewhere: "
            "without the last two it cannot be restored."
        )
