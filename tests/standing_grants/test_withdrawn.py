"""Calls that a standing grant approved but that have not started: when the grant ends or is
revoked, they wait for a person."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agents.accounts import members
from agents.accounts.models import Membership, Role
from agents.runs.models import Approval, ApprovalStatus, CallStatus
from agents.standing_grants import making
from agents.standing_grants.changes import end_changed
from agents.standing_grants.due import MAX_PREVIEWS
from agents.standing_grants.models import StandingGrant
from agents.worker.sweeper import sweep_once
from tests.recorder import Recorder
from tests.standing_grants.granting import answered, die_after_responses, equals, grant, is_waiting
from tests.workshop import Workshop, asking, call, statuses
from tools.contract import Level
from tools.toolbox.conditions import Condition, Rule

pytestmark = pytest.mark.django_db(transaction=True)

NAMES = [f"n{number}" for number in range(12)]
EFFECT = call("probe.effect", name="a")
A = equals("name", "a")


def count_cards() -> dict[str, int]:
    """Count the cards by status: approved cards may start, pending cards wait for a person."""
    found = list(Approval.objects.values_list("status", flat=True))
    return {
        status: found.count(status) for status in (ApprovalStatus.APPROVED, ApprovalStatus.PENDING)
    }


def test_a_revocation_replaces_the_first_20_approvals_and_the_sweeper_the_rest(
    workshop: Workshop, recorder: Recorder
) -> None:
    made = grant(workshop, "probe.effect", Condition("name", Rule.ONE_OF, NAMES), max_uses=100)
    other = grant(workshop, "probe.effect", A)
    for _ in range(2):
        die_after_responses(workshop, *(call("probe.effect", name=name) for name in NAMES))
    spared = die_after_responses(workshop, EFFECT)
    making.revoke_grant(workshop.approver, made.pk)
    assert count_cards() == {
        ApprovalStatus.APPROVED: 5,
        ApprovalStatus.PENDING: making.MAX_REPLACED_AT_ONCE,
    }
    sweep_once()
    left = 5 - MAX_PREVIEWS
    assert count_cards() == {ApprovalStatus.APPROVED: left, ApprovalStatus.PENDING: 25 - left}
    for _ in range(3):
        sweep_once()
    assert count_cards() == {ApprovalStatus.APPROVED: 1, ApprovalStatus.PENDING: 24}
    assert [card.standing_grant_id for card in answered(spared)] == [other.pk]
    why = {
        card.why.partition("\n")[0]
        for card in Approval.objects.filter(status=ApprovalStatus.PENDING)
    }
    assert why == {"The standing grant that approved this has ended: acme-approver revoked it."}
    assert not recorder.effects


def demote(workshop: Workshop) -> None:
    members.change_role(workshop.admin, workshop.approver.pk, Role.OPERATOR)


def raise_level(workshop: Workshop) -> None:
    workshop.raise_for_all("probe.effect", Level.DESTRUCTIVE)
    assert end_changed() == 1


@pytest.mark.parametrize(
    ("end", "because"),
    [
        (demote, "The person who made it can no longer decide cards."),
        (raise_level, "An admin has raised the tool’s level."),
    ],
)
def test_the_sweeper_replaces_an_ended_grants_approvals(
    workshop: Workshop, recorder: Recorder, end: Callable[[Workshop], None], because: str
) -> None:
    grant(workshop, "probe.effect", A)
    run = die_after_responses(workshop, EFFECT)
    sweep_once()
    assert not is_waiting(run)
    end(workshop)
    sweep_once()
    card = workshop.card(run)
    assert card.why.startswith(f"The standing grant that approved this has ended: {because}")
    assert [each.status for each in answered(run)] == [ApprovalStatus.SUPERSEDED]


@pytest.mark.parametrize("end", [demote, None])
def test_a_started_call_is_not_affected_by_the_end_of_its_grant(
    workshop: Workshop, recorder: Recorder, end: Callable[[Workshop], None] | None
) -> None:
    made = grant(workshop, "probe.effect", A)
    recorder.hold("a")
    workshop.play(asking(EFFECT))
    run = workshop.submit()
    with workshop.driving(run):
        recorder.await_arrival("a")
        if end is None:
            making.revoke_grant(workshop.approver, made.pk)
        else:
            end(workshop)
        sweep_once()
        assert StandingGrant.objects.filter(pk=made.pk, revoked_at=None, ended_at=None).count() == 0
        assert [card.status for card in answered(run)] == [ApprovalStatus.CONSUMED]
        recorder.release("a")
    assert statuses(run) == [CallStatus.SUCCEEDED]
    assert list(recorder.effects.values()) == [1]
    # The invariants checked afterwards need this role.
    Membership.objects.filter(pk=workshop.approver.pk).update(role=Role.APPROVER)
