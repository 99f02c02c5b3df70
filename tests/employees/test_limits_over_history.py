"""Limits over history in a run: counts, sums and required earlier calls, and their current state on
the card."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from agents.employees.models import Employee, Grant
from agents.runs.engine import lease
from agents.runs.engine.loop import start_driving
from agents.runs.engine.passes import ask_model, record_pass
from agents.runs.models import ApprovalStatus, CallStatus, Run, RunStatus, ToolCall
from tests import composed_probes
from tests.features import feature
from tests.recorder import Recorder
from tests.workshop import (
    Workshop,
    asking,
    build_workshop,
    call,
    calls,
    die_while_executing,
    lose_worker,
    statuses,
)
from tools.toolbox import Condition, Otherwise, Permission, Rule

pytestmark = pytest.mark.django_db(transaction=True)

SLEEP = "probe.sleep"
EFFECT = "probe.effect"
RENAME = "probe.rename"
CLOCK = "probe.clock"
DETAIL = "data.getRecordDetail"
UPDATE = "data.updateRecord"
SUCCEEDED, WAITING, REJECTED = (
    CallStatus.SUCCEEDED,
    CallStatus.AWAITING_APPROVAL,
    CallStatus.REJECTED,
)


def at_most(most: int, period: str = "hour", otherwise: Otherwise = Otherwise.ASK) -> Condition:
    return Condition("", Rule.CALL_COUNT, {"most": most, "period": period}, otherwise)


def adds_up_to(most: float, param: str = "ms", otherwise: Otherwise = Otherwise.ASK) -> Condition:
    return Condition(param, Rule.SUM, {"most": most, "period": "day"}, otherwise)


def bind(workshop: Workshop, tool: str, *conditions: Condition) -> None:
    Grant.objects.update_or_create(
        employee=workshop.employee,
        tool=tool,
        defaults={"conditions": [each.as_json() for each in conditions]},
    )


def sleep(tag: str, ms: int = 0) -> dict[str, Any]:
    return call(SLEEP, ms=ms, tag=tag)


@pytest.fixture
def composed(workshop: Workshop) -> None:
    """Let the employee use tools made of other tools."""
    Grant.objects.bulk_create(
        [Grant(employee=workshop.employee, tool=probe.name) for probe in composed_probes.PROBES]
    )


def age(run: Run, **ago: float) -> None:
    """Pretend that the run's calls started earlier."""
    ToolCall.objects.filter(run=run).update(started_at=F("started_at") - timedelta(**ago))


@feature(
    "The gate",
    "A limit counts an employee's calls in a period, and its card shows the state",
    "agents/runs/call_history.py",
)
def test_calls_up_to_the_limit_run_and_the_next_call_needs_approval(workshop: Workshop) -> None:
    bind(workshop, SLEEP, at_most(2))
    workshop.play(asking(sleep("a")), asking(sleep("b")), asking(sleep("c")))
    run = workshop.work()
    assert statuses(run) == [SUCCEEDED, SUCCEEDED, WAITING]
    assert [one.why for one in calls(run)] == [
        "read level: runs without approval; 1 of 2 this hour with this call",
        "read level: runs without approval; 2 of 2 this hour with this call",
        "limit reached, 3 of 2 this hour with this call",
    ]
    assert workshop.card(run).why == "limit reached, 3 of 2 this hour with this call"


def test_the_facts_of_a_verdict_are_stored_with_their_time(workshop: Workshop) -> None:
    bind(workshop, SLEEP, at_most(2), adds_up_to(10))
    workshop.play(asking(sleep("a", 4)), asking(sleep("b", 5)))
    first, second = calls(workshop.work())
    assert first.judgment is not None
    assert second.judgment is not None
    assert second.started_at is not None
    kept = second.judgment["facts"]["history"]
    assert kept == {
        '["count","hour"]': 1,
        '["sum","ms","day"]': "4",
        "at": second.started_at.isoformat(),
    }
    assert second.why.endswith(
        "2 of 2 this hour with this call; sum of ms 9 of 10 today with this call"
    )


