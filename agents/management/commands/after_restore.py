"""`manage.py after_restore`: what has to happen between a restored backup and the first start."""

from typing import Any

from django.core.management.base import BaseCommand

from agents import schedules
from agents.engine import recovery


class Command(BaseCommand):
    """Open intents lapse, what was executing becomes unknown, no lease of the past remains, no schedule fires again."""

    help = "After a restored backup, before anything starts: nothing that was approved before runs by itself."

    def handle(self, *args: Any, **options: Any) -> None:
        for what, count in recovery.after_restore().items():
            self.stdout.write(f"{what.replace('_', ' ')}: {count}")
        self.stdout.write(f"schedules moved on: {schedules.after_restore()}")
        self.stdout.write("Gadget may be started now.")
