"""After a backup is restored, approved calls that had not started get new cards, and executing
calls are settled."""

import pytest

from agents.runs.models import Approval, ApprovalStatus, CallStatus, RunStatus
from agents.worker.sweeper import sweep_once
from gadget_site.backup.restored import recover_runs
from tests.recorder import Recorder
from tests.workshop import (
    Workshop,
    again,
    asking,
    call,
    calls,
    die_while_executing,
    make_due,
    statuses,
    write_in_flight,
)

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_driven_run_is_queued_and_its_reads_run_again(workshop: Workshop) -> None:
    workshop.play(asking(call("probe.sleep", ms=0)))
    run = workshop.submit()
    die_while_executing(run)
    counts = recover_runs()
    assert counts == {"runs": 1, "asked_again": 0, "unsettled": 1}
    assert (again(run).status, statuses(run)) == (RunStatus.QUEUED, [CallStatus.READY])
    assert workshop.drive(run).status == RunStatus.SUCCEEDED


def test_an_executing_write_gets_an_unknown_outcome(workshop: Workshop, recorder: Recorder) -> None:
    with write_in_flight(workshop, recorder) as run:
        assert recover_runs()["unsettled"] == 1
        assert statuses(run) == [CallStatus.OUTCOME_UNKNOWN]
        assert workshop.drive(run).status == RunStatus.NEEDS_ATTENTION
        workshop.resolve(calls(run)[0], "not_done")
        recorder.release("a")
    assert calls(run)[0].attempts == 1


def test_approved_calls_that_had_not_started_get_new_cards(
    workshop: Workshop, recorder: Recorder
) -> None:
    workshop.play(asking(call("probe.effect", name="a"), call("probe.effect", name="b")))
    run = workshop.work()
    for card in workshop.cards(run):
        workshop.approve(card, grace_s=30)
    assert recover_runs() == {"runs": 0, "asked_again": 2, "unsettled": 0}
    make_due(run)
    sweep_once()
    assert workshop.drive(run).status == RunStatus.WAITING
    assert len(workshop.cards(run)) == 2
    assert all("a backup was restored" in card.why for card in workshop.cards(run))
    assert not recorder.effects


def test_pending_cards_stay_unchanged(workshop: Workshop) -> None:
    workshop.play(asking(call("probe.effect", name="a")))
    run = workshop.work()
    card = workshop.card(run)
    assert recover_runs() == {"runs": 0, "asked_again": 0, "unsettled": 0}
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING
    assert again(run).status == RunStatus.WAITING


def test_a_run_being_cancelled_ends(workshop: Workshop) -> None:
    workshop.play(asking(call("probe.sleep", ms=0)))
    run = workshop.submit()
    die_while_executing(run)
    workshop.cancel(run)
    recover_runs()
    assert workshop.drive(run).status == RunStatus.CANCELLED


def test_a_second_recovery_has_no_further_effect(workshop: Workshop, recorder: Recorder) -> None:
    workshop.play(asking(call("probe.effect", name="a")))
    run = workshop.work()
    workshop.approve(workshop.card(run), grace_s=30)
    recover_runs()
    assert recover_runs() == {"runs": 0, "asked_again": 0, "unsettled": 0}
    assert len(workshop.cards(run)) == 1
