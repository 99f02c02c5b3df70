"""`manage.py import_records`: imports business records from a CSV file."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tools.office.records.csv_import import import_csv
from tools.office.records.models import Record
from tools.registries.records import ImportRefusedError, ImportReport


class Command(BaseCommand):
    """Import every valid row, and report invalid rows by line."""

    help = "Import business records from a CSV file with a header; invalid rows are reported by line and skipped."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE.csv", type=Path)
        parser.add_argument("--organization", metavar="SLUG", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        organizations = Record.organization.field.related_model._default_manager
        slug = options["organization"]
        pk = organizations.filter(slug=slug).values_list("pk", flat=True).first()
        if pk is None:
            known = ", ".join(organizations.values_list("slug", flat=True)) or "none"
            raise CommandError(f"There is no organization with the slug {slug!r}; known: {known}.")
        report = _import(options["file"], pk)
        for line, why in report.bad_rows:
            self.stdout.write(f"line {line}: {why}")
        self.stdout.write(
            f"{report.imported} imported into {slug}, {len(report.bad_rows)} skipped."
        )


def _import(path: Path, organization_id: int) -> ImportReport:
    try:
        with path.open("rb") as file:
            return import_csv(file, organization_id)
    except OSError as error:
        raise CommandError(f"The file {str(path)!r} cannot be read: {error.strerror}.") from error
    except ImportRefusedError as error:
        raise CommandError(str(error)) from error
