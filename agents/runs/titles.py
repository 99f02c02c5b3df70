"""Give runs titles: `system.titleRun` asks the employee's model in parallel with the run, without
delaying it.

The request is abandoned when the run is cancelled or fails, or when the employee, the organization
or this tool is stopped; a run that has succeeded still gets its title. The usage counts toward the
run, unless the request is abandoned before its response: servers do not report that usage.
"""

import threading
import time
from functools import partial

from agents.employees.models import ProviderKind
from agents.employees.provider_settings import load_provider_config
from agents.employees.toolboxes import get_installed_toolbox
from agents.platform.database_connections import release_connection
from agents.platform.log_context import correlate, log_for_organization
from agents.providers.base import ModelRequest, ProviderError, ProviderStopped, Usage
from agents.providers.registry import build_provider
from agents.runs import budgets
from agents.runs.engine.context import RunContext, load_context, load_organization_rules
from agents.runs.engine.lease import UNSUCCESSFUL, watch_side_work
from agents.runs.engine.transaction import run_transaction
from agents.runs.events import RunTitled
from tools.contract import ErrorCode, ToolError
from tools.toolbox import PreparedCall, run_call

TOOL = "system.titleRun"
_TIMEOUT_S = 30.0


def title_run(run_id: int) -> bool:
    """Ask the model for the run's title and store it; return False if the run does not get one, for
    example because it already has a title or the response is unusable.

    A run without a title keeps the beginning of its task.
    """
    context = load_context(run_id)
    log_for_organization(context.run.organization_id)
    correlate(context.run.correlation)
    tool, policy = get_installed_toolbox().get_tool(TOOL), get_installed_toolbox().policy
    if tool is None or {tool.name, tool.id} & policy.disabled:
        return False
    if not context.run.is_unnamed or context.run.employee.provider.kind == ProviderKind.SCRIPTED:
        return False
    run = context.run
    if (
        run.status in UNSUCCESSFUL
        or not run.may_start
        or run.organization.stopped_at
        or run.employee.stopped_at
    ):
        return False
    if tool.name in load_organization_rules(run.organization_id).stopped:
        return False
    used: list[Usage] = []
    with watch_side_work(run_id, tool.name) as stopped:
        tool_context = context.build_system_context(partial(_ask, context, used, stopped))
        result = run_call(
            PreparedCall(0, tool, {"task": context.run.task}, tool_context, _TIMEOUT_S)
        )
    return bool(used) and _record(context, used[0], result.data["title"] if result.success else "")


def _record(context: RunContext, usage: Usage, title: str) -> bool:
    """Count the request's usage, and set the run's title if it has none yet; return True if the
    title was set."""
    price = budgets.find_price(context.run.employee.provider, context.run.employee.model)
    cost = price.compute_cost(usage) if price else None
    with run_transaction(context.run.pk) as tx:
        run = tx.run
        run.input_tokens += usage.input_tokens
        run.output_tokens += usage.output_tokens
        run.estimated_tokens += usage.total if usage.is_estimated else 0
        run.cost_micros += cost or 0
        is_accepted = bool(title) and run.is_unnamed
        if is_accepted:
            run.title = title
        tx.publish(
            RunTitled(
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cost=budgets.to_currency(cost),
                title=title if is_accepted else None,
            )
        )
    return is_accepted


def _ask(context: RunContext, used: list[Usage], stopped: threading.Event, prompt: str) -> str:
    """Send the prompt to the employee's model, without tools; add the usage to `used`, and return
    the text."""
    try:
        budgets.check_budgets(context.run)
        config = load_provider_config(context.run.employee)
        release_connection()
        request = ModelRequest(
            model=context.run.employee.model,
            messages=[{"role": "user", "content": prompt}],
            tools=[],
            deadline=time.monotonic() + min(_TIMEOUT_S, config.timeout_s),
        )
        response = build_provider(config).ask(request, lambda _: None, stopped)
    except (ProviderError, ProviderStopped, budgets.BudgetExhausted) as error:
        if isinstance(error, ProviderError) and error.usage is not None:
            used.append(error.usage)
        raise ToolError(
            ErrorCode.OPERATION_FAILED, "The request to the model failed.", attempted=False
        ) from error
    late = response.late_usage.wait() if response.late_usage is not None else None
    used.append(late or response.usage)
    if response.cut_off:
        raise ToolError(ErrorCode.OPERATION_FAILED, "The model's response was cut off.")
    return response.text
