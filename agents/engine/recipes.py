"""Recipes: a suspended call whose steps are run one after the other, each judged, carded and recorded as a call."""

from agents.engine import lease, suspended, turns
from agents.engine.gate import Workplace, workplace
from agents.engine.inner_calls import MOST_DEPTH, next_place
from agents.engine.inserting import insert_calls
from agents.engine.planning import ROUNDS, Planned, Wanted, called_by, judged, preview
from agents.engine.turns import Turn
from agents.events import Recording
from agents.models import ToolCall
from tools.contract import ErrorCode, Recipe, ToolError, ToolResult
from tools.toolbox.isolation import isolated
from tools.toolbox.outcome import checked_result
from tools.toolbox.permissions import Decision


def expand(held: lease.Claim) -> Turn:
    """Take one recipe a step further, or give it its result; and find the next move."""
    parent = turns.expandable(held.run_id).first()
    if parent is None:
        with held.recording() as record:
            return turns.settle(record, held)
    place = workplace(held.run_id)
    try:
        following = _next(place, parent)
    except ToolError as failure:
        following = ToolResult.failed(failure)
    if not isinstance(following, ToolResult):
        return _take_step(held, place, parent, following)
    with held.recording() as record:
        if _may_go_on(record, parent):
            suspended.end(record, parent, following)
        return turns.settle(record, held)


def _may_go_on(record: Recording, parent: ToolCall) -> bool:
    return record.run.may_start and turns.expandable(record.run.pk).filter(pk=parent.pk).exists()


def _take_step(held: lease.Claim, place: Workplace, parent: ToolCall, following: tuple[Wanted, Planned]) -> Turn:
    """Record a step, judged by what is permitted then; if that has changed meanwhile, it is judged anew before."""
    (step, plan), rounds = following, ROUNDS
    while True:
        rounds -= 1
        if plan.decision is Decision.ASK and plan.effect is None:
            preview(held, place, plan)
        with held.recording() as record:
            if not _may_go_on(record, parent):
                return turns.settle(record, held)
            now = place.judging_anew()
            is_as_judged = now.judges_like(place)
            if is_as_judged or not rounds:
                plan = plan if is_as_judged else plan.judged_at_last(judged(now, 0, step))
                plan.row = called_by(parent, next_place(parent), plan)
                insert_calls(record, [plan], slots=0)
                return turns.settle(record, held)
        place, plan = now, plan.judged_anew(judged(now, 0, step))


def _next(place: Workplace, parent: ToolCall) -> tuple[Wanted, Planned] | ToolResult:
    """The next step as it is judged in `place`, or the result once there is none.

    Raises:
        ToolError: a step did not succeed, or the recipe itself fails.
    """
    recipe = place.tool_of(parent)
    if not isinstance(recipe, Recipe):
        raise ToolError(ErrorCode.TOOL_NOT_FOUND, f"{parent.tool} is not installed any more.", attempted=False)
    done = list(ToolCall.objects.filter(parent_call=parent).order_by("index"))
    results = [ToolResult.from_json(call.result or {}) for call in done]
    if results and not results[-1].success:
        raise _stopped_at(len(done), len(recipe.steps), done[-1], results[-1])
    params = isolated(recipe, "load_params", lambda: recipe.load_params(parent.params))
    if len(done) >= len(recipe.steps):
        return isolated(recipe, "result", lambda: checked_result(recipe, recipe.result(params, results), 0))
    step = recipe.steps[len(done)]
    if _depth(parent) >= MOST_DEPTH and isinstance(place.toolbox.get_tool(step.tool), Recipe):
        raise ToolError(ErrorCode.LIMIT_EXCEEDED, f"Recipes hold recipes at most {MOST_DEPTH} deep.", attempted=False)

    def following() -> tuple[Wanted, Planned]:
        wanted = Wanted(step.tool, step.params(params, results))
        return wanted, judged(place, 0, wanted)

    return isolated(recipe, f"step {len(done) + 1}", following)


def _depth(call: ToolCall) -> int:
    """How many calls stand above this one."""
    depth = 0
    while call.parent_call is not None:
        call, depth = call.parent_call, depth + 1
    return depth


def _stopped_at(number: int, of: int, call: ToolCall, result: ToolResult) -> ToolError:
    said = result.error.message if result.error else result.summary
    what = f"Step {number} of {of}, {call.tool}, did not succeed ({call.get_status_display().lower()}): {said}"
    done = "" if number == 1 else " The steps before it were done."
    return ToolError(ErrorCode.OPERATION_FAILED, f"{what}{done}", recovery_hint="Do not repeat what was done.")