def test_calls_of_one_response_count_together_toward_the_limit(workshop: Workshop) -> None:
    bind(workshop, SLEEP, at_most(3))
    workshop.play(asking(*(sleep(tag) for tag in "abcde")))
    run = workshop.work()
    assert statuses(run) == [SUCCEEDED] * 3 + [WAITING] * 2


def test_identical_calls_of_one_response_count_only_once(workshop: Workshop) -> None:
    bind(workshop, SLEEP, at_most(2))
    workshop.play(asking(sleep("a"), sleep("a"), sleep("b")))
    assert statuses(workshop.work()) == [SUCCEEDED, CallStatus.DUPLICATE, SUCCEEDED]


@pytest.mark.parametrize(
    "limit",
    [at_most(2, otherwise=Otherwise.FORBID), adds_up_to(10, otherwise=Otherwise.FORBID)],
    ids=["count", "sum"],
)
@pytest.mark.parametrize(
    ("later", "expected"),
    [
        ([sleep("a", 4), sleep("b", 5)], [SUCCEEDED, CallStatus.DUPLICATE, SUCCEEDED]),
        ([sleep("c", 4), sleep("b", 5)], [SUCCEEDED, SUCCEEDED, REJECTED]),
    ],
    ids=["the first repeats an earlier one", "the first is new"],
)
def test_a_duplicate_does_not_count_toward_the_limit(
    workshop: Workshop, limit: Condition, later: list[dict[str, Any]], expected: list[CallStatus]
) -> None:
    """The call repeats a call of an earlier pass of the run."""
    bind(workshop, SLEEP, limit)
    workshop.play(asking(sleep("a", 4)), asking(*later))
    assert statuses(workshop.work()) == expected


def test_identical_calls_of_a_volatile_tool_count_separately(workshop: Workshop) -> None:
    bind(workshop, CLOCK, at_most(2))
    workshop.play(asking(call(CLOCK), call(CLOCK), call(CLOCK)))
    assert statuses(workshop.work()) == [SUCCEEDED, SUCCEEDED, WAITING]


@pytest.mark.parametrize(
    ("otherwise", "status"), [(Otherwise.ASK, WAITING), (Otherwise.FORBID, REJECTED)]
)
def test_a_limit_used_up_while_the_model_responded_prevents_the_start_of_the_call(
    workshop: Workshop, otherwise: Otherwise, status: CallStatus
) -> None:
    bind(workshop, SLEEP, at_most(1, otherwise=otherwise))
    workshop.play(asking(sleep("a")))
    run = workshop.submit()
    my_lease = lease.acquire(run.pk)
    assert my_lease is not None
    step = start_driving(my_lease)
    answer = ask_model(my_lease, step)
    assert [plan.permission for plan in answer.planned] == [Permission.AUTO]
    assert statuses(workshop.work()) == [SUCCEEDED]
    record_pass(my_lease, step, answer)
    assert statuses(run) == [status]
    assert "2 of 1 this hour" in calls(run)[0].why


def test_calls_that_wait_for_a_slot_count_toward_the_limit(workshop: Workshop) -> None:
    bind(workshop, SLEEP, at_most(20))
    workshop.play(asking(*(sleep(f"{number}", 1) for number in range(25))))
    run = workshop.work()
    assert statuses(run) == [SUCCEEDED] * 20 + [WAITING] * 5


@feature(
    "The gate",
    "An approval over a limit lets exactly this call through",
    "agents/runs/engine/writes.py",
)
def test_an_approval_over_the_limit_allows_only_the_approved_call(workshop: Workshop) -> None:
    bind(workshop, SLEEP, at_most(1))
    workshop.play(asking(sleep("a")), asking(sleep("b"), sleep("c")))
    run = workshop.work()
    workshop.approve(workshop.card(run))
    run = workshop.drive(run)
    assert statuses(run) == [SUCCEEDED, SUCCEEDED, WAITING]
    workshop.approve(workshop.card(run))
    assert workshop.drive(run).status == RunStatus.SUCCEEDED
    workshop.play(asking(sleep("d")))
    assert workshop.card(workshop.work()).why == "limit reached, 4 of 1 this hour with this call"


