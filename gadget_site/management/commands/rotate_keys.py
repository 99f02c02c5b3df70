"""`manage.py rotate_keys`: encrypts credentials and providers' keys with the first of GADGET_ENCRYPTION_KEYS."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from agents.platform import key_rotation

MOST_NAMED = 20


class Command(BaseCommand):
    """May run while Gadget does, and be repeated; ends with 1 if something cannot be read."""

    help = "Encrypts anew, with the first of GADGET_ENCRYPTION_KEYS, what an older one has encrypted."

    def handle(self, *args: Any, **options: Any) -> None:
        done = key_rotation.rotate_keys()
        self.stdout.write(f"{done.renewed} encrypted anew with the first key; {done.current} were already.")
        for place in done.unreadable[:MOST_NAMED]:
            self.stdout.write(f"none of the keys can read {place}")
        if done.unreadable:
            raise CommandError(
                f"{len(done.unreadable)} could not be read and were left as they are: add the key that made them to "
                "GADGET_ENCRYPTION_KEYS, or set them again at /admin/."
            )
