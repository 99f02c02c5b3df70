"""The registry of what sends messages: one sender for each kind of channel. An unknown kind is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.utils.module_loading import import_string

from agents.notices.channels import can_send_mail
from agents.notices.failures import DeliveryError
from agents.notices.mail import send_mail
from agents.notices.models import Channel, ChannelKind, Delivery
from agents.notices.on_screen import add_closed_cards, note_shown
from agents.notices.texts import OutgoingMessage
from agents.notices.web_push import send_push


def _pass_on(_: Channel, message: OutgoingMessage) -> OutgoingMessage:
    return message


@dataclass(frozen=True)
class Sender:
    """The functions that send by one kind of channel.

    Attributes:
        send: takes an address and a message; raises DeliveryError if it was not sent.
        is_available: False while the installation cannot send by it.
        complete: adds to a message what only this kind of channel needs.
        note_sent: called after a message was sent, with what it told.
    """

    send: Callable[[str, OutgoingMessage], None]
    is_available: Callable[[], bool] = lambda: True
    complete: Callable[[Channel, OutgoingMessage], OutgoingMessage] = _pass_on
    note_sent: Callable[[Channel, Sequence[Delivery]], None] = field(default=lambda *_: None)


def _send_chat(address: str, message: OutgoingMessage) -> None:
    import_string("agents.notices.chat.send_chat")(address, message)  # loaded when needed: apprise takes 25 MB


SENDERS: dict[str, Sender] = {
    ChannelKind.EMAIL: Sender(send_mail, can_send_mail),
    ChannelKind.PUSH: Sender(send_push, complete=add_closed_cards, note_sent=note_shown),
    ChannelKind.CHAT: Sender(_send_chat),
}


def get_sender(kind: str) -> Sender:
    """Return the sender of a kind of channel.

    Raises:
        DeliveryError: this version knows no such kind.
    """
    if kind not in SENDERS:
        raise DeliveryError(f"this version of Gadget cannot send by {str(kind)!r}", is_final=True)
    return SENDERS[kind]
