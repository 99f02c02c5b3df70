"""Concurrent decisions have one outcome, and at most one effect."""

from collections import Counter
from collections.abc import Callable

import pytest
from django.db import OperationalError

from agents.platform.database_outages import describe_outage
from agents.platform.refusals import AlreadyDecided, Expired, Refusal
from agents.runs.models import Approval, ApprovalStatus, CallStatus, RunStatus
from agents.worker.sweeper import sweep_once
from tests.recorder import Recorder
from tests.workshop import Workshop, again, all_at_once, asking, call, calls, expire_card, payloads

pytestmark = pytest.mark.django_db(transaction=True)


def count_outcome(act: Callable[[], object], outcomes: Counter[str]) -> None:
    """Count the outcome of `act`; try again while the database is busy, which can happen if fifty
    threads run at the same time."""
    try:
        act()
    except OperationalError as error:
        if not describe_outage(error):
            raise
        count_outcome(act, outcomes)
    except Refusal as refusal:
        outcomes[type(refusal).__name__] += 1
    else:
        outcomes["done"] += 1


def test_only_one_of_fifty_concurrent_approvals_is_accepted_and_the_effect_happens_once(
    workshop: Workshop, recorder: Recorder
) -> None:
    workshop.play(asking(call("probe.effect", name="a")))
    run = workshop.work()
    card = workshop.card(run)
    outcomes: Counter[str] = Counter()
    all_at_once([lambda: count_outcome(lambda: workshop.approve(card), outcomes)] * 50)
    assert outcomes == {"done": 1, "AlreadyDecided": 49}
    run = workshop.drive(run)
    assert run.status == RunStatus.SUCCEEDED
    assert list(recorder.effects.values()) == [1]
    assert len(payloads(run, "approval_decided")) == 1


def test_fifty_approvals_with_one_decision_id_get_the_same_response(
    workshop: Workshop, recorder: Recorder
) -> None:
    workshop.play(asking(call("probe.effect", name="a")))
    run = workshop.work()
    card = workshop.card(run)
    outcomes: Counter[str] = Counter()
    all_at_once(
        [lambda: count_outcome(lambda: workshop.approve(card, decision_id="d"), outcomes)] * 50
    )
    assert outcomes == {"done": 50}
    workshop.drive(run)
    assert list(recorder.effects.values()) == [1]


@pytest.mark.parametrize("round_", range(3))
def test_a_race_between_approval_and_denial_has_one_outcome(
    workshop: Workshop, recorder: Recorder, round_: int
) -> None:
    workshop.play(asking(call("probe.effect", name="a")))
    run = workshop.work()
    card = workshop.card(run)
    outcomes: Counter[str] = Counter()
    approve = lambda: count_outcome(lambda: workshop.approve(card), outcomes)  # noqa: E731
    deny = lambda: count_outcome(lambda: workshop.deny(card, by=workshop.admin), outcomes)  # noqa: E731
    all_at_once([approve, deny] * 5)
    assert outcomes == {"done": 1, "AlreadyDecided": 9}
    workshop.drive(run)
    (done,) = calls(run)
    was_approved = Approval.objects.get(pk=card.pk).status == ApprovalStatus.CONSUMED
    assert done.status == (CallStatus.SUCCEEDED if was_approved else CallStatus.DENIED)
    assert len(recorder.effects) == was_approved


