"""In sixty complete tasks, five sensible standing grants save most of the cards and do not let a
harmful call run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from agents.employees.models import Grant as AllowedTool
from agents.runs.models import Approval, ToolCall
from tests.features import feature
from tests.runs.outside_page import offer_page
from tests.standing_grants.conversations import CUSTOMER, TEAM, Conversation, list_conversations
from tests.standing_grants.granting import grant
from tests.workshop import Workshop, asking
from tools.contract import canonical_json
from tools.toolbox.conditions import Condition, Rule

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

TASKS = 60
FEWER = 0.6
STATUS = Condition("changes.status", Rule.ONE_OF, ["active", "inactive"])


@dataclass
class Outcome:
    """The number of cards that people decided, the reasons why no standing grant approved them, and
    the calls that a standing grant approved."""

    cards: int = 0
    withheld: Counter[str] = field(default_factory=Counter)
    ran_alone: Counter[str] = field(default_factory=Counter)


@pytest.fixture(autouse=True)
def office_tools(workshop: Workshop) -> None:
    names = ("mail.send", "calendar.createEvent")
    AllowedTool.objects.bulk_create(
        [AllowedTool(employee=workshop.employee, tool=name) for name in names]
    )


def make_five_grants(workshop: Workshop) -> None:
    """Create five grants that suit an office: one for emails to a customer, three for a record's
    status, its notes or both, and one for short meetings."""
    uses: dict[str, Any] = {"max_uses": 1_000}
    recipient = Condition("recipient", Rule.HOST, CUSTOMER)
    grant(workshop, "mail.send", recipient, params=("recipient", "subject", "body"), **uses)
    grant(workshop, "data.updateRecord", STATUS, params=("record_id", "changes.status"), **uses)
    grant(workshop, "data.updateRecord", params=("record_id", "changes.notes"), **uses)
    grant(
        workshop,
        "data.updateRecord",
        STATUS,
        params=("record_id", "changes.status", "changes.notes"),
        **uses,
    )
    short = (Condition("minutes", Rule.MINIMUM, 15), Condition("minutes", Rule.MAXIMUM, 60))
    attendee = Condition("attendee", Rule.ONE_OF, list(TEAM))
    grant(
        workshop,
        "calendar.createEvent",
        attendee,
        *short,
        params=("title", "attendee", "start", "minutes"),
        **uses,
    )


def converse(workshop: Workshop, conversation: Conversation, outcome: Outcome) -> None:
    """Work on the task until it ends; a person approves ordinary calls and denies harmful ones."""
    workshop.play(*(asking(*calls) for calls in conversation.passes))
    run = workshop.work(conversation.task, is_typed=True)
    harmful = {describe(each["tool"], each["params"]) for each in conversation.harmful}
    while cards := workshop.cards(run):
        outcome.cards += len(cards)
        for card in cards:
            outcome.withheld[name_reason(card)] += 1
            decide = (
                workshop.deny
                if describe(card.tool_call.tool, card.params) in harmful
                else workshop.approve
            )
            decide(card)
        run = workshop.drive(run)
    alone = ToolCall.objects.filter(run=run, approvals__standing_grant__isnull=False)
    outcome.ran_alone.update(describe(each.tool, each.params) for each in alone)


def name_reason(card: Approval) -> str:
    """Return the tool and the reason why no standing grant approved the card."""
    call = card.tool_call
    answer = (call.judgment or {}).get("answer") or {}
    return f"{call.tool}: {answer.get('withheld') or 'no terms match'}"


def describe(tool: str, params: dict[str, Any]) -> str:
    return f"{tool} {canonical_json(params)}"


@feature(
    "Figures and metrics",
    "Five standing grants save most cards of sixty tasks",
    "tools/toolbox/standing_grants.py",
)
def test_five_grants_save_most_cards_and_do_not_let_a_harmful_call_run(workshop: Workshop) -> None:
    without, granted = Outcome(), Outcome()
    with offer_page(workshop):
        conversations = list_conversations(workshop)
        assert len(conversations) == TASKS
        for conversation in conversations:
            converse(workshop, conversation, without)
        make_five_grants(workshop)
        for conversation in conversations:
            converse(workshop, conversation, granted)
    assert not without.ran_alone
    assert granted.cards <= without.cards * (1 - FEWER), dict(granted.withheld)
    harmful = [
        describe(each["tool"], each["params"]) for one in conversations for each in one.harmful
    ]
    assert len(harmful) == 10
    assert not granted.ran_alone.keys() & set(harmful)
    assert Approval.objects.filter(status="denied").count() == 2 * len(harmful)
