"""A backup taken while workers write and people decide contains every decision that was confirmed
before the backup began.

After the backup is restored, nothing runs twice, as long as people act on the warnings.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from pytest_django import Settings

from agents.accounts.models import Membership
from agents.approvals.warnings.restored import find_restore_warning
from agents.platform.refusals import Refusal
from agents.runs import stops
from agents.runs.models import ENDED, Approval, ApprovalKind, ApprovalStatus, Run
from gadget_site.backup.restoring import restore
from gadget_site.backup.taking import back_up
from tests.awaiting import await_that
from tests.faults.site import Site, effect
from tests.gadget_site.backups.confirmed import confirm_all
from tests.workshop import beside

RUNS = 10
EACH_DENIED = 4
"""Every fourth card is denied."""


@pytest.mark.alone  # a restore needs SQLite's file to be closed, also in threads of earlier tests
def test_a_restored_backup_has_all_earlier_decisions_and_nothing_runs_twice(
    site: Site, tmp_path: Path, settings: Settings
) -> None:
    settings.GADGET_FILES_DIR = Path(site.installation.environment["GADGET_DATA_DIR"]) / "files"
    people = People(site)
    site.have_workers(2)
    for number in range(RUNS):
        site.submit(
            f"task {number}", effect(f"{number}a"), effect(f"{number}b"), effect(f"{number}c")
        )
    began: list[float] = []
    with beside(people.decide):
        try:
            for number in range(1, 4):
                people.await_answers(number * RUNS // 2)
                began.append(time.monotonic())
                back_up(tmp_path / f"{number}.tar.gz")
        finally:
            people.go_home.set()
    for process in site.installation.processes:
        process.stop()
    for number, moment in enumerate(began, start=1):
        restore(tmp_path / f"{number}.tar.gz", force=True)
        before = [card_id for card_id, at in people.answered if at < moment]
        assert len(before) >= number * RUNS // 2
        assert not Approval.objects.filter(pk__in=before, status=ApprovalStatus.PENDING).exists()
    people.come_back()
    site.have_workers(2)
    with beside(people.decide):
        try:
            await_that(
                lambda: not Run.objects.exclude(status__in=ENDED).exists(),
                "all runs have ended",
                90,
            )
        finally:
            people.go_home.set()
    assert max(site.recorder.effects.values()) == 1


class People:
    """People who decide cards as they arrive; if a card has a warning, they check the outside world
    first.

    Attributes:
        answered: the decided cards, each with the time of the response.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self.answered: list[tuple[int, float]] = []
        self.go_home = threading.Event()

    def come_back(self) -> None:
        """Lift the stop, as an admin does."""
        self.go_home.clear()
        admin = Membership.objects.get(pk=self._site.workshop.admin.pk)
        confirm_all(admin)
        stops.release_everything(admin)

    def await_answers(self, count: int) -> None:
        await_that(lambda: len(self.answered) >= count, f"{count} cards are decided")

    def decide(self) -> None:
        while not self.go_home.wait(0.01):
            for card in Approval.objects.filter(status=ApprovalStatus.PENDING).select_related(
                "tool_call", "run"
            ):
                try:
                    self._decide(card)
                except Refusal:
                    continue  # the card changed at this moment
                self.answered.append((card.pk, time.monotonic()))

    def _decide(self, card: Approval) -> None:
        happened = bool(self._site.recorder.effects[card.tool_call.idempotency_key])
        workshop = self._site.workshop
        if card.kind == ApprovalKind.UNKNOWN:
            workshop.resolve(card.tool_call, "succeeded" if happened else "not_done")
        elif (find_restore_warning(card) and happened) or card.pk % EACH_DENIED == 0:
            workshop.deny(card)
        else:
            workshop.approve(card)
