"""Facts that people are told: any subject tells them, and the notices, which know the people, write them down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db import models

MAX_NAME = 80


class NoticeKind(models.TextChoices):
    """The kinds of facts that people are told."""

    CARD = "card", "A decision is waiting"
    QUESTION = "question", "An employee has a question"
    UNKNOWN = "unknown", "The outcome of a call is unknown"
    CARD_EXPIRING = "card_expiring", "A decision expires soon"
    CARD_EXPIRED = "card_expired", "A card expired"
    RUN_FAILED = "run_failed", "A run of yours failed"
    RUN_ENDED = "run_ended", "A run that you follow has ended"
    ESCALATED = "escalated", "A decision was escalated"
    STUCK = "stuck", "No one can decide a card"
    BREAK_GLASS = "break_glass", "An admin approved alone in an emergency"
    STOPPED = "stopped", "Someone used Stop"
    BUDGET = "budget", "A budget is used up"
    QUARANTINE = "quarantine", "Tools changed: review needed"
    SCHEDULE = "schedule", "Your schedule did not start"
    WEBHOOK_OFF = "webhook_off", "A webhook was switched off"
    CHANNEL_LOST = "channel_lost", "One of your addresses no longer works"
    CODE = "code", "A new address is confirmed"


@dataclass(frozen=True)
class NoticeFact:
    """A fact of an organization.

    Attributes:
        key: makes it unique among those of its kind, such as `17`.
        user_id: the only person that it is for; None if its kind says who that is.
        detail: what it is about besides run and card: a name that a person gave, never a model's words.
        is_repeatable: the same fact may have been told before, and is then told no second time.
    """

    kind: NoticeKind
    organization_id: int
    key: str
    run_id: int | None = None
    approval_id: int | None = None
    user_id: int | None = None
    detail: str = ""
    is_repeatable: bool = True


Listener = Callable[[Sequence[NoticeFact]], None]
LISTENERS: list[Listener] = []
"""What writes the facts down; `agents.notices` adds itself when it is ready."""


def tell(*facts: NoticeFact) -> None:
    """Tell facts, in the transaction that makes them true."""
    for listen in LISTENERS:
        listen(facts)


def clean_name(name: str) -> str:
    """Return a name in one line, without hidden characters and not longer than 80 characters."""
    line = " ".join("".join(char if char.isprintable() else " " for char in name).split())
    return line if len(line) <= MAX_NAME else f"{line[: MAX_NAME - 1]}…"
