"""A call that a standing grant approved never overtakes an earlier write of its pass that still
waits; if that write has no effect, a person is asked."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models.functions import Now
from django.test import Client
from pytest_django import Settings

from agents.approvals import decisions
from agents.approvals.dismissals import dismiss
from agents.employees.models import Grant
from agents.runs.models import Approval, ApprovalStatus, CallStatus, Run, RunStatus
from agents.runs.queries.due import STARTABLE_RUNS
from agents.standing_grants import making
from agents.worker.sweeper import sweep_once
from gadget_site.backup.restored import recover_runs
from tests import composed_probes
from tests.recorder import Recorder
from tests.standing_grants.granting import (
    answered,
    equals,
    grant,
)
from tests.workshop import (
    Workshop,
    again,
    asking,
    call,
    calls,
    die_while_executing,
    expire_card,
    make_due,
    statuses,
)
from tests.workshop.invariants import assert_invariants
from tools.contract import ErrorCode
from tools.office.records.models import Record
from tools.toolbox.conditions import Condition, Otherwise, Rule

pytestmark = pytest.mark.django_db(transaction=True)

FIRST, SECOND = call("probe.effect", name="first"), call("probe.effect", name="second")
PLANNED = "This was planned after another call, which"
WAITS = [CallStatus.AWAITING_APPROVAL, CallStatus.APPROVED]


def grant_second(workshop: Workshop) -> None:
    grant(workshop, "probe.effect", equals("name", "second"))


@pytest.fixture
def run(workshop: Workshop, recorder: Recorder) -> Run:
    """A run whose first write waits for a person; a standing grant approved the second one."""
    grant_second(workshop)
    workshop.play(asking(FIRST, SECOND))
    return workshop.work()


def find_held(run: Run) -> Approval:
    (card,) = answered(run)
    return card


def assert_waits_for(run: Run, index: int) -> None:
    """Check that the preapproved call waits for the call with this index, and does not start."""
    card = find_held(run)
    assert (card.status, card.after_id) == (ApprovalStatus.APPROVED, calls(run)[index].pk)
    assert again(run).status in (RunStatus.WAITING, RunStatus.NEEDS_ATTENTION)
    assert_invariants()


def assert_a_person_is_asked(run: Run, why: str) -> None:
    assert calls(run)[-1].status == CallStatus.AWAITING_APPROVAL
    assert find_held(run).status == ApprovalStatus.SUPERSEDED
    card = Approval.objects.get(tool_call=calls(run)[-1], status=ApprovalStatus.PENDING)
    assert card.why.startswith(f"{PLANNED} {why}."), card.why
    assert_invariants()


class TestAPreapprovedCall:
    def test_waits_for_an_earlier_write_of_its_pass(
        self, workshop: Workshop, recorder: Recorder, run: Run
    ) -> None:
        assert statuses(run) == WAITS
        assert_waits_for(run, 0)
        assert not recorder.effects

    def test_starts_once_the_earlier_write_has_succeeded(
        self, workshop: Workshop, recorder: Recorder, run: Run
    ) -> None:
        workshop.approve(workshop.card(run))
        run = workshop.drive(run)
        first, second = calls(run)
        assert statuses(run) == [CallStatus.SUCCEEDED] * 2
        assert first.finished_at is not None
        assert second.started_at is not None
        assert first.finished_at <= second.started_at
        assert (find_held(run).status, find_held(run).after_id) == (ApprovalStatus.CONSUMED, None)
        assert not workshop.cards(run)

    def test_starts_before_a_later_write_that_waits(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        grant_second(workshop)
        workshop.play(asking(SECOND, FIRST))
        run = workshop.work()
        assert statuses(run) == [CallStatus.SUCCEEDED, CallStatus.AWAITING_APPROVAL]

    def test_starts_after_a_read_that_failed(self, workshop: Workshop, recorder: Recorder) -> None:
        grant_second(workshop)
        workshop.play(asking(call("probe.hang", name="a"), SECOND))
        assert statuses(workshop.work()) == [CallStatus.FAILED, CallStatus.SUCCEEDED]

    def test_starts_in_a_later_pass_even_if_a_write_of_an_earlier_pass_was_denied(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        grant_second(workshop)
        workshop.play(asking(FIRST), asking(SECOND))
        run = workshop.work()
        workshop.deny(workshop.card(run))
        assert statuses(workshop.drive(run)) == [CallStatus.DENIED, CallStatus.SUCCEEDED]

    def test_waits_through_the_grace_of_an_earlier_write(
        self, workshop: Workshop, recorder: Recorder, run: Run
    ) -> None:
        workshop.approve(workshop.card(run), grace_s=30)
        assert workshop.drive(run).status == RunStatus.WAITING
        assert_waits_for(run, 0)
        make_due(run)
        sweep_once()
        assert statuses(workshop.drive(run)) == [CallStatus.SUCCEEDED] * 2

    def test_waits_while_the_outcome_of_an_earlier_write_is_unknown(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        grant_second(workshop)
        recorder.hold("slow")
        workshop.play(asking(call("probe.shortEffect", name="slow"), SECOND))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        run = workshop.drive(run)
        assert statuses(run) == [CallStatus.OUTCOME_UNKNOWN, CallStatus.APPROVED]
        assert_waits_for(run, 0)
        workshop.resolve(calls(run)[0], "succeeded")
        assert statuses(workshop.drive(run)) == [CallStatus.SUCCEEDED] * 2
        recorder.release("slow")

    def test_waits_for_each_of_several_earlier_writes(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        grant_second(workshop)
        workshop.play(asking(FIRST, call("probe.effect", name="other"), SECOND))
        run = workshop.work()
        first, other = workshop.cards(run)
        workshop.approve(other)
        run = workshop.drive(run)
        assert_waits_for(run, 0)
        workshop.approve(first)
        assert statuses(workshop.drive(run)) == [CallStatus.SUCCEEDED] * 3

    def test_waits_for_the_next_earlier_write_after_the_first(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        grant_second(workshop)
        workshop.play(asking(FIRST, call("probe.effect", name="other"), SECOND))
        run = workshop.work()
        first, other = workshop.cards(run)
        workshop.approve(first)
        run = workshop.drive(run)
        assert_waits_for(run, 1)
        workshop.approve(other)
        assert statuses(workshop.drive(run)) == [CallStatus.SUCCEEDED] * 3


def deny(workshop: Workshop, run: Run) -> None:
    workshop.deny(workshop.card(run))


def expire(workshop: Workshop, run: Run) -> None:
    card = workshop.card(run)
    expire_card(card)
    decisions.expire(card.pk)


def refuse_at_the_start(workshop: Workshop, run: Run) -> None:
    """Forbid the approved write before it starts."""
    workshop.approve(workshop.card(run), grace_s=30)
    never = Condition("name", Rule.EQUALS, "second", Otherwise.FORBID)
    Grant.objects.filter(tool="probe.effect").update(conditions=[never.as_json()])
    make_due(run)
    sweep_once()


@pytest.mark.parametrize(
    ("end", "why"),
    [(deny, "was denied"), (expire, "expired"), (refuse_at_the_start, "was refused")],
)
def test_a_person_is_asked_if_the_earlier_write_has_no_effect(
    workshop: Workshop,
    recorder: Recorder,
    run: Run,
    end: Callable[[Workshop, Run], None],
    why: str,
) -> None:
    end(workshop, run)
    run = workshop.drive(run)
    assert_a_person_is_asked(run, why)
    assert not recorder.effects
    workshop.approve(workshop.card(run))
    assert statuses(workshop.drive(run))[-1] == CallStatus.SUCCEEDED
    assert list(recorder.effects.values()) == [1]


def test_a_person_is_asked_if_the_earlier_write_failed(
    workshop: Workshop, recorder: Recorder
) -> None:
    grant_second(workshop)
    recorder.hold("slow")
    workshop.play(asking(call("probe.shortEffect", name="slow"), SECOND))
    run = workshop.work()
    workshop.approve(workshop.card(run))
    run = workshop.drive(run)
    workshop.resolve(calls(run)[0], "not_done")
    recorder.release("slow")
    assert_a_person_is_asked(workshop.drive(run), "failed")


def test_a_person_is_asked_immediately_if_one_of_several_earlier_writes_is_denied(
    workshop: Workshop, recorder: Recorder
) -> None:
    grant_second(workshop)
    workshop.play(asking(FIRST, call("probe.effect", name="other"), SECOND))
    run = workshop.work()
    workshop.deny(workshop.card(run))
    run = workshop.drive(run)
    assert statuses(run) == [CallStatus.DENIED, *[CallStatus.AWAITING_APPROVAL] * 2]


@pytest.mark.parametrize("reason", ["denied", "invalid", "impossible"])
def test_a_person_is_asked_if_the_earlier_write_was_refused_immediately(
    workshop: Workshop, recorder: Recorder, settings: Settings, tmp_path: Path, reason: str
) -> None:
    """The employee requested both calls in one pass, so it did not know of the refusal."""
    grant_second(workshop)
    if reason == "invalid":
        workshop.play(asking(call("probe.effect"), SECOND))
        run = workshop.work()
        why = "was refused"
    elif reason == "impossible":
        settings.GADGET_FILES_DIR = tmp_path
        (tmp_path / str(workshop.organization.pk) / "reports").mkdir(parents=True)
        Grant.objects.create(employee=workshop.employee, tool="files.write")
        workshop.play(asking(call("files.write", path="reports", text="x"), SECOND))
        run = workshop.work()
        assert (calls(run)[0].result or {})["error"]["code"] == ErrorCode.INVALID_OPERATION
        why = "was refused"
    else:
        workshop.play(asking(FIRST), asking(FIRST, SECOND))
        run = workshop.work()
        workshop.deny(workshop.card(run))
        run = workshop.drive(run)
        why = "was denied"
    assert_a_person_is_asked(run, why)


def test_an_earlier_write_that_was_already_done_leaves_the_call_to_the_grant(
    workshop: Workshop, recorder: Recorder
) -> None:
    grant_second(workshop)
    record = workshop.record(status="active")
    same = call("data.updateRecord", record_id=str(record.pk), changes={"status": "active"})
    workshop.play(asking(same, SECOND))
    assert statuses(workshop.work()) == [CallStatus.REJECTED, CallStatus.SUCCEEDED]


def test_a_dismissed_earlier_write_leaves_the_call_to_the_grant(
    workshop: Workshop, recorder: Recorder
) -> None:
    grant_second(workshop)
    record = workshop.record(status="active")
    change = call("data.updateRecord", record_id=str(record.pk), changes={"status": "inactive"})
    workshop.play(asking(change, SECOND))
    run = workshop.work()
    assert statuses(run) == WAITS
    type(record).objects.filter(pk=record.pk).update(status="inactive")
    card = workshop.card(run)
    dismiss(workshop.approver, card.pk, decisions.Decision(digest=card.digest))
    assert statuses(workshop.drive(run)) == [CallStatus.REJECTED, CallStatus.SUCCEEDED]


class TestAHeldCall:
    @pytest.mark.parametrize("is_first", [True, False])
    def test_is_held_from_the_commit_that_records_it(
        self, workshop: Workshop, recorder: Recorder, is_first: bool
    ) -> None:
        grant_second(workshop)
        workshop.play(asking(*((SECOND, FIRST) if is_first else (FIRST, SECOND))))
        run = workshop.submit()
        die_while_executing(run)
        first, _ = calls(run)
        assert find_held(run).after_id == (None if is_first else first.pk)

    @pytest.mark.parametrize("is_held", [True, False])
    def test_names_the_earlier_write_in_the_api_and_says_on_its_card_that_it_waits(
        self, workshop: Workshop, recorder: Recorder, run: Run, is_held: bool
    ) -> None:
        if not is_held:
            Approval.objects.filter(pk=find_held(run).pk).update(after=None)
        client, pk = Client(), find_held(run).pk
        client.force_login(workshop.approver.user)
        shown = client.get(f"/api/approvals/{pk}").json()["after"]
        assert shown == (str(calls(run)[0].pk) if is_held else None)
        html = client.get(f"/approvals/{pk}/").content.decode()
        assert ("Waits for an earlier call." in html, "Not started yet." in html) == (
            is_held,
            not is_held,
        )
        Approval.objects.filter(pk=pk).update(after=calls(run)[0])

    def test_is_found_by_the_sweeper_only_once_it_can_start(
        self, workshop: Workshop, recorder: Recorder, run: Run
    ) -> None:
        assert not STARTABLE_RUNS.fetch_all()
        Approval.objects.filter(run=run).update(after=None)
        assert [row.pk for row in STARTABLE_RUNS.fetch_all()] == [run.pk]
        Approval.objects.filter(pk=find_held(run).pk).update(after=calls(run)[0])

    def test_is_neither_woken_nor_asked_about_again_however_long_it_waits(
        self, workshop: Workshop, recorder: Recorder, run: Run
    ) -> None:
        long_ago = Now() - timedelta(days=1)
        Approval.objects.filter(run=run).update(start_after=long_ago, decided_at=long_ago)
        assert sweep_once() == 0
        assert_waits_for(run, 0)
        workshop.approve(workshop.card(run))
        assert statuses(workshop.drive(run)) == [CallStatus.SUCCEEDED] * 2

    @pytest.mark.parametrize("is_revoked", [False, True])
    def test_waits_for_a_person_once_its_grant_is_revoked(
        self, workshop: Workshop, recorder: Recorder, run: Run, is_revoked: bool
    ) -> None:
        if is_revoked:
            making.revoke_grant(workshop.approver, find_held(run).standing_grant_id or 0)
        assert len(workshop.cards(run)) == (2 if is_revoked else 1)
        workshop.approve(workshop.card(run))
        workshop.drive(run)
        assert len(recorder.effects) == (1 if is_revoked else 2)

    def test_is_cancelled_with_its_run(
        self, workshop: Workshop, recorder: Recorder, run: Run
    ) -> None:
        workshop.cancel(run)
        assert statuses(run) == [CallStatus.CANCELLED] * 2
        assert find_held(run).status == ApprovalStatus.CANCELLED

    def test_is_asked_about_again_after_a_backup_is_restored(
        self, workshop: Workshop, recorder: Recorder, run: Run
    ) -> None:
        assert recover_runs()["asked_again"] == 1
        assert len(workshop.cards(run)) == 2

    def test_is_asked_about_again_if_its_approval_expired_while_it_waited(
        self, workshop: Workshop, recorder: Recorder, run: Run
    ) -> None:
        Approval.objects.filter(run=run, status=ApprovalStatus.APPROVED).update(valid_until=Now())
        workshop.approve(workshop.card(run))
        workshop.drive(run)
        assert workshop.card(run).why.startswith("The approval was not used in time.")

    @pytest.mark.parametrize("waits", [False, True])
    def test_waits_even_if_an_older_version_of_gadget_recorded_it(
        self, workshop: Workshop, recorder: Recorder, run: Run, waits: bool
    ) -> None:
        """Only the check at its start holds it: the row does not yet name the earlier write."""
        validity = {"valid_until": Now() + timedelta(minutes=15)}
        Approval.objects.filter(pk=find_held(run).pk).update(after=None, **validity)
        if not waits:
            workshop.approve(workshop.card(run))
        Run.objects.filter(pk=run.pk).update(status=RunStatus.QUEUED)
        run = workshop.drive(run)
        if waits:
            assert_waits_for(run, 0)
        else:
            assert statuses(run) == [CallStatus.SUCCEEDED] * 2


def test_random_passes_keep_their_order(workshop: Workshop, recorder: Recorder) -> None:
    """After each decision, in any order, no preapproved call has overtaken an earlier write, or
    started after an earlier write that had no effect."""
    grant(workshop, "probe.effect", Condition("name", Rule.ONE_OF, list("abcdefgh")), max_uses=1000)
    chance = random.Random(11)
    for _ in range(12):
        names = [
            chance.choice("abcdefgh" if chance.random() < 0.5 else "stuvwxyz") for _ in "12345"
        ]
        workshop.play(asking(*(call("probe.effect", name=name) for name in names)))
        run = workshop.work()
        while cards := workshop.cards(run):
            assert_planned_order(run)
            assert_invariants()
            card = chance.choice(cards)
            if chance.random() < 0.7:
                workshop.approve(card)
            else:
                workshop.deny(card)
            run = workshop.drive(run)
        assert_planned_order(run)
        assert run.status == RunStatus.SUCCEEDED


def assert_planned_order(run: Run) -> None:
    """Check that each preapproved call started only if all calls before it had succeeded, still
    waits only for a waiting one, and went to a person only if one was denied."""
    rows = calls(run)
    preapproved = {
        card.tool_call_id: card.status
        for card in Approval.objects.filter(run=run, standing_grant__isnull=False)
    }
    for number, row in enumerate(rows):
        before = {(each.duplicate_of or each).status for each in rows[:number]}
        if preapproved.get(row.pk) == ApprovalStatus.CONSUMED:
            assert before <= {CallStatus.SUCCEEDED}
        elif preapproved.get(row.pk) == ApprovalStatus.APPROVED:
            assert CallStatus.AWAITING_APPROVAL in before
            assert CallStatus.DENIED not in before
        elif preapproved.get(row.pk) == ApprovalStatus.SUPERSEDED:
            assert CallStatus.DENIED in before


class TestARecipe:
    @pytest.fixture
    def held(self, workshop: Workshop, recorder: Recorder) -> Run:
        """A run whose recipe waits for a person in its second step; a standing grant approved the
        call after the recipe."""
        Grant.objects.bulk_create(
            [
                Grant(employee=workshop.employee, tool=name)
                for name in (
                    *(probe.name for probe in composed_probes.PROBES),
                    "data.getRecordDetail",
                )
            ]
        )
        grant_second(workshop)
        record = workshop.record(name="Acme")
        workshop.play(asking(call("probe.recipe", record_id=record.pk, to="New"), SECOND))
        return workshop.work()

    def test_holds_a_later_call_until_it_ends(self, workshop: Workshop, held: Run) -> None:
        assert_waits_for(held, 0)
        workshop.approve(workshop.card(held))
        assert set(statuses(workshop.drive(held))) == {CallStatus.SUCCEEDED}

    def test_that_fails_leaves_the_later_call_to_a_person(
        self, workshop: Workshop, recorder: Recorder, held: Run
    ) -> None:
        workshop.deny(workshop.card(held))
        held = workshop.drive(held)
        card = workshop.card(held)
        assert card.why.startswith(f"{PLANNED} was denied."), card.why
        assert not recorder.effects

    def test_does_not_hold_its_own_step(self, workshop: Workshop, held: Run) -> None:
        rename = workshop.card(held).tool_call
        assert rename.parent_call_id == calls(held)[0].pk
        grant(
            workshop, "probe.rename", *(equals(name, rename.params[name]) for name in rename.params)
        )
        workshop.cancel(held)
        Record.objects.filter(pk=rename.params["record_id"]).update(name="Acme")
        held = workshop.work()
        assert set(statuses(held)) == {CallStatus.SUCCEEDED}
