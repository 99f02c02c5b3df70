"""Helpers that create standing grants for a workshop's employee."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from agents.accounts.models import Membership
from agents.employees.models import Grant as AllowedTool
from agents.runs.models import Approval, ApprovalStatus, Run, RunStatus
from agents.standing_grants.making import make_grant
from agents.standing_grants.models import StandingGrant
from agents.standing_grants.proposals import ProposedGrant
from tests.workshop import Workshop, again, asking, die_while_executing
from tools.contract import Tool
from tools.toolbox.conditions import Condition, Rule
from tools.toolbox.toolbox import Toolbox


def equals(param: str, value: Any) -> Condition:
    return Condition(param, Rule.EQUALS, value)


def propose_for(
    workshop: Workshop, tool: str, *conditions: Condition, **more: Any
) -> ProposedGrant:
    """Propose a standing grant whose calls may have only the params that have conditions. `more`
    replaces fields of the proposal."""
    params = tuple(sorted({condition.param for condition in conditions}))
    proposal = ProposedGrant(
        tool,
        workshop.employee.pk,
        None,
        params,
        conditions,
        max_uses=10,
        lifetime=timedelta(hours=1),
    )
    return replace(proposal, **more)


def grant(
    workshop: Workshop, tool: str, *conditions: Condition, by: Membership | None = None, **more: Any
) -> StandingGrant:
    """Create a standing grant in the name of this member, by default the approver."""
    return make_grant(by or workshop.approver, propose_for(workshop, tool, *conditions, **more))


def answered(run: Run) -> list[Approval]:
    """List the run's cards that a standing grant approved."""
    return list(Approval.objects.filter(run=run, standing_grant__isnull=False).order_by("pk"))


def is_waiting(run: Run) -> bool:
    return Approval.objects.filter(run=run, status=ApprovalStatus.PENDING).exists()


def allow(workshop: Workshop, toolbox: Toolbox, tool: Tool) -> None:
    """Install this tool, and let the workshop's employee use it."""
    toolbox.register(tool)
    AllowedTool.objects.create(employee=workshop.employee, tool=tool.name)


def die_after_responses(workshop: Workshop, *calls: dict[str, Any]) -> Run:
    """Start a run whose driver dies after standing grants have approved these calls, but before any
    of the calls starts; return the run."""
    workshop.play(asking(*calls))
    run = workshop.submit()
    die_while_executing(run)
    assert len(answered(run)) == len(calls)
    return run


def requeue(run: Run) -> Run:
    """Put the killed driver's run back into the queue immediately."""
    Run.objects.filter(pk=run.pk).update(
        status=RunStatus.QUEUED, lease_owner="", lease_expires_at=None
    )
    return again(run)


def resume(workshop: Workshop, run: Run) -> Run:
    """Let another driver resume the killed driver's run immediately."""
    return workshop.drive(requeue(run))
