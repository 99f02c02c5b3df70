"""Facts that webhooks send: they are read from the events, contain only ids by default, and are
numbered so that receivers notice gaps."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from agents.approvals import decisions
from agents.deliveries.changes import send_again
from agents.gateway.asks import AskedRequest, submit
from agents.runs import actions
from agents.runs.engine.transaction import run_transaction
from agents.runs.events import CallResolved
from agents.runs.models import Approval, ApprovalKind, Event, Run, ToolCall
from agents.webhooks.models import WebhookDelivery, WebhookDeliveryStatus, WebhookKind
from agents.webhooks.sending import KIND
from agents.worker.sweeper import sweep_once
from tests.features import feature
from tests.gateway.conftest import make_key
from tests.gateway.test_asks import approve, redeem
from tests.gateway.test_asks import ask as make_ask
from tests.recorder import Recorder
from tests.standing_grants.granting import equals, grant
from tests.webhooks.conftest import add_webhook, send_all
from tests.webhooks.receiver import Receiver
from tests.workshop import (
    Workshop,
    asking,
    call,
    expire_card,
    last_call,
    lose_worker,
    read_everything,
    write_in_flight,
)
from tests.workshop.colleagues import answer, ask, may_ask, question_of
from tools.contract import Level

CANARY = "canary-5e1f"


def update(workshop: Workshop, phone: str = CANARY) -> dict[str, Any]:
    """Return a pass that changes a record."""
    return asking(
        call("data.updateRecord", record_id=str(workshop.record().pk), changes={"phone": phone})
    )


def run_through(workshop: Workshop) -> Run:
    """Let a run change a record with a person's approval, and drive the run until it ends."""
    workshop.play(update(workshop), answer=f"Done: {CANARY}")
    run = workshop.work(f"Change it to {CANARY}")
    workshop.approve(workshop.card(run), reason=CANARY)
    return workshop.drive(run)


