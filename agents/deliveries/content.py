"""The content that channels send: notifications to people, signed events to other systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Notification:
    """One or more notices, as a channel sends them to a person.

    Attributes:
        key: a key that is the same for each attempt, so that a receiver can recognize a repeat.
        subject: one line.
        items: the notices, each with its absolute link.
        path: the path of the page to open: the notice's page, or the page that lists all notices.
        tag: at most 32 letters, digits, - and _. A later notification with the same tag replaces
            this one.
        waiting: the number of cards that wait in the organization.
        settings_link: the page for the receiver's preferences.
        closes: the tags of earlier notifications that the browser closes when it gets this one.
        code: the code that confirms the channel, if the notification sends one; `channel_id` is the
            channel's id.
    """

    key: str
    subject: str
    items: tuple[tuple[str, str], ...]
    path: str
    tag: str
    waiting: int
    settings_link: str
    code: str = ""
    channel_id: int = 0
    closes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The notification as plain text."""
        items = [f"{sentence}\n{link}" if link else sentence for sentence, link in self.items]
        return "\n\n".join([*items, f"Change your notices:\n{self.settings_link}\n"])


@dataclass(frozen=True)
class SignedEvent:
    """An event for another system, in the form of Standard Webhooks.

    Attributes:
        key: a key that is the same for each attempt, so that a receiver can recognize a repeat.
        body: JSON.
        secrets: the currently valid secrets, newest first; the event gets one signature for each.
    """

    key: str
    body: str
    secrets: Sequence[str]
