"""A standing grant with N uses starts at most N calls, however many are requested at the same
moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import pytest
from django.db import OperationalError, transaction
from django.db.models.functions import Now

from agents.accounts import members
from agents.accounts.models import Membership, Organization, Role
from agents.platform.database_outages import describe_outage
from agents.runs.engine.loop import advance
from agents.runs.models import Approval, ApprovalStatus, CallStatus, Run, RunStatus, ToolCall
from agents.standing_grants import making
from agents.standing_grants.models import StandingGrant
from tests.features import feature
from tests.recorder import Recorder
from tests.sampling import take_sample
from tests.standing_grants.granting import (
    die_after_responses,
    equals,
    grant,
    propose_for,
    requeue,
    resume,
)
from tests.tools.connections.api import NAME, Api, operation
from tests.tools.connections.connecting import connect_api, offer, read, set_credentials, take
from tests.workshop import Workshop, all_at_once, asking, call
from tools.connections.models import AuthenticationMethod, Source
from tools.contract import ErrorCode
from tools.toolbox.conditions import Condition, Rule

pytestmark = pytest.mark.django_db(transaction=True)

REPETITIONS = 200
PARTIES = 50
RACERS = 12
NAMES = [f"n{number}" for number in range(PARTIES)]
ADD = "crm.addContact"


def advance_unless_busy(run_id: int) -> None:
    """Advance the run. If the database is too busy even to requeue it, the run continues
    afterwards."""
    try:
        advance(run_id)
    except OperationalError as error:
        if not describe_outage(error):
            raise


@feature(
    "Figures and metrics",
    "A standing grant starts at most as many calls as it has uses, in every race",
    "agents/standing_grants/preapprovals.py",
)
@pytest.mark.parametrize(
    "repetition", take_sample(range(REPETITIONS), 100, "races for a standing grant")
)
def test_racing_calls_never_exceed_the_uses(
    workshop: Workshop, recorder: Recorder, repetition: int
) -> None:
    """Each of fifty runs requests one call at the same moment; a run that waits too long continues
    afterwards."""
    uses = 1 + repetition % (PARTIES + 2)
    made = grant(workshop, "probe.effect", equals("name", "a"), max_uses=uses)
    workshop.play(asking(call("probe.effect", name="a")))
    runs = [workshop.submit() for _ in range(PARTIES)]
    all_at_once([partial(advance_unless_busy, run.pk) for run in runs])
    for run in Run.objects.exclude(status__in=(RunStatus.WAITING, RunStatus.SUCCEEDED)):
        resume(workshop, run)
    started = min(uses, PARTIES)
    found = Counter(Approval.objects.values_list("status", "standing_grant_id"))
    expected = Counter(
        {
            (ApprovalStatus.CONSUMED, made.pk): started,
            (ApprovalStatus.PENDING, None): PARTIES - started,
        }
    )
    assert found == expected
    given_up = ToolCall.objects.filter(
        status=CallStatus.FAILED, result__error__code=ErrorCode.WORKER_LOST
    ).count()
    assert list(recorder.effects.values()) == [1] * (started - given_up)


def test_simultaneous_identical_requests_create_one_grant(workshop: Workshop) -> None:
    proposal = propose_for(workshop, "probe.effect", equals("name", "a"))
    made: list[tuple[StandingGrant, bool]] = []
    repeat = partial(making.make_grant_once, workshop.approver, proposal, "g-1")
    all_at_once([lambda: made.append(repeat())] * RACERS)
    assert len(made) == RACERS
    assert sum(is_new for _, is_new in made) == 1
    assert {grant.pk for grant, _ in made} == {StandingGrant.objects.get().pk}


def test_concurrent_responses_with_several_calls_start_as_many_calls_as_there_are_uses(
    workshop: Workshop, recorder: Recorder
) -> None:
    made = grant(workshop, "probe.effect", Condition("name", Rule.ONE_OF, NAMES), max_uses=7)
    workshop.play(asking(*(call("probe.effect", name=name) for name in NAMES[:4])))
    runs = [workshop.submit() for _ in range(RACERS)]
    all_at_once([partial(advance, run.pk) for run in runs])
    found = Counter(Approval.objects.values_list("status", "standing_grant_id"))
    assert found == {
        (ApprovalStatus.CONSUMED, made.pk): 7,
        (ApprovalStatus.PENDING, None): 4 * RACERS - 7,
    }
    assert list(recorder.effects.values()) == [1] * 7


def demote(workshop: Workshop, _: StandingGrant) -> None:
    members.change_role(workshop.admin, workshop.approver.pk, Role.OPERATOR)


def expire(_: Workshop, made: StandingGrant) -> None:
    StandingGrant.objects.filter(pk=made.pk).update(expires_at=Now())


def revoke(workshop: Workshop, made: StandingGrant) -> None:
    making.revoke_grant(workshop.approver, made.pk)


@pytest.mark.parametrize("end", [revoke, expire, demote])
def test_nothing_starts_after_the_grant_has_ended(
    workshop: Workshop, recorder: Recorder, end: Callable[[Workshop, StandingGrant], None]
) -> None:
    """A call may still start in a transaction that began before the grant ended, but in none that
    began later."""
    made = grant(workshop, "probe.effect", equals("name", "a"), max_uses=RACERS)
    workshop.play(asking(call("probe.effect", name="a")))
    runs = [workshop.submit() for _ in range(RACERS)]
    ended_at: list[datetime] = []

    def end_it() -> None:
        end(workshop, made)
        ended_at.append(read_clock())

    all_at_once([end_it, *(partial(advance, run.pk) for run in runs)])
    assert_all_started_before(ended_at[0], recorder)
    # The invariants checked afterwards need this role.
    Membership.objects.filter(pk=workshop.approver.pk).update(role=Role.APPROVER)


@dataclass(frozen=True)
class Office:
    """A connected source, and the API behind it."""

    workshop: Workshop
    api: Api
    source: Source


@pytest.fixture
def office(workshop: Workshop, api: Api) -> Office:
    source = connect_api(
        workshop, api, authentication=AuthenticationMethod.BEARER, service="contacts"
    )
    offer(workshop, source, ADD)
    set_credentials(workshop.organization, "contacts", token="first-token-of-ours")
    workshop.organization.refresh_from_db()  # as each request does: now this process knows the new tools
    return Office(workshop, api, source)


def change_definition(office: Office) -> None:
    office.api.paths = {
        "/contacts": {
            "post": operation("addContact", "Add a contact and tell everybody", name=NAME)
        }
    }
    take(read(office.source), ADD)


def change_account(office: Office) -> None:
    with transaction.atomic():
        set_credentials(office.workshop.organization, "contacts", token="second-token-of-ours")


@pytest.mark.parametrize("change", [change_definition, change_account])
def test_nothing_starts_after_the_tool_or_its_account_has_changed(
    office: Office, change: Callable[[Office], None]
) -> None:
    """A call may still start in a transaction that began before the change was committed, but in
    none that began later.

    Some calls are approved before the change, and some of these start only after it; other calls
    are requested while it happens.
    """
    workshop, added = office.workshop, call(ADD, name="Ada")
    made = grant(workshop, ADD, equals("name", "Ada"), max_uses=2 * RACERS)
    approved = [requeue(die_after_responses(workshop, added)) for _ in range(RACERS)]
    runs = [*approved[: RACERS // 2], *(workshop.submit() for _ in range(RACERS // 2))]
    changed_at: list[datetime] = []

    def change_it() -> None:
        change(office)
        changed_at.append(read_clock())

    all_at_once([change_it, *(partial(advance, run.pk) for run in runs)])
    for run in approved[RACERS // 2 :]:
        assert workshop.drive(run).status in (RunStatus.WAITING, RunStatus.SUCCEEDED)
    started = ToolCall.objects.filter(attempts=1)
    assert not started.filter(started_at__gt=changed_at[0]).exists()
    assert len(office.api.received) == started.count()
    assert (
        Approval.objects.filter(status=ApprovalStatus.CONSUMED, standing_grant=made).count()
        == started.count()
    )
    assert not Approval.objects.filter(status=ApprovalStatus.APPROVED).exists()
    assert workshop.work().status == RunStatus.WAITING
    made.refresh_from_db()
    assert made.ended_because


def read_clock() -> datetime:
    """Return the database's time."""
    found: datetime = Organization.objects.annotate(now=Now()).values_list("now", flat=True)[0]
    return found


def assert_all_started_before(ended_at: datetime, recorder: Recorder) -> None:
    started = Approval.objects.filter(status=ApprovalStatus.CONSUMED)
    assert not started.filter(consumed_at__gt=ended_at).exists()
    assert list(recorder.effects.values()) == [1] * started.count()
    assert not Approval.objects.filter(status=ApprovalStatus.APPROVED).exists()
    assert (
        Approval.objects.filter(status=ApprovalStatus.PENDING).count() == RACERS - started.count()
    )