@pytest.mark.parametrize("round_", range(3))
def test_a_race_between_decisions_the_expiry_and_a_cancellation_has_one_outcome(
    workshop: Workshop, recorder: Recorder, round_: int
) -> None:
    workshop.play(asking(call("probe.effect", name="a")))
    run = workshop.work()
    card = workshop.card(run)
    outcomes: Counter[str] = Counter()

    def expire() -> None:
        expire_card(card)
        sweep_once()

    cancelling: Counter[str] = Counter()
    works: list[Callable[[], object]] = [
        lambda: count_outcome(lambda: workshop.approve(card), outcomes),
        lambda: count_outcome(lambda: workshop.deny(card), outcomes),
        lambda: count_outcome(lambda: workshop.cancel(run), cancelling),
    ]
    all_at_once([*works, expire, lambda: workshop.drive(run)])
    run = workshop.drive(run)
    (done,) = calls(run)
    final = {
        ApprovalStatus.CONSUMED: CallStatus.SUCCEEDED,
        ApprovalStatus.DENIED: CallStatus.DENIED,
        ApprovalStatus.EXPIRED: CallStatus.EXPIRED,
        ApprovalStatus.CANCELLED: CallStatus.CANCELLED,
    }
    status = ApprovalStatus(Approval.objects.get(pk=card.pk).status)
    assert done.status == final[status]
    assert len(recorder.effects) == (status == ApprovalStatus.CONSUMED)
    came_too_late = cancelling["Conflict"] == 1  # the run had already ended
    assert came_too_late or cancelling["done"] == 1
    assert run.status == (RunStatus.SUCCEEDED if came_too_late else RunStatus.CANCELLED)
    decided = [line["status"] for line in payloads(run, "approval_decided")]
    assert [one for one in decided if one != "approved"] == (
        [] if status == ApprovalStatus.CONSUMED else [status]
    )
    assert decided.count("approved") + decided.count("denied") + decided.count("expired") <= 1


def test_a_race_between_approval_and_expiry_expires_the_card_once(
    workshop: Workshop, recorder: Recorder
) -> None:
    workshop.play(asking(call("probe.effect", name="a")))
    run = workshop.work()
    card = workshop.card(run)
    expire_card(card)
    refusals: list[type[Refusal]] = []

    def approve() -> None:
        try:
            workshop.approve(card)
        except Refusal as refusal:
            refusals.append(type(refusal))

    all_at_once([approve, approve, sweep_once, sweep_once, sweep_once])
    assert refusals == [Expired, Expired]
    sweep_once()
    (line,) = payloads(run, "approval_decided")
    assert line["status"] == "expired"
    assert workshop.drive(run).status == RunStatus.SUCCEEDED
    assert not recorder.effects


def test_a_race_between_edit_and_approval_leaves_one_card_or_one_start(
    workshop: Workshop, recorder: Recorder
) -> None:
    workshop.play(asking(call("probe.effect", name="a")))
    run = workshop.work()
    card = workshop.card(run)
    outcomes: Counter[str] = Counter()
    approve = lambda: count_outcome(lambda: workshop.approve(card), outcomes)  # noqa: E731
    edit = lambda: count_outcome(lambda: workshop.edit(card, {"name": "b"}), outcomes)  # noqa: E731
    all_at_once([approve, edit] * 3)
    assert outcomes["done"] == 1
    run = workshop.drive(run)
    assert (again(run).status == RunStatus.SUCCEEDED) == (len(recorder.effects) == 1)
    assert len(workshop.cards(run)) == (run.status == RunStatus.WAITING)


def test_a_race_between_undo_and_start_leaves_one_card_or_one_start(
    workshop: Workshop, recorder: Recorder
) -> None:
    workshop.play(asking(call("probe.effect", name="a")))
    run = workshop.work()
    card = workshop.card(run)
    workshop.approve(card)
    outcomes: Counter[str] = Counter()
    all_at_once(
        [lambda: count_outcome(lambda: workshop.undo(card), outcomes), lambda: workshop.drive(run)]
    )
    run = workshop.drive(run)
    undone = outcomes["done"] == 1
    assert (len(workshop.cards(run)), len(recorder.effects)) == ((1, 0) if undone else (0, 1))
    assert undone or outcomes == {"Conflict": 1}


def test_ten_concurrent_edits_create_one_new_card(workshop: Workshop) -> None:
    workshop.play(asking(call("probe.effect", name="a")))
    run = workshop.work()
    card = workshop.card(run)
    decided = Counter[str]()
    all_at_once(
        [
            lambda n=n: count_outcome(  # type: ignore[misc]
                lambda: workshop.edit(card, {"name": str(n)}), decided
            )
            for n in range(10)
        ]
    )
    assert decided == {"done": 1, AlreadyDecided.__name__: 9}
    assert len(workshop.cards(run)) == 1