@pytest.mark.parametrize(
    ("period", "ago", "may_start"),
    [("minute", {"seconds": 61}, True), ("minute", {"seconds": 30}, False), ("hour", {"minutes": 61}, True),
     ("hour", {"minutes": 59}, False), ("day", {"hours": 25}, True), ("day", {"hours": 23}, False)],
)  # fmt: skip
def test_the_period_of_a_limit_is_rolling(
    workshop: Workshop, period: str, ago: dict[str, float], may_start: bool
) -> None:
    bind(workshop, SLEEP, at_most(1, period))
    workshop.play(asking(sleep("a")))
    age(workshop.work(), **ago)
    assert statuses(workshop.work()) == [SUCCEEDED if may_start else WAITING]


def test_an_approved_call_that_has_not_started_counts_only_toward_its_employees_limit(
    workshop: Workshop,
) -> None:
    bind(workshop, SLEEP, at_most(1))
    workshop.play(asking(sleep("a")))
    age(workshop.work(), hours=2)
    first = workshop.work()
    waiting = workshop.work()
    workshop.approve(workshop.card(waiting), grace_s=5)
    age(first, hours=2)
    assert workshop.card(workshop.work()).why == "limit reached, 2 of 1 this hour with this call"
    dana = workshop.employee
    workshop.employee = Employee.objects.create(
        organization=workshop.organization, name="Ben", provider=dana.provider, model=dana.model
    )
    bind(workshop, SLEEP, at_most(1))
    assert statuses(workshop.work()) == [SUCCEEDED]


def test_an_earlier_call_without_the_param_does_not_meet_a_condition_for_the_same_value(
    workshop: Workshop,
) -> None:
    first = Condition("tag", Rule.ONLY_AFTER, {"tool": "data.searchRecords", "param": "region"})
    bind(workshop, SLEEP, first)
    workshop.play(
        asking(call("data.searchRecords")),
        asking(sleep("EU")),
        asking(call("data.searchRecords", region="EU")),
    )
    assert statuses(workshop.work()) == [SUCCEEDED, WAITING]


def test_a_forbidding_limit_refuses_the_call_and_gives_the_model_the_reason(
    workshop: Workshop,
) -> None:
    bind(workshop, SLEEP, at_most(1, "day", Otherwise.FORBID))
    workshop.play(asking(sleep("a")), asking(sleep("b")))
    _, refused = calls(workshop.work())
    assert refused.status == REJECTED
    assert "only within limits: limit reached, 2 of 1 today with this call" in refused.content


def test_calls_of_other_employees_organizations_and_tools_do_not_count(workshop: Workshop) -> None:
    bind(workshop, SLEEP, at_most(1))
    workshop.play(asking(sleep("a"), call("probe.clock")))
    other = build_workshop("globex")
    bind(other, SLEEP, at_most(1))
    dana = workshop.employee
    colleague = Employee.objects.create(
        organization=workshop.organization, name="Ben", provider=dana.provider, model=dana.model
    )
    Grant.objects.create(employee=colleague, tool=SLEEP, conditions=[at_most(1).as_json()])
    Grant.objects.create(employee=colleague, tool="probe.clock")
    other.play(asking(sleep("a")))
    assert statuses(workshop.work()) == [SUCCEEDED, SUCCEEDED]
    assert statuses(other.work()) == [SUCCEEDED]
    workshop.employee = colleague
    assert statuses(workshop.work()) == [SUCCEEDED, SUCCEEDED]


@feature("The gate", "A limit adds up a param over a period", "tools/toolbox/conditions.py")
def test_a_sum_counts_this_call_and_earlier_calls(workshop: Workshop) -> None:
    bind(workshop, SLEEP, adds_up_to(10))
    workshop.play(asking(sleep("a", 4), sleep("b", 6)), asking(sleep("c", 1), sleep("d", 0)))
    run = workshop.work()
    assert statuses(run) == [SUCCEEDED, SUCCEEDED, WAITING, SUCCEEDED]
    assert workshop.card(run).why == "limit reached, sum of ms 11 of 10 today with this call"


