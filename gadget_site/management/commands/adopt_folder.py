"""`manage.py adopt_folder`: accepts the files in this data folder as the installation's, after a
deliberate move."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from agents.accounts.installation import FIX_RESTORE, UNFINISHED_RESTORE, adopt_folder
from agents.platform.models import Installation


class Command(BaseCommand):
    """Accepts the folder; processes that use another folder no longer start."""

    help = "Accept the `files` folder in this data folder as the installation's, e.g. after the old one was lost."

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the folder and its id; refuse an unfinished restore, whose files may be missing."""
        if Installation.objects.filter(folder_mark=UNFINISHED_RESTORE).exists():
            raise CommandError(f"A restore was not finished. {FIX_RESTORE}")
        folder_id = adopt_folder()
        self.stdout.write(
            f"{settings.GADGET_FILES_DIR} is now the installation's files folder (id {folder_id[:8]})."
        )
