"""The registry of channels: one module for each way to send. An unknown kind is refused.

Each module has the same functions: `send` and `is_available`. The addresses to send to are rows of
`notices` and `webhooks`. CONTRIBUTING.md lists the places to change for a new channel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.module_loading import import_string

from agents.deliveries.failures import DeliveryError


@dataclass(frozen=True)
class DeliveryChannel:
    """One way to send, in a module that is loaded on first use: that of chat takes 25 MB."""

    module: str

    def is_available(self) -> bool:
        """Return False while the installation cannot send by it."""
        return bool(self._load("is_available")())

    def send(self, address: str, message: Any) -> Any:
        """Send a message to an address.

        Raises:
            DeliveryError: the receiver refused it, or was unreachable.
        """
        return self._load("send")(address, message)

    def _load(self, name: str) -> Any:
        return import_string(f"{__name__}.{self.module}.{name}")


CHANNELS = {
    "email": DeliveryChannel("mail"),
    "push": DeliveryChannel("push"),
    "chat": DeliveryChannel("chat"),
    "webhook": DeliveryChannel("webhook"),
}


def get_channel(kind: str) -> DeliveryChannel:
    """Return the channel of a kind.

    Raises:
        DeliveryError: this version knows no such kind.
    """
    if kind not in CHANNELS:
        raise DeliveryError(
            f"this version of Gadget cannot send by {str(kind)!r}", is_final=True, is_ours=True
        )
    return CHANNELS[kind]
