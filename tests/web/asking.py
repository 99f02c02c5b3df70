"""Helpers that create questions and delegated tasks with the engine's own functions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models.functions import Now

from agents.employees.models import Employee, Grant
from agents.runs.engine.suspension import suspend
from agents.runs.engine.transaction import run_transaction
from agents.runs.models import Approval, CallStatus, Run, RunStatus, ToolCall
from tests.world import World
from tools.contract import Delegation, Question, Suspend

ASK = "employee.askHuman"
DELEGATE = "employee.delegate"


def suspend_call(
    world: World, tool: str, waits_for: Suspend, run: Run | None = None, **params: Any
) -> ToolCall:
    """Create a call in a waiting run that is suspended until its result arrives."""
    run = run or world.run()
    more: dict[str, Any] = {
        "result": None,
        "content": "",
        "finished_at": None,
        "duration_ms": None,
        "deadline_at": Now() + timedelta(seconds=30),
    }
    more["exec_epoch"] = run.lease_epoch
    call = world.call(
        run, tool, status=CallStatus.EXECUTING, started_at=Now(), params=params, **more
    )
    with run_transaction(run.pk) as tx:
        suspend(tx, call, waits_for, 5)
    return ToolCall.objects.get(pk=call.pk)


def ask_question(
    world: World, text: str = "Which address?", *choices: str, run: Run | None = None
) -> Approval:
    """Create a question that waits for an answer."""
    call = suspend_call(world, ASK, Question(text, choices), run, question=text)
    return Approval.objects.get(tool_call=call)


def delegate_task(world: World, name: str = "Kim", task: str = "Look it up") -> Run:
    """Delegate a task to a colleague, and return the run of the delegated task."""
    colleague = Employee.objects.filter(
        organization=world.acme, name=name
    ).first() or create_colleague(world, name)
    Grant.objects.update_or_create(
        employee=world.employee, tool=DELEGATE, defaults={"delegates": [colleague.pk]}
    )
    call = suspend_call(world, DELEGATE, Delegation(name, task), employee=name, task=task)
    return Run.objects.get(parent_call=call)


def create_colleague(world: World, name: str) -> Employee:
    provider = world.employee.provider
    return Employee.objects.create(
        organization=world.acme, name=name, job_title="Researcher", provider=provider
    )


def end_child(child: Run, answer: str = "It is 3.", **more: Any) -> None:
    values = {
        "status": RunStatus.SUCCEEDED,
        "exit_reason": "final_answer",
        "answer": answer,
        "finished_at": Now(),
    }
    Run.objects.filter(pk=child.pk).update(**{**values, **more})
