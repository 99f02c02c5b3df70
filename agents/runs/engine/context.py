"""Load the context in which the calls of a run are judged: the employee's grants, the toolbox and
the policy."""

import json
import logging
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, lru_cache, partial
from typing import Any

from django.conf import settings

from agents.accounts.models.organization_versions import record_versions
from agents.accounts.preferences import ChosenPreferences
from agents.employees.models import Employee, ToolRule
from agents.employees.toolboxes import load_credentials, load_network_access, load_toolbox
from agents.platform.database_threads import beside_event_loop
from agents.providers.wire_names import get_plain_wire_name
from agents.runs.call_history import NOW, EmployeeCalls, Occasion
from agents.runs.engine.preapprover import GrantsInForce
from agents.runs.models import Run, ToolCall
from agents.runs.provenance import RunValues
from agents.runs.queries.engine import GRANTS, RUN_WITH_PEOPLE, GrantRow
from agents.runs.snapshots import keep_snapshot
from tools.contract import (
    Level,
    Person,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    canonical_json,
    storable_json,
)
from tools.contract.excerpts import parse_handle
from tools.toolbox import Toolbox
from tools.toolbox.conditions import Condition, has_counting_rule
from tools.toolbox.isolation import Unnamed, run_isolated
from tools.toolbox.permissions import Grants, Policy, Verdict, find_refusal, judge_call

logger = logging.getLogger(__name__)


LARGEST_SESSION = 64_000
"""The maximum size of a run's session data, in characters of JSON."""
DELEGATE = "employee.delegate"
"""The tool that delegates a task to a colleague whom the grant names."""


