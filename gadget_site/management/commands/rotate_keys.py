"""`manage.py rotate_keys`: encrypts credentials and providers' keys with the first of
GADGET_ENCRYPTION_KEYS."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from agents.platform import key_rotation

MAX_NAMED = 20


class Command(BaseCommand):
    """Works while Gadget runs, and may be repeated; exits with 1 if a value cannot be decrypted."""

    help = "Encrypt all stored values with the first of GADGET_ENCRYPTION_KEYS."

    def handle(self, *args: Any, **options: Any) -> None:
        done = key_rotation.rotate_keys()
        self.stdout.write(
            f"{done.renewed} values encrypted with the first key; {done.current} already were."
        )
        for place in done.unreadable[:MAX_NAMED]:
            self.stdout.write(f"no key can decrypt {place}")
        if done.unreadable:
            raise CommandError(
                f"{len(done.unreadable)} values could not be decrypted and were left unchanged: add their key to "
                "GADGET_ENCRYPTION_KEYS, or enter them again at /admin/."
            )
