"""No notification contains a value: every field of a card contains a canary, which the search would
find."""

from __future__ import annotations

import pytest

from agents.accounts.notice_facts import NoticeKind
from agents.employees.models import Employee
from agents.runs.models import Run
from tests.features import feature
from tests.notices.canaries import (
    CANARY,
    Sent,
    fill,
    plant,
    plant_and_search,
    receive,
    send_all,
    tell,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]

CARDS = 20


@feature(
    "The gate",
    "No notification holds a value: canaries in every field of cards are in none",
    "agents/notices/texts.py",
)
def test_notifications_about_cards_full_of_canaries_contain_none() -> None:
    plant_and_search(CARDS)


def test_the_search_finds_a_canary_in_a_name() -> None:
    with receive() as (world, servers):
        card = plant(world)
        Employee.objects.filter(pk=world.employee.pk).update(name=CANARY)
        tell(world, card, NoticeKind.CARD)
        send_all()
        sent = Sent.by(servers)
    assert [text.count(CANARY) > 0 for text in (*sent.mails, *sent.pushes, *sent.chats)] == [
        True
    ] * 3


def test_every_free_field_of_a_card_its_call_and_its_run_has_a_canary() -> None:
    with receive() as (world, _):
        card = plant(world)
        assert {"sentence", "preview", "why", "params", "reason"} <= set(fill(card))
        assert {"params", "result", "content", "why", "provenance"} <= set(fill(card.tool_call))
        run = Run.objects.get(pk=card.run_id)
        assert {"title", "task", "answer"} <= set(fill(run))
        assert CANARY in (card.sentence, card.reason)
