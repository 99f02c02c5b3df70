"""The registry of channels: one module for each way to send. An unknown kind is refused.

Each module has the function `send`. The addresses to send to are rows of `notices` and `webhooks`.
CONTRIBUTING.md lists the places to change for a new channel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from agents.deliveries.failures import DeliveryError


@dataclass(frozen=True)
class DeliveryChannel:
    """One way to send. Its module is loaded on first use, because the chat module takes 25 MB of
    memory.

    Attributes:
        server_setting: the setting that names the installation's own server, if the channel sends
            everything through that server.
        lacking: a phrase for people that names what is missing while `server_setting` is empty.
    """

    module: str
    server_setting: str = ""
    lacking: str = ""

    def is_available(self) -> bool:
        """Return False while the setting that the channel needs is empty."""
        return not self.server_setting or bool(getattr(settings, self.server_setting))

    def send(self, address: str, content: Any) -> Any:
        """Send a notification or a signed event to an address.

        Raises:
            DeliveryError: the receiver refused the content, or was unreachable.
        """
        return import_string(f"{__name__}.{self.module}.send")(address, content)


CHANNELS = {
    "email": DeliveryChannel("mail", "EMAIL_HOST", "there is no mail server"),
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
