"""Who works here, with which tools: what the gate needs to judge a call of this run."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Model

from agents.engine.toolbox import installed_toolbox
from agents.models import Employee, Grant, ModelProvider, Organization, Run, ToolCall
from agents.statements import Prepared, Row, columns_of, row_of
from tools.contract import Level, Person, Tool, ToolContext, ToolResult
from tools.contract.portions import call_of
from tools.toolbox.conditions import Condition
from tools.toolbox.permissions import Grants, Policy, Verdict, verdict_for


@dataclass(frozen=True)
class Workplace:
    """A run with everything that its calls are judged by, as it was when it was loaded.

    `run` comes with its employee, provider, organisation and creator.
    """

    run: Run
    grants: Grants

    @property
    def policy(self) -> Policy:
        """What holds for every employee of this installation."""
        return installed_toolbox().policy

    def judge(self, tool_name: str, arguments: str | dict[str, object]) -> tuple[Tool | None, Verdict]:
        """The tool of that name, and the verdict about calling it so."""
        tool = installed_toolbox().get_tool(tool_name)
        return tool, verdict_for(tool, arguments, self.grants, self.policy, name=tool_name)

    def judging_anew(self) -> "Workplace":
        """The same with the grants as they are now, because they may have changed while the model was asked."""
        run = self.run
        return replace(self, grants=grants_of(run.employee, run.mode, run.organization.plan_features))

    def tools(self) -> list[Tool]:
        """What this employee may use."""
        return installed_toolbox().available_tools(self.grants, self.policy)

    def context(self, call: ToolCall) -> ToolContext:
        """What the tool is told; it comes from the run, never from params."""
        run = self.run
        user = run.created_by
        person = Person(str(user.pk), user.get_full_name() or user.get_username()) if user else Person()
        return ToolContext(
            organization_id=run.organization_id,
            organization_name=run.organization.name,
            user=person,
            employee_id=str(run.employee_id),
            employee_name=run.employee.name,
            run_id=str(run.pk),
            correlation_id=f"run-{run.pk}",
            call_id=str(call.pk or ""),
            idempotency_key=call.idempotency_key,
            mode=run.mode,
            credentials=installed_toolbox().environment.credentials,
            earlier_result=partial(_earlier_result, run.pk),
        )


def _earlier_result(run_id: int, handle: str) -> ToolResult | None:
    """The whole result of a call of this run; None for every other handle."""
    call_id = call_of(handle)
    if call_id is None:
        return None
    kept = ToolCall.objects.filter(run_id=run_id, pk=call_id).values_list("result", flat=True).first()
    return ToolResult.from_json(kept) if kept else None


_PARTS: tuple[tuple[str, type[Model]], ...] = (
    ("", Run),
    ("employee__", Employee),
    ("employee__provider__", ModelProvider),
    ("organization__", Organization),
    ("created_by__", User),
)
_JOINED = Prepared(
    lambda run_id: (
        Run.objects.filter(pk=run_id)
        .order_by()
        .values_list(*(column for prefix, model in _PARTS for column in columns_of(model, prefix)))
    )
)
_GRANTED = Prepared(
    lambda employee_id: (
        Grant.objects.filter(employee_id=employee_id).order_by().values_list("tool", "level", "conditions")
    )
)


def _with_its_people(run_id: int) -> Run:
    """The run with its employee, provider, organisation and creator.

    Raises:
        Run.DoesNotExist
    """
    rows = _JOINED.rows(run_id)
    if not rows:
        raise Run.DoesNotExist(f"run {run_id}")
    values = iter(rows[0])
    run = _next_row(Run, values)
    run.employee = _next_row(Employee, values)
    run.employee.provider = _next_row(ModelProvider, values)
    run.organization = _next_row(Organization, values)
    creator = _next_row(User, values)
    run.created_by = creator if run.created_by_id else None
    return run


def _next_row(model: type[Row], values: Iterator[Any]) -> Row:
    return row_of(model, tuple(islice(values, len(model._meta.concrete_fields))))


def workplace(run_id: int) -> Workplace:
    """Load a run with its employee's grants, in two queries."""
    run = _with_its_people(run_id)
    return Workplace(run, grants_of(run.employee, run.mode, run.organization.plan_features))


def grants_of(employee: Employee, mode: str, features: Iterable[str]) -> Grants:
    """What the employee may use now, in one query."""
    rows = _GRANTED.rows(employee.pk)
    return Grants(
        tools=frozenset(tool for tool, _, _ in rows),
        mode=mode,
        capabilities=frozenset(employee.capabilities),
        features=frozenset(features),
        raised={tool: Level(level) for tool, level, _ in rows if level},
        conditions={tool: tuple(map(Condition.from_json, kept)) for tool, _, kept in rows if kept},
    )
