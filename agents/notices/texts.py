"""The texts of notices. They name a tool and an employee, but never contain values or text written
by a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.urls import reverse

from agents.accounts.notice_facts import NoticeKind, clean_name
from agents.approvals.own_cards import count_pending_cards
from agents.approvals.warnings.card_marks import load_marks
from agents.approvals.warnings.marks import Mark, end_with_marks
from agents.deliveries.content import Notification
from agents.employees.toolboxes import load_toolbox
from agents.notices.models import Channel, Notice
from agents.runs.models import RunStatus
from tools.contract import name_tool
from tools.contract.outside_text import quote_text

MAX_IN_ONE_NOTIFICATION = 100
SEVERAL = "several"
"""The tag of a notification about several notices."""
_FACTS = {
    NoticeKind.CARD: "A decision is waiting",
    NoticeKind.QUESTION: "A question is waiting",
    NoticeKind.UNKNOWN: "We don’t know whether a call happened",
    NoticeKind.CARD_EXPIRING: "A decision expires soon",
    NoticeKind.CARD_EXPIRED: "A card expired",
    NoticeKind.RUN_FAILED: "A run failed",
    NoticeKind.RUN_ENDED: "A run that you follow has ended",
    NoticeKind.ESCALATED: "A decision was escalated",
    NoticeKind.STUCK: "No one can decide a card, because its approval rule cannot be met",
    NoticeKind.BREAK_GLASS: "Break-glass: an admin approved alone",
    NoticeKind.STOPPED: "Work was stopped",
    NoticeKind.BUDGET: "A budget is used up",
    NoticeKind.QUARANTINE: "Tools changed: review needed",
    NoticeKind.SCHEDULE: "Your schedule did not start",
    NoticeKind.GRANT_ENDED: "Your standing grant ended",
    NoticeKind.TRIGGER_REFUSED: "A trigger refuses messages",
    NoticeKind.WEBHOOK_OFF: "A webhook was switched off, because its receiver fails",
    NoticeKind.CHANNEL_LOST: "You are no longer notified here, because the address is gone",
}
_COUNTED = {
    NoticeKind.CARD: ("decision is waiting", "decisions are waiting"),
    NoticeKind.QUESTION: ("question is waiting", "questions are waiting"),
    NoticeKind.UNKNOWN: ("call has an unknown outcome", "calls have an unknown outcome"),
    NoticeKind.CARD_EXPIRING: ("decision expires soon", "decisions expire soon"),
    NoticeKind.CARD_EXPIRED: ("card expired", "cards expired"),
    NoticeKind.RUN_FAILED: ("run failed", "runs failed"),
    NoticeKind.RUN_ENDED: ("run has ended", "runs have ended"),
    NoticeKind.ESCALATED: ("decision was escalated", "decisions were escalated"),
    NoticeKind.STUCK: ("card that no one can decide", "cards that no one can decide"),
    NoticeKind.BREAK_GLASS: (
        "card was approved under break-glass",
        "cards were approved under break-glass",
    ),
    NoticeKind.STOPPED: ("stop", "stops"),
    NoticeKind.BUDGET: ("budget is used up", "budgets are used up"),
    NoticeKind.QUARANTINE: ("source has changed tools", "sources have changed tools"),
    NoticeKind.SCHEDULE: ("schedule did not start", "schedules did not start"),
    NoticeKind.GRANT_ENDED: ("standing grant ended", "standing grants ended"),
    NoticeKind.TRIGGER_REFUSED: ("trigger refuses messages", "triggers refuse messages"),
    NoticeKind.WEBHOOK_OFF: ("webhook was switched off", "webhooks were switched off"),
    NoticeKind.CHANNEL_LOST: ("address is gone", "addresses are gone"),
}
ASKING = frozenset({NoticeKind.CARD, NoticeKind.CARD_EXPIRING, NoticeKind.ESCALATED})
"""The kinds of notices that ask for a decision, and therefore name the marks of the card."""
_PAGES = {
    NoticeKind.STOPPED: "stop",
    NoticeKind.BUDGET: "employees",
    NoticeKind.QUARANTINE: "admin:connections_source_changelist",
    NoticeKind.SCHEDULE: "schedules",
    NoticeKind.GRANT_ENDED: "grants",
    NoticeKind.TRIGGER_REFUSED: "triggers",
    NoticeKind.WEBHOOK_OFF: "webhooks",
    NoticeKind.CHANNEL_LOST: "notices",
}
"""The page for each kind of notice that is not about a card or a run."""
_OF_NAMES = frozenset({NoticeKind.TRIGGER_REFUSED, NoticeKind.WEBHOOK_OFF, NoticeKind.CHANNEL_LOST})
"""The kinds of notices whose detail consists only of a name."""


@dataclass(frozen=True)
class NoticeText:
    """A notice in words: one sentence, and the path of the page that it is about."""

    sentence: str
    path: str


def describe(notice: Notice, channel: Channel, marks: Sequence[Mark] = ()) -> NoticeText:
    """Describe a notice in one sentence.

    Args:
        notice: the notice, loaded with its run and employee, its card, and the card's call.
        marks: the marks of its card; the text includes their labels.
    """
    kind = NoticeKind(notice.kind)
    if kind == NoticeKind.CODE:
        return NoticeText(
            f"Enter this code in Gadget to confirm the address: {channel.code}", reverse("notices")
        )
    if kind in _PAGES:
        is_orphan = kind == NoticeKind.SCHEDULE and notice.user_id is None
        fact = "A schedule without an owner did not start" if is_orphan else _FACTS[kind]
        is_name = kind in _OF_NAMES
        detail = quote_text(notice.detail) if is_name else clean_name(notice.detail)
        return NoticeText(f"{fact}: {detail}", reverse(_PAGES[kind]))
    if notice.approval is not None:
        return NoticeText(
            f"{_FACTS[kind]}: {_describe_card(notice)}{end_with_marks(marks)}",
            reverse("approval", args=[notice.approval_id]),
        )
    if notice.run is None:
        raise ValueError(f"notice {notice.pk} is about nothing")
    ending = ", and it succeeded" if notice.detail == RunStatus.SUCCEEDED else ""
    employee = clean_name(notice.run.employee.name)
    return NoticeText(
        f"{_FACTS[kind]}: run {notice.run_id} of {employee}{ending}",
        reverse("run", args=[notice.run_id]),
    )


def write_notification(notices: Sequence[Notice], channel: Channel, key: str) -> Notification:
    """Write one notification about these notices."""
    base = settings.GADGET_LINK_BASE
    cards = {each.pk: each.approval for each in notices if each.approval and each.kind in ASKING}
    marks = load_marks(cards.values())
    texts = [
        describe(notice, channel, marks.get(notice.approval_id or 0, ()))
        if notice.pk in cards
        else describe(notice, channel)
        for notice in notices
    ]
    items = tuple(
        (text.sentence, "" if notice.kind == NoticeKind.CODE else f"{base}{text.path}")
        for notice, text in zip(notices, texts, strict=True)
    )
    if notices[0].kind == NoticeKind.CODE:
        subject = "Your code for Gadget"
    else:
        subject = (
            texts[0].sentence
            if len(texts) == 1
            else count_kinds([notice.kind for notice in notices])
        )
    is_one = len(notices) == 1
    return Notification(
        key=key,
        subject=subject,
        items=items,
        path=texts[0].path if is_one else reverse("approvals"),
        tag=_tag(notices[0]) if is_one else SEVERAL,
        waiting=count_pending_cards(notices[0].organization_id),
        code=channel.code if notices[0].kind == NoticeKind.CODE else "",
        channel_id=channel.pk,
        settings_link=f"{base}{reverse('notices')}",
    )


def _tag(notice: Notice) -> str:
    """Return the same tag for all notices of a card, so that a reminder replaces the first
    notification."""
    return (
        f"card-{notice.approval_id}"
        if notice.approval_id
        else f"{notice.kind}-{notice.run_id or notice.pk}"
    )


def count_kinds(kinds: Collection[str]) -> str:
    """Count notices by kind, such as `3 decisions are waiting, 1 run has ended`."""
    counted = Counter(NoticeKind(kind) for kind in kinds)
    return ", ".join(
        f"{number} {_COUNTED[kind][number > 1]}"
        for kind, number in counted.items()
        if kind in _COUNTED
    )


def _describe_card(notice: Notice) -> str:
    if notice.approval is None:
        raise ValueError(f"notice {notice.pk} has no card")
    employee = clean_name(notice.approval.run.employee.name)
    if notice.kind == NoticeKind.QUESTION:
        return f"asked by {employee}"
    call = notice.approval.tool_call
    tool = load_toolbox(notice.organization_id).get_called_tool(call.tool, call.version)
    return f"{name_tool(tool, call.tool)}, asked by {employee}"
