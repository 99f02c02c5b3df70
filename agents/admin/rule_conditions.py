"""The only condition of an approval rule, as a sentence with three blanks: a param, a comparison
and a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents.employees.limit_sentences import Row, Sentence, format_condition, parse_condition
from tools.contract import Tool
from tools.toolbox import Condition, Otherwise, Rule

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
    """Return the conditions to store. If the param and the value are both empty, there are none.

    Raises:
        ValueError: a blank is empty or wrong; the text is for people.
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
    return [parse_condition(row, {name: tool} if tool else {}, is_stored=tool is None).as_json()]
