"""Find proposals of standing grants that can match no call, or that match every call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from agents.standing_grants.proposals import ProposedGrant
from tools.contract import Tool
from tools.schemas.param_paths import CallSchema, list_types
from tools.schemas.types import name_type
from tools.sources.external_tool import ExternalTool
from tools.toolbox.conditions import Condition, Rule
from tools.toolbox.grant_conditions import find_broken, list_value_paths
from tools.toolbox.grant_sources import depends_on_run
from tools.toolbox.objections import Objection

_NUMBERS = frozenset({"integer", "number"})
_NO_CONDITION = "There is no condition: this approves every call of the tool with these parameters."
_TYPES = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}


def describe_coverage(proposal: ProposedGrant, tool: Tool) -> str:
    """Return a warning sentence if the proposal matches no call at all, or every call that has only
    the params it lists; empty otherwise."""
    if (nothing := find_contradiction(proposal, tool)) is not None:
        return nothing.why
    return "" if proposal.conditions else _NO_CONDITION


def find_contradiction(proposal: ProposedGrant, tool: Tool) -> Objection | None:
    """Find the reason why the proposal can match no call of the tool; None if the schema allows a
    matching call."""
    for param in sorted({condition.param for condition in proposal.conditions}):
        conditions = [condition for condition in proposal.conditions if condition.param == param]
        if (
            contradiction := _find_param_contradiction(param, conditions, proposal, tool)
        ) is not None:
            return contradiction
    if missing := build_call_schema(tool).find_missing(proposal.params):
        return _object_to_all(
            f"every call has the parameter {missing}, which these conditions leave out."
        )
    return None


def _object_to_all(why: str) -> Objection:
    return Objection(f"Nothing can match: {why}")


def build_call_schema(tool: Tool) -> CallSchema:
    """Build the schema of the tool's calls; without defaults for external tools, whose own system
    fills them in."""
    return CallSchema(tool.schema, has_defaults=not isinstance(tool, ExternalTool))


def _find_param_contradiction(
    param: str, conditions: Sequence[Condition], proposal: ProposedGrant, tool: Tool
) -> Objection | None:
    if not _can_hold(conditions):
        return _object_to_all(f"the conditions on {param} contradict each other.")
    types = list_types(tool.schema, param)
    if types and not all(_fits_type(condition, types) for condition in conditions):
        words = " or ".join(_TYPES.get(each, each) for each in sorted(types))
        return _object_to_all(f"{param} is {words}, which the condition on it never allows.")
    fixed = [frozenset(_list_inner_paths(param, value)) for value in _list_fixed_values(conditions)]
    if fixed and all(paths - set(proposal.params) for paths in fixed):
        left_out = min(min(fixed) - set(proposal.params))
        return _object_to_all(
            f"{param} has parameters of its own, and these conditions leave out {left_out}."
        )
    return None


def _fits_type(condition: Condition, types: frozenset[str]) -> bool:
    """Return True if a value of one of these types can meet the condition."""
    if condition.rule in (Rule.MINIMUM, Rule.MAXIMUM):
        return bool(types & _NUMBERS)
    if condition.rule in (Rule.PREFIX, Rule.HOST):
        return "string" in types
    if condition.rule in (Rule.COMES_FROM, Rule.TYPED):
        return bool(types & {"string", *_NUMBERS})
    if condition.rule is Rule.EACH:
        return "array" in types
    return any(_has_type(value, types) for value in _list_fixed_values([condition]))


def _has_type(value: Any, types: frozenset[str]) -> bool:
    if value is None:
        return True  # `list_types` never lists null, so it cannot rule null out
    if isinstance(value, float) and value.is_integer():
        return bool(types & _NUMBERS)
    return name_type(value) in types or (name_type(value) == "integer" and "number" in types)


def _list_inner_paths(param: str, value: Any) -> Iterator[str]:
    """Yield the paths of all params that a call has when this param has this value."""
    paths = list_value_paths({"value": value}, None)
    for path in () if paths is None else paths:
        yield f"{param}{path.removeprefix('value')}"


def _can_hold(conditions: Sequence[Condition]) -> bool:
    """Return False if no value of a param can meet all of these conditions, as far as that can be
    determined."""
    fixed = list(_list_fixed_values(conditions))
    if fixed:
        return any(_meets_all(value, conditions) for value in fixed)
    least = [condition.value for condition in conditions if condition.rule is Rule.MINIMUM]
    most = [condition.value for condition in conditions if condition.rule is Rule.MAXIMUM]
    if (least or most) and any(
        condition.rule in (Rule.PREFIX, Rule.HOST) for condition in conditions
    ):
        return False
    return not (least and most) or max(least) <= min(most)


def _list_fixed_values(conditions: Sequence[Condition]) -> Iterator[Any]:
    for condition in conditions:
        if condition.rule is Rule.EQUALS:
            yield condition.value
        elif condition.rule is Rule.ONE_OF:
            yield from condition.value


def _meets_all(value: Any, conditions: Sequence[Condition]) -> bool:
    # Conditions that depend on the run are left out: its results are not known in advance.
    alone = [replace(each, param="value") for each in conditions if not depends_on_run([each])]
    return find_broken(alone, {"value": value}, None) is None
