"""Employees who ask people questions and delegate tasks to each other."""

from __future__ import annotations

import json
from typing import Any

from agents.accounts.models import Membership
from agents.approvals import questions
from agents.employees.models import Employee, Grant, ModelProvider, ProviderKind
from agents.runs.models import Approval, ApprovalKind, Run
from tests.probes import PROBES
from tests.scripts import write_script
from tests.workshop import DATA_TOOLS, Workshop, again, call

ASK = "employee.askHuman"
DELEGATE = "employee.delegate"


def ask(question: str = "Which one?", **more: Any) -> dict[str, Any]:
    """Return a call that asks a person."""
    return call(ASK, question=question, **more)


def delegate(employee: str = "Kim", task: str = "Look it up") -> dict[str, Any]:
    """Return a call that delegates a task to a colleague."""
    return call(DELEGATE, employee=employee, task=task)


def may_ask(employee: Employee) -> None:
    Grant.objects.create(employee=employee, tool=ASK)


def may_delegate(employee: Employee, *colleagues: Employee) -> Grant:
    """Let the employee delegate tasks to these colleagues only."""
    named = [each.pk for each in colleagues]
    return Grant.objects.update_or_create(
        employee=employee, tool=DELEGATE, defaults={"delegates": named}
    )[0]


def hire(workshop: Workshop, name: str, *script: dict[str, Any], answer: str = "Done.") -> Employee:
    """Add an employee with a script to the organization. The employee may use the same tools as the
    workshop's employee, and may ask questions."""
    script_entry = {"title": "anything", "task": ".*", "passes": list(script), "answer": answer}
    provider = ModelProvider.objects.create(
        organization=workshop.organization,
        name=f"Script of {name}",
        kind=ProviderKind.SCRIPTED,
    )
    employee = Employee.objects.create(
        organization=workshop.organization,
        name=name,
        job_title="Researcher",
        provider=provider,
        model=write_script(json.dumps({"scripts": [script_entry]})),
    )
    names = [probe.name for probe in PROBES] + list(DATA_TOOLS)
    Grant.objects.bulk_create([Grant(employee=employee, tool=tool) for tool in names])
    may_ask(employee)
    return employee


def question_of(run: Run) -> Approval:
    """Return the run's oldest pending question."""
    waiting = Approval.objects.filter(
        run=run, kind=ApprovalKind.QUESTION, status="pending"
    ).order_by("pk")
    return waiting.select_related("tool_call")[0]


def answer(
    workshop: Workshop, card: Approval, text: str = "That one.", by: Membership | None = None
) -> Approval:
    return questions.answer(by or workshop.operator, card.pk, questions.Answer(text))


def child_of(run: Run) -> Run:
    """Return the run's only child."""
    return Run.objects.get(parent=run)


def drive_all(workshop: Workshop, run: Run) -> Run:
    """Drive the run, then its child runs and their children, and finally the run again; return the
    run."""
    workshop.drive(run)
    for child in Run.objects.filter(parent=run).order_by("pk"):
        drive_all(workshop, child)
    workshop.drive(run)
    return again(run)
