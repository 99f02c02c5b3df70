"""The facts that people are told, each written with its fact by the engine or the sweeper."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from agents.approvals.models import Approval
from agents.employees.models import Grant
from agents.notices.following import follow_run
from agents.notices.models import Notice, NoticeKind
from agents.runs.engine.transaction import run_transaction
from agents.runs.models import Run, RunStatus
from agents.worker.sweeper import sweep_once
from tests.notices.conftest import add_address
from tests.workshop import Workshop, asking, call, expire_card
from tests.workshop.colleagues import ASK

pytestmark = pytest.mark.django_db(transaction=True)


def list_kinds() -> list[str]:
    return list(Notice.objects.order_by("pk").values_list("kind", flat=True))


def make_card(workshop: Workshop) -> Approval:
    workshop.play(asking(call("probe.effect", name="a")))
    return workshop.card(workshop.work())


def age(card: Approval, *, lived: timedelta, left: timedelta) -> None:
    Approval.objects.filter(pk=card.pk).update(requested_at=Now() - lived, expires_at=Now() + left)


def test_a_card_is_told_with_its_run(workshop: Workshop) -> None:
    card = make_card(workshop)
    notice = Notice.objects.get()
    assert (notice.kind, notice.approval_id, notice.run_id) == (NoticeKind.CARD, card.pk, card.run_id)
    assert notice.organization_id == card.organization_id


def test_a_fact_that_is_rolled_back_is_not_told(workshop: Workshop) -> None:
    card = make_card(workshop)

    def fail() -> None:
        with run_transaction(card.run_id) as tx:
            tx.tell(NoticeKind.UNKNOWN, card)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list_kinds() == ["card"]


def test_an_unknown_outcome_is_told(workshop: Workshop) -> None:
    workshop.play(asking(call("probe.failingEffect", code="NETWORK_ERROR")))
    run = workshop.work()
    workshop.approve(workshop.card(run))
    workshop.drive(run)
    assert list_kinds() == ["card", "unknown"]


def test_a_question_is_told(workshop: Workshop) -> None:
    Grant.objects.create(employee=workshop.employee, tool=ASK)
    workshop.play(asking(call(ASK, question="Which one?")))
    workshop.work()
    assert list_kinds() == ["question"]


def test_a_card_that_expires_soon_is_told_once(workshop: Workshop) -> None:
    card = make_card(workshop)
    age(card, lived=timedelta(days=6, minutes=1), left=timedelta(hours=23))
    sweep_once()
    sweep_once()
    assert list_kinds() == ["card", "card_expiring"]


@pytest.mark.parametrize(
    ("lived", "left"),
    [(timedelta(days=5), timedelta(days=2)), (timedelta(hours=1), timedelta(hours=23))],
    ids=["there is time", "it lives for a day and is new"],
)
def test_other_cards_are_not_told_again(workshop: Workshop, lived: timedelta, left: timedelta) -> None:
    age(make_card(workshop), lived=lived, left=left)
    sweep_once()
    assert list_kinds() == ["card"]


def test_a_card_that_expired_is_told(workshop: Workshop) -> None:
    expire_card(make_card(workshop))
    sweep_once()
    assert list_kinds() == ["card", "card_expired"]


def test_a_run_that_fails_is_told(workshop: Workshop) -> None:
    run = workshop.submit("Do it")
    Run.objects.filter(pk=run.pk).update(deadline_at=Now() - timedelta(seconds=1))
    sweep_once()
    assert Run.objects.get(pk=run.pk).status == RunStatus.FAILED
    assert list_kinds() == ["run_failed"]


def test_a_run_that_ends_is_told_to_those_who_follow_it(workshop: Workshop) -> None:
    workshop.play(asking(call("probe.effect", name="a")))
    run = workshop.work()
    add_address(workshop.operator)
    follow_run(workshop.operator, run.pk)
    workshop.deny(workshop.card(run))
    assert workshop.drive(run).status == RunStatus.SUCCEEDED
    assert list_kinds() == ["card", "run_ended"]
