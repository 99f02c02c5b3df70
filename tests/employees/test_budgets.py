"""Budgets: checked before each model call, explained when used up, and raised by an admin."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.platform.refusals import Conflict
from agents.runs import actions, budgets
from agents.runs.budgets import BudgetExhausted, Month
from agents.runs.engine.context import load_context
from agents.runs.models import ExitReason, Pass, Run, RunStatus
from tests.employees.test_costs import ADD, priced, usage
from tests.features import feature
from tests.model_responses import Call, Response
from tests.model_server import ModelServer, failing
from tests.workshop import TASK, Workshop, again, passes, payloads

pytestmark = pytest.mark.django_db(transaction=True)

USED = usage(900, 100)
MONTH = f"{datetime.now(UTC):%B %Y}"


@pytest.fixture
def busy(workshop: Workshop, model: ModelServer) -> ModelServer:
    """A model that never finishes, and uses 1,000 tokens and 0.001 USD per pass."""
    priced(workshop, fake=("1", "1"))
    workshop.allow_passes(4)
    adding = [
        Call("utility__calculate", {"operation": "add", "a": 1, "b": number}) for number in range(4)
    ]
    model.script(
        *[Response(calls=(call,), usage=USED) for call in adding],
        Response(text="Enough.", usage=USED),
    )
    return model


def limit(workshop: Workshop, **limits: Any) -> None:
    """Set budgets for the employee, and for the organization if their names begin with `all_`."""
    for name, value in limits.items():
        row: Any = workshop.organization if name.startswith("all_") else workshop.employee
        setattr(row, name.removeprefix("all_"), value)
        row.save()


BUDGETS: dict[str, tuple[Any, str]] = {
    "run_tokens": (2_000, "This run has used 2,000 of its 2,000 tokens."),
    "run_cost": (Decimal("0.0020"), "This run has used 0.002000 of its 0.002000 USD."),
    "month_tokens": (2_000, f"Dana has used 2,000 of its 2,000 tokens for {MONTH}."),
    "month_cost": (Decimal("0.0020"), f"Dana has used 0.002000 of its 0.002000 USD for {MONTH}."),
    "all_month_tokens": (2_000, f"Acme has used 2,000 of its 2,000 tokens for {MONTH}."),
    "all_month_cost": (
        Decimal("0.0020"),
        f"Acme has used 0.002000 of its 0.002000 USD for {MONTH}.",
    ),
}


@feature(
    "Costs, budgets, long runs",
    "Token and cost budgets for a run, an employee's month and the organization's month",
    "agents/runs/budgets.py",
)
@pytest.mark.parametrize("name", BUDGETS)
def test_a_run_ends_at_its_budget_and_names_the_budget(
    workshop: Workshop, busy: ModelServer, name: str
) -> None:
    value, words = BUDGETS[name]
    limit(workshop, **{name: value})
    run = workshop.work()
    assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.BUDGET_EXHAUSTED)
    assert run.problem.startswith(words)
    assert words in run.answer
    assert "1 + 0 = 1" in run.answer
    assert len(passes(run)) == len(busy.requests) == 2


@pytest.mark.parametrize("name", BUDGETS)
def test_a_budget_one_token_above_the_use_allows_one_more_pass(
    workshop: Workshop, busy: ModelServer, name: str
) -> None:
    value = BUDGETS[name][0]
    limit(workshop, **{name: value + (Decimal("0.0001") if isinstance(value, Decimal) else 1)})
    run = workshop.work()
    assert run.exit_reason == ExitReason.BUDGET_EXHAUSTED
    assert len(busy.requests) == 3


@feature(
    "Costs, budgets, long runs",
    "A run continues after its budget was raised",
    "agents/runs/actions.py",
)
@pytest.mark.parametrize("name", BUDGETS)
def test_a_run_continues_after_its_budget_was_raised(
    workshop: Workshop, busy: ModelServer, name: str
) -> None:
    value, words = BUDGETS[name]
    limit(workshop, **{name: value})
    run = workshop.work()
    with pytest.raises(BudgetExhausted, match=words.replace(".", r"\.")):
        actions.continue_run(workshop.operator, run.pk)
    assert again(run).status == RunStatus.FAILED
    limit(workshop, **{name: 10 * value})
    run = workshop.drive(actions.continue_run(workshop.operator, run.pk))
    assert (run.status, run.answer) == (RunStatus.SUCCEEDED, "Enough.")


@feature(
    "Costs, budgets, long runs",
    "A monthly limit on an employee's minutes",
    "agents/runs/budgets.py",
)
def test_only_the_models_response_time_counts_toward_the_minutes(
    workshop: Workshop, busy: ModelServer
) -> None:
    limit(workshop, month_minutes=2, run_tokens=2_000)
    run = workshop.work()
    assert run.problem.startswith("This run")
    Pass.objects.filter(run=run).update(duration_ms=60_000)
    limit(workshop, run_tokens=None)
    with pytest.raises(
        BudgetExhausted, match=rf"Dana has used 2\.0 of its 2\.0 minutes for {MONTH}\."
    ):
        workshop.submit()
    limit(workshop, month_minutes=3)
    assert (
        workshop.drive(actions.continue_run(workshop.operator, run.pk)).status
        == RunStatus.SUCCEEDED
    )


def test_the_time_of_unusable_responses_counts_toward_the_minutes(
    workshop: Workshop, model: ModelServer
) -> None:
    limit(workshop, month_minutes=2)
    model.enqueue(Response())
    run = workshop.work()
    assert run.unusable_ms == payloads(run, "answer_unusable")[0]["duration_ms"] > 0
    assert list_used(workshop) == [run.unusable_ms]
    Run.objects.filter(pk=run.pk).update(unusable_ms=120_000)
    with pytest.raises(
        BudgetExhausted, match=rf"Dana has used 2\.0 of its 2\.0 minutes for {MONTH}\."
    ):
        workshop.submit()


def test_the_time_of_a_refused_request_does_not_count_toward_the_minutes(
    workshop: Workshop, model: ModelServer
) -> None:
    limit(workshop, month_minutes=2)
    model.enqueue(failing(400))
    assert workshop.work().unusable_ms == 0
    assert list_used(workshop) == [0]


def list_used(workshop: Workshop) -> list[int]:
    month = budgets.get_current_month()
    return [
        each.used
        for each in budgets.list_employee_budgets(workshop.employee, workshop.organization, month)
    ]


@pytest.mark.parametrize(
    "name", ["month_tokens", "month_cost", "all_month_tokens", "all_month_cost"]
)
def test_a_new_run_is_refused_with_the_reason_once_the_monthly_budget_is_used_up(
    workshop: Workshop, busy: ModelServer, name: str
) -> None:
    value, words = BUDGETS[name]
    limit(workshop, **{name: value})
    workshop.work()
    with pytest.raises(Conflict, match=words.replace(".", r"\.")) as refused:
        workshop.submit()
    assert refused.value.code == "budget_exhausted"
    assert Run.objects.count() == 1


def test_a_resent_request_returns_its_run_even_if_the_monthly_budget_is_used_up(
    workshop: Workshop, busy: ModelServer
) -> None:
    run = workshop.work(client_request_id="order-1")
    limit(workshop, month_tokens=1)
    again_, is_new = actions.submit(
        workshop.operator, actions.Submission(workshop.employee.pk, TASK, "", "order-1")
    )
    assert (again_.pk, is_new) == (run.pk, False)


def test_the_engine_enforces_the_budget_on_runs_queued_before_it_was_used_up(
    workshop: Workshop, busy: ModelServer
) -> None:
    limit(workshop, month_tokens=2_000)
    first, second = workshop.submit(), workshop.submit()
    assert workshop.drive(first).exit_reason == ExitReason.BUDGET_EXHAUSTED
    second = workshop.drive(second)
    assert second.exit_reason == ExitReason.BUDGET_EXHAUSTED
    assert passes(second) == []
    assert "Nothing was done." in second.answer


def test_a_run_counts_toward_the_budget_of_the_month_in_which_it_started(
    workshop: Workshop, busy: ModelServer
) -> None:
    limit(workshop, month_tokens=4_000, all_month_tokens=4_000)
    old = workshop.work()
    month = Month.containing(old.created_at)
    Run.objects.filter(pk=old.pk).update(created_at=month.start - timedelta(microseconds=1))
    assert [
        each.used
        for each in budgets.list_employee_budgets(workshop.employee, workshop.organization, month)
    ] == [
        0,
        0,
    ]
    assert workshop.submit().status == RunStatus.QUEUED
    with pytest.raises(
        BudgetExhausted, match=Month.containing(month.start - timedelta(1)).__str__()
    ):
        actions.continue_run(workshop.operator, old.pk)
    Run.objects.filter(pk=old.pk).update(created_at=month.start)
    with pytest.raises(BudgetExhausted):
        workshop.submit()


def test_months_are_in_utc() -> None:
    last = datetime(2026, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    assert (
        str(Month.containing(last)),
        str(Month.containing(last + timedelta(microseconds=1))),
    ) == (
        "December 2026",
        "January 2027",
    )
    assert Month.containing(last).end == datetime(2027, 1, 1, tzinfo=UTC)
    assert (
        str(Month.containing(datetime.fromisoformat("2027-01-01T00:30:00+01:00")))
        == "December 2026"
    )


def test_a_used_up_budget_does_not_affect_a_waiting_run_until_its_next_model_call(
    workshop: Workshop, model: ModelServer
) -> None:
    record = workshop.record()
    update = Call(
        "data__updateRecord", {"record_id": str(record.pk), "changes": {"name": "Acme AG"}}
    )
    model.enqueue(Response(calls=(update,), usage=USED))
    run = workshop.work()
    limit(workshop, month_tokens=1)
    workshop.approve(workshop.card(run))
    run = workshop.drive(again(run))
    record.refresh_from_db()
    assert record.name == "Acme AG"
    assert run.exit_reason == ExitReason.BUDGET_EXHAUSTED


def test_an_employee_budget_counts_its_own_runs_and_an_organization_budget_counts_all(
    workshop: Workshop, busy: ModelServer
) -> None:
    run = workshop.work()
    Pass.objects.update(duration_ms=60_000)
    colleague = workshop.employee
    colleague.pk, colleague.name = None, "Robin"
    colleague.month_tokens = colleague.month_minutes = 10
    colleague._state.adding = True
    colleague.save()
    limit(workshop, all_month_tokens=9_000)
    found = budgets.list_employee_budgets(
        colleague, workshop.organization, budgets.get_current_month()
    )
    assert [each.used for each in found] == [0, 0, run.input_tokens + run.output_tokens]


def test_checking_budgets_needs_queries_only_if_there_is_a_monthly_budget(
    workshop: Workshop, busy: ModelServer
) -> None:
    run = workshop.work()
    for limits, queries in (
        ({"run_tokens": 9_000}, 0),
        ({"month_tokens": 9_000, "all_month_cost": 9}, 1),
        ({"month_minutes": 9}, 3),
    ):
        limit(workshop, **limits)
        place = load_context(run.pk)
        with CaptureQueriesContext(
            connection,
        ) as seen:
            budgets.check_budgets(place.run)
        assert len(seen) == queries


@feature(
    "Costs, budgets, long runs",
    "The time limit of a run also applies while the model writes",
    "agents/runs/engine/next_step.py",
)
def test_a_model_that_is_still_writing_at_the_deadline_is_interrupted(
    workshop: Workshop, model: ModelServer
) -> None:
    model.enqueue(Response(calls=(ADD,)), Response(text="Never heard.", hold="middle"))
    run = workshop.submit()
    soon = Run.objects.values_list("created_at", flat=True).get(pk=run.pk) + timedelta(seconds=2)
    Run.objects.filter(pk=run.pk).update(deadline_at=soon)
    run = workshop.drive(run)
    assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.DEADLINE)
    assert run.answer == "Never"
    assert run.finished_at is not None
    assert run.finished_at - soon < timedelta(seconds=5)
