"""The context of a run: its employee with grants, toolbox, policy and model, loaded and judged anew in one place."""

import json
import logging
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import Any

from django.conf import settings

from agents.accounts.models.versions import take_note
from agents.employees.models import Employee, ModelProvider, ProviderKind, ToolRule
from agents.employees.toolboxes import credentials_of, reach_for, toolbox_of
from agents.platform.encrypted import Unreadable
from agents.platform.known_secrets import KNOWN_SECRETS
from agents.platform.queries.engine import GRANTS, RUN_WITH_PEOPLE, GrantRow
from agents.providers.base import ModelSettings, ProviderConfig, ProviderError
from agents.providers.choice import provider_for
from agents.providers.wire_names import plain_form
from agents.runs.engine.compaction import num_ctx_of
from agents.runs.models import Run, ToolCall
from tools.contract import SHORTEST_SECRET, Level, Person, Tool, ToolContext, ToolResult, storable_json
from tools.contract.portions import call_of
from tools.toolbox import Toolbox
from tools.toolbox.conditions import Condition
from tools.toolbox.permissions import Grants, Policy, Verdict, refusal_for, verdict_for

logger = logging.getLogger(__name__)


LARGEST_SESSION = 64_000
"""Characters of a run's session data as JSON."""
DELEGATE = "employee.delegate"
"""The tool that hands a task to one of those whom its grant names."""


