"""The one condition of an approval rule, as a sentence with three blanks: a param, a comparison and
a value; checked against the schemas of the tools that the rule covers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agents.employees.limit_sentences import Row, Sentence, format_condition, parse_condition
from tools.contract import Tool
from tools.schemas.param_paths import find_open_objects, list_entry_types, list_types
from tools.schemas.types import name_type
from tools.toolbox import Condition, Otherwise, Rule
from tools.toolbox.value_readings import complete_prefix

_NUMBERS = frozenset({"integer", "number"})
_MOST_NAMED = 3

RULE_COMPARISONS = {
    Rule.MINIMUM.value: "is at least",
    Rule.MAXIMUM.value: "is at most",
    Rule.EQUALS.value: "is",
    Rule.ONE_OF.value: "is one of (one per line)",
    Rule.PREFIX.value: "starts with",
}


def read_blanks(stored: Sequence[Any], tool: Tool | None) -> Row:
    """Return the texts of the three blanks from the stored condition; empty if there is no
    condition.

    Args:
        tool: the tool that the rule names, if it is installed.

    Raises:
        TypeError, ValueError: the stored conditions do not fit into three blanks.
    """
    if not stored:
        return {}
    condition = Condition.from_json(stored[0])
    if len(stored) > 1 or condition.rule.value not in RULE_COMPARISONS:
        raise ValueError("there are other conditions than one comparison")
    row = format_condition("", condition, tool)
    return {name: row[name] for name in ("param", "comparison", "value")}


def build_conditions(blanks: Mapping[str, str], tool: Tool | None) -> list[dict[str, Any]]:
    """Return the conditions to store; none if the param and the value are both empty.

    Raises:
        ValueError: only one of the two is empty, or a blank is invalid; the error's text is shown
            to people.
    """
    if not blanks["param"].strip() and not blanks["value"].strip():
        return []
    if not blanks["value"].strip():
        raise ValueError("fill in “Value”")
    if blanks["comparison"] not in RULE_COMPARISONS:
        raise ValueError("choose a comparison")
    name = tool.name if tool else ""
    row = {
        **blanks,
        "sentence": Sentence.COMPARISON.value,
        "tool": name,
        "otherwise": Otherwise.ASK.value,
    }
    condition = parse_condition(row, {name: tool} if tool else {}, is_stored=tool is None)
    if condition.rule is Rule.PREFIX:
        condition = replace(condition, value=complete_prefix(condition.value, condition.param))
    if tool is not None and _find_unfit_types(condition, tool):
        types = " or ".join(sorted(list_types(tool.schema, condition.param)))
        compared = f"{RULE_COMPARISONS[condition.rule.value]} {condition.value!r}"
        raise ValueError(f"{condition.param} of {name} is {types}, so “{compared}” can never apply")
    return [condition.as_json()]


def warn_of_types(condition: Condition, tools: Iterable[Tool]) -> Iterator[str]:
    """Warn about tools whose schema does not fit the condition: to be safe, the rule covers calls
    of these tools.

    Args:
        tools: the tools that the rule covers.
    """
    doubtful, open_tools = list[str](), list[str]()
    for tool in tools:
        if "" in find_open_objects(tool.schema, {}):
            open_tools.append(tool.name)
        types = list_types(tool.schema, condition.param)
        is_named = condition.param.partition(".")[0] in tool.schema.get("properties", {})
        if is_named and (not types or _find_unfit_types(condition, tool)):
            doubtful.append(tool.name)
    if doubtful:
        yield (
            f"The schema of {_name_some(doubtful)} does not say that {condition.param} can be compared like "
            "this. The rule covers each of those calls with it, unless a value surely does not fit."
        )
    if open_tools:
        yield (
            f"{_name_some(open_tools)} can take parameters that are not listed, so the rule also covers "
            f"calls without {condition.param}."
        )


def _name_some(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(sorted(names)[:_MOST_NAMED])}{more}"


def _find_unfit_types(condition: Condition, tool: Tool) -> bool:
    """Return True if no value of the param's types in this tool can meet the condition."""
    types = list_types(tool.schema, condition.param)
    if not types:
        return False
    entries = list_entry_types(tool.schema, condition.param)
    if condition.rule is Rule.PREFIX:
        return "string" not in types
    if condition.rule in (Rule.MINIMUM, Rule.MAXIMUM):
        return not (types | entries) & _NUMBERS
    values = condition.value if condition.rule is Rule.ONE_OF else [condition.value]
    is_open = "array" in types and not entries
    return not is_open and not all(_fits(value, types | entries) for value in values)


def _fits(value: Any, types: frozenset[str]) -> bool:
    kind = name_type(value)
    return kind in types or (kind in _NUMBERS and bool(types & _NUMBERS))
