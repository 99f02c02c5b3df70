"""Grace: an approved call may wait for some seconds before it starts, and until then, the person
who approved it can undo the approval."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from agents.accounts.models import AuditEntry
from agents.approvals import decisions
from agents.platform.refusals import Conflict
from agents.runs.models import Approval, ApprovalStatus, CallStatus, RunStatus, ToolCall
from agents.worker.sweeper import sweep_once
from tests.recorder import Recorder
from tests.workshop import (
    Workshop,
    again,
    asking,
    call,
    calls,
    error_code,
    event_types,
    make_due,
    payloads,
    statuses,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def card(workshop: Workshop) -> Approval:
    """A pending card for a call with an effect outside Gadget."""
    workshop.play(asking(call("probe.effect", name="a")))
    return workshop.card(workshop.work())


class TestGrace:
    def test_keeps_the_run_waiting_without_a_worker(
        self, workshop: Workshop, card: Approval, recorder: Recorder
    ) -> None:
        approved = workshop.approve(card, grace_s=10)
        assert approved.start_after is not None
        assert approved.decided_at is not None
        assert approved.start_after - approved.decided_at > timedelta(seconds=9)
        assert (again(card.run).status, again(card.run).lease_owner) == (RunStatus.WAITING, "")
        assert sweep_once() == 0
        assert workshop.drive(card.run).status == RunStatus.WAITING
        assert not recorder.effects

    def test_ends_with_the_next_sweep(
        self, workshop: Workshop, card: Approval, recorder: Recorder
    ) -> None:
        workshop.approve(card, grace_s=10)
        make_due(card.run)
        sweep_once()
        assert again(card.run).status == RunStatus.QUEUED
        assert workshop.drive(card.run).status == RunStatus.SUCCEEDED
        assert list(recorder.effects.values()) == [1]
        assert event_types(card.run).count("run_resumed") == 1

    def test_of_one_call_does_not_delay_another_call(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        workshop.play(asking(call("probe.effect", name="a"), call("probe.effect", name="b")))
        run = workshop.work()
        slow, quick = workshop.cards(run)
        workshop.approve(slow, grace_s=60)
        workshop.approve(quick)
        run = workshop.drive(run)
        assert statuses(run) == [CallStatus.APPROVED, CallStatus.SUCCEEDED]
        assert run.status == RunStatus.WAITING
        assert recorder.arrivals == {"b": 1}

    def test_is_zero_by_default(self, workshop: Workshop, card: Approval) -> None:
        approved = workshop.approve(card)
        assert approved.start_after is not None
        assert Approval.objects.filter(pk=card.pk, start_after__lte=Now()).exists()


class TestUndo:
    def test_creates_a_new_card_and_does_not_start_the_call(
        self, workshop: Workshop, card: Approval, recorder: Recorder
    ) -> None:
        workshop.approve(card, grace_s=10)
        new_card = workshop.undo(card)
        assert (new_card.status, new_card.sequence) == (ApprovalStatus.PENDING, 2)
        assert "undid the approval" in new_card.why
        make_due(card.run)
        sweep_once()
        assert workshop.drive(card.run).status == RunStatus.WAITING
        assert statuses(card.run) == [CallStatus.AWAITING_APPROVAL]
        assert not recorder.effects

    def test_is_published_and_audited(self, workshop: Workshop, card: Approval) -> None:
        workshop.approve(card, grace_s=10)
        new_card = workshop.undo(card)
        events = payloads(card.run, "approval_decided")
        assert [line["status"] for line in events] == ["approved", "superseded"]
        assert events[1]["next_approval_id"] == str(new_card.pk)
        assert AuditEntry.objects.get(action="decision_undone").actor == "user:acme-approver"

    def test_is_refused_for_a_call_that_is_not_waiting_to_start(
        self, workshop: Workshop, card: Approval
    ) -> None:
        workshop.approve(card, grace_s=10)
        ToolCall.objects.filter(pk=card.tool_call_id).update(status=CallStatus.AWAITING_APPROVAL)
        with pytest.raises(Conflict):
            workshop.undo(card)

    def test_is_possible_without_grace_until_a_worker_starts_the_call(
        self, workshop: Workshop, card: Approval, recorder: Recorder
    ) -> None:
        workshop.approve(card)
        workshop.undo(card)
        assert workshop.drive(card.run).status == RunStatus.WAITING
        assert not recorder.effects

    def test_leaves_a_card_that_can_be_approved_again_with_one_effect(
        self, workshop: Workshop, card: Approval, recorder: Recorder
    ) -> None:
        workshop.approve(card, grace_s=10)
        workshop.approve(workshop.undo(card))
        run = workshop.drive(card.run)
        assert run.status == RunStatus.SUCCEEDED
        assert list(recorder.effects.values()) == [1]
        assert calls(run)[0].attempts == 1

    def test_returns_the_same_new_card_when_repeated(
        self, workshop: Workshop, card: Approval
    ) -> None:
        workshop.approve(card, grace_s=10)
        assert workshop.undo(card) == workshop.undo(card)
        assert len(workshop.cards(card.run)) == 1

    def test_is_refused_for_the_old_card_once_the_call_of_the_new_card_has_started(
        self, workshop: Workshop, card: Approval, recorder: Recorder
    ) -> None:
        workshop.approve(card, grace_s=10, decision_id="first")
        new_card = workshop.undo(card)
        with pytest.raises(Conflict):
            decisions.undo(workshop.approver, card.pk, "another")
        workshop.approve(new_card)
        assert workshop.drive(card.run).status == RunStatus.SUCCEEDED
        with pytest.raises(Conflict):
            workshop.undo(card)

    def test_is_limited_to_the_person_who_decided(self, workshop: Workshop, card: Approval) -> None:
        workshop.approve(card, grace_s=10)
        with pytest.raises(Conflict):
            workshop.undo(card, by=workshop.admin)
        assert statuses(card.run) == [CallStatus.APPROVED]

    def test_can_name_the_decision_to_undo(self, workshop: Workshop, card: Approval) -> None:
        workshop.approve(card, grace_s=10, decision_id="d-1")
        with pytest.raises(Conflict):
            decisions.undo(workshop.approver, card.pk, "d-2")
        assert decisions.undo(workshop.approver, card.pk, "d-1").sequence == 2

    def test_is_refused_after_the_start(
        self, workshop: Workshop, card: Approval, recorder: Recorder
    ) -> None:
        workshop.approve(card)
        workshop.drive(card.run)
        with pytest.raises(Conflict):
            workshop.undo(card)
        assert list(recorder.effects.values()) == [1]

    def test_is_refused_for_a_pending_or_denied_card(
        self, workshop: Workshop, card: Approval
    ) -> None:
        with pytest.raises(Conflict):
            workshop.undo(card)
        workshop.deny(card)
        with pytest.raises(Conflict):
            workshop.undo(card)

    def test_is_refused_for_a_cancelled_run(self, workshop: Workshop, card: Approval) -> None:
        workshop.approve(card, grace_s=10)
        workshop.cancel(card.run)
        with pytest.raises(Conflict):
            workshop.undo(card)
        assert not workshop.cards(card.run)


class TestAnApprovedCallThatDidNotStartInTime:
    def test_gets_a_new_card_from_the_sweeper(
        self, workshop: Workshop, card: Approval, recorder: Recorder
    ) -> None:
        workshop.approve(card)
        Approval.objects.filter(pk=card.pk).update(start_after=Now() - timedelta(hours=1))
        sweep_once()
        (new_card,) = workshop.cards(card.run)
        assert new_card.sequence == 2
        assert "could not start in time" in new_card.why
        assert workshop.drive(card.run).status == RunStatus.WAITING
        assert not recorder.effects

    def test_does_not_get_a_new_card_if_it_is_now_forbidden(
        self, workshop: Workshop, card: Approval
    ) -> None:
        workshop.approve(card)
        workshop.employee.grants.all().delete()
        Approval.objects.filter(pk=card.pk).update(start_after=Now() - timedelta(hours=1))
        sweep_once()
        assert not workshop.cards(card.run)
        assert error_code(calls(card.run)[0]) == "NOT_PERMITTED"
        assert workshop.drive(card.run).status == RunStatus.SUCCEEDED

    def test_gets_a_new_card_from_a_driver_that_arrives_too_late(
        self, workshop: Workshop, card: Approval, recorder: Recorder
    ) -> None:
        workshop.approve(card)
        Approval.objects.filter(pk=card.pk).update(valid_until=Now() - timedelta(seconds=1))
        assert workshop.drive(card.run).status == RunStatus.WAITING
        (new_card,) = workshop.cards(card.run)
        assert "not used in time" in new_card.why
        assert not recorder.effects

    def test_gets_only_one_new_card_from_two_sweeps(
        self, workshop: Workshop, card: Approval
    ) -> None:
        workshop.approve(card, grace_s=10)
        Approval.objects.filter(pk=card.pk).update(start_after=Now() - timedelta(hours=1))
        sweep_once()
        sweep_once()
        assert len(workshop.cards(card.run)) == 1
