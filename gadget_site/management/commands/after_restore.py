"""`manage.py after_restore`: the step between restoring a backup by other means and the first
start."""

from typing import Any

from django.core.management.base import BaseCommand

from gadget_site.backup import restored
from gadget_site.management.restore_report import describe_restore


class Command(BaseCommand):
    """Stops everything, settles work in progress, and ends sessions and tokens; can be repeated."""

    help = (
        "Run this after restoring a database without `restore`, before anything starts. "
        "Everything stays stopped until an admin lifts the stop."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        for line in describe_restore(restored.settle()):
            self.stdout.write(line)
