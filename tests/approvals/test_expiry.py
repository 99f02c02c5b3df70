"""A card that nobody decides in time expires: the call does not run, and this is not treated as a
refusal."""

import pytest

from agents.accounts.models import AuditEntry
from agents.platform.refusals import AlreadyDecided, Expired
from agents.runs.models import ApprovalStatus, CallStatus, RunStatus
from agents.worker.sweeper import sweep_once
from tests.model_server import Call, ModelServer, Response
from tests.recorder import Recorder
from tests.workshop import (
    Workshop,
    again,
    asking,
    call,
    calls,
    error_code,
    expire_card,
    payloads,
    statuses,
)

pytestmark = pytest.mark.django_db(transaction=True)


class TestAnExpiredCard:
    def test_ends_its_call_and_resumes_the_run(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.effect", name="a")))
        run = workshop.work()
        card = workshop.card(run)
        expire_card(card)
        sweep_once()
        card.refresh_from_db()
        assert (card.status, card.decided_by) == (ApprovalStatus.EXPIRED, None)
        (row,) = calls(run)
        assert (row.status, error_code(row)) == (CallStatus.EXPIRED, "APPROVAL_EXPIRED")
        assert again(run).status == RunStatus.QUEUED
        assert workshop.drive(run).status == RunStatus.SUCCEEDED

    def test_is_published_and_audited(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.effect", name="a")))
        run = workshop.work()
        expire_card(workshop.card(run))
        sweep_once()
        (line,) = payloads(run, "approval_decided")
        assert (line["status"], line["decided_by"], line["next_approval_id"]) == (
            "expired",
            "",
            None,
        )
        assert AuditEntry.objects.get(action="card_expired").actor == "gadget"

    def test_tells_the_model_that_nobody_refused(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        model.script(
            Response(calls=(Call("probe.effect", {"name": "a"}),)), Response(text="Later, then.")
        )
        run = workshop.work()
        expire_card(workshop.card(run))
        sweep_once()
        workshop.drive(run)
        content = model.requests[-1]["messages"][-1]["content"]
        assert "TOOL ERROR: APPROVAL_EXPIRED" in content
        assert "not a refusal" in content

    def test_can_no_longer_be_decided(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.effect", name="a")))
        card = workshop.card(workshop.work())
        expire_card(card)
        with pytest.raises(Expired):
            workshop.approve(card)
        sweep_once()
        with pytest.raises(Expired):
            workshop.approve(card)
        with pytest.raises(Expired):
            workshop.deny(card)

    def test_leaves_its_siblings_waiting(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.effect", name="a"), call("probe.effect", name="b")))
        run = workshop.work()
        expire_card(workshop.cards(run)[1])
        sweep_once()
        assert again(run).status == RunStatus.WAITING
        assert statuses(run) == [CallStatus.AWAITING_APPROVAL, CallStatus.EXPIRED]


class TestOtherCards:
    def test_stay_open_before_their_expiry(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.effect", name="a")))
        run = workshop.work()
        assert sweep_once() == 0
        assert len(workshop.cards(run)) == 1

    def test_do_not_expire_once_they_are_decided(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        workshop.play(asking(call("probe.effect", name="a"), call("probe.effect", name="b")))
        run = workshop.work()
        approved, denied = workshop.cards(run)
        workshop.approve(approved)
        workshop.deny(denied)
        for card in (approved, denied):
            expire_card(card)
        sweep_once()
        run = workshop.drive(run)
        assert statuses(run) == [CallStatus.SUCCEEDED, CallStatus.DENIED]
        with pytest.raises(AlreadyDecided):
            workshop.deny(denied)

    def test_about_unknown_outcomes_never_expire(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.failingEffect", code="NETWORK_ERROR")))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        run = workshop.drive(run)
        expire_card(workshop.card(run))
        assert sweep_once() == 0
        assert again(run).status == RunStatus.NEEDS_ATTENTION
