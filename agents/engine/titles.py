"""Names of runs: `system.titleRun` asks the employee's model, beside the run and never in its way."""

import threading
import time
from functools import partial

from agents.engine import budgets, prices
from agents.engine.connections import let_go
from agents.engine.gate import Workplace, rules_for_all, workplace
from agents.engine.passes import provider_config
from agents.engine.toolbox import installed_toolbox
from agents.events import recording
from agents.models import EventType, ProviderKind
from agents.providers.base import ModelRequest, ProviderError, Usage
from agents.providers.choice import provider_for
from tools.contract import ErrorCode, ToolError
from tools.toolbox import PreparedCall, run_call

TOOL = "system.titleRun"
_MOST_S = 30.0


def title_run(run_id: int) -> bool:
    """Ask for the run's name and write it; False if it has one, nobody can be asked, or the answer is no name.

    It costs tokens, which are the run's. Whatever goes wrong, the run keeps the beginning of its task as its name.
    """
    place = workplace(run_id)
    tool, policy = installed_toolbox().get_tool(TOOL), installed_toolbox().policy
    if tool is None or {tool.name, tool.id} & policy.disabled:
        return False
    if not place.run.is_unnamed or place.run.employee.provider.kind == ProviderKind.SCRIPTED:
        return False
    run = place.run
    if not run.may_start or run.organization.stopped_at or run.employee.stopped_at:
        return False
    if tool.name in rules_for_all(run.organization_id).stopped:
        return False
    used: list[Usage] = []
    context = place.platform_context(partial(_ask, place, used))
    result = run_call(PreparedCall(0, tool, {"task": place.run.task}, context, _MOST_S))
    usage = used[0] if used else Usage()
    with recording(run_id) as record:
        run = record.run
        run.input_tokens += usage.input_tokens
        run.output_tokens += usage.output_tokens
        run.cost_micros += prices.cost_of(place.run.employee.provider, place.run.employee.model, usage)
        if not result.success or not run.is_unnamed:
            return False
        run.title = result.data["title"]
        record.publish(EventType.RUN_TITLED, title=run.title)
    return True


def _ask(place: Workplace, used: list[Usage], prompt: str) -> str:
    """The employee's model, asked one thing without tools."""
    try:
        budgets.check(place.run)
        config = provider_config(place)
        let_go()
        request = ModelRequest(
            model=place.run.employee.model,
            messages=[{"role": "user", "content": prompt}],
            tools=[],
            deadline=time.monotonic() + min(_MOST_S, config.timeout_s),
        )
        response = provider_for(config).ask(request, lambda _: None, threading.Event())
    except (ProviderError, budgets.BudgetExhausted) as error:
        raise ToolError(ErrorCode.OPERATION_FAILED, "The model could not be asked.", attempted=False) from error
    used.append(response.usage)
    return response.text
