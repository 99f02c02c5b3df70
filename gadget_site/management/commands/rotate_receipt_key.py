"""`manage.py rotate_receipt_key`: creates a new key that signs the receipts of asks."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from agents.gateway.receipts import KEYS_ARE_KNOWN, rotate_signing_key


class Command(BaseCommand):
    help = "Create a new key for signing receipts. Receipts already issued can still be verified and redeemed."

    def handle(self, *_: Any, **__: Any) -> None:
        key = rotate_signing_key()
        self.stdout.write(
            f"The key {key.key_id} signs from now on. The previous key is served for {KEYS_ARE_KNOWN.days} more days."
        )
