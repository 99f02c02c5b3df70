"""A write with an unknown outcome needs attention: the engine never repeats the write, and a person
reports its outcome."""

import pytest

from agents.accounts.models import AuditEntry
from agents.approvals import resolutions
from agents.platform.refusals import Conflict, Forbidden, Invalid, NotFound
from agents.runs.models import Approval, ApprovalKind, ApprovalStatus, CallStatus, Run, RunStatus
from agents.worker.sweeper import sweep_once
from tests.model_server import Call, ModelServer, Response
from tests.workshop import (
    Workshop,
    again,
    asking,
    build_workshop,
    call,
    calls,
    error_code,
    event_types,
    payloads,
    statuses,
)

pytestmark = pytest.mark.django_db(transaction=True)


def approve_and_drive(workshop: Workshop, *asked: dict[str, object]) -> Run:
    workshop.play(asking(*asked))
    run = workshop.work()
    for card in workshop.cards(run):
        workshop.approve(card)
    return workshop.drive(run)


@pytest.fixture
def lost(workshop: Workshop) -> Run:
    """A run with one call whose outcome is unknown."""
    return approve_and_drive(workshop, call("probe.failingEffect", code="NETWORK_ERROR"))


class TestAFailedWrite:
    @pytest.mark.parametrize(
        "code", ["TIMEOUT", "NETWORK_ERROR", "TOOL_EXECUTION_FAILED", "OUTCOME_UNKNOWN", ""]
    )
    def test_without_a_definite_error_has_an_unknown_outcome(
        self, workshop: Workshop, code: str
    ) -> None:
        run = approve_and_drive(workshop, call("probe.failingEffect", code=code))
        assert run.status == RunStatus.NEEDS_ATTENTION
        assert statuses(run) == [CallStatus.OUTCOME_UNKNOWN]

    @pytest.mark.parametrize(
        "code", ["NOT_FOUND", "UNAUTHORIZED", "RATE_LIMIT_EXCEEDED", "OPERATION_FAILED"]
    )
    def test_with_a_definite_error_code_is_recorded_as_failed(
        self, workshop: Workshop, code: str
    ) -> None:
        run = approve_and_drive(workshop, call("probe.failingEffect", code=code))
        (row,) = calls(run)
        assert (run.status, row.status, error_code(row)) == (
            RunStatus.SUCCEEDED,
            CallStatus.FAILED,
            code,
        )

    def test_that_was_not_attempted_is_recorded_as_failed(self, workshop: Workshop) -> None:
        run = approve_and_drive(
            workshop, call("probe.failingEffect", code="NETWORK_ERROR", attempted=False)
        )
        assert (run.status, statuses(run)) == (RunStatus.SUCCEEDED, [CallStatus.FAILED])

    def test_does_not_show_its_exceptions_text(self, workshop: Workshop) -> None:
        run = approve_and_drive(workshop, call("probe.failingEffect"))
        shown_texts = [*payloads(run, "tool_result"), workshop.card(run).why]
        assert "hunter2" not in str(shown_texts)


class TestAnApprovedRead:
    def test_from_a_host_that_is_not_allowed_can_have_an_unknown_outcome_like_a_write(
        self, workshop: Workshop
    ) -> None:
        workshop.play(asking(call("probe.visit", host="example.org", code="NETWORK_ERROR")))
        run = workshop.work()
        (card,) = workshop.cards(run)
        assert "example.org" in card.why
        workshop.approve(card)
        run = workshop.drive(run)
        assert (run.status, statuses(run)) == (
            RunStatus.NEEDS_ATTENTION,
            [CallStatus.OUTCOME_UNKNOWN],
        )
        workshop.resolve(calls(run)[0], "not_done")

    def test_that_succeeds_lets_the_run_succeed(self, workshop: Workshop) -> None:
        run = approve_and_drive(workshop, call("probe.visit", host="example.org"))
        assert (run.status, statuses(run)) == (RunStatus.SUCCEEDED, [CallStatus.SUCCEEDED])