class TestKindsOfFacts:
    def test_cover_a_run_from_start_to_end(self, workshop: Workshop, receiver: Receiver) -> None:
        add_webhook(workshop, receiver)
        run = run_through(workshop)
        send_all()
        assert receiver.kinds == [
            "run.started",
            "card.opened",
            "card.decided",
            "call.executed",
            "run.finished",
        ]
        assert {one.data["run_id"] for one in receiver.received} == {str(run.pk)}
        decided, executed, finished = receiver.received[2:]
        assert (decided.data["status"], decided.data["card"]) == ("approved", "approval")
        assert executed.data["status"] == "succeeded"
        assert (finished.data["status"], finished.data["exit_reason"]) == (
            "succeeded",
            "final_answer",
        )

    @pytest.mark.parametrize("sends_values", [False, True])
    def test_include_the_marks_of_a_new_card(
        self, workshop: Workshop, receiver: Receiver, sends_values: bool
    ) -> None:
        add_webhook(workshop, receiver, kinds=["card.opened"], sends_values=sends_values)
        workshop.play(update(workshop, "H\u0430rbor"))
        workshop.work()
        send_all()
        (mark,) = receiver.received[0].data["marks"]
        assert (mark["kind"], mark["label"]) == ("alphabets", "Mixed alphabets")
        assert ("H\u0430rbor" in str(mark)) == sends_values

    def test_cover_a_failed_run(self, workshop: Workshop, receiver: Receiver) -> None:
        add_webhook(workshop, receiver, kinds=[WebhookKind.RUN_FAILED])
        workshop.allow_passes(1)
        workshop.play(asking(call("utility.calculate", expression="1+1")), answer="")
        workshop.work()
        send_all()
        assert receiver.kinds == ["run.failed"]

    def test_report_each_end_of_a_continued_run_with_its_own_problem(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        ends = [WebhookKind.RUN_FAILED, WebhookKind.RUN_FINISHED]
        add_webhook(workshop, receiver, kinds=ends, sends_values=True)
        workshop.play()
        run = workshop.submit("Do it")
        Run.objects.filter(pk=run.pk).update(
            deadline_at=Now() - timedelta(seconds=1), problem="The server is away."
        )
        sweep_once()
        actions.continue_run(workshop.operator, run.pk)
        workshop.drive(run)
        send_all()
        failed, finished = receiver.received
        assert (failed.kind, failed.data["problem"]) == ("run.failed", "The server is away.")
        assert (finished.kind, finished.data["problem"]) == ("run.finished", "")

    def test_cover_an_expired_card(self, workshop: Workshop, receiver: Receiver) -> None:
        add_webhook(workshop, receiver, kinds=[WebhookKind.CARD_EXPIRED])
        workshop.play(update(workshop))
        expire_card(workshop.card(workshop.work()))
        sweep_once()
        send_all()
        assert [one.data["status"] for one in receiver.received] == ["expired"]

    @pytest.mark.parametrize(
        ("end", "told"),
        [
            ("answer", ("card.decided", "answered")),
            ("expire", ("card.expired", "expired")),
            ("cancel", ("card.decided", "cancelled")),
        ],
    )
    def test_report_a_question_once_when_it_opens_and_once_when_it_ends(
        self, workshop: Workshop, receiver: Receiver, end: str, told: tuple[str, str]
    ) -> None:
        add_webhook(workshop, receiver, kinds=["card.opened", "card.decided", "card.expired"])
        may_ask(workshop.employee)
        workshop.play(asking(ask()))
        run = workshop.work()
        match end:
            case "answer":
                answer(workshop, question_of(run), CANARY)
            case "expire":
                expire_card(question_of(run))
                sweep_once()
            case _:
                actions.cancel(workshop.operator, run.pk)
        send_all()
        assert [(one.kind, one.data.get("status")) for one in receiver.received] == [
            ("card.opened", None),
            told,
        ]
        assert {one.data["card"] for one in receiver.received} == {"question"}

    def test_do_not_report_a_card_that_a_standing_grant_approves_as_opened(
        self,
        workshop: Workshop,
        receiver: Receiver,
        recorder: Recorder,
    ) -> None:
        add_webhook(workshop, receiver, kinds=["card.opened", "card.decided"])
        grant(workshop, "probe.effect", equals("name", "a"))
        workshop.play(asking(call("probe.effect", name="a"), call("probe.effect", name="b")))
        workshop.work()
        send_all()
        waiting = Approval.objects.get(standing_grant=None)
        opened = [one.data["approval_id"] for one in receiver.received if one.kind == "card.opened"]
        assert opened == [str(waiting.pk)]
        (decided,) = [one.data for one in receiver.received if one.kind == "card.decided"]
        assert decided["status"] == "approved"

    def test_cover_an_unknown_outcome_and_its_resolution(
        self, workshop: Workshop, receiver: Receiver, recorder: Recorder
    ) -> None:
        add_webhook(workshop, receiver, kinds=["call.executed", "card.opened", "card.decided"])
        with write_in_flight(workshop, recorder) as run:
            lose_worker(run)
            workshop.drive(run)
            workshop.resolve(last_call(run), "not_done")
            recorder.release("a")
        send_all()
        told = [one for one in receiver.received if one.kind == "call.executed"]
        assert [one.data["status"] for one in told] == ["unknown", "not_done", "happened_after_all"]
        cards = [one for one in receiver.received if one.data.get("card") == "unknown_outcome"]
        assert [(one.kind, one.data.get("status")) for one in cards] == [
            ("card.opened", None),
            ("card.decided", "not_done"),
            ("card.opened", None),
        ]
        unknown, resolved, late = (one.data["approval_id"] for one in cards)
        assert unknown == resolved != late

    def test_name_the_card_of_the_resolved_call(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        add_webhook(workshop, receiver, kinds=["card.opened", "card.decided"])
        key = make_key(workshop)
        for one in (make_ask(key), make_ask(key)):
            redeem(key, one, approve(workshop, one).sign())
        ToolCall.objects.update(deadline_at=Now() - timedelta(seconds=1))
        sweep_once()
        first = Approval.objects.filter(kind=ApprovalKind.UNKNOWN).earliest("pk").tool_call
        workshop.resolve(first, "not_done")
        send_all()
        told = [one for one in receiver.received if one.data["card"] == "unknown_outcome"]
        opened = {
            one.data["call_id"]: one.data["approval_id"]
            for one in told
            if one.kind == "card.opened"
        }
        (decided,) = (one.data for one in told if one.kind == "card.decided")
        assert len(set(opened.values())) == 2
        assert (decided["call_id"], decided["approval_id"]) == (
            str(first.pk),
            opened[str(first.pk)],
        )

    def test_are_limited_to_the_chosen_kinds(self, workshop: Workshop, receiver: Receiver) -> None:
        add_webhook(workshop, receiver, kinds=[WebhookKind.RUN_FINISHED])
        run_through(workshop)
        send_all()
        assert receiver.kinds == ["run.finished"]

    def test_report_the_response_to_an_ask(self, workshop: Workshop, receiver: Receiver) -> None:
        add_webhook(workshop, receiver, kinds=[WebhookKind.ASK_ANSWERED])
        key = make_key(workshop)
        asks = [
            submit(key, AskedRequest("deploy", {"version": str(number)}, Level.WRITE))[0]
            for number in range(3)
        ]
        workshop.deny(workshop.card(asks[1].run))
        send_all()
        told = [(one.data["ask_id"], one.data["status"]) for one in receiver.received]
        assert told == [(str(asks[1].pk), "denied")]

    def test_include_the_receipt_of_an_approved_ask_if_values_are_sent(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        for sends_values in (True, False):
            add_webhook(
                workshop, receiver, kinds=[WebhookKind.ASK_ANSWERED], sends_values=sends_values
            )
        ask, _ = submit(make_key(workshop), AskedRequest("deploy", {"version": "1"}, Level.WRITE))
        workshop.approve(workshop.card(ask.run), confirm="deploy")
        send_all()
        told = [(one.data["status"], "receipt" in one.data) for one in receiver.received]
        assert sorted(told) == [("approved", False), ("approved", True)]

    @feature(
        "Agents elsewhere",
        "A webhook sends the answer to an ask once it cannot be undone",
        "agents/webhooks/outbox.py",
    )
    def test_do_not_report_an_approval_while_it_can_be_undone(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        add_webhook(workshop, receiver, kinds=[WebhookKind.ASK_ANSWERED])
        ask, _ = submit(make_key(workshop), AskedRequest("deploy", {"version": "1"}, Level.WRITE))
        workshop.approve(workshop.card(ask.run), confirm="deploy", grace_s=30)
        assert send_all() == 0
        assert WebhookDelivery.objects.get().due_at > ask.run.created_at

    def test_wait_for_each_response_to_an_ask_separately_until_it_cannot_be_undone(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        add_webhook(workshop, receiver, kinds=[WebhookKind.ASK_ANSWERED], sends_values=True)
        key = make_key(workshop)
        first, second, third = (make_ask(key, params={"number": number}) for number in range(3))
        for one, grace_s in ((first, 30), (second, 0), (third, 30)):
            card = workshop.approve(workshop.card(one.run), grace_s=grace_s)
        workshop.undo(card)
        send_all()
        assert [one.data["ask_id"] for one in receiver.received] == [str(second.pk)]
        assert WebhookDelivery.objects.filter(status="waiting").get().run_id == first.run_id

    def test_still_include_a_response_that_could_no_longer_be_undone_when_its_card_expires(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        add_webhook(workshop, receiver, kinds=[WebhookKind.ASK_ANSWERED])
        approve(workshop, make_ask(make_key(workshop)))
        send_all()
        told = WebhookDelivery.objects.get()
        send_again(workshop.admin, KIND, told.pk)
        Approval.objects.update(valid_until=Now() - timedelta(seconds=1))
        sweep_once()
        send_all()
        assert [one.data["status"] for one in receiver.received] == [
            "approved",
            "expired",
            "expired",
        ]
        assert [one.headers["webhook-id"] for one in receiver.received].count(told.message_id) == 2

    def test_keep_facts_about_a_card_when_its_response_is_undone(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        add_webhook(workshop, receiver)
        asked = make_ask(make_key(workshop))
        workshop.undo(workshop.approve(workshop.card(asked.run), grace_s=30))
        send_all()
        assert receiver.kinds == [
            "run.started",
            "card.opened",
            "card.decided",
            "card.decided",
            "card.opened",
        ]

    def test_drop_a_response_that_can_still_be_undone(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        """A delivery is rarely due while its decision can still be undone, but whatever is sent
        must be true at that moment."""
        add_webhook(workshop, receiver, kinds=[WebhookKind.ASK_ANSWERED])
        asked = make_ask(make_key(workshop))
        workshop.approve(workshop.card(asked.run), grace_s=30)
        read_everything()
        WebhookDelivery.objects.update(due_at=Now())
        assert send_all() == 1
        assert not receiver.received
        assert WebhookDelivery.objects.get().status == WebhookDeliveryStatus.DROPPED

    def test_do_not_include_a_decision_for_a_resolution_without_a_card(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        run = run_through(workshop)
        add_webhook(workshop, receiver, kinds=["call.executed", "card.decided"])
        with run_transaction(run.pk) as tx:
            tx.publish(CallResolved(str(last_call(run).pk), "succeeded", "dana", "seen"))
        send_all()
        assert receiver.kinds == ["call.executed"]

    def test_never_include_an_undone_response(self, workshop: Workshop, receiver: Receiver) -> None:
        add_webhook(workshop, receiver, kinds=[WebhookKind.ASK_ANSWERED])
        ask, _ = submit(make_key(workshop), AskedRequest("deploy", {"version": "1"}, Level.WRITE))
        card = workshop.card(ask.run)
        workshop.approve(card, confirm="deploy", grace_s=30)
        decisions.undo(workshop.approver, card.pk)
        workshop.deny(workshop.card(ask.run))
        send_all()
        (told,) = receiver.received
        assert (told.data["status"], told.data["previous_seq"]) == ("denied", None)


class TestContentOfFacts:
    @feature(
        "Agents elsewhere",
        "A delivery holds ids, kinds and times, and values only with an admin's tick",
        "agents/webhooks/outbox.py",
    )
    def test_is_limited_to_ids_kinds_and_times_by_default(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        add_webhook(workshop, receiver)
        run_through(workshop)
        may_ask(workshop.employee)
        workshop.play(asking(ask(CANARY, choices=[CANARY, "no"])), answer=CANARY)
        asked = workshop.work(CANARY)
        answer(workshop, question_of(asked), CANARY)
        workshop.drive(asked)
        wanted = AskedRequest(
            "deploy", {"key": CANARY}, "write", CANARY, CANARY, effect_key=CANARY, audience=CANARY
        )
        denied, _ = submit(make_key(workshop, name=CANARY), wanted)
        workshop.deny(workshop.card(denied.run), CANARY)
        workshop.drive(denied.run)
        send_all()
        assert {"ask.answered", "card.decided", "run.finished"} <= set(receiver.kinds)
        sent = b"".join(one.body for one in receiver.received).decode()
        for value in (CANARY, "data.updateRecord", "acme-", "Acme", workshop.employee.name):
            assert value not in sent, value
        assert not any(delivery.values for delivery in WebhookDelivery.objects.all())

    def test_includes_values_if_enabled(self, workshop: Workshop, receiver: Receiver) -> None:
        add_webhook(workshop, receiver, sends_values=True)
        run_through(workshop)
        send_all()
        started, opened, decided, executed, finished = (one.data for one in receiver.received)
        assert CANARY in started["task"]
        assert opened["params"]["changes"] == {"phone": CANARY}
        assert (opened["tool"], executed["tool"]) == ("data.updateRecord", "data.updateRecord")
        assert decided["reason"] == CANARY
        assert CANARY in finished["answer"]

    def test_no_longer_includes_values_as_soon_as_this_is_disabled(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        webhook, _ = add_webhook(workshop, receiver, sends_values=True)
        run_through(workshop)
        webhook.sends_values = False
        webhook.save()
        send_all()
        assert CANARY.encode() not in b"".join(one.body for one in receiver.received)


class TestNumbersOfFacts:
    @feature(
        "Agents elsewhere",
        "Each delivery names the one before it, so that a receiver notices a gap",
        "agents/webhooks/outbox.py",
    )
    def test_are_sent_with_the_preceding_number(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        add_webhook(workshop, receiver)
        add_webhook(workshop, receiver, kinds=[WebhookKind.RUN_STARTED, WebhookKind.RUN_FINISHED])
        run = run_through(workshop)
        send_all()
        chains: dict[int, list[tuple[int | None, int]]] = {}
        for delivery in WebhookDelivery.objects.order_by("pk"):
            chains.setdefault(delivery.webhook_id, []).append((delivery.previous_seq, delivery.seq))
        assert sorted(map(len, chains.values())) == [2, 5]
        for chain in chains.values():
            assert [previous for previous, _ in chain] == [None, *(seq for _, seq in chain)][
                : len(chain)
            ]
        numbers = set(Event.objects.filter(run=run).values_list("seq", flat=True))
        assert {one.data["seq"] for one in receiver.received} <= numbers

    def test_of_one_event_are_sent_with_the_same_preceding_number(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        add_webhook(workshop, receiver)
        ask, _ = submit(make_key(workshop), AskedRequest("deploy", {"version": "1"}, Level.WRITE))
        workshop.deny(workshop.card(ask.run))
        read_everything()
        started, opened, decided, answered = WebhookDelivery.objects.order_by("pk")
        assert (started.previous_seq, opened.previous_seq) == (None, started.seq), (
            "two facts of one transaction"
        )
        assert (decided.seq, decided.previous_seq) == (answered.seq, answered.previous_seq)
        assert decided.previous_seq == opened.seq

    def test_are_separate_for_each_run(self, workshop: Workshop, receiver: Receiver) -> None:
        add_webhook(workshop, receiver, kinds=[WebhookKind.RUN_STARTED])
        workshop.submit()
        workshop.submit()
        read_everything()
        assert list(WebhookDelivery.objects.values_list("previous_seq", flat=True)) == [None, None]


def test_facts_are_not_sent_to_a_webhook_that_is_switched_off(
    workshop: Workshop, receiver: Receiver
) -> None:
    webhook, _ = add_webhook(workshop, receiver)
    webhook.is_active = False
    webhook.save()
    workshop.submit()
    read_everything()
    assert not WebhookDelivery.objects.exists()
