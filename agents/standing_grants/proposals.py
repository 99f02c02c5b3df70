"""Propose standing grants from a card or a form, and check proposals before they are saved."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from agents.approvals.warnings.marks import name_marks
from agents.employees.models import Grant
from agents.employees.toolboxes import load_toolbox
from agents.platform.refusals import Invalid
from agents.runs.engine.preapprover import AskingCard
from agents.runs.models import APPROVED_STATES, Approval, ApprovalKind, Run
from agents.standing_grants.models import MAX_DAYS, MAX_USES
from agents.standing_grants.preapprovals import (
    OF_VALUES,
    build_call,
    find_default_nulls,
    find_stopping_marks,
)
from agents.standing_grants.result_fields import check_sources
from tools.contract import Level, Tool
from tools.contract.param_naming import DESCRIPTIONS, ParamNaming
from tools.contract.param_words import NamedThing
from tools.schemas.param_paths import find_closed_object
from tools.toolbox.conditions import Condition, Rule
from tools.toolbox.grant_conditions import list_value_paths
from tools.toolbox.grant_sources import unpack
from tools.toolbox.objections import Objection
from tools.toolbox.permissions import Cause, CauseKind, Grants
from tools.toolbox.standing_grants import (
    RULES,
    GrantTerms,
    find_need_of_person,
)
from tools.toolbox.value_readings import complete_prefix

MAX_USED = 50
"""The maximum number of earlier calls that are read to see what a tool's params name."""


@dataclass(frozen=True)
class ProposedGrant:
    """The terms of a standing grant that is not saved.

    Attributes:
        employee_id: the only employee; None for all employees of the organization.
        run_id: the only run; None for all runs.
        params: the paths of the params that a call may have; without a condition, a param may have
            any value.
    """

    tool: str
    employee_id: int | None
    run_id: int | None
    params: tuple[str, ...]
    conditions: tuple[Condition, ...]
    max_uses: int = 20
    lifetime: timedelta = timedelta(days=1)

    def as_terms(self, tool: Tool) -> GrantTerms:
        """Return these terms for matching against past cards. They use the tool's current
        definition and have no account.

        The account is left out, because finding it may cost a query and past cards do not record
        theirs.
        """
        return GrantTerms(
            pk=0,
            tool=tool.name,
            definition=tool.definition_hash,
            level=tool.level,
            account="",
            params=frozenset(self.params),
            conditions=self.conditions,
            employee_id=self.employee_id,
            run_id=self.run_id,
        )


def propose_from_card(card: Approval) -> ProposedGrant:
    """Propose a standing grant for calls of the same employee with the same values as this card's
    call.

    Raises:
        Invalid: a param's name cannot be a path.
    """
    name, employee_id = card.tool_call.tool, card.run.employee_id
    tool = find_tool(card.organization_id, name, employee_id)
    defaults = find_default_nulls(tool, card.params) if tool else frozenset()
    return propose_equal(name, employee_id, card.params, defaults)


def propose_equal(
    tool: str, employee_id: int, params: dict[str, Any], defaults: frozenset[str] = frozenset()
) -> ProposedGrant:
    """Propose a standing grant for an employee's calls that have exactly these params.

    Args:
        defaults: the paths at which null is the tool's default.

    Raises:
        Invalid: a param's name cannot be a path.
    """
    paths = list_value_paths(params, defaults)
    if paths is None:
        raise Invalid(
            "params", "A parameter's name contains a dot, so a standing grant cannot limit it."
        )
    conditions = tuple(
        Condition(path, Rule.EQUALS, read_value(params, path)) for path in sorted(paths)
    )
    return ProposedGrant(tool, employee_id, None, tuple(sorted(paths)), conditions)


def read_value(params: Any, path: str) -> Any:
    """Return the value at the path, None if there is none; in a list of dicts, the value of the
    first entry that has one."""
    if isinstance(params, list):
        found = (read_value(entry, path) for entry in params)
        return next((value for value in found if value is not None), None)
    name, _, rest = path.partition(".")
    value = params.get(name) if isinstance(params, dict) else None
    return read_value(value, rest) if rest else value


def find_need_of_decision(card: Approval, run: Run) -> Objection | None:
    """Find the reason why no standing grant can approve cards like this one; None if a standing
    grant could."""
    tool = find_tool(card.organization_id, card.tool_call.tool, run.employee_id)
    if tool is None:
        return Objection("The tool is no longer installed.")
    asking = AskingCard(card, run, tool, read_causes(card.tool_call.judgment))
    if need := find_need_of_person(build_call(asking, card.organization)):
        return Objection(f"{need.why[:1].upper()}{need.why[1:]}.")
    marks = [mark for mark in find_stopping_marks(asking) if mark.kind not in OF_VALUES]
    return Objection(f"This card carries a warning: {name_marks(marks)}.") if marks else None


def read_causes(judgment: Mapping[str, Any] | None) -> tuple[Cause, ...]:
    """Return the causes of the verdict in a call's stored judgment."""
    stored = (judgment or {}).get("causes", ())
    return tuple(Cause(CauseKind(kind), text, param) for kind, text, param in stored)