def test_a_limit_on_a_sum_refuses_a_call_with_a_negative_number(workshop: Workshop) -> None:
    bind(workshop, SLEEP, adds_up_to(10, otherwise=Otherwise.FORBID))
    workshop.play(asking(sleep("a", -5)))
    (refused,) = calls(workshop.work())
    assert "ms is -5, but must be a number of 0 or more" in refused.content


def test_approved_writes_count_toward_the_limit_and_writes_over_it_need_another_approval(
    workshop: Workshop, recorder: Recorder
) -> None:
    bind(workshop, EFFECT, at_most(1))
    workshop.play(asking(call(EFFECT, name="a"), call(EFFECT, name="b")))
    run = workshop.work()
    first, second = workshop.cards(run)
    assert first.why == second.why == "this changes data; 1 of 1 this hour with this call"
    workshop.approve(first)
    workshop.approve(second)
    run = workshop.drive(run)
    assert statuses(run) == [SUCCEEDED, WAITING]
    assert list(recorder.effects.values()) == [1]
    again = workshop.card(run)
    assert again.why == (
        "A limit was reached after this was approved.\n"
        "This changes data; limit reached, 2 of 1 this hour with this call."
    )
    workshop.approve(again)
    assert statuses(workshop.drive(run)) == [SUCCEEDED, SUCCEEDED]


def test_a_forbidding_limit_rejects_an_approved_write_at_its_start(
    workshop: Workshop, recorder: Recorder
) -> None:
    bind(workshop, EFFECT, at_most(1, otherwise=Otherwise.FORBID))
    workshop.play(asking(call(EFFECT, name="a"), call(EFFECT, name="b")))
    run = workshop.work()
    for card in workshop.cards(run):
        workshop.approve(card)
    assert statuses(workshop.drive(run)) == [SUCCEEDED, REJECTED]
    assert list(recorder.effects.values()) == [1]


def test_a_call_at_the_limit_waits_again_when_its_approval_is_undone(
    workshop: Workshop,
) -> None:
    bind(workshop, EFFECT, at_most(1, otherwise=Otherwise.FORBID))
    workshop.play(asking(call(EFFECT, name="a")))
    run = workshop.work()
    card = workshop.approve(workshop.card(run), grace_s=5)
    assert workshop.undo(card).status == ApprovalStatus.PENDING
    assert statuses(run) == [WAITING]


def test_a_transactional_write_over_the_limit_does_not_change_anything(workshop: Workshop) -> None:
    bind(workshop, RENAME, at_most(1))
    record, other = workshop.record(), workshop.record(name="Other")
    workshop.play(
        asking(call(RENAME, record_id=record.pk, to="X"), call(RENAME, record_id=other.pk, to="Y"))
    )
    run = workshop.work()
    for card in workshop.cards(run):
        workshop.approve(card)
    assert statuses(workshop.drive(run)) == [SUCCEEDED, WAITING]
    other.refresh_from_db()
    assert other.name == "Other"


@feature(
    "The gate",
    "A limit asks for another call first, for the same value, in the same run",
    "tools/toolbox/conditions.py",
)
def test_an_earlier_call_for_the_same_record_can_be_required(workshop: Workshop) -> None:
    first = Condition(
        "record_id", Rule.ONLY_AFTER, {"tool": DETAIL, "param": "record_id"}, Otherwise.FORBID
    )
    bind(workshop, DETAIL)
    bind(workshop, UPDATE, first)
    seen, unseen = str(workshop.record().pk), str(workshop.record(name="Other").pk)
    change = {"changes": {"status": "inactive"}}
    workshop.play(
        asking(call(DETAIL, record_id=seen), call(UPDATE, record_id=seen, **change)),
        asking(call(UPDATE, record_id=seen, **change), call(UPDATE, record_id=unseen, **change)),
    )
    run = workshop.work()
    too_early, unread = [one for one in calls(run) if one.status == REJECTED]
    assert (
        f'record_id is "{seen}", but {DETAIL} has not succeeded with record_id "{seen}"'
        in too_early.content
    )
    assert f'record_id is "{unseen}"' in unread.content
    assert statuses(run) == [SUCCEEDED, REJECTED, WAITING, REJECTED]
    assert statuses(workshop.work())[2] == WAITING, "another run has to read the record itself"