class TestAnUnknownOutcome:
    def test_is_shown_on_a_separate_card(self, workshop: Workshop, lost: Run) -> None:
        (card,) = workshop.cards(lost)
        approved = Approval.objects.get(run=lost, kind=ApprovalKind.APPROVAL)
        assert (card.kind, card.sequence) == (ApprovalKind.UNKNOWN, 2)
        assert approved.status == ApprovalStatus.CONSUMED
        assert card.sentence == f"We don’t know whether this happened: {approved.sentence}"
        assert card.preview == approved.preview

    def test_is_published_and_audited(self, workshop: Workshop, lost: Run) -> None:
        assert event_types(lost)[-2:] == ["tool_result", "run_needs_attention"]
        (result,) = payloads(lost, "tool_result")
        assert result["result"]["error"]["code"] == "OUTCOME_UNKNOWN"
        (event,) = payloads(lost, "run_needs_attention")
        assert event["approval_ids"] == [str(workshop.card(lost).pk)]
        assert AuditEntry.objects.filter(action="outcome_unknown").count() == 1

    def test_is_never_repeated_automatically(self, workshop: Workshop, lost: Run) -> None:
        for _ in range(3):
            sweep_once()
            workshop.drive(lost)
        assert again(lost).status == RunStatus.NEEDS_ATTENTION
        assert calls(lost)[0].attempts == 1
        assert event_types(lost).count("tool_start") == 1

    def test_lets_approved_sibling_calls_run(self, workshop: Workshop) -> None:
        record = workshop.record()
        run = approve_and_drive(
            workshop,
            call("probe.failingEffect", code="NETWORK_ERROR"),
            call("probe.rename", record_id=record.pk, to="New"),
        )
        assert statuses(run) == [CallStatus.OUTCOME_UNKNOWN, CallStatus.SUCCEEDED]
        assert run.status == RunStatus.NEEDS_ATTENTION

    def test_does_not_occupy_a_worker_and_leaves_messages_waiting(
        self, workshop: Workshop, lost: Run
    ) -> None:
        assert (lost.lease_owner, lost.lease_expires_at) == ("", None)
        assert workshop.say(lost).status == RunStatus.NEEDS_ATTENTION

    def test_leaves_the_run_waiting_after_its_resolution_if_a_card_is_open(
        self, workshop: Workshop
    ) -> None:
        workshop.play(
            asking(
                call("probe.failingEffect", code="NETWORK_ERROR"), call("probe.effect", name="a")
            )
        )
        run = workshop.work()
        workshop.approve(workshop.card(run))
        run = workshop.drive(run)
        assert run.status == RunStatus.NEEDS_ATTENTION
        workshop.resolve(calls(run)[0])
        assert again(run).status == RunStatus.WAITING


class TestResolving:
    def test_as_succeeded_continues_with_the_reason_given(
        self, workshop: Workshop, lost: Run
    ) -> None:
        done = workshop.resolve(calls(lost)[0], "succeeded", "I see it in the ledger.")
        assert done.status == CallStatus.SUCCEEDED
        assert "I see it in the ledger." in done.content
        run = workshop.drive(lost)
        assert run.status == RunStatus.SUCCEEDED

    def test_as_not_done_fails_the_call_and_tells_the_model_that_it_may_ask_again(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        params = {"code": "NETWORK_ERROR"}
        model.script(
            Response(calls=(Call("probe.failingEffect", params),)), Response(text="I see.")
        )
        run = workshop.work()
        workshop.approve(workshop.card(run))
        run = workshop.drive(run)
        workshop.resolve(calls(run)[0], "not_done", "Nothing arrived.")
        assert workshop.drive(run).status == RunStatus.SUCCEEDED
        content = model.requests[-1]["messages"][-1]["content"]
        assert "TOOL ERROR: OUTCOME_UNKNOWN" in content
        assert "Nothing arrived." in content
        assert "You may ask for it again" in content

    def test_is_published_and_audited_and_closes_the_card(
        self, workshop: Workshop, lost: Run
    ) -> None:
        row = workshop.resolve(calls(lost)[0], "not_done", "No.")
        events = payloads(lost, "call_resolved")
        assert events == [
            {"call_id": str(row.pk), "outcome": "not_done", "by": "acme-approver", "reason": "No."}
        ]
        assert AuditEntry.objects.get(action="outcome_resolved").actor == "user:acme-approver"
        assert not workshop.cards(lost)
        assert again(lost).status == RunStatus.QUEUED

    def test_twice_is_refused_as_a_conflict(self, workshop: Workshop, lost: Run) -> None:
        row = workshop.resolve(calls(lost)[0], "succeeded")
        with pytest.raises(Conflict):
            workshop.resolve(row, "not_done")
        assert calls(lost)[0].status == CallStatus.SUCCEEDED

    def test_a_call_with_a_known_outcome_is_refused_as_a_conflict(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.sleep", ms=0)))
        run = workshop.work()
        with pytest.raises(Conflict):
            workshop.resolve(calls(run)[0])

    @pytest.mark.parametrize(
        ("field", "outcome", "reason"),
        [
            ("outcome", "maybe", "r"),
            ("reason", "succeeded", " "),
            ("reason", "succeeded", "x" * 2001),
            ("reason", "succeeded", "a\0b"),
        ],
    )
    def test_reports_an_invalid_field(
        self, workshop: Workshop, lost: Run, field: str, outcome: str, reason: str
    ) -> None:
        with pytest.raises(Invalid) as refused:
            workshop.resolve(calls(lost)[0], outcome, reason)
        assert refused.value.extra["field"] == field
        assert statuses(lost) == [CallStatus.OUTCOME_UNKNOWN]

    def test_is_limited_to_approvers_of_the_same_organization(
        self, workshop: Workshop, lost: Run
    ) -> None:
        for role in ("viewer", "operator"):
            with pytest.raises(Forbidden):
                resolutions.resolve(workshop.members[role], calls(lost)[0].pk, "succeeded", "r")
        with pytest.raises(NotFound):
            resolutions.resolve(build_workshop("other").admin, calls(lost)[0].pk, "succeeded", "r")
        assert statuses(lost) == [CallStatus.OUTCOME_UNKNOWN]
