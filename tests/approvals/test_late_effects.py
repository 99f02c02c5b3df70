"""A call that a person marked as not done turns out to have happened: people see this, but the
ended call and its run do not change otherwise."""

import pytest

from agents.accounts.models import AuditEntry, Membership
from agents.approvals import resolutions
from agents.approvals.own_cards import count_pending_cards
from agents.platform.refusals import Conflict, Forbidden, Invalid, NotFound
from agents.runs.models import (
    Approval,
    ApprovalKind,
    ApprovalStatus,
    CallStatus,
    Run,
    RunStatus,
    ToolCall,
)
from tests.recorder import Recorder
from tests.workshop import (
    Workshop,
    again,
    asking,
    build_workshop,
    call,
    calls,
    event_types,
    eventually,
    payloads,
    statuses,
)

pytestmark = pytest.mark.django_db(transaction=True)


def give_up(workshop: Workshop, recorder: Recorder, times: int = 1) -> Run:
    """Return a run whose write took effect but did not reply, and was therefore marked as not done.

    Args:
        times: the number of times that the model requests the same write.
    """
    recorder.hold("slow")
    workshop.play(*[asking(call("probe.shortEffect", name="slow"))] * times)
    run = workshop.work()
    workshop.approve(workshop.card(run))
    assert workshop.drive(run).status == RunStatus.NEEDS_ATTENTION
    workshop.resolve(calls(run)[0], "not_done", "I did not see it.")
    return workshop.drive(run)


def report(recorder: Recorder, run: Run) -> ToolCall:
    """Let the write reply; return the run's first call once the reply is recorded."""
    first = calls(run)[0]
    recorder.release("slow")
    reports = AuditEntry.objects.filter(action="late_report", subject=f"tool_call:{first.pk}")
    eventually(lambda: reports.all().exists())
    return calls(run)[0]


def open_card(run: Run) -> Approval:
    return Approval.objects.get(run=run, kind=ApprovalKind.UNKNOWN, status=ApprovalStatus.PENDING)


