"""Names of runs: `system.titleRun` asks the employee's model, beside the run and never in its way.

The request is given up when the run is cancelled or fails, and when the run, its employee, everything or this tool is
stopped; a run that has succeeded still gets its name. What a request used is the run's, and its event carries it to the
statistics; what was used by one that is given up before its answer, no server says.
"""

import threading
import time
from functools import partial

from agents.employees import budgets
from agents.employees.models import ProviderKind
from agents.employees.toolboxes import installed_toolbox
from agents.platform.database_condition import release_connection
from agents.providers.base import ModelRequest, ProviderError, ProviderStopped, Usage
from agents.providers.choice import provider_for
from agents.runs.engine.context import RunContext, load_context, provider_config, rules_for_all
from agents.runs.engine.lease import UNSUCCESSFUL, watch_side_work
from agents.runs.engine.transaction import run_transaction
from agents.runs.events import RunTitled
from tools.contract import ErrorCode, ToolError
from tools.toolbox import PreparedCall, run_call

TOOL = "system.titleRun"
_MOST_S = 30.0


def title_run(run_id: int) -> bool:
    """Ask for the run's name and write it; False if it has one, nobody can be asked, or the answer is no name.

    Whatever goes wrong, the run keeps the beginning of its task as its name.
    """
    context = load_context(run_id)
    tool, policy = installed_toolbox().get_tool(TOOL), installed_toolbox().policy
    if tool is None or {tool.name, tool.id} & policy.disabled:
        return False
    if not context.run.is_unnamed or context.run.employee.provider.kind == ProviderKind.SCRIPTED:
        return False
    run = context.run
    if run.status in UNSUCCESSFUL or not run.may_start or run.organization.stopped_at or run.employee.stopped_at:
        return False
    if tool.name in rules_for_all(run.organization_id).stopped:
        return False
    used: list[Usage] = []
    with watch_side_work(run_id, tool.name) as stopped:
        asking = context.system_context(partial(_ask, context, used, stopped))
        result = run_call(PreparedCall(0, tool, {"task": context.run.task}, asking, _MOST_S))
    return bool(used) and _record(context, used[0], result.data["title"] if result.success else "")


def _record(context: RunContext, usage: Usage, title: str) -> bool:
    """Count what the request used, and give the run its name, if there is one and it has none yet."""
    price = budgets.price_of(context.run.employee.provider, context.run.employee.model)
    cost = price.of(usage) if price else None
    with run_transaction(context.run.pk) as tx:
        run = tx.run
        run.input_tokens += usage.input_tokens
        run.output_tokens += usage.output_tokens
        run.estimated_tokens += usage.total if usage.is_estimated else 0
        run.cost_micros += cost or 0
        is_named = bool(title) and run.is_unnamed
        if is_named:
            run.title = title
        tx.publish(
            RunTitled(
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cost=budgets.in_units(cost),
                title=title if is_named else None,
            )
        )
    return is_named


def _ask(context: RunContext, used: list[Usage], stopped: threading.Event, prompt: str) -> str:
    """The employee's model, asked one thing without tools."""
    try:
        budgets.check_budgets(context.run)
        config = provider_config(context)
        release_connection()
        request = ModelRequest(
            model=context.run.employee.model,
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
