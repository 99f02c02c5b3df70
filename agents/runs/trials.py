"""Trying a read tool by hand: a run of one call, which a person writes and no model is asked about."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models.functions import Now

from agents.accounts.models import Membership, Role
from agents.employees.models import Employee
from agents.employees.toolboxes import toolbox_of
from agents.platform.refusals import Conflict, Forbidden, Invalid, NotFound
from agents.runs import stops
from agents.runs.engine.cards import seal
from agents.runs.engine.context import build_context
from agents.runs.engine.transaction import new_run_transaction
from agents.runs.events import PassStarted, RunStarted
from agents.runs.models import Message, Origin, Pass, Run, ToolCall
from tools.contract import Level, Tool, ToolError, canonical_json
from tools.toolbox import Toolbox
from tools.toolbox.permissions import Permission, Verdict

_CALL_ID = "call_1"


@dataclass(frozen=True)
class Trial:
    """One call as a person wrote it, on behalf of an employee whose grants judge it.

    Attributes:
        tool: its name.
        params: raw, as they were typed.
    """

    employee_id: int
    tool: str
    params: Mapping[str, Any]


def can_be_tried(toolbox: Toolbox, tool: Tool, level: str) -> bool:
    """Whether people may try it, at the level that it has here: it only reads, and is what answers to its name."""
    return level == Level.READ.value and not tool.is_system and toolbox.get_tool(tool.name) is tool


def submit(member: Membership, trial: Trial) -> Run:
    """Start a run whose only pass is recorded already: a worker executes its call as any other, and the run ends.

    Raises:
        Forbidden, NotFound, Conflict: the gate would not let the call run by itself.
        Invalid: `params.NAME` is wrong, or `params` as a whole.
    """
    if not member.may(Role.OPERATOR):
        raise Forbidden(f"{member.as_noun} may not try tools")
    toolbox = toolbox_of(member.organization_id)
    tool = toolbox.get_tool(trial.tool)
    if tool is None or tool.is_system:
        raise NotFound(f"there is no tool {trial.tool!r}")
    if not can_be_tried(toolbox, tool, tool.level.value):
        raise Conflict(f"{tool.title} is not for trying: it is of {tool.level} level")
    run = _new_run(member, _employee(member, trial.employee_id), tool)
    verdict = _verdict(run, trial)
    with new_run_transaction(run) as tx:
        Message.objects.create(run=run, number=1, author=member.user, text=run.task)
        Pass.objects.create(run=run, number=1, response=_request(tool, verdict), messages_upto=1)
        _call(run, tool, verdict).save(force_insert=True)
        tx.publish(RunStarted(member.user.get_username()))
        tx.publish(PassStarted(1))
    return run


def _employee(member: Membership, employee_id: int) -> Employee:
    own = Employee.objects.select_related("organization").filter(organization_id=member.organization_id)
    employee = own.filter(pk=employee_id).first()
    if employee is None:
        raise NotFound(f"there is no employee {employee_id}")
    if not employee.is_active:
        raise Conflict(f"{employee.name} is not active")
    stops.refuse_stopped(employee)
    return employee


def _new_run(member: Membership, employee: Employee, tool: Tool) -> Run:
    title = f"{tool.title}, tried by hand"
    return Run(
        organization=employee.organization,
        employee=employee,
        created_by=member.user,
        origin=Origin.MANUAL,
        task=title,
        title=title[:200],
        mode=employee.mode,
        pass_number=1,
        asked_pass=1,
        max_passes=1,
        messages_heard=1,
        deadline_at=Now() + timedelta(minutes=employee.run_minutes) if employee.run_minutes else None,
    )


def _verdict(run: Run, trial: Trial) -> Verdict:
    """What the gate says about it, if that is auto at read level; the worker asks it again before the start."""
    _, verdict = build_context(run).judge(trial.tool, dict(trial.params))
    if verdict.error is not None:
        raise _refusal(verdict.error)
    if verdict.permission is not Permission.AUTO or verdict.level is not Level.READ:
        raise Conflict(f"this call would not run by itself: {verdict.reason}")
    return verdict


def _refusal(error: ToolError) -> Invalid | Conflict:
    """Of wrong params, the first one is named; anything else has to do with the employee or the tool."""
    if error.parameter:
        return Invalid(f"params.{error.parameter}", error.message)
    return Conflict(error.message)


def _call(run: Run, tool: Tool, verdict: Verdict) -> ToolCall:
    call = ToolCall(
        organization_id=run.organization_id,
        run=run,
        pass_number=1,
        index=0,
        provider_call_id=_CALL_ID,
        level=str(verdict.level),
        why=verdict.reason[:300],
    )
    seal(call, tool, verdict.params)
    return call


def _request(tool: Tool, verdict: Verdict) -> dict[str, Any]:
    """The call as a model would have asked for it."""
    function = {"name": tool.name, "arguments": canonical_json(verdict.params)}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": _CALL_ID, "type": "function", "function": function}],
    }
