"""kill -9 of a worker at any point: nothing is lost, no write starts twice, and people resolve
unknown outcomes."""

from __future__ import annotations

import random
import time
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from agents.runs import actions
from agents.runs.models import Approval, CallStatus, Run, RunStatus, ToolCall
from tests import sampling
from tests.awaiting import await_that
from tests.faults.site import Site, effect, has_ended, read, reload, rename
from tests.faults.spots import Spots
from tests.workshop import calls, statuses
from tools.office.records.models import Record


@pytest.fixture
def spots(site: Site) -> Spots:
    return Spots(site)


@pytest.mark.parametrize("spot", ["asking", "reading", "paying", "renaming", "waiting"])
def test_after_a_kill_another_worker_brings_the_run_to_the_expected_end(
    spots: Spots, spot: str
) -> None:
    site = spots.site
    site.have_workers(2)
    spots.bring(spot)
    victim = site.workers()[0] if spot == "waiting" else site.driver_of(spots.runs[spot])
    victim.kill()
    if spot == "renaming":
        await_that(lambda: _is_writable(spots.record), "the half-done rename is rolled back", 5)
        assert _name_of(spots.record) == "Old"
    spots.release()
    spots.settle(spot)


@pytest.mark.parametrize("spot", ["asking_again", "printing"])
def test_nothing_is_lost_or_repeated_by_a_kill_just_before_or_after_a_result_is_recorded(
    spots: Spots, spot: str
) -> None:
    """The worker is killed within 0.2 s after its response or file is released: 20 times with
    `--all`, otherwise twice."""
    site, chance = spots.site, random.Random(sampling.get_seed())
    for _ in range(20 if sampling.is_whole() else 2):
        site.have_workers(2)
        spots.bring(spot)
        victim = site.driver_of(spots.runs[spot])
        spots.release()
        time.sleep(chance.uniform(0, 0.2))
        victim.kill()
        spots.settle(spot)


def test_another_worker_takes_over_even_if_the_databases_clock_was_set_back(
    site: Site,
) -> None:
    """The lost worker's lease would not end for an hour; the living worker renews its lease and
    keeps its run."""
    site.have_workers(2)
    site.recorder.hold("read")
    lost = site.submit("Read", read("read"))
    site.recorder.await_arrival("read")
    victim = site.driver_of(lost)
    victim.kill()
    Run.objects.filter(pk=lost.pk).update(lease_expires_at=Now() + timedelta(hours=1))
    living = site.submit("Read too", read("read"))
    site.recorder.await_arrival("read", 2)
    Run.objects.filter(pk=living.pk).update(lease_expires_at=Now() + timedelta(hours=1))
    await_that(lambda: reload(lost).crash_count == 1, "the lost worker is noticed", 15)
    site.recorder.release("read")
    site.await_status(lost, RunStatus.SUCCEEDED)
    assert site.await_status(living, RunStatus.SUCCEEDED).lease_epoch == 1


def test_a_write_resolved_as_not_done_can_be_requested_again_with_a_new_card(site: Site) -> None:
    site.have_workers(2)
    site.recorder.hold("pay")
    run = site.submit("Pay", effect("pay"), effect("pay"))
    first = site.approve_next(run)
    site.recorder.await_arrival("pay")
    site.driver_of(run).kill()
    site.recorder.release("pay")
    site.await_status(run, RunStatus.NEEDS_ATTENTION)
    site.resolve(run, "not_done")
    second = site.approve_next(run)
    assert second.tool_call_id != first.tool_call_id
    site.await_status(run, RunStatus.SUCCEEDED)
    assert [call.attempts for call in calls(run)] == [1, 1]
    assert sorted(site.recorder.effects.values()) == [1, 1]


class TestBetweenDecisionAndStart:
    """The worker is paused before the decision, so it does not notice the decision."""

    def test_the_next_worker_starts_each_call_once_and_not_before_its_grace_ends(
        self, site: Site
    ) -> None:
        site.have_workers(1)
        records = [site.workshop.record(name="Old"), site.workshop.record(name="Old")]
        submitted = [site.submit("Pay", effect("pay")), site.submit("Pay later", effect("pay"))]
        submitted += [
            site.submit(f"Rename {record.pk}", rename(record.pk, "New")) for record in records
        ]
        cards = [site.await_card(run) for run in submitted]
        worker = site.workers()[0]
        site.pause(worker)
        for card, grace_s in zip(cards, (0, 2, 0, 2), strict=True):
            site.workshop.approve(card, grace_s=grace_s)
        worker.kill()
        site.start_another_worker()
        for run in submitted:
            site.await_status(run, RunStatus.SUCCEEDED)
        assert list(site.recorder.effects.values()) == [1, 1]
        assert [_name_of(record) for record in records] == ["New", "New"]
        for card in cards:
            decided, call = (
                Approval.objects.get(pk=card.pk),
                ToolCall.objects.get(pk=card.tool_call_id),
            )
            assert call.attempts == 1
            assert call.started_at is not None
            assert decided.start_after is not None
            assert call.started_at >= decided.start_after

    def test_a_call_whose_approval_is_undone_before_the_start_does_not_start(
        self, site: Site
    ) -> None:
        site.have_workers(1)
        run = site.submit("Pay", effect("pay"))
        card = site.await_card(run)
        site.pause(site.workers()[0])
        site.workshop.approve(card, grace_s=30)
        new_card = site.workshop.undo(card)
        site.workers()[0].resume()
        site.workshop.deny(new_card)
        site.await_status(run, RunStatus.SUCCEEDED)
        assert statuses(run) == [CallStatus.DENIED]
        assert not site.recorder.effects


def test_a_run_cancelled_after_a_kill_ends_and_keeps_the_unknown_outcome_visible(
    site: Site,
) -> None:
    site.have_workers(1)
    site.recorder.hold("pay")
    run = site.submit("Pay", effect("pay"))
    site.approve_next(run)
    site.recorder.await_arrival("pay")
    site.workers()[0].kill()
    actions.cancel(site.workshop.operator, run.pk)
    site.recorder.release("pay")
    await_that(lambda: has_ended(run), "the sweeper ends the run")
    assert reload(run).status == RunStatus.CANCELLED
    assert statuses(run) == [CallStatus.OUTCOME_UNKNOWN]
    site.resolve(run, "succeeded")
    assert reload(run).status == RunStatus.CANCELLED


def _name_of(record: Record) -> str:
    return Record.objects.get(pk=record.pk).name


def _is_writable(record: Record) -> bool:
    """Return True if the record's row (on SQLite, the file) is not locked."""
    with transaction.atomic():
        return (
            Record.objects.select_for_update(
                skip_locked=connection.features.has_select_for_update_skip_locked
            )
            .filter(pk=record.pk)
            .exists()
        )