@dataclass(frozen=True)
class RunContext:
    """A run with all the data for judging its calls, as it was when it was loaded.

    `run` has its employee, provider, organization and creator loaded.
    """

    run: Run
    grants: Grants
    toolbox: Toolbox
    """The organization's tools."""
    policy: Policy
    """The rules for all employees of the organization."""
    edited: tuple[str, ...] = ()
    """Values that a person has just typed into a call's params."""
    standing_grants: GrantsInForce = field(default_factory=GrantsInForce)
    """The standing grants that may approve cards of the run."""
    _sessions: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The copy of the session data for each call, by idempotency key."""

    def judge(
        self, tool_name: str, arguments: str | dict[str, object], occasion: Occasion = NOW
    ) -> tuple[Tool | None, Verdict]:
        """Return the tool with this name, and the verdict on a call with these arguments."""
        tool = self.toolbox.get_granted_tool(tool_name, self.grants)
        if tool is None and (refused := self._refuse_wire_name(tool_name)) is not None:
            return refused
        earlier = EmployeeCalls(self.run, occasion)
        return tool, judge_call(
            tool, arguments, self.grants, self.policy, tool_name, self.values, earlier
        )

    def judge_start(
        self, name: str, call: ToolCall, now: datetime | None = None
    ) -> tuple[Tool | None, Verdict]:
        """Return the tool with this name, and the verdict on the start of a stored call. Limits
        over history do not count the call itself."""
        return self.judge(name, call.params, Occasion(now, call.pk, is_start=True))

    def has_counted_limit(self, tool_name: str) -> bool:
        """Return True if a limit counts this employee's calls of the tool."""
        return has_counting_rule(self.grants.conditions.get(tool_name, ()))

    def _refuse_wire_name(self, wire: str) -> tuple[Tool, Verdict] | None:
        """Return the withheld tool with this wire name, and its refusal; None if there is no such
        tool.

        The wire names of offered tools were replaced by internal names before, so a granted tool is
        never found here.
        """
        for tool in self.toolbox.tools():
            is_meant = tool.name != wire and get_plain_wire_name(tool.name) == wire
            if is_meant and find_refusal(tool, self.grants, self.policy) is not None:
                return tool, judge_call(tool, {}, self.grants, self.policy)
        return None

    def find_tool(self, call: ToolCall) -> Tool | None:
        """Return the tool in the call's version; None if the organization does not have it."""
        return self.toolbox.get_tool(f"{call.tool}@{call.version}")

    def with_current_rules(self) -> "RunContext":
        """Return this context with the current permissions, which decide under the run's lock what
        may start.

        The permissions may have changed while the model responded, a preview was computed or a tool
        ran.
        """
        grants = load_grants(self.run.employee_id, self.run.mode)
        toolbox = load_toolbox(self.run.organization_id)
        return replace(self, grants=grants, toolbox=toolbox, policy=toolbox.policy)

    def has_same_rules(self, other: "RunContext") -> bool:
        """Return True if both contexts give the same verdict about every call."""
        if self is other:
            return True
        same_rules = (self.grants, self.policy) == (other.grants, other.policy)
        return same_rules and self.toolbox.has_same_tools(other.toolbox)

    def keep_snapshot(self) -> str:
        """Store the rules as a policy snapshot, unless they are stored already; return the
        snapshot's hash."""
        return keep_snapshot(
            self.run.organization_id, self.grants, self.toolbox, self.standing_grants.loaded_ids
        )

    def record_verdict(self, call: ToolCall, verdict: Verdict) -> None:
        """Write a verdict of this context to a call that is already stored; the caller saves the
        call."""
        call.level, call.why = str(verdict.level), verdict.reason
        call.judgment = {**verdict.as_json(), "snapshot": self.keep_snapshot()}
        if verdict.provenance is not None:
            call.provenance = verdict.provenance.as_json()

    def build_system_context(self, ask_model: Callable[[str], str]) -> ToolContext:
        """Build the context for a system tool, which has no recorded call and gets no
        credentials."""
        run = self.run
        return ToolContext(
            organization_id=run.organization_id,
            organization_name=run.organization.name,
            employee_id=str(run.employee_id),
            employee_name=run.employee.name,
            run_id=str(run.pk),
            environment=settings.GADGET_ENVIRONMENT,
            correlation_id=run.correlation,
            mode=run.mode,
            ask_model=ask_model,
        )

    def save_session(self, run: Run, call: ToolCall) -> None:
        """Merge the call's changes to the session data into the locked run; if two calls change the
        same key, the last call wins."""
        original = self.run.session
        edited = self._sessions.pop(call.idempotency_key, {})
        try:
            # Check before comparing: comparing values of a tool's own class may fail.
            run_isolated(Unnamed(call.tool), "session", lambda: storable_json(edited))
        except ToolError:
            logger.error("call %s: its session data was discarded", call.pk)  # noqa: TRY400 - `run_isolated` has logged it
            return
        if edited == original:
            return
        changed = {
            key: value
            for key, value in edited.items()
            if key not in original or original[key] != value
        }
        kept = {
            key: value for key, value in run.session.items() if key in edited or key not in original
        }
        session = kept | changed
        if (size := len(canonical_json(session))) > LARGEST_SESSION:
            logger.error(
                "call %s: its session data has %d characters and was discarded", call.pk, size
            )
            return
        run.session = session

    @cached_property
    def values(self) -> RunValues:
        """The values that the run has seen, for tracing the values of a call."""
        return RunValues(self.run, self.toolbox, self.edited)

    @property
    def calls_at_once(self) -> int:
        """The maximum number of calls of the run that may execute at the same time."""
        return self.toolbox.limits.calls_at_once

    @cached_property
    def tools(self) -> list[Tool]:
        """The tools that this employee may use, sorted by name."""
        return self.toolbox.available_tools(self.grants, self.policy)

    def build_tool_context(self, call: ToolCall) -> ToolContext:
        """Build the context for the tool of a call, only from the run and never from params."""
        run = self.run
        return ToolContext(
            organization_id=run.organization_id,
            organization_name=run.organization.name,
            user=_build_person(run),
            employee_id=str(run.employee_id),
            employee_name=run.employee.name,
            run_id=str(run.pk),
            environment=settings.GADGET_ENVIRONMENT,
            correlation_id=run.correlation,
            call_id=str(call.pk or ""),
            idempotency_key=call.idempotency_key,
            mode=run.mode,
            level=Level(call.level) if call.level else None,
            session=self._sessions.setdefault(call.idempotency_key, deepcopy(run.session)),
            credentials=load_credentials(run.organization),
            reach=load_network_access(run.organization_id),
            earlier_result=partial(_load_earlier_result, run.pk),
        )


