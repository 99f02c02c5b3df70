"""Who works here, with which tools: what the gate needs to judge a call of this run."""

import json
import logging
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Model, OuterRef, Subquery, TextField
from django.db.models.functions import Cast

from agents.engine.connected import reach_for, toolbox_of
from agents.engine.credentials import credentials_of
from agents.models import Employee, Grant, ModelProvider, Organization, Run, ToolCall, ToolRule
from agents.models.versions import take_note
from agents.providers.wire_names import plain_form
from agents.statements import Prepared, columns_of, next_row
from tools.contract import Level, Person, Tool, ToolContext, ToolResult, storable_json
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
class Workplace:
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

    def tool_of(self, call: ToolCall) -> Tool | None:
        """What the call was judged as here; None if it was not."""
        return self.toolbox.get_tool(f"{call.tool}@{call.version}")

    def judging_anew(self) -> "Workplace":
        """The same with the permissions as they are now; what starts is judged so under the run's lock.

        Somebody may have changed them while a model was asked, a preview was made or a tool was at work.
        """
        grants = grants_of(self.run.employee_id, self.run.mode)
        toolbox = toolbox_of(self.run.organization_id)
        return replace(self, grants=grants, toolbox=toolbox, policy=toolbox.policy)

    def judges_like(self, other: "Workplace") -> bool:
        """Whether both come to the same verdict about every call."""
        same_rules = (self.grants, self.policy) == (other.grants, other.policy)
        return same_rules and self.toolbox.promises_like(other.toolbox)

    def platform_context(self, ask_model: Callable[[str], str]) -> ToolContext:
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

    def context(self, call: ToolCall) -> ToolContext:
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


_PARTS: tuple[tuple[str, type[Model]], ...] = (
    ("", Run),
    ("employee__", Employee),
    ("employee__provider__", ModelProvider),
    ("organization__", Organization),
    ("created_by__", User),
)
_JOINED = Prepared(
    lambda run_id: (
        Run.objects.filter(pk=run_id)
        .order_by()
        .values_list(*(column for prefix, model in _PARTS for column in columns_of(model, prefix)))
    )
)
_RULE = ToolRule.objects.filter(organization=OuterRef("employee__organization"), tool=OuterRef("tool")).order_by()
_GRANTED = Prepared(
    lambda employee_id: (
        Grant.objects.filter(employee_id=employee_id)
        .annotate(
            level_for_all=Subquery(_RULE.values("level")),
            stopped_by=Subquery(_RULE.filter(stopped_at__isnull=False).values("stopped_by")),
            capabilities=Cast("employee__capabilities", TextField()),
            features=Cast("employee__organization__plan_features", TextField()),
        )
        .order_by()
        .values_list(
            *("tool", "level", "conditions", "level_for_all", "delegates", "stopped_by"),
            *("employee__organization_id", "employee__organization__tools_version", "capabilities", "features"),
        )
    )
)


def _with_its_people(run_id: int) -> Run:
    """The run with its employee, provider, organisation and creator.

    Raises:
        Run.DoesNotExist
    """
    rows = _JOINED.rows(run_id)
    if not rows:
        raise Run.DoesNotExist(f"run {run_id}")
    values = iter(rows[0])
    run = next_row(Run, values)
    run.employee = next_row(Employee, values)
    run.employee.provider = next_row(ModelProvider, values)
    run.organization = next_row(Organization, values)
    creator = next_row(User, values)
    run.created_by = creator if run.created_by_id else None
    return run


def workplace(run_id: int) -> Workplace:
    """Load a run with its employee's grants, in two queries."""
    run = _with_its_people(run_id)
    return place_of(run)


def place_of(run: Run) -> Workplace:
    """The same of a run that is loaded already, or that is still to be."""
    grants = grants_of(run.employee_id, run.mode)
    toolbox = toolbox_of(run.organization_id)
    return Workplace(run, grants, toolbox, toolbox.policy)


def grants_of(employee_id: int, mode: str) -> Grants:
    """What the employee may use now, in one query; whoever is granted nothing has no use for capabilities either."""
    rows = tuple(_GRANTED.raw_rows(employee_id))
    if rows:
        take_note(*rows[0][6:8])
    return _grants_from(rows, mode)


@lru_cache(maxsize=128)
def _grants_from(raw_rows: tuple[tuple[Any, ...], ...], mode: str) -> Grants:
    """What these rows say; two passes of an employee mostly find the same."""
    rows = _GRANTED.converted(raw_rows)
    capabilities, features = rows[0][-2:] if rows else ("[]", "[]")
    return Grants(
        tools=frozenset(tool for tool, *_ in rows),
        mode=mode,
        capabilities=frozenset(json.loads(capabilities)),
        features=frozenset(json.loads(features)),
        raised={tool: _highest(own, for_all) for tool, own, _, for_all, *_ in rows if own or for_all},
        conditions={tool: tuple(map(Condition.from_json, kept)) for tool, _, kept, *_ in rows if kept},
        stopped={tool: stopped_by for tool, _, _, _, _, stopped_by, *_ in rows if stopped_by is not None},
        delegates=frozenset(pk for tool, _, _, _, ids, *_ in rows if tool == DELEGATE for pk in ids),
    )


def same(one: Verdict, other: Verdict) -> bool:
    """Whether both say the same about a call; the reason of a refusal is its error's message."""
    told, told_by_other = ((each.decision, each.level, each.reason, each.params) for each in (one, other))
    return told == told_by_other


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