def find_tool(organization_id: int, name: str, employee_id: int | None) -> Tool | None:
    """Return the tool in the version that the employee uses or, without an employee, in the newest
    version; None if it is not installed."""
    pinned: dict[str, str] = {}
    if employee_id is not None:
        allowed = Grant.objects.filter(
            employee__organization_id=organization_id, employee_id=employee_id
        )
        pinned = dict(allowed.exclude(version="").values_list("tool", "version"))
    return load_toolbox(organization_id).get_granted_tool(name, Grants(pinned=pinned))


def check_proposal(organization_id: int, proposal: ProposedGrant) -> Tool:
    """Check a proposal; return its tool in the version that the employee uses.

    Raises:
        Invalid: names the invalid field and the reason.
    """
    tool = find_tool(organization_id, proposal.tool, proposal.employee_id)
    if tool is None:
        raise Invalid("tool", f"There is no tool {proposal.tool!r}.")
    check_terms(proposal, tool, load_used_params(organization_id, tool))
    find = partial(find_tool, organization_id, employee_id=proposal.employee_id)
    check_sources(organization_id, tool, proposal.conditions, find)
    return tool


def check_terms(
    proposal: ProposedGrant, tool: Tool, used: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Check the terms of a proposal for this tool.

    Args:
        used: the params of earlier calls of the tool, to see what its params name.

    Raises:
        Invalid: names the invalid field and the reason.
    """
    if tool.level is Level.DESTRUCTIVE:
        raise Invalid(
            "tool", "A person decides every destructive call. No standing grant can approve one."
        )
    if not 1 <= proposal.max_uses <= MAX_USES:
        raise Invalid("max_uses", f"The number of calls must be 1 to {MAX_USES:,}.")
    if not timedelta(0) < proposal.lifetime <= timedelta(days=MAX_DAYS):
        raise Invalid("lifetime", f"A standing grant lasts at most {MAX_DAYS} days.")
    _check_params(tool, proposal)
    _check_free_params(tool, proposal, used)


def complete_grant_prefix(param: str, prefix: str) -> str:
    """Return the prefix, with a slash after it if it ends with a complete host.

    Raises:
        Invalid: it ends inside a host.
    """
    try:
        return complete_prefix(prefix, param)
    except ValueError as error:
        raise Invalid("conditions", f"{param}: {error}.") from error


def _check_params(tool: Tool, proposal: ProposedGrant) -> None:
    known = sorted(tool.schema["properties"])
    conditioned = {condition.param for condition in proposal.conditions}
    for path in (*proposal.params, *sorted(conditioned)):
        if path.partition(".")[0] not in known:
            names = ", ".join(known) or "none"
            raise Invalid("conditions", f"{tool.title} has no parameter {path!r}. It has: {names}.")
        if closed := find_closed_object(tool.schema, path):
            where, names = closed[0], ", ".join(closed[1]) or "none"
            raise Invalid(
                "conditions",
                f"{tool.title} has no parameter {path!r}. {where or 'It'} has: {names}.",
            )
    if unlisted := conditioned - set(proposal.params):
        raise Invalid(
            "conditions", f"{min(unlisted)} has a condition, but calls may not have this parameter."
        )
    for condition in proposal.conditions:
        if condition.rule not in RULES:
            raise Invalid(
                "conditions",
                f"A standing grant cannot have the condition {condition.rule.value!r}.",
            )
        if (inner := unpack(condition)).rule is Rule.PREFIX:
            complete_grant_prefix(condition.param, inner.value)


def _check_free_params(
    tool: Tool, proposal: ProposedGrant, used: Sequence[Mapping[str, Any]]
) -> None:
    free = set(proposal.params) - {condition.param for condition in proposal.conditions}
    if naming := find_naming(tool, free, used):
        raise Invalid("conditions", f"{min(naming)} {describe_need(naming[min(naming)])}")


def describe_need(kind: NamedThing) -> str:
    """Explain why a param that names this kind of thing needs a condition, as the rest of a
    sentence."""
    why = f"{DESCRIPTIONS[kind]}, so it needs a condition."
    if kind is not NamedThing.UNKNOWN:
        return why
    return f"{why} An admin can say on the connection’s Tools page that it names nothing."


def find_naming(
    tool: Tool, paths: Collection[str], used: Iterable[Mapping[str, Any]] = ()
) -> dict[str, NamedThing]:
    """Find the params that name something according to their schema or to at least half of their
    values in earlier calls."""
    naming = ParamNaming.of(tool)
    found = naming.find_naming(paths, {})
    seen: dict[str, list[NamedThing]] = {}
    for params in used:
        named = naming.find_naming(paths, params)
        for path in set(paths) & (list_value_paths(params) or frozenset()):
            seen.setdefault(path, []).append(named.get(path, NamedThing.NOTHING))
    for path, kinds in seen.items():
        shapes = [kind for kind in kinds if kind is not NamedThing.NOTHING]
        if 2 * len(shapes) >= len(kinds):
            found.setdefault(path, shapes[0])
    return found


def load_used_params(organization_id: int, tool: Tool) -> list[dict[str, Any]]:
    """Load the params of an external tool's newest approved calls; none for other tools, because it
    is known what their params name."""
    if not tool.is_from_outside:
        return []
    used = Approval.objects.filter(
        organization_id=organization_id,
        kind=ApprovalKind.APPROVAL,
        status__in=APPROVED_STATES,
        tool_call__tool=tool.name,
    )
    return list(used.order_by("-pk").values_list("params", flat=True)[:MAX_USED])