@dataclass(frozen=True)
class RunContext:
    """A run with everything that its calls are judged by, as it was when it was loaded.

    `run` comes with its employee, provider, organisation and creator.
    """

    run: Run
    grants: Grants
    toolbox: Toolbox
    """What the organisation has."""
    policy: Policy
    """What held for all its employees then."""
    _sessions: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The session data that each call got, by its idempotency key."""

    def judge(self, tool_name: str, arguments: str | dict[str, object]) -> tuple[Tool | None, Verdict]:
        """The tool of that name, and the verdict about calling it so."""
        tool = self.toolbox.get_tool(tool_name)
        if tool is None and (refused := self._refuse_wire_name(tool_name)) is not None:
            return None, refused
        return tool, verdict_for(tool, arguments, self.grants, self.policy, name=tool_name)

    def _refuse_wire_name(self, wire: str) -> Verdict | None:
        """Refuse a tool that no request offered, called by the wire form of its name.

        Offered wire forms were turned into internal names before: a granted tool is never found here.
        """
        for tool in self.toolbox.tools():
            is_meant = tool.name != wire and plain_form(tool.name) == wire
            if is_meant and refusal_for(tool, self.grants, self.policy) is not None:
                return verdict_for(tool, {}, self.grants, self.policy)
        return None

    def find_tool(self, call: ToolCall) -> Tool | None:
        """Return the tool as which the call was judged here; None if it was not."""
        return self.toolbox.get_tool(f"{call.tool}@{call.version}")

    def with_current_rules(self) -> "RunContext":
        """The same with the permissions as they are now; what starts is judged so under the run's lock.

        Somebody may have changed them while a model was asked, a preview was made or a tool was at work.
        """
        grants = grants_of(self.run.employee_id, self.run.mode)
        toolbox = toolbox_of(self.run.organization_id)
        return replace(self, grants=grants, toolbox=toolbox, policy=toolbox.policy)

    def has_same_rules(self, other: "RunContext") -> bool:
        """Whether both come to the same verdict about every call."""
        same_rules = (self.grants, self.policy) == (other.grants, other.policy)
        return same_rules and self.toolbox.promises_like(other.toolbox)

    def system_context(self, ask_model: Callable[[str], str]) -> ToolContext:
        """What a system tool is told, for which no call is recorded; it gets no credentials."""
        run = self.run
        return ToolContext(
            organization_id=run.organization_id,
            organization_name=run.organization.name,
            employee_id=str(run.employee_id),
            employee_name=run.employee.name,
            run_id=str(run.pk),
            correlation_id=f"run-{run.pk}",
            mode=run.mode,
            ask_model=ask_model,
        )

    def keep_session(self, run: Run, call: ToolCall) -> None:
        """Write what the call has changed in its session data on the run, which is locked; the last one wins."""
        mine, before = self._sessions.pop(call.idempotency_key, {}), self.run.session
        if mine == before:
            return
        changed = {key: value for key, value in mine.items() if key not in before or before[key] != value}
        kept = {key: value for key, value in run.session.items() if key in mine or key not in before} | changed
        try:
            text = storable_json(kept)
        except (ValueError, TypeError, RecursionError) as error:
            logger.error("call %s: its session data is not kept: %s", call.pk, error)  # noqa: TRY400 - it says it all
            return
        if len(text) > LARGEST_SESSION:
            logger.error("call %s: its session data has %d characters and is not kept", call.pk, len(text))
            return
        run.session = kept

    @cached_property
    def tools(self) -> list[Tool]:
        """What this employee may use, by name."""
        return self.toolbox.available_tools(self.grants, self.policy)

    def tool_context(self, call: ToolCall) -> ToolContext:
        """What the tool is told; it comes from the run, never from params."""
        run = self.run
        user = run.created_by
        person = Person(str(user.pk), user.get_full_name() or user.get_username()) if user else Person()
        return ToolContext(
            organization_id=run.organization_id,
            organization_name=run.organization.name,
            user=person,
            employee_id=str(run.employee_id),
            employee_name=run.employee.name,
            run_id=str(run.pk),
            correlation_id=f"run-{run.pk}",
            call_id=str(call.pk or ""),
            idempotency_key=call.idempotency_key,
            mode=run.mode,
            level=Level(call.level) if call.level else None,
            session=self._sessions.setdefault(call.idempotency_key, deepcopy(run.session)),
            credentials=credentials_of(run.organization),
            reach=reach_for(run.organization_id),
            earlier_result=partial(_earlier_result, run.pk),
        )


def _earlier_result(run_id: int, handle: str) -> ToolResult | None:
    """The whole result of a call of this run; None for every other handle."""
    call_id = call_of(handle)
    if call_id is None:
        return None
    kept = ToolCall.objects.filter(run_id=run_id, pk=call_id).values_list("result", flat=True).first()
    return ToolResult.from_json(kept) if kept else None


def load_context(run_id: int) -> RunContext:
    """Load a run with its employee's grants, in two queries.

    Raises:
        Run.DoesNotExist
    """
    row = RUN_WITH_PEOPLE.row(run_id)
    if row is None:
        raise Run.DoesNotExist(f"run {run_id}")
    run = row.run
    run.employee, run.organization = row.employee, row.organization
    run.employee.provider = row.provider
    run.created_by = row.creator if run.created_by_id else None
    return build_context(run)


def build_context(run: Run) -> RunContext:
    """Build the context of a run that is loaded already, or not saved yet."""
    grants = grants_of(run.employee_id, run.mode)
    toolbox = toolbox_of(run.organization_id)
    return RunContext(run, grants, toolbox, toolbox.policy)


def grants_of(employee_id: int, mode: str) -> Grants:
    """Read what the employee may use now, in one query; without a grant, capabilities do not matter either."""
    rows = GRANTS.unconverted_rows(employee_id)
    if rows:
        take_note(rows[0].organization_id, rows[0].tools_version)
    return _make_grants(rows, mode)


@lru_cache(maxsize=128)
def _make_grants(unconverted: tuple[GrantRow, ...], mode: str) -> Grants:
    """Make the grants of these rows; two passes of an employee mostly find the same."""
    rows = GRANTS.convert(unconverted)
    return Grants(
        tools=frozenset(row.tool for row in rows),
        mode=mode,
        capabilities=frozenset(json.loads(rows[0].capabilities) if rows else ()),
        features=frozenset(json.loads(rows[0].features) if rows else ()),
        raised={row.tool: _highest(row.level, row.level_for_all) for row in rows if row.level or row.level_for_all},
        conditions={row.tool: tuple(map(Condition.from_json, row.conditions)) for row in rows if row.conditions},
        stopped={row.tool: row.stopped_by for row in rows if row.stopped_by is not None},
        delegates=frozenset(pk for row in rows if row.tool == DELEGATE for pk in row.delegates),
    )


def has_same_verdict(one: Verdict, other: Verdict) -> bool:
    """Return True if both say the same about a call; the reason of a refusal is its error's message."""
    first, second = ((each.permission, each.level, each.reason, each.params) for each in (one, other))
    return first == second


