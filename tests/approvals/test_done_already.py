"""A card whose effect already exists says so, names the cause, and is the only kind that can be
dismissed."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db.models import F
from django.db.models.functions import Now

from agents.accounts.models import AuditEntry
from agents.approvals import bulk, decisions
from agents.approvals.dismissals import dismiss
from agents.approvals.warnings.card_marks import load_marks
from agents.approvals.warnings.done_already import find_done
from agents.approvals.warnings.marks import DONE, build_mark
from agents.employees.models import Grant
from agents.platform.refusals import AlreadyDecided, Conflict, Forbidden, StaleDigest
from agents.runs.descriptions import describe
from agents.runs.engine.cards import compute_digest
from agents.runs.engine.covered_facts import is_covered
from agents.runs.models import (
    Approval,
    ApprovalStatus,
    CallStatus,
    EventType,
    Run,
    RunStatus,
    ToolCall,
)
from tests.features import feature
from tests.model_server import Call, ModelServer, Response
from tests.workshop import Workshop, again, asking, call, calls, make_due, statuses
from tools.contract import Preview, Target
from tools.office.records.changes import ChangeAuthor, update_records
from tools.office.records.models import Record, RecordList

pytestmark = pytest.mark.django_db(transaction=True)


def deactivate(record: Record) -> dict[str, object]:
    return call("data.updateRecord", record_id=str(record.pk), changes={"status": "inactive"})


def ask_twice(workshop: Workshop, asked: dict[str, object]) -> tuple[Approval, Approval]:
    """Let two runs request the same change, and return both cards."""
    workshop.play(asking(asked))
    first, second = workshop.work(), workshop.work()
    return workshop.card(first), workshop.card(second)


def ask_again(workshop: Workshop, asked: dict[str, object]) -> tuple[Approval, Run]:
    """Let two runs request the same change, approve both and run the first. Return the card with
    which the second run asks again, and the run that made the change."""
    first, second = ask_twice(workshop, asked)
    workshop.approve(first)
    workshop.approve(second)
    did = workshop.drive(first.run)
    assert did.status == RunStatus.SUCCEEDED
    run = workshop.drive(second.run)
    assert (run.status, statuses(run)) == (RunStatus.WAITING, [CallStatus.AWAITING_APPROVAL])
    return workshop.card(run), did


def decision(card: Approval, **more: object) -> decisions.Decision:
    return decisions.Decision(digest=card.digest, **more)  # type: ignore[arg-type]


class TestARepeatedCard:
    @feature(
        "The inbox",
        "A card that asks for something already done says who did it, and can be dismissed",
        "agents/approvals/dismissals.py",
    )
    @pytest.mark.parametrize(
        "tool", ["data.updateRecord", "probe.rename"], ids=["refusing", "previewing"]
    )
    def test_shows_that_its_effect_exists_and_which_run_caused_it(
        self, workshop: Workshop, record: Record, tool: str
    ) -> None:
        params = {"to": "New"} if tool == "probe.rename" else {"changes": {"status": "inactive"}}
        record_id = record.pk if tool == "probe.rename" else str(record.pk)
        card, did = ask_again(workshop, call(tool, record_id=record_id, **params))
        done = find_done(card, is_stale=False)
        assert done is not None
        assert [value for target in done.targets for value in target.values] in (
            [("status", "inactive")],
            [("name", "New")],
        )
        assert (done.run_id, done.at is not None) == (did.pk, True)
        assert card.sentence.startswith("Nothing to change:")
        assert card.preview["problem"] == ""

    def test_is_refused_in_bulk_with_the_reason(self, workshop: Workshop, record: Record) -> None:
        card, _ = ask_again(workshop, deactivate(record))
        assert bulk.find_bulk_refusals([card], load_marks([card])) == {card.pk: (build_mark(DONE),)}
        (outcome,) = bulk.decide_many(workshop.approver, [(card.pk, "approve", decision(card))])
        assert (outcome.status, Approval.objects.get(pk=card.pk).status) == (
            422,
            ApprovalStatus.PENDING,
        )

    def test_names_the_person_who_caused_the_effect(
        self, workshop: Workshop, record: Record
    ) -> None:
        workshop.play(asking(deactivate(record)))
        card = workshop.card(workshop.work())
        workshop.approve(card)
        target = Target(
            str(record.pk), "Acme", record.version, {"status": "active"}, {"status": "inactive"}
        )
        update_records(workshop.organization.pk, [target], ChangeAuthor("ada"))
        done = find_done(workshop.card(workshop.drive(card.run)), is_stale=False)
        assert done is not None
        assert (done.run_id, done.actor) == (None, "ada")

    def test_about_a_deleted_record_says_that_the_record_no_longer_exists(
        self, workshop: Workshop, record: Record
    ) -> None:
        Grant.objects.get_or_create(employee=workshop.employee, tool="data.bulkDelete")
        card, did = ask_again(workshop, call("data.bulkDelete", record_ids=[str(record.pk)]))
        done = find_done(card, is_stale=False)
        assert done is not None
        assert (done.targets[0].label, done.targets[0].values, done.run_id) == ("Acme", (), did.pk)

    def test_shows_the_change_if_the_values_of_its_target_have_changed_since(
        self, workshop: Workshop, record: Record
    ) -> None:
        """The control: the target now has values that the approved call would still change."""
        workshop.play(asking(deactivate(record)))
        card = workshop.card(workshop.work())
        workshop.approve(card)
        Record.objects.filter(pk=record.pk).update(status="pending", version=2)
        card = workshop.card(workshop.drive(card.run))
        assert find_done(card, is_stale=False) is None
        (target,) = card.preview["targets"]
        assert (target["before"], target["after"]) == (
            {"status": "pending"},
            {"status": "inactive"},
        )
        with pytest.raises(Conflict, match="would still change something"):
            dismiss(workshop.approver, card.pk, decision(card))


class TestAWaitingCard:
    def test_can_be_dismissed_if_its_effect_already_exists(
        self, workshop: Workshop, record: Record
    ) -> None:
        first, second = ask_twice(workshop, deactivate(record))
        workshop.approve(first)
        workshop.drive(first.run)
        assert find_done(second, is_stale=True) is not None
        assert (
            dismiss(workshop.approver, second.pk, decision(second)).status
            == ApprovalStatus.ANSWERED
        )


class TestDismissing:
    def test_does_not_run_the_call_and_tells_the_model_that_there_was_nothing_to_do(
        self, workshop: Workshop, model: ModelServer, record: Record
    ) -> None:
        asked = Call(
            "data.updateRecord", {"record_id": str(record.pk), "changes": {"status": "inactive"}}
        )
        model.script(Response(calls=(asked,)), Response(text="It was done."))
        run = workshop.work()
        card = workshop.card(run)
        Record.objects.filter(pk=record.pk).update(status="inactive", version=2)
        dismissed = dismiss(workshop.approver, card.pk, decision(card))
        assert (dismissed.status, dismissed.decided_by) == (
            ApprovalStatus.ANSWERED,
            workshop.approver.user,
        )
        run = workshop.drive(run)
        assert (run.status, statuses(run)) == (RunStatus.SUCCEEDED, [CallStatus.REJECTED])
        message = model.requests[-1]["messages"][-1]["content"]
        assert (
            "there was nothing to do. Nothing to change: “Acme” already has these values."
            in message
        )
        assert calls(run)[0].attempts == 0
        assert AuditEntry.objects.get(action="card_dismissed").subject == f"approval:{card.pk}"
        (decided,) = run.events.filter(type=EventType.APPROVAL_DECIDED)
        assert decided.payload["dismissed"] is True
        name = workshop.approver.user.get_username()
        assert describe(decided).words == f"Dismissed by {name}: there was nothing to do"

    def test_cannot_be_undone_or_followed_by_a_decision(
        self, workshop: Workshop, record: Record
    ) -> None:
        card, _ = ask_again(workshop, deactivate(record))
        first = dismiss(workshop.approver, card.pk, decision(card, decision_id="d-1"))
        assert (
            dismiss(workshop.approver, card.pk, decision(card, decision_id="d-1")).status
            == first.status
        )
        for decide in (workshop.approve, workshop.deny):
            with pytest.raises(AlreadyDecided):
                decide(card)
        with pytest.raises(Conflict):
            workshop.undo(card)

    def test_is_refused_to_operators(self, workshop: Workshop, record: Record) -> None:
        card, _ = ask_again(workshop, deactivate(record))
        with pytest.raises(Forbidden):
            dismiss(workshop.operator, card.pk, decision(card))

    def test_a_card_whose_effect_no_longer_exists_is_refused_and_creates_a_new_card(
        self, workshop: Workshop, record: Record
    ) -> None:
        card, _ = ask_again(workshop, deactivate(record))
        Record.objects.filter(pk=record.pk).update(status="active", version=3)
        with pytest.raises(StaleDigest):
            dismiss(workshop.approver, card.pk, decision(card))
        newest = workshop.card(again(card.run))
        assert newest.sequence == card.sequence + 1
        assert newest.preview["targets"][0]["before"] == {"status": "active"}


class TestFactsChangedByABulk:
    def ask(self, workshop: Workshop, count: int = 8) -> list[Approval]:
        Grant.objects.get_or_create(employee=workshop.employee, tool="data.addToList")
        records = [workshop.record(name=f"Company {number}") for number in range(count)]
        asked = [
            call("data.addToList", record_ids=[str(each.pk)], list_name="Spring")
            for each in records
        ]
        workshop.play(asking(*asked))
        return workshop.cards(workshop.work())

    def approve_together(self, workshop: Workshop, cards: list[Approval]) -> None:
        items = [(card.pk, "approve", decision(card)) for card in cards]
        assert {one.status for one in bulk.decide_many(workshop.approver, items, uuid4())} == {200}

    @feature(
        "The inbox",
        "If the first call of a bulk creates a list, no other card of it is asked again",
        "agents/runs/engine/covered_facts.py",
    )
    def test_do_not_reopen_its_own_cards(self, workshop: Workshop) -> None:
        cards = self.ask(workshop)
        assert all(card.preview["targets"][0]["after"]["list_is_new"] for card in cards)
        self.approve_together(workshop, cards)
        run = workshop.drive(cards[0].run)
        assert set(statuses(run)) == {CallStatus.SUCCEEDED}
        assert RecordList.objects.get(name="Spring").entries.count() == 8

    def test_do_not_reopen_cards_of_another_run_of_the_bulk(self, workshop: Workshop) -> None:
        first = self.ask(workshop, 1)
        second = self.ask(workshop, 1)
        self.approve_together(workshop, [*first, *second])
        assert {workshop.drive(card.run).status for card in (*first, *second)} == {
            RunStatus.SUCCEEDED
        }

    def test_do_not_reopen_cards_that_were_decided_after_the_first_call_had_run(
        self, workshop: Workshop
    ) -> None:
        """A bulk decision about many cards is sent in several requests."""
        (first,), (second,) = self.ask(workshop, 1), self.ask(workshop, 1)
        bulk_id = uuid4()
        for card in (first, second):
            (done,) = bulk.decide_many(
                workshop.approver, [(card.pk, "approve", decision(card))], bulk_id
            )
            assert done.status == 200
            assert workshop.drive(card.run).status == RunStatus.SUCCEEDED

    def test_reopen_a_card_that_was_decided_separately_after_the_first_call_had_run(
        self, workshop: Workshop
    ) -> None:
        (first,), (second,) = self.ask(workshop, 1), self.ask(workshop, 1)
        for card in (first, second):
            workshop.approve(card)
            run = workshop.drive(card.run)
        assert statuses(run) == [CallStatus.AWAITING_APPROVAL]

    def test_reopen_the_card_if_they_were_changed_outside_the_bulk(
        self, workshop: Workshop
    ) -> None:
        cards = self.ask(workshop)
        self.approve_together(workshop, cards)
        RecordList.objects.create(organization=workshop.organization, name="Spring")
        run = workshop.drive(cards[0].run)
        assert set(statuses(run)) == {CallStatus.AWAITING_APPROVAL}

    def test_reopen_the_card_whose_target_changed(self, workshop: Workshop) -> None:
        cards = self.ask(workshop)
        self.approve_together(workshop, cards)
        Record.objects.filter(name="Company 3").update(version=2)
        run = workshop.drive(cards[0].run)
        assert sorted(statuses(run)) == [CallStatus.AWAITING_APPROVAL, *[CallStatus.SUCCEEDED] * 7]

    @pytest.mark.parametrize(
        ("before", "other", "is_covered_now"),
        [
            ({}, {"list": "Spring"}, True),
            ({}, {}, False),
            ({"is_public": False}, {"list": "Spring"}, False),
        ],
        ids=["about the list", "about nothing else", "a value of its own"],
    )
    def test_do_not_include_the_targets_own_values(
        self,
        workshop: Workshop,
        before: dict[str, object],
        other: dict[str, object],
        is_covered_now: bool,
    ) -> None:
        first, second = self.ask(workshop, 2)
        for number, card in enumerate((first, second)):
            target = Target(
                str(number), f"Document {number}", before=before, after={"is_public": True, **other}
            )
            card.preview = Preview("update", (target,)).as_json()
            card.digest = compute_digest(card.tool_call, card.preview)
            card.save(update_fields=["preview", "digest"])
            workshop.approve(card)
        Approval.objects.filter(pk=first.pk).update(
            status=ApprovalStatus.CONSUMED, consumed_at=Now()
        )
        done = {"status": CallStatus.SUCCEEDED, "finished_at": Now(), "content": "Done."}
        ToolCall.objects.filter(pk=first.tool_call_id).update(**done)
        card = Approval.objects.select_related("tool_call").get(pk=second.pk)
        now = Preview(
            "update",
            (Target("1", "Document 1", before=before, after={"is_public": False, **other}),),
        )
        assert is_covered(card, now) is is_covered_now


class TestVersionsChangedByABulk:
    """Two calls change different values of one record; the second finds a newer version."""

    def ask(
        self, workshop: Workshop, record: Record, *changes: dict[str, object]
    ) -> list[Approval]:
        asked = [
            call("data.updateRecord", record_id=str(record.pk), changes=each) for each in changes
        ]
        workshop.play(asking(*asked))
        return workshop.cards(workshop.work())

    def approve_together(self, workshop: Workshop, cards: list[Approval]) -> None:
        items = [(card.pk, "approve", decision(card)) for card in cards]
        assert {one.status for one in bulk.decide_many(workshop.approver, items, uuid4())} == {200}

    def test_do_not_reopen_a_card_that_still_makes_the_same_change(
        self, workshop: Workshop, record: Record
    ) -> None:
        cards = self.ask(workshop, record, {"status": "inactive"}, {"phone": "1"}, {"score": 7})
        self.approve_together(workshop, cards)
        run = workshop.drive(cards[0].run)
        assert set(statuses(run)) == {CallStatus.SUCCEEDED}
        record.refresh_from_db()
        assert (record.status, record.phone, record.score) == ("inactive", "1", 7)

    def test_reopen_a_card_whose_value_another_call_has_changed(
        self, workshop: Workshop, record: Record
    ) -> None:
        cards = self.ask(workshop, record, {"status": "inactive"}, {"status": "pending"})
        self.approve_together(workshop, cards)
        assert statuses(workshop.drive(cards[0].run)) == [
            CallStatus.SUCCEEDED,
            CallStatus.AWAITING_APPROVAL,
        ]

    def test_reopen_a_card_whose_target_was_also_changed_outside_the_bulk(
        self, workshop: Workshop, record: Record
    ) -> None:
        first, second = self.ask(workshop, record, {"status": "inactive"}, {"phone": "1"})
        self.approve_together(workshop, [first, second])
        Approval.objects.filter(pk=second.pk).update(start_after=Now() + timedelta(minutes=1))
        assert workshop.drive(first.run).status == RunStatus.WAITING
        Record.objects.filter(pk=record.pk).update(notes="Do not call", version=F("version") + 1)
        make_due(first.run)
        Run.objects.filter(pk=first.run_id).update(status=RunStatus.QUEUED)
        assert statuses(workshop.drive(first.run)) == [
            CallStatus.SUCCEEDED,
            CallStatus.AWAITING_APPROVAL,
        ]
