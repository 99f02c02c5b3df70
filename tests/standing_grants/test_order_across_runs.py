"""A call that a standing grant approved waits for delegated tasks, questions and other cards of its
pass; in a delegated run, it also waits for the calls planned before the delegation."""

from __future__ import annotations

from typing import Any

import pytest

from agents.employees.models import Employee, Grant
from agents.runs.models import CallStatus, Run
from agents.worker.sweeper import sweep_once
from tests.recorder import Recorder
from tests.standing_grants.granting import equals, grant
from tests.standing_grants.test_order import (
    FIRST,
    SECOND,
    WAITS,
    assert_a_person_is_asked,
    assert_waits_for,
    find_held,
    grant_second,
)
from tests.workshop import Workshop, again, asking, call, calls, statuses
from tests.workshop.colleagues import (
    answer,
    ask,
    child_of,
    delegate,
    hire,
    may_ask,
    may_delegate,
    question_of,
)
from tests.workshop.invariants import assert_invariants
from tools.toolbox.conditions import Condition, Otherwise, Rule

pytestmark = pytest.mark.django_db(transaction=True)


class TestADelegation:
    @pytest.fixture
    def kim(self, workshop: Workshop, recorder: Recorder) -> Employee:
        """A colleague who makes the second write, and then another write that waits for a
        person."""
        other = call("probe.effect", name="other")
        kim = hire(workshop, "Kim", asking(SECOND), asking(other))
        may_delegate(workshop.employee, kim)
        grant(workshop, "probe.effect", equals("name", "second"), employee_id=kim.pk)
        grant_second(workshop)
        return kim

    def start(self, workshop: Workshop, *requested: dict[str, Any]) -> tuple[Run, Run]:
        """Start a run with these calls, one of which delegates; return it with the child run."""
        workshop.play(asking(*requested))
        run = workshop.work()
        workshop.drive(child_of(run))
        return again(run), child_of(run)

    def test_lets_the_colleagues_call_wait_for_a_write_before_it(
        self, workshop: Workshop, recorder: Recorder, kim: Employee
    ) -> None:
        run, child = self.start(workshop, FIRST, delegate())
        assert statuses(child) == [CallStatus.APPROVED]
        assert find_held(child).after_id == calls(run)[0].pk
        assert not recorder.effects
        workshop.approve(workshop.card(run))
        workshop.drive(run)
        sweep_once()
        workshop.drive(child)
        assert statuses(child)[0] == CallStatus.SUCCEEDED
        assert_invariants()

    def test_leaves_the_colleagues_call_to_a_person_if_a_write_before_it_is_denied(
        self, workshop: Workshop, recorder: Recorder, kim: Employee
    ) -> None:
        run, child = self.start(workshop, FIRST, delegate())
        workshop.deny(workshop.card(run))
        sweep_once()
        workshop.drive(child)
        assert_a_person_is_asked(child, "was denied")

    def test_does_not_let_the_colleagues_call_wait_for_a_write_after_it(
        self, workshop: Workshop, recorder: Recorder, kim: Employee
    ) -> None:
        _, child = self.start(workshop, delegate(), FIRST)
        assert statuses(child) == [CallStatus.SUCCEEDED, CallStatus.AWAITING_APPROVAL]

    def test_holds_a_later_call_until_the_colleague_has_ended(
        self, workshop: Workshop, recorder: Recorder, kim: Employee
    ) -> None:
        run, child = self.start(workshop, delegate(), SECOND)
        assert statuses(run) == [CallStatus.SUSPENDED, CallStatus.APPROVED]
        assert_waits_for(run, 0)
        workshop.approve(workshop.card(child))
        workshop.drive(child)
        assert statuses(workshop.drive(run)) == [CallStatus.SUCCEEDED] * 2

    def test_that_failed_leaves_a_later_call_to_a_person(
        self, workshop: Workshop, recorder: Recorder, kim: Employee
    ) -> None:
        run, child = self.start(workshop, delegate(), SECOND)
        workshop.cancel(child)
        assert_a_person_is_asked(workshop.drive(run), "failed")


class TestACallBelowWriteLevel:
    def test_holds_a_later_call_while_a_person_decides_it(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        grant_second(workshop)
        ask_first = Condition("name", Rule.EQUALS, "x", Otherwise.ASK)
        Grant.objects.filter(tool="probe.hang").update(conditions=[ask_first.as_json()])
        workshop.play(asking(call("probe.hang", name="a"), SECOND))
        run = workshop.work()
        assert statuses(run) == WAITS
        assert_waits_for(run, 0)
        workshop.deny(workshop.card(run))
        assert_a_person_is_asked(workshop.drive(run), "was denied")

    def test_holds_a_later_call_while_a_person_answers_it(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        grant_second(workshop)
        may_ask(workshop.employee)
        workshop.play(asking(ask(), SECOND))
        run = workshop.work()
        assert_waits_for(run, 0)
        answer(workshop, question_of(run))
        assert statuses(workshop.drive(run)) == [CallStatus.SUCCEEDED] * 2