def colleagues_of(employee: Employee, ids: Iterable[int]) -> list[Employee]:
    """Those other employees of the same organisation, by name, whether they are active or not."""
    same = Employee.objects.filter(organization_id=employee.organization_id, pk__in=ids).exclude(pk=employee.pk)
    return list(same.order_by("name"))


def rules_for_all(organization_id: int) -> Grants:
    """What the organisation says of tools for all its employees: levels raised, tools stopped; in one query."""
    rules = list(ToolRule.objects.filter(organization_id=organization_id))
    return Grants(
        raised={rule.tool: Level(rule.level) for rule in rules if rule.level},
        stopped={rule.tool: rule.stopped_by for rule in rules if rule.stopped_at is not None},
    )


def _highest(*levels: str | None) -> Level:
    return max((Level(level) for level in levels if level), key=lambda level: level.rank)


def provider_config(context: RunContext) -> ProviderConfig:
    """Return the configuration of the employee's provider.

    Raises:
        ProviderError: the employee or its provider was switched off.
    """
    employee = context.run.employee
    provider = employee.provider
    if not employee.is_active or not provider.is_active:
        name = employee.name if not employee.is_active else f"the provider {provider.name!r}"
        raise ProviderError("bad_settings", f"{name} is switched off", transient=False)
    return replace(config_of(provider, float(provider.timeout_s)), settings=_settings_of(employee))


def _settings_of(employee: Employee) -> ModelSettings:
    return ModelSettings(employee.temperature, employee.max_tokens, num_ctx_of(employee), employee.extra_body)


def check_provider(provider: ModelProvider, timeout_s: float) -> None:
    """Ask the provider for something that costs nothing.

    Raises:
        ProviderError: it cannot be used, or says that it lacks the model of an employee.
    """
    named = provider.employees.filter(is_active=True).exclude(model="").order_by("model")
    models = tuple(named.values_list("model", flat=True).distinct())
    provider_for(replace(config_of(provider, timeout_s), models=models)).check()


def address_refusal(kind: str, base_url: str, seconds: float) -> str:
    """Say why this address of a provider is not allowed; empty if it is, or if its host is not found in time.

    Raises:
        ProviderError: the address can never work.
    """
    config = ProviderConfig(kind, _base_url(kind, base_url), private_hosts=settings.PRIVATE_PROVIDERS)
    return provider_for(config).refusal(seconds)


def _base_url(kind: str, base_url: str) -> str:
    return base_url or (settings.OLLAMA_HOST if kind == ProviderKind.OLLAMA else "")


def config_of(provider: ModelProvider, timeout_s: float) -> ProviderConfig:
    """NextStep the provider's row into its adapter's configuration.

    Raises:
        ProviderError: its key was encrypted with a key that is gone.
    """
    if isinstance(provider.api_key, Unreadable):
        raise ProviderError("bad_key", f"the key of the provider {provider.name!r} cannot be read", transient=False)
    if len(provider.api_key) >= SHORTEST_SECRET:
        KNOWN_SECRETS.learn([provider.api_key], owner=provider.organization_id)
    return ProviderConfig(
        kind=provider.kind,
        base_url=_base_url(provider.kind, provider.base_url),
        api_key=provider.api_key,
        script=provider.script,
        timeout_s=timeout_s,
        private_hosts=settings.PRIVATE_PROVIDERS,
    )
