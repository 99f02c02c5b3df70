"""The content that channels send: notifications to people, signed events to other systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Notification:
    """One or more notices, as a channel sends them to a person.

    Attributes:
        key: the same for each attempt, so that a receiver can recognize a repeat.
        subject: one line.
        items: the notices, each with its absolute link.
        path: the page to open: that of the notice, or one that lists all.
        tag: a later notification with the same tag replaces this one; at most 32 letters, digits,
            - and _.
        waiting: the number of cards that wait in the organization.
        settings_link: the page for the receiver's preferences.
        closes: the tags of earlier notifications that the browser closes when it gets this one.
        code: the code that confirms the channel, if the notification is about that; `channel_id`
            names the channel.
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
        key: the same for each attempt, so that a receiver can recognize a repeat.
        body: JSON.
        secrets: the currently valid secrets, newest first; each makes one signature.
    """

    key: str
    body: str
    secrets: Sequence[str]