def test_a_failed_call_is_not_accepted_as_the_required_earlier_call(workshop: Workshop) -> None:
    bind(workshop, DETAIL)
    bind(workshop, SLEEP, Condition("tag", Rule.ONLY_AFTER, {"tool": DETAIL, "param": "record_id"}))
    workshop.play(asking(call(DETAIL, record_id="987654")), asking(sleep("987654")))
    run = workshop.work()
    assert statuses(run) == [CallStatus.FAILED, WAITING]
    assert "has not succeeded" in workshop.card(run).why


@pytest.mark.usefixtures("composed")
def test_inner_calls_count_toward_the_limit_and_are_refused_over_the_limit(
    workshop: Workshop,
) -> None:
    bind(workshop, SLEEP, at_most(2))
    workshop.play(asking(call("probe.composed", inner=SLEEP, params={"ms": 0}, times=3)))
    outer, *inner = calls(workshop.work())
    assert [one.status for one in inner] == [SUCCEEDED, SUCCEEDED]
    assert outer.result is not None
    assert "needs a person's approval" in outer.result["summary"]


@pytest.mark.usefixtures("composed")
def test_recipe_steps_count_toward_the_limit_and_need_approval_over_the_limit(
    workshop: Workshop,
) -> None:
    bind(workshop, DETAIL, at_most(1))
    workshop.play(asking(call("probe.recipe", record_id=workshop.record().pk, to="New")))
    run = workshop.work()
    workshop.approve(workshop.card(run))
    run = workshop.drive(run)
    assert statuses(run) == [CallStatus.SUSPENDED, SUCCEEDED, SUCCEEDED, WAITING]
    assert workshop.card(run).why == "limit reached, 2 of 1 this hour with this call"
    workshop.approve(workshop.card(run))
    assert statuses(workshop.drive(run)) == [SUCCEEDED] * 4


def test_a_call_refused_by_a_limit_over_history_can_be_requested_again(workshop: Workshop) -> None:
    bind(workshop, SLEEP, at_most(1, otherwise=Otherwise.FORBID))
    workshop.play(asking(sleep("a")), asking(sleep("b")), asking(sleep("b")))
    assert statuses(workshop.work()) == [SUCCEEDED, REJECTED, REJECTED]


def test_a_call_that_lost_its_worker_counts_only_once_and_does_not_exceed_the_limit_itself(
    workshop: Workshop,
) -> None:
    bind(workshop, SLEEP, at_most(5))
    workshop.play(asking(sleep("a")))
    run = workshop.submit()
    die_while_executing(run)
    lose_worker(run)
    bind(workshop, SLEEP, at_most(1))
    other = workshop.work()
    assert statuses(other) == [WAITING]
    assert "2 of 1" in workshop.card(other).why, (
        "the lost call counts once, although it will start again"
    )
    assert statuses(workshop.drive(run)) == [SUCCEEDED], "and it does not count itself"


def test_a_call_of_a_tool_without_a_limit_over_history_needs_neither_a_lock_nor_a_count(
    workshop: Workshop,
) -> None:
    workshop.play(asking(sleep("a")))
    run = workshop.submit()
    with CaptureQueriesContext(connection) as captured:
        workshop.drive(run)
    assert statuses(run) == [SUCCEEDED]
    told = [each["sql"] for each in captured.captured_queries]
    assert not [sql for sql in told if "employees_grant" in sql and "FOR " in sql]
    assert not [sql for sql in told if "started_at" in sql and "COUNT(" in sql]
