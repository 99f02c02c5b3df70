"""A card is decided only once, as it was shown, and its run continues immediately."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from agents.accounts.models import AuditEntry
from agents.approvals import bulk, decisions
from agents.employees.toolboxes import load_toolbox
from agents.platform.refusals import (
    AlreadyDecided,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    Refusal,
    StaleDigest,
)
from agents.runs.models import Approval, ApprovalStatus, CallStatus, RunStatus, ToolCall
from tests.model_server import Call, ModelServer, Response
from tests.recorder import Recorder
from tests.workshop import (
    Workshop,
    again,
    asking,
    build_workshop,
    call,
    calls,
    expire_card,
    payloads,
    statuses,
)

pytestmark = pytest.mark.django_db(transaction=True)

EFFECT = call("probe.effect", name="a")


@pytest.fixture
def card(workshop: Workshop) -> Approval:
    """A pending card."""
    workshop.play(asking(EFFECT))
    return workshop.card(workshop.work())


def stays_pending(card: Approval) -> bool:
    return Approval.objects.filter(
        pk=card.pk, status=ApprovalStatus.PENDING, decided_by=None
    ).exists()


class TestApproval:
    def test_stores_the_person_and_the_time_and_queues_the_run(
        self, workshop: Workshop, card: Approval
    ) -> None:
        done = workshop.approve(card)
        assert (done.status, done.decided_by) == (ApprovalStatus.APPROVED, workshop.approver.user)
        assert done.decided_at is not None
        assert done.start_after is not None
        assert done.valid_until is not None
        assert again(card.run).status == RunStatus.QUEUED
        assert statuses(card.run) == [CallStatus.APPROVED]

    def test_is_published_and_audited(self, workshop: Workshop, card: Approval) -> None:
        workshop.approve(card)
        (event,) = payloads(card.run, "approval_decided")
        assert event == {
            "approval_id": str(card.pk),
            "call_id": str(card.tool_call_id),
            "status": "approved",
            "decided_by": "acme-approver",
            "reason": "",
            "next_approval_id": None,
        }
        entry = AuditEntry.objects.get(action="card_approved")
        assert (entry.actor, entry.subject) == ("user:acme-approver", f"approval:{card.pk}")
        assert entry.payload["digest"] == card.digest

    def test_queues_the_run_within_the_same_commit_every_time(self, workshop: Workshop) -> None:
        """SQLite's clock ticks in milliseconds, so a call could seem not to be due yet at the
        moment of its approval."""
        workshop.play(asking(*[call("probe.effect", name=str(number)) for number in range(20)]))
        for card in workshop.cards(workshop.work()):
            workshop.approve(card)
            assert again(card.run).status == RunStatus.QUEUED
            type(card.run).objects.filter(pk=card.run_id).update(status=RunStatus.WAITING)
        workshop.cancel(card.run)

    def test_starts_the_call_once_and_consumes_the_approval(
        self, workshop: Workshop, card: Approval, recorder: Recorder
    ) -> None:
        workshop.approve(card)
        run = workshop.drive(card.run)
        (done,) = calls(run)
        card.refresh_from_db()
        assert (run.status, done.status, done.attempts) == (
            RunStatus.SUCCEEDED,
            CallStatus.SUCCEEDED,
            1,
        )
        assert card.status == ApprovalStatus.CONSUMED
        assert card.consumed_at is not None
        assert recorder.effects == {done.idempotency_key: 1}

    def test_runs_the_decided_call_immediately_while_its_siblings_wait(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        workshop.play(asking(EFFECT, call("probe.effect", name="b")))
        run = workshop.work()
        workshop.approve(workshop.cards(run)[1])
        run = workshop.drive(run)
        assert statuses(run) == [CallStatus.AWAITING_APPROVAL, CallStatus.SUCCEEDED]
        assert run.status == RunStatus.WAITING
        assert len(recorder.effects) == 1


class TestDenial:
    def test_reports_the_reason_to_the_model_and_does_not_start_the_call(
        self, workshop: Workshop, model: ModelServer, recorder: Recorder
    ) -> None:
        model.script(
            Response(calls=(Call("probe.effect", {"name": "a"}),)), Response(text="Then not.")
        )
        run = workshop.work()
        workshop.deny(workshop.card(run), "The budget is closed.")
        run = workshop.drive(run)
        assert (run.status, run.answer) == (RunStatus.SUCCEEDED, "Then not.")
        message = model.requests[-1]["messages"][-1]
        assert message["role"] == "tool"
        assert "TOOL ERROR: APPROVAL_DENIED" in message["content"]
        assert "The budget is closed." in message["content"]
        assert not recorder.effects

    def test_is_published_and_audited(self, workshop: Workshop, card: Approval) -> None:
        workshop.deny(card, "no")
        (event,) = payloads(card.run, "approval_decided")
        assert (event["status"], event["decided_by"], event["reason"]) == (
            "denied",
            "acme-approver",
            "no",
        )
        assert AuditEntry.objects.get(action="card_denied").payload["reason"] == "no"

    def test_leaves_the_siblings_waiting(self, workshop: Workshop) -> None:
        workshop.play(asking(EFFECT, call("probe.effect", name="b")))
        run = workshop.work()
        workshop.deny(workshop.card(run))
        assert again(run).status == RunStatus.WAITING
        assert statuses(run) == [CallStatus.DENIED, CallStatus.AWAITING_APPROVAL]


class TestADecidedCard:
    def test_refuses_another_decision_and_names_who_decided_and_when(
        self, workshop: Workshop, card: Approval
    ) -> None:
        workshop.deny(card)
        for decide in (workshop.approve, workshop.deny):
            with pytest.raises(AlreadyDecided) as refused:
                decide(card, by=workshop.admin)
            assert refused.value.extra["decided_by"] == "acme-approver"
            assert refused.value.extra["decided_at"]
            assert refused.value.status == 409

    def test_refuses_a_denial_after_the_approval(self, workshop: Workshop, card: Approval) -> None:
        workshop.approve(card)
        with pytest.raises(AlreadyDecided):
            workshop.deny(card)
        assert statuses(card.run) == [CallStatus.APPROVED]

    def test_returns_the_first_response_for_the_same_decision_by_the_same_person(
        self, workshop: Workshop, card: Approval
    ) -> None:
        first = workshop.approve(card, decision_id="d-1")
        assert workshop.approve(card, decision_id="d-1") == first
        assert len(payloads(card.run, "approval_decided")) == 1

    def test_returns_the_first_response_even_after_the_start(
        self, workshop: Workshop, card: Approval, recorder: Recorder
    ) -> None:
        workshop.approve(card, decision_id="d-1")
        workshop.drive(card.run)
        assert workshop.approve(card, decision_id="d-1").status == ApprovalStatus.CONSUMED
        assert sum(recorder.effects.values()) == 1

    def test_returns_the_first_response_for_a_repeated_denial(
        self, workshop: Workshop, card: Approval
    ) -> None:
        workshop.deny(card, decision_id="d-1")
        assert workshop.deny(card, decision_id="d-1").status == ApprovalStatus.DENIED

    def test_refuses_a_reused_decision_id_of_another_person_or_action(
        self, workshop: Workshop, card: Approval
    ) -> None:
        workshop.approve(card, decision_id="d-1")
        with pytest.raises(AlreadyDecided):
            workshop.approve(card, by=workshop.admin, decision_id="d-1")
        with pytest.raises(AlreadyDecided):
            workshop.deny(card, decision_id="d-1")
        with pytest.raises(AlreadyDecided):
            workshop.approve(card, decision_id="d-2")


class TestADecision:
    def test_is_refused_on_a_card_of_another_organization_as_not_found(
        self, workshop: Workshop, card: Approval
    ) -> None:
        foreign_admin = build_workshop("other").admin
        for decide in (workshop.approve, workshop.deny):
            with pytest.raises(NotFound):
                decide(card, by=foreign_admin)
        with pytest.raises(NotFound):
            workshop.edit(card, {"name": "b"}, by=foreign_admin)
        with pytest.raises(NotFound):
            workshop.undo(card, by=foreign_admin)
        assert stays_pending(card)

    def test_is_refused_on_a_missing_card_as_not_found(self, workshop: Workshop) -> None:
        with pytest.raises(NotFound):
            decisions.approve(workshop.approver, 999_999_999, decisions.Decision("0" * 64))

    def test_is_refused_with_another_digest_as_stale(
        self, workshop: Workshop, card: Approval
    ) -> None:
        for decide in (workshop.approve, workshop.deny):
            with pytest.raises(StaleDigest) as refused:
                decide(card, digest="0" * 64)
            assert refused.value.extra["digest"] == card.digest
        assert stays_pending(card)

    def test_is_refused_on_an_expired_card_even_before_the_sweeper_runs(
        self, workshop: Workshop, card: Approval
    ) -> None:
        expire_card(card)
        for decide in (workshop.approve, workshop.deny):
            with pytest.raises(Expired):
                decide(card)
        assert stays_pending(card)

    def test_is_refused_on_a_replaced_card_with_a_link_to_the_next_card(
        self, workshop: Workshop, card: Approval
    ) -> None:
        new_card = workshop.edit(card, {"name": "b"})
        with pytest.raises(AlreadyDecided) as refused:
            workshop.approve(card)
        assert refused.value.extra["approval_status"] == ApprovalStatus.SUPERSEDED
        assert refused.value.extra["next_approval_id"] == str(new_card.pk)

    def test_is_refused_in_a_cancelled_run_as_a_conflict(
        self, workshop: Workshop, card: Approval
    ) -> None:
        workshop.cancel(card.run)
        with pytest.raises(AlreadyDecided) as refused:
            workshop.approve(card)
        assert refused.value.extra["approval_status"] == ApprovalStatus.CANCELLED

    def test_is_refused_as_decided_rather_than_expired_and_as_expired_rather_than_stale(
        self, workshop: Workshop
    ) -> None:
        workshop.play(asking(EFFECT, call("probe.effect", name="b")))
        decided, expired = workshop.cards(workshop.work())
        workshop.deny(decided)
        for card in (decided, expired):
            expire_card(card)
        with pytest.raises(AlreadyDecided):
            workshop.approve(decided, digest="0" * 64)
        with pytest.raises(Expired):
            workshop.approve(expired, digest="0" * 64)

    def test_is_refused_on_a_card_about_an_unknown_outcome(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.failingEffect", code="NETWORK_ERROR")))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        workshop.drive(run)
        question = workshop.card(run)
        for decide in (workshop.approve, workshop.deny):
            with pytest.raises(Conflict):
                decide(question)
        with pytest.raises(Conflict):
            workshop.edit(question, {"code": "TIMEOUT"})
        assert stays_pending(question)

    @pytest.mark.parametrize(
        ("field", "wrong"),
        [
            ("reason", {"reason": "x" * 2001}),
            ("reason", {"reason": "a\0b"}),
            ("grace_s", {"grace_s": 61}),
            ("grace_s", {"grace_s": -1}),
            ("decision_id", {"decision_id": "x" * 201}),
            ("decision_id", {"decision_id": "a\0b"}),
        ],
    )
    def test_is_refused_with_the_name_of_the_field_that_exceeds_its_limit(
        self, workshop: Workshop, card: Approval, field: str, wrong: dict[str, Any]
    ) -> None:
        for decide in (workshop.approve, workshop.deny):
            with pytest.raises(Invalid) as refused:
                decide(card, **wrong)
            assert refused.value.extra["field"] == field
        assert stays_pending(card)

    def test_is_accepted_with_a_reason_of_2000_characters(
        self, workshop: Workshop, card: Approval
    ) -> None:
        assert workshop.deny(card, "x" * 2000).status == ApprovalStatus.DENIED

    def test_is_refused_on_a_call_that_no_longer_awaits_approval(
        self, workshop: Workshop, card: Approval
    ) -> None:
        ToolCall.objects.filter(pk=card.tool_call_id).update(status=CallStatus.APPROVED)
        with pytest.raises(Conflict):
            workshop.approve(card)
        assert stays_pending(card)


class TestADestructiveCall:
    def test_requires_the_name_of_its_target_as_confirmation(self, workshop: Workshop) -> None:
        record = workshop.record(name="Acme  Corp")
        workshop.play(asking(call("data.bulkDelete", record_ids=[str(record.pk)])))
        run = workshop.work()
        card = workshop.card(run)
        assert decisions.make_confirmation_phrase(card) == "Acme Corp"
        for wrong in ("", "acme corp", "1"):
            with pytest.raises(Invalid) as refused:
                workshop.approve(card, confirm=wrong)
            assert refused.value.extra["field"] == "confirm"
        assert stays_pending(card)
        workshop.approve(card, confirm=" Acme Corp ")
        assert workshop.drive(run).status == RunStatus.SUCCEEDED
        assert not type(record).objects.filter(pk=record.pk).exists()

    def test_with_many_targets_requires_their_number(self, workshop: Workshop) -> None:
        for number in range(3):
            workshop.record(name=f"Record {number}")
        workshop.play(asking(call("data.bulkDelete", filters={"region": "EU"})))
        assert decisions.make_confirmation_phrase(workshop.card(workshop.work())) == "3"

    def test_without_a_target_requires_the_name_of_the_tool(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.doom", name="a")))
        card = workshop.card(workshop.work())
        assert decisions.make_confirmation_phrase(card) == "probe.doom"

    @pytest.mark.parametrize(
        ("name", "phrase"),
        [
            ("Doom  them\u00a0all ", "Doom them all"),
            ("Doom\u200bthem", "probe.doom"),
            (" ", "probe.doom"),
        ],
    )
    def test_is_confirmed_by_a_typable_text_if_its_tools_name_cannot_be_typed(
        self, workshop: Workshop, monkeypatch: pytest.MonkeyPatch, name: str, phrase: str
    ) -> None:
        doom = load_toolbox(workshop.organization.pk).get_tool("probe.doom")
        monkeypatch.setattr(doom, "display_name", name)
        workshop.play(asking(call("probe.doom", name="a")))
        card = workshop.card(workshop.work())
        with pytest.raises(Invalid):
            workshop.approve(card, confirm="")
        assert workshop.approve(card, confirm=phrase).status == ApprovalStatus.APPROVED

    def test_is_denied_without_confirmation(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.doom", name="a")))
        card = workshop.card(workshop.work())
        assert workshop.deny(card).status == ApprovalStatus.DENIED

    def test_needs_confirmation_unlike_a_call_of_a_lower_level(
        self, workshop: Workshop, card: Approval
    ) -> None:
        assert decisions.make_confirmation_phrase(card) is None


class TestBulkDecision:
    def test_returns_one_outcome_for_each_card_and_continues_after_a_refusal(
        self, workshop: Workshop
    ) -> None:
        workshop.play(
            asking(
                EFFECT,
                call("probe.effect", name="b"),
                call("probe.effect", name="c"),
                call("probe.doom", name="d"),
            )
        )
        run = workshop.work()
        one, two, three, doom = workshop.cards(run)
        outcomes = bulk.decide_many(
            workshop.approver,
            [
                (one.pk, "approve", decisions.Decision(one.digest)),
                (two.pk, "deny", decisions.Decision(two.digest, reason="no")),
                (three.pk, "approve", decisions.Decision("0" * 64)),
                (doom.pk, "approve", decisions.Decision(doom.digest, confirm="probe.doom")),
                (999_999_999, "deny", decisions.Decision("0" * 64)),
            ],
        )
        assert [outcome.status for outcome in outcomes] == [200, 200, 412, 422, 404]
        assert statuses(run) == ["approved", "denied", "awaiting_approval", "awaiting_approval"]

    def test_can_deny_destructive_cards(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.doom", name="d")))
        card = workshop.card(workshop.work())
        (outcome,) = bulk.decide_many(
            workshop.approver, [(card.pk, "deny", decisions.Decision(card.digest))]
        )
        assert outcome.status == 200


def test_a_card_cannot_be_decided_while_its_run_is_being_cancelled(
    workshop: Workshop, recorder: Recorder
) -> None:
    recorder.hold("slow")
    workshop.play(asking(EFFECT, call("probe.gate", name="slow")))
    run = workshop.submit()
    with workshop.driving(run):
        recorder.await_arrival("slow")
        card = workshop.card(run)
        workshop.cancel(run)
        for decide in (workshop.approve, workshop.deny):
            with pytest.raises(Conflict):
                decide(card)
        with pytest.raises(Refusal):
            workshop.edit(card, {"name": "b"})
        recorder.release("slow")
    assert again(run).status == RunStatus.CANCELLED


def test_viewers_and_operators_cannot_decide(workshop: Workshop, card: Approval) -> None:
    for role in ("viewer", "operator"):
        member = workshop.members[role]
        for decide in (workshop.approve, workshop.deny):
            with pytest.raises(Forbidden):
                decide(card, by=member)
        with pytest.raises(Forbidden):
            workshop.edit(card, {"name": "b"}, by=member)
        with pytest.raises(Forbidden):
            workshop.undo(card, by=member)
    assert stays_pending(card)


def test_a_card_expires_after_the_days_set_by_the_organization(workshop: Workshop) -> None:
    workshop.organization.card_days = 2
    workshop.organization.save()
    workshop.play(asking(EFFECT))
    card = workshop.card(workshop.work())
    assert card.expires_at - card.requested_at == timedelta(days=2)
    assert not Approval.objects.filter(
        pk=card.pk, expires_at__lte=Now() + timedelta(days=1)
    ).exists()