class TestALateEffect:
    def test_is_recorded_on_its_call_without_any_other_change(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        ended = give_up(workshop, recorder)
        (before,) = calls(ended)
        late = report(recorder, ended)
        assert late.late_effect is not None
        assert late.late_effect["result"]["summary"] == "Did slow"
        assert late.late_effect["done_again_by"] == []
        kept = [
            field.attname
            for field in ToolCall._meta.concrete_fields
            if field.attname != "late_effect"
        ]
        assert [getattr(late, name) for name in kept] == [getattr(before, name) for name in kept]
        run = again(ended)
        assert (run.status, run.answer, run.finished_at) == (
            ended.status,
            ended.answer,
            ended.finished_at,
        )
        assert event_types(run)[-1] == "late_effect"

    def test_adds_a_card_to_the_inbox(self, workshop: Workshop, recorder: Recorder) -> None:
        run = give_up(workshop, recorder)
        assert count_pending_cards(workshop.organization.pk) == 0
        report(recorder, run)
        card = open_card(run)
        assert count_pending_cards(workshop.organization.pk) == 1
        assert card.sentence.startswith("This happened after all: ")
        assert "Did slow" in card.why
        assert "It is not known" not in card.sentence
        assert payloads(run, "late_effect")[0]["approval_id"] == str(card.pk)
        assert AuditEntry.objects.get(action="late_effect").payload["summary"] == "Did slow"

    def test_does_not_change_a_waiting_run(self, workshop: Workshop, recorder: Recorder) -> None:
        run = give_up(workshop, recorder, times=2)
        assert run.status == RunStatus.WAITING
        report(recorder, run)
        assert again(run).status == RunStatus.WAITING
        assert statuses(run) == [CallStatus.FAILED, CallStatus.AWAITING_APPROVAL]

    def test_is_not_recorded_if_a_person_had_reported_success(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        recorder.hold("slow")
        workshop.play(asking(call("probe.shortEffect", name="slow")))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        workshop.drive(run)
        workshop.resolve(calls(run)[0], "succeeded")
        assert report(recorder, run).late_effect is None
        assert count_pending_cards(workshop.organization.pk) == 0


class TestASecondEffect:
    """A person said "not done", and the model requested the call again, which can cause a second
    effect."""

    def test_is_reported_on_the_card_and_on_the_call(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        run = give_up(workshop, recorder, times=2)
        workshop.approve(workshop.card(run))
        workshop.drive(run)
        second = calls(run)[1]
        assert second.status == CallStatus.OUTCOME_UNKNOWN
        workshop.resolve(second, "succeeded")
        late = report(recorder, run)
        assert late.late_effect is not None
        assert late.late_effect["done_again_by"] == [str(second.pk)]
        assert f"See call {second.pk}." in open_card(run).why
        assert sum(recorder.effects.values()) == 2

    @pytest.mark.parametrize("is_approved", [True, False])
    def test_does_not_start_before_a_person_knows_of_the_first_effect(
        self, workshop: Workshop, recorder: Recorder, is_approved: bool
    ) -> None:
        """When the second card was shown, the first call was still recorded as not done, so the
        second call needs a new approval."""
        run = give_up(workshop, recorder, times=2)
        if is_approved:
            workshop.approve(workshop.card(run))
        report(recorder, run)
        if not is_approved:
            (card,) = [each for each in workshop.cards(run) if each.kind == ApprovalKind.APPROVAL]
            workshop.approve(card)
        assert workshop.drive(run).status == RunStatus.WAITING
        assert sum(recorder.effects.values()) == 1
        (asked_again,) = [
            each for each in workshop.cards(run) if each.kind == ApprovalKind.APPROVAL
        ]
        assert "would repeat it" in asked_again.why
        workshop.approve(asked_again)
        workshop.drive(run)
        assert sum(recorder.effects.values()) == 2


class TestAcknowledging:
    @pytest.fixture
    def late(self, workshop: Workshop, recorder: Recorder) -> ToolCall:
        return report(recorder, give_up(workshop, recorder))

    def test_closes_the_card_and_records_the_person_and_the_reason(
        self, workshop: Workshop, late: ToolCall
    ) -> None:
        card = open_card(late.run)
        workshop.resolve(late, resolutions.ACKNOWLEDGED, "I took it back by hand.")
        card.refresh_from_db()
        assert (card.status, card.decided_by, card.reason) == (
            ApprovalStatus.ANSWERED,
            workshop.approver.user,
            "I took it back by hand.",
        )
        assert count_pending_cards(workshop.organization.pk) == 0
        assert payloads(late.run, "call_resolved")[-1]["outcome"] == "acknowledged"
        assert (
            AuditEntry.objects.get(action="late_effect_acknowledged").payload["reason"]
            == "I took it back by hand."
        )
        assert calls(late.run) == [late]
        with pytest.raises(Conflict, match="no late effect"):
            workshop.resolve(late, resolutions.ACKNOWLEDGED)

    @pytest.mark.parametrize("outcome", ["succeeded", "not_done"])
    def test_is_the_only_possible_resolution(
        self, workshop: Workshop, late: ToolCall, outcome: str
    ) -> None:
        with pytest.raises(Conflict):
            workshop.resolve(late, outcome)
        assert open_card(late.run)

    def test_requires_a_reason_and_an_approver_of_the_organization(
        self, workshop: Workshop, late: ToolCall
    ) -> None:
        refused: tuple[tuple[type[Exception], Membership, str], ...] = (
            (Invalid, workshop.approver, " "),
            (Forbidden, workshop.operator, "I looked."),
            (NotFound, build_workshop("other").approver, "I looked."),
        )
        for refusal, member, reason in refused:
            with pytest.raises(refusal):
                resolutions.resolve(member, late.pk, resolutions.ACKNOWLEDGED, reason)
        assert open_card(late.run)

    def test_does_not_resolve_an_unknown_outcome(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.failingEffect", code="NETWORK_ERROR")))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        workshop.drive(run)
        with pytest.raises(Conflict, match="no late effect"):
            workshop.resolve(calls(run)[0], resolutions.ACKNOWLEDGED)
        assert statuses(run) == [CallStatus.OUTCOME_UNKNOWN]
