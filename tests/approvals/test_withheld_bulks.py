"""Undoing a bulk approval stores one row that withholds the whole bulk: its remaining calls do not
start, and its cards are renewed afterwards one by one."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from agents.accounts.models import AuditEntry
from agents.approvals import bulk, decisions
from agents.approvals.withheld_bulks import read_state, renew_some, withhold
from agents.platform import notify
from agents.platform.refusals import Conflict, Forbidden, NotFound
from agents.runs.models import Approval, ApprovalStatus, CallStatus, Run, RunStatus, WithheldBulk
from agents.runs.queries import due
from agents.worker.sweeper import sweep_once
from tests.features import feature
from tests.queued_jobs import take_jobs
from tests.recorder import Recorder
from tests.workshop import Workshop, again, asking, call, statuses

pytestmark = pytest.mark.django_db(transaction=True)


def approve_together(workshop: Workshop, count: int = 4, grace_s: int = 0) -> tuple[Run, UUID]:
    workshop.play(asking(*[call("probe.effect", name=str(number)) for number in range(count)]))
    run, bulk_id = workshop.work(), uuid4()
    items = [
        (card.pk, "approve", decisions.Decision(digest=card.digest, grace_s=grace_s))
        for card in workshop.cards(run)
    ]
    assert {one.status for one in bulk.decide_many(workshop.approver, items, bulk_id)} == {200}
    return run, bulk_id


def renew_all() -> None:
    while renew_some():
        pass


class TestTheRowOfAWithheldBulk:
    @feature(
        "The inbox",
        "After a bulk approval is undone, none of its remaining calls starts, and its cards come back one by one",
        "agents/approvals/withheld_bulks.py",
    )
    def test_prevents_the_start_of_its_calls(self, workshop: Workshop, recorder: Recorder) -> None:
        run, bulk_id = approve_together(workshop)
        approvals = list(Approval.objects.order_by("pk").values())
        withhold(workshop.approver, bulk_id)
        assert list(Approval.objects.order_by("pk").values()) == approvals, "no approval is touched"
        run = workshop.drive(run)
        assert (run.status, set(statuses(run))) == (RunStatus.WAITING, {CallStatus.APPROVED})
        assert not recorder.effects

    def test_prevents_the_sweeper_from_resuming_its_runs(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        run, bulk_id = approve_together(workshop)
        withhold(workshop.approver, bulk_id)
        assert workshop.drive(run).status == RunStatus.WAITING
        assert due.STARTABLE_RUNS.fetch_all() == []
        WithheldBulk.objects.all().delete()
        assert [row.pk for row in due.STARTABLE_RUNS.fetch_all()] == [run.pk], "control"

    def test_lets_calls_of_other_approvals_start(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        """Two other bulks were undone: another bulk by the same person, and a bulk with the same id
        by another person."""
        run, bulk_id = approve_together(workshop)
        WithheldBulk.objects.create(
            organization=workshop.organization, user=workshop.approver.user, bulk_id=uuid4()
        )
        WithheldBulk.objects.create(
            organization=workshop.organization, user=workshop.admin.user, bulk_id=bulk_id
        )
        assert workshop.drive(run).status == RunStatus.SUCCEEDED
        assert len(recorder.effects) == 4

    def test_does_not_block_another_approval_in_the_same_run(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        workshop.play(asking(*[call("probe.effect", name=str(number)) for number in range(3)]))
        run, bulk_id = workshop.work(), uuid4()
        *together, alone = workshop.cards(run)
        items = [(card.pk, "approve", decisions.Decision(digest=card.digest)) for card in together]
        bulk.decide_many(workshop.approver, items, bulk_id)
        withhold(workshop.approver, bulk_id)
        workshop.approve(alone)
        assert statuses(workshop.drive(run)) == [
            CallStatus.APPROVED,
            CallStatus.APPROVED,
            CallStatus.SUCCEEDED,
        ]
        assert len(recorder.effects) == 1

    def test_is_written_only_once_and_only_by_the_approver(self, workshop: Workshop) -> None:
        _, bulk_id = approve_together(workshop, grace_s=60)
        for member, refusal in ((workshop.operator, Forbidden), (workshop.admin, NotFound)):
            with pytest.raises(refusal):
                withhold(member, bulk_id)
        with pytest.raises(NotFound):
            read_state(workshop.approver, bulk_id)
        for _ in range(2):
            withhold(workshop.approver, bulk_id)
        assert (
            WithheldBulk.objects.count()
            == AuditEntry.objects.filter(action="bulk_undone").count()
            == 1
        )

    def test_asks_the_workers_to_renew_the_cards(self, workshop: Workshop, redis_url: str) -> None:
        take_jobs(redis_url)  # discard jobs of earlier tests
        _, bulk_id = approve_together(workshop, grace_s=60)
        assert notify.RENEWAL_JOB not in {job.task for job in take_jobs(redis_url)}, "control"
        withhold(workshop.approver, bulk_id)
        assert notify.RENEWAL_JOB in {job.task for job in take_jobs(redis_url)}

    def test_refuses_further_decisions_of_the_bulk(self, workshop: Workshop) -> None:
        run, bulk_id = approve_together(workshop, grace_s=60)
        withhold(workshop.approver, bulk_id)
        renew_all()
        (card, *_) = workshop.cards(run)
        with pytest.raises(Conflict, match="was undone"):
            bulk.decide_many(
                workshop.approver,
                [(card.pk, "approve", decisions.Decision(digest=card.digest))],
                bulk_id,
            )


class TestRenewingAWithheldBulk:
    def test_restores_each_card_and_counts_the_started_calls(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        run, bulk_id = approve_together(workshop, grace_s=60)
        first = Approval.objects.filter(run=run).order_by("pk").first()
        assert first is not None
        Approval.objects.filter(pk=first.pk).update(start_after=first.requested_at)
        sweep_once()
        run = workshop.drive(run)
        assert statuses(run).count(CallStatus.SUCCEEDED) == 1
        told = withhold(workshop.approver, bulk_id)
        assert (told.cards, told.started, told.left) == (4, 1, 3)
        renew_all()
        told = read_state(workshop.approver, bulk_id)
        assert (told.cards, told.started, told.left, told.waiting_again) == (4, 1, 0, 3)
        assert told.text == "1 had already started. 3 are waiting again."
        cards = workshop.cards(run)
        assert [card.sequence for card in cards] == [2, 2, 2]
        assert all("acme-approver undid the approval." in card.why for card in cards)
        assert again(run).status == RunStatus.WAITING
        assert AuditEntry.objects.filter(action="decision_undone").count() == 3

    def test_restores_the_card_of_a_late_approval_in_the_bulk(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        run, bulk_id = approve_together(workshop, grace_s=60)
        withhold(workshop.approver, bulk_id)
        renew_all()
        (card, *_) = workshop.cards(run)
        late = decisions.Decision(digest=card.digest, bulk_id=bulk_id)
        decisions.approve(workshop.approver, card.pk, late)
        workshop.drive(run)
        assert not recorder.effects
        assert renew_some()
        assert workshop.cards(run)[-1].sequence == 3

    def test_allows_a_new_approval_of_the_cards(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        run, bulk_id = approve_together(workshop)
        withhold(workshop.approver, bulk_id)
        renew_all()
        for card in workshop.cards(run):
            workshop.approve(card)
        assert workshop.drive(run).status == RunStatus.SUCCEEDED
        assert len(recorder.effects) == 4
        assert Approval.objects.filter(status=ApprovalStatus.CONSUMED).count() == 4
