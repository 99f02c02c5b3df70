"""A requested call before it is recorded: judged, sealed, and ready to become a row."""

from dataclasses import dataclass
from typing import Any

from agents.engine import lease
from agents.engine.cards import Effect, effect_of, seal
from agents.engine.gate import Workplace, same
from agents.engine.timing import timing
from agents.models import ToolCall
from agents.models.tool_call import new_idempotency_key
from agents.providers.base import RequestedCall
from tools.contract import ErrorCode, ToolError, fingerprint
from tools.toolbox.permissions import Decision, Verdict

ROUNDS = 3
"""How often what is asked for at a time is judged and previewed, where permissions change meanwhile."""


@dataclass
class Planned:
    """A requested call as it will be recorded.

    Attributes:
        verdict: the gate's.
        decision, error: what becomes of it: the verdict's, unless something else forbids it.
    """

    row: ToolCall
    verdict: Verdict
    decision: Decision
    error: ToolError | None = None
    effect: Effect | None = None

    def refuse(self, error: ToolError) -> None:
        self.decision, self.error = Decision.FORBIDDEN, error

    def judged_anew(self, now: "Planned") -> "Planned":
        """This one, with what its card shows, if the verdict is still the same; else the one that was judged now."""
        return self if same(self.verdict, now.verdict) else now

    def judged_at_last(self, now: "Planned") -> "Planned":
        """The same where nothing can be previewed any more: a call that would need another card is refused."""
        plan = self.judged_anew(now)
        if plan is not self and plan.decision == Decision.ASK:
            message = "What is permitted changed while this call was prepared."
            hint = "Ask for it again."
            plan.refuse(ToolError(ErrorCode.LIMIT_EXCEEDED, message, recovery_hint=hint, attempted=False))
        return plan


@dataclass(frozen=True)
class Wanted:
    """What a tool or a recipe asks for."""

    tool: str
    arguments: dict[str, Any]
    provider_call_id: str = ""


def judged(place: Workplace, index: int, requested: RequestedCall | Wanted) -> Planned:
    """The call with the gate's verdict; one that may not run has its error."""
    tool, verdict = place.judge(requested.tool, requested.arguments)
    row = ToolCall(
        organization_id=place.run.organization_id,
        run_id=place.run.pk,
        index=index,
        provider_call_id=requested.provider_call_id,
        tool=requested.tool[:120],
        level=str(verdict.level),
        why=verdict.reason[:300],
        idempotency_key=new_idempotency_key(),
    )
    row.params_hash = row.signature = fingerprint([requested.tool, requested.arguments])
    if tool is None or verdict.error is not None:
        return Planned(row, verdict, Decision.FORBIDDEN, verdict.error)
    seal(row, tool, verdict.params)
    return Planned(row, verdict, verdict.decision)


def preview(held: lease.Claim, place: Workplace, plan: Planned) -> None:
    """Compute what the card of a call will show; a call whose effect is an error may not run."""
    tool = place.tool_of(plan.row)
    if tool is None:
        message = f"{plan.row.tool} is not installed any more."
        plan.refuse(ToolError(ErrorCode.TOOL_NOT_FOUND, message, attempted=False))
        return
    held.expects(timing().preview_s)
    try:
        plan.effect = effect_of(tool, plan.row.params, place.context(plan.row))
    except ToolError as error:
        plan.refuse(error)


def too_many(message: str) -> ToolError:
    """The refusal of a call that is one more than may be asked for at a time."""
    return ToolError(ErrorCode.LIMIT_EXCEEDED, message, recovery_hint="Ask again after these.", attempted=False)


def called_by(parent: ToolCall, number: int, planned: Planned) -> ToolCall:
    """The row of a planned call that a tool or a recipe asks for, not a model: it stands in the pass of its parent.

    Args:
        number: of the run's rows in that pass.
    """
    row = planned.row
    row.parent_call_id, row.pass_number, row.index = parent.pk, parent.pass_number, number
    row.provider_call_id = f"of-{parent.pk}-{number}"
    return row