def _build_person(run: Run) -> Person:
    user = run.created_by
    if user is None:
        return Person()
    preferences = ChosenPreferences(run.organization_id, user.pk)
    return Person(str(user.pk), user.get_full_name() or user.get_username(), preferences)


@beside_event_loop
def _load_earlier_result(run_id: int, handle: str) -> ToolResult | None:
    """Return the full result of the run's call with this handle; None if the run has no such call,
    or the call has no result."""
    call_id = parse_handle(handle)
    if call_id is None:
        return None
    stored = (
        ToolCall.objects.filter(run_id=run_id, pk=call_id).values_list("result", flat=True).first()
    )
    return ToolResult.from_json(stored) if stored else None


def load_context(run_id: int) -> RunContext:
    """Load a run with its employee's grants, in two queries.

    Raises:
        Run.DoesNotExist
    """
    row = RUN_WITH_PEOPLE.fetch_one(run_id)
    if row is None:
        raise Run.DoesNotExist(f"run {run_id}")
    run = row.run
    run.employee, run.organization = row.employee, row.organization
    run.employee.provider = row.provider
    run.created_by = row.creator if run.created_by_id else None
    return build_context(run)


def build_context(run: Run) -> RunContext:
    """Build the context of a run that is already loaded or not saved yet."""
    grants = load_grants(run.employee_id, run.mode)
    toolbox = load_toolbox(run.organization_id)
    return RunContext(run, grants, toolbox, toolbox.policy)


def load_grants(employee_id: int, mode: str) -> Grants:
    """Load the employee's current grants in one query.

    If there is no grant, the capabilities are not loaded either, because no tool could use them.
    """
    rows = tuple(GRANTS.fetch_all(employee_id))
    if rows:
        record_versions(rows[0].organization_id, rows[0].tools_version)
    return _make_grants(rows, mode)


@lru_cache(maxsize=128)
def _make_grants(rows: tuple[GrantRow, ...], mode: str) -> Grants:
    """Build the grants from these rows, cached because most passes of an employee have the same
    rows."""
    conditions = {
        row.tool: tuple(map(Condition.from_json, json.loads(row.conditions))) for row in rows
    }
    return Grants(
        tools=frozenset(row.tool for row in rows),
        mode=mode,
        capabilities=frozenset(json.loads(rows[0].capabilities) if rows else ()),
        features=frozenset(json.loads(rows[0].features) if rows else ()),
        raised={
            row.tool: _get_highest(row.level, row.level_for_all)
            for row in rows
            if row.level or row.level_for_all
        },
        conditions={tool: stored for tool, stored in conditions.items() if stored},
        stopped={row.tool: row.stopped_by for row in rows if row.stopped_by is not None},
        delegates=frozenset(
            pk for row in rows if row.tool == DELEGATE for pk in json.loads(row.delegates)
        ),
        pinned={row.tool: row.version for row in rows if row.version},
    )


def has_same_verdict(one: Verdict, other: Verdict) -> bool:
    """Return True if both verdicts have the same permission, level, reason and params."""
    first, second = (
        (each.permission, each.level, each.reason, each.params) for each in (one, other)
    )
    return first == second


def list_colleagues(employee: Employee, ids: Iterable[int]) -> list[Employee]:
    """List the employees with these ids in the same organization, sorted by name, including
    inactive employees but without the employee itself."""
    colleagues = Employee.objects.filter(
        organization_id=employee.organization_id, pk__in=ids
    ).exclude(pk=employee.pk)
    return list(colleagues.order_by("name"))


def load_organization_rules(organization_id: int) -> Grants:
    """Load the organization's rules for all employees, which raise levels and stop tools, in one
    query."""
    rules = list(ToolRule.objects.filter(organization_id=organization_id))
    return Grants(
        raised={rule.tool: Level(rule.level) for rule in rules if rule.level},
        stopped={rule.tool: rule.stopped_by for rule in rules if rule.stopped_at is not None},
    )


def _get_highest(*levels: str | None) -> Level:
    return max((Level(level) for level in levels if level), key=lambda level: level.rank)
