"""Manual calls: a person tries a read tool by hand, as a run with one call and no model."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models.functions import Now

from agents.accounts.models import Membership, Role
from agents.employees.models import Employee
from agents.employees.toolboxes import load_toolbox
from agents.platform.refusals import Conflict, Invalid, NotFound
from agents.runs import stops
from agents.runs.engine.cards import seal
from agents.runs.engine.context import RunContext, build_context
from agents.runs.engine.transaction import new_run_transaction
from agents.runs.events import PassStarted, RunStarted
from agents.runs.models import Message, Origin, Pass, Run, ToolCall
from tools.contract import Level, Tool, ToolError, canonical_json
from tools.toolbox.permissions import Permission, Verdict

_CALL_ID = "call_1"


@dataclass(frozen=True)
class ManualCall:
    """A call that a person enters by hand, under the grants of an employee.

    Attributes:
        tool: the tool's name.
        params: the values as the person typed them.
    """

    employee_id: int
    tool: str
    params: Mapping[str, Any]


def can_run_by_hand(tool: Tool, level: str) -> bool:
    """Return True if people may call the tool by hand at this level: only read tools that are not
    system tools."""
    return level == Level.READ.value and not tool.is_system


def submit(member: Membership, wanted: ManualCall) -> Run:
    """Start a run whose only pass is already recorded; a worker executes the call, and then the run
    ends.

    Raises:
        Forbidden, NotFound
        Conflict: the call would need approval, or is forbidden.
        Invalid: the params are wrong; the field is `params.NAME`, or `params` for all of them
            together.
    """
    member.require(Role.OPERATOR, "try tools")
    known = load_toolbox(member.organization_id).get_tool(wanted.tool)
    if known is None or known.is_system:
        raise NotFound(f"there is no tool {wanted.tool!r}")
    run = _build_run(member, _find_employee(member, wanted.employee_id))
    context = build_context(run)
    tool, verdict = _judge_call(context, wanted)
    run.task = f"{tool.title}, tried by hand"
    run.title = run.task[:200]
    snapshot = context.keep_snapshot()
    with new_run_transaction(run) as tx:
        Message.objects.create(run=run, number=1, author=member.user, text=run.task)
        Pass.objects.create(
            run=run,
            number=1,
            response=_build_request(tool, verdict),
            messages_upto=1,
            snapshot=snapshot,
        )
        _build_call(run, tool, verdict).save(force_insert=True)
        tx.publish(RunStarted(member.user.get_username()))
        tx.publish(PassStarted(1))
    return run


def _find_employee(member: Membership, employee_id: int) -> Employee:
    own = Employee.objects.select_related("organization").filter(
        organization_id=member.organization_id
    )
    employee = own.filter(pk=employee_id).first()
    if employee is None:
        raise NotFound(f"there is no employee {employee_id}")
    if not employee.is_active:
        raise Conflict(f"{employee.name} is not active")
    stops.refuse_stopped(employee)
    return employee


def _build_run(member: Membership, employee: Employee) -> Run:
    """Build the run without its task, which is set once the tool is known."""
    return Run(
        organization=employee.organization,
        employee=employee,
        created_by=member.user,
        origin=Origin.MANUAL,
        mode=employee.mode,
        pass_number=1,
        asked_pass=1,
        max_passes=1,
        messages_heard=1,
        deadline_at=Now() + timedelta(minutes=employee.run_minutes)
        if employee.run_minutes
        else None,
    )


def _judge_call(context: RunContext, wanted: ManualCall) -> tuple[Tool, Verdict]:
    """Return the tool, in the version that the employee uses, with the verdict; refuse the call
    unless it may run at read level without approval."""
    tool, verdict = context.judge(wanted.tool, dict(wanted.params))
    if tool is not None and not can_run_by_hand(tool, tool.level.value):
        raise Conflict(
            f"{tool.title} cannot be tried: it has {tool.level} level, and only read tools can be tried"
        )
    if verdict.error is not None:
        raise _convert_error(verdict.error)
    assert tool is not None, "without a tool, the verdict is an error"
    if verdict.permission is not Permission.AUTO or verdict.level is not Level.READ:
        raise Conflict(f"this call would need approval: {verdict.reason}")
    return tool, verdict


def _convert_error(error: ToolError) -> Invalid | Conflict:
    """Convert the gate's error: to Invalid if it names a param, else to Conflict."""
    if error.parameter:
        return Invalid(f"params.{error.parameter}", error.message)
    return Conflict(error.message)


def _build_call(run: Run, tool: Tool, verdict: Verdict) -> ToolCall:
    call = ToolCall(
        organization_id=run.organization_id,
        run=run,
        pass_number=1,
        index=0,
        provider_call_id=_CALL_ID,
        level=str(verdict.level),
        why=verdict.reason,
        judgment=verdict.as_json(),
    )
    seal(call, tool, verdict.params)
    return call


def _build_request(tool: Tool, verdict: Verdict) -> dict[str, Any]:
    """Build the response in which a model would request this call, because each pass needs a
    response."""
    function = {"name": tool.name, "arguments": canonical_json(verdict.params)}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": _CALL_ID, "type": "function", "function": function}],
    }
