"""Names of runs: `system.titleRun` asks the employee's model, beside the run and never in its way.

The request is given up when the run is cancelled or fails, and when the run, its employee, everything or this tool is
stopped; a run that has succeeded still gets its name. What a request used is the run's, and its event carries it to the
statistics; what was used by one that is given up before its answer, no server says.
"""

import threading
import time
from functools import partial

from agents.engine import budgets, lease, prices
from agents.engine.connections import let_go
from agents.engine.gate import Workplace, rules_for_all, workplace
from agents.engine.model_access import provider_config
from agents.engine.toolbox import installed_toolbox
from agents.events import recording
from agents.models import EventType, ProviderKind
from agents.providers.base import ModelRequest, ProviderError, ProviderStopped, Usage
from agents.providers.choice import provider_for
from tools.contract import ErrorCode, ToolError
from tools.toolbox import PreparedCall, run_call

TOOL = "system.titleRun"
_MOST_S = 30.0


def title_run(run_id: int) -> bool:
    """Ask for the run's name and write it; False if it has one, nobody can be asked, or the answer is no name.

    Whatever goes wrong, the run keeps the beginning of its task as its name.
    """
    place = workplace(run_id)
    tool, policy = installed_toolbox().get_tool(TOOL), installed_toolbox().policy
    if tool is None or {tool.name, tool.id} & policy.disabled:
        return False
    if not place.run.is_unnamed or place.run.employee.provider.kind == ProviderKind.SCRIPTED:
        return False
    run = place.run
    if run.status in lease.UNSUCCESSFUL or not run.may_start or run.organization.stopped_at or run.employee.stopped_at:
        return False
    if tool.name in rules_for_all(run.organization_id).stopped:
        return False
    used: list[Usage] = []
    with lease.watched(run_id, tool.name) as stopped:
        context = place.platform_context(partial(_ask, place, used, stopped))
        result = run_call(PreparedCall(0, tool, {"task": place.run.task}, context, _MOST_S))
    return bool(used) and _record(place, used[0], result.data["title"] if result.success else "")


def _record(place: Workplace, usage: Usage, title: str) -> bool:
    """Count what the request used, and give the run its name, if there is one and it has none yet."""
    price = prices.price_of(place.run.employee.provider, place.run.employee.model)
    cost = price.of(usage) if price else None
    with recording(place.run.pk) as record:
        run = record.run
        run.input_tokens += usage.input_tokens
        run.output_tokens += usage.output_tokens
        run.estimated_tokens += usage.total if usage.is_estimated else 0
        run.cost_micros += cost or 0
        is_named = bool(title) and run.is_unnamed
        if is_named:
            run.title = title
        record.publish(
            EventType.RUN_TITLED,
            **({"title": title} if is_named else {}),
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cost=prices.in_units(cost),
        )
    return is_named


def _ask(place: Workplace, used: list[Usage], stopped: threading.Event, prompt: str) -> str:
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
        response = provider_for(config).ask(request, lambda _: None, stopped)
    except (ProviderError, ProviderStopped, budgets.BudgetExhausted) as error:
        if isinstance(error, ProviderError) and error.usage is not None:
            used.append(error.usage)
        raise ToolError(ErrorCode.OPERATION_FAILED, "The model could not be asked.", attempted=False) from error
    late = response.late_usage.wait() if response.late_usage is not None else None
    used.append(late or response.usage)
    if response.cut_off:
        raise ToolError(ErrorCode.OPERATION_FAILED, "The model's answer was cut off.")
    return response.text
