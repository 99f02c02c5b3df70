"""Facts about organizations that do not belong to a run. Any app can log them; notices and webhooks
read the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import uuid4

from django.db import models, transaction

from agents.accounts.models.organization_event import OrganizationEvent
from agents.platform import notify
from tools.contract.hidden_characters import replace_hidden

MAX_NAME = 80


class NoticeKind(models.TextChoices):
    """The kinds of facts about which people are notified."""

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
    GRANT_ENDED = "grant_ended", "Your standing grant ended"
    TRIGGER_REFUSED = "trigger_refused", "A trigger refuses messages"
    WEBHOOK_OFF = "webhook_off", "A webhook was switched off"
    CHANNEL_LOST = "channel_lost", "One of your addresses no longer works"
    CODE = "code", "A new address is confirmed"


ORGANIZATION_KINDS = (
    *(NoticeKind.STOPPED, NoticeKind.QUARANTINE, NoticeKind.SCHEDULE, NoticeKind.GRANT_ENDED),
    *(NoticeKind.TRIGGER_REFUSED, NoticeKind.WEBHOOK_OFF, NoticeKind.CHANNEL_LOST),
)
"""The kinds of facts in an organization's log; all other kinds follow from the events of runs."""


@dataclass(frozen=True)
class NoticeFact:
    """A fact about an organization that does not belong to a run.

    Attributes:
        kind: one of ORGANIZATION_KINDS.
        key: facts of one kind with the same key share one notice; without a key, the fact gets its
            own notice.
        detail: the name of the fact's subject, given by a person; never text from a model.
        user_id: the person whom the fact concerns; None if its kind decides who is notified.
        reason: the reason for the fact; sent only by webhooks that send values.
        ids: ids, kinds and times for other systems, never a value.
    """

    kind: NoticeKind
    organization_id: int
    key: str = ""
    detail: str = ""
    user_id: int | None = None
    reason: str = ""
    ids: Mapping[str, str] = field(default_factory=dict)


def tell(fact: NoticeFact) -> None:
    """Write the fact to its organization's log, in the transaction that makes the fact true."""
    payload = {
        "key": fact.key or uuid4().hex,
        "detail": fact.detail,
        "user_id": fact.user_id,
        "reason": fact.reason,
        "ids": dict(fact.ids),
    }
    OrganizationEvent.objects.create(
        organization_id=fact.organization_id, type=fact.kind, payload=payload
    )
    transaction.on_commit(notify.request_reading)


def clean_name(name: str) -> str:
    """Return the name on one line, with hidden characters shown as tokens, and cut to 80
    characters."""
    line = replace_hidden(" ".join(name.split()), keep="")
    return line if len(line) <= MAX_NAME else f"{line[: MAX_NAME - 1]}…"
