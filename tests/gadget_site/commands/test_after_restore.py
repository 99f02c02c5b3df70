"""`manage.py after_restore`: calls that were approved before need a new approval, and no run waits
for a lost worker."""

from io import StringIO

import pytest
from django.core.management import call_command

from agents.runs import stops
from agents.runs.models import Approval, ApprovalStatus, CallStatus, Run, RunStatus
from agents.worker.sweeper import sweep_once
from tests.gadget_site.backups.confirmed import confirm_all
from tests.gadget_site.commands.demo_world import build_demo
from tests.workshop.invariants import assert_invariants

pytestmark = pytest.mark.django_db(transaction=True)

TASK = "Delete the leads of the 2019 spring fair"


def restore() -> str:
    told = StringIO()
    call_command("after_restore", stdout=told)
    return told.getvalue()


def test_an_approval_whose_call_had_not_started_is_requested_again() -> None:
    world = build_demo()
    run = world.work("Morgan", TASK)
    (card,) = world.cards(run)
    world.approve(card)
    told = restore()
    assert "asked again: 1" in told
    card.refresh_from_db()
    (fresh,) = world.cards(run)
    assert (card.status, fresh.status) == (ApprovalStatus.SUPERSEDED, ApprovalStatus.PENDING)
    assert "backup" in fresh.why
    assert fresh.tool_call.status == CallStatus.AWAITING_APPROVAL
    assert world.drive(run).status == RunStatus.QUEUED, "everything is stopped"
    confirm_all(world.member("admin"))
    stops.release_everything(world.member("admin"))
    sweep_once()
    assert world.drive(run).status == RunStatus.WAITING
    assert_invariants()
    world.approve(fresh)
    assert world.drive(run).status == RunStatus.SUCCEEDED


def test_the_command_can_be_repeated_and_leaves_ended_runs_unchanged() -> None:
    world = build_demo()
    run = world.work("Robin", "Give me an overview of our UK companies")
    restore()
    assert "asked again: 0" in restore()
    assert Run.objects.get(pk=run.pk).status == RunStatus.SUCCEEDED
    assert not Approval.objects.exists()
