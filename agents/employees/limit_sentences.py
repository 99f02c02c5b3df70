"""Limits as sentences with blanks. People fill in a sentence, and it becomes a condition of a
grant, or its level."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tools.contract import Level, Tool
from tools.contract.canonical import refuse_constant
from tools.schemas.param_paths import list_types
from tools.toolbox import Condition, Otherwise, Rule
from tools.toolbox.param_values import format_number, is_number
from tools.toolbox.value_readings import complete_prefix

Row = dict[str, str]
"""One sentence as a form sends it. The value of the key `sentence` is the kind of the sentence;
every other value is the text of a blank."""


class Sentence(StrEnum):
    """The kinds of sentences."""

    CALL_COUNT = "call_count"
    SUM = "sum"
    ONLY_AFTER = "only_after"
    COMPARISON = "comparison"
    ORIGIN = "origin"
    LEVEL = "level"


@dataclass(frozen=True)
class Blank:
    """A place in a sentence that a person fills in.

    Attributes:
        name: the key of the blank's text in a row.
        label: the blank's name for people.
    """

    name: str
    label: str


TOOL = Blank("tool", "Tool")
PARAM = Blank("param", "Parameter")
MOST = Blank("most", "Limit")
PERIOD = Blank("period", "Period")
AFTER = Blank("after", "Earlier tool")
SAME = Blank("same", "Parameter of the earlier call")
COMPARISON = Blank("comparison", "Comparison")
VALUE = Blank("value", "Value")
LEVEL = Blank("level", "Level")
OTHERWISE = Blank("otherwise", "Otherwise")

SENTENCES: dict[Sentence, tuple[str | Blank, ...]] = {
    Sentence.CALL_COUNT: ("At most", MOST, "calls of", TOOL, "per", PERIOD, "otherwise", OTHERWISE),
    Sentence.SUM: ("The sum of", PARAM, "in", TOOL, "must be at most", MOST, "per", PERIOD, "otherwise", OTHERWISE),
    Sentence.ONLY_AFTER: (
        TOOL, "only after", AFTER, "succeeded in this run with the same", SAME, "as this call’s", PARAM,
        "otherwise", OTHERWISE,
    ),
    Sentence.COMPARISON: ("In", TOOL, PARAM, "must be", COMPARISON, VALUE, "otherwise", OTHERWISE),
    Sentence.ORIGIN: ("In", TOOL, PARAM, "must not come from outside", "otherwise", OTHERWISE),
    Sentence.LEVEL: ("Treat", TOOL, "as", LEVEL),
}  # fmt: skip
COMPARISONS = {
    Rule.EQUALS.value: "equal to",
    Rule.ONE_OF.value: "one of these, one per line",
    Rule.MINIMUM.value: "at least",
    Rule.MAXIMUM.value: "at most",
    Rule.MAX_LENGTH.value: "at most this long:",
    Rule.PATTERN.value: "like the pattern",
    Rule.PREFIX.value: "a text that starts with",
    Rule.HOST.value: "an address at the host",
}
OTHERWISES = {Otherwise.ASK.value: "ask a person", Otherwise.FORBID.value: "refuse the call"}
_PRESET = frozenset({"sentence", "period", "comparison", "otherwise", "level", "remove"})
"""The keys of a row that the form presets, so that they have a text even in an empty sentence."""
_TEXTS = frozenset({Rule.PATTERN, Rule.PREFIX, Rule.HOST})
"""The rules whose value is a text, written without quotes."""
_NUMBERS = frozenset({"integer", "number"})


def list_blanks(sentence: Sentence) -> list[Blank]:
    """List the blanks of a sentence, in order."""
    return [piece for piece in SENTENCES[sentence] if isinstance(piece, Blank)]


def is_empty(row: Row) -> bool:
    """Return True if no blank of this sentence is filled in."""
    return not any(text.strip() for name, text in row.items() if name not in _PRESET)


def format_level(tool: str, level: str) -> Row:
    """Return the sentence that raises a tool's level."""
    return {"sentence": Sentence.LEVEL.value, "tool": tool, "level": level}


def format_condition(tool: str, condition: Condition, known: Tool | None) -> Row:
    """Return the sentence of a stored condition.

    Args:
        known: the tool, if it is installed; the types of its params decide how a value is written.
    """
    value = condition.value
    row: Row = {
        "sentence": _SENTENCE_OF.get(condition.rule, Sentence.COMPARISON).value,
        "tool": tool,
    }
    if condition.param:
        row["param"] = condition.param
    if condition.rule in (Rule.CALL_COUNT, Rule.SUM):
        row |= {"most": format_number(value["most"]).replace(",", ""), "period": value["period"]}
    elif condition.rule is Rule.ONLY_AFTER:
        row |= {"after": value["tool"], "same": value["param"]}
    elif condition.rule is not Rule.NOT_FROM_OUTSIDE:
        types = list_types(known.schema, condition.param) if known is not None else frozenset()
        values = value if condition.rule is Rule.ONE_OF else [value]
        written = (
            value
            if condition.rule in _TEXTS
            else "\n".join(_write_value(one, types) for one in values)
        )
        row |= {"comparison": condition.rule.value, "value": written}
    return {**row, "otherwise": condition.otherwise.value}


def parse_level(row: Row, tool: Tool) -> str:
    """Return the level to which a filled-in sentence raises this tool.

    Raises:
        ValueError: the tool's own level is higher, or the word is not a level; the error's text is
            shown to people.
    """
    word = row.get("level", "")
    if word not in tuple(Level):
        raise ValueError(f"{word!r} is not a level; use one of {', '.join(Level)}")
    if Level(word).rank < tool.level.rank:
        raise ValueError(f"{tool.name} has the level {tool.level.value}, which cannot be lowered")
    return word


def parse_condition(row: Row, catalog: Mapping[str, Tool], *, is_stored: bool = False) -> Condition:
    """Return the condition of a filled-in sentence.

    Args:
        is_stored: True if the sentence is already in force, so that its tools and params may no
            longer exist.

    Raises:
        ValueError: a blank is empty or invalid; the error's text is shown to people.
    """
    sentence = Sentence(row["sentence"])
    param = "" if sentence is Sentence.CALL_COUNT else _require(row, PARAM)
    types = _find_types(catalog, row["tool"], param, is_stored=is_stored) if param else frozenset()
    if sentence is Sentence.COMPARISON:
        rule = Rule(row["comparison"]) if row.get("comparison") in COMPARISONS else None
        if rule is None:
            raise ValueError(f"{row.get('comparison', '')!r} is not a comparison")
        value = _parse_compared(rule, param, row.get("value", ""), types)
        if rule is Rule.PREFIX and not is_stored:
            value = complete_prefix(value, param)
    else:
        rule = _RULE_OF[sentence]
        value = _parse_history(sentence, row)
    if rule is Rule.ONLY_AFTER:
        _find_types(catalog, value["tool"], value["param"], is_stored=is_stored)
    if (
        rule in (Rule.SUM, Rule.MINIMUM, Rule.MAXIMUM)
        and types
        and not types & _NUMBERS
        and not is_stored
    ):
        raise ValueError(f"{param} of {row['tool']} is not a number")
    otherwise = row.get("otherwise", "")
    if otherwise not in OTHERWISES:
        raise ValueError(f"choose what happens otherwise, not {otherwise!r}")
    return Condition.from_json(
        {"param": param, "rule": rule.value, "value": value, "otherwise": otherwise}
    )


def _find_types(
    catalog: Mapping[str, Tool], name: str, param: str, *, is_stored: bool
) -> frozenset[str]:
    """Return the JSON types of a param. Unknown tools and params are refused unless the sentence is
    stored."""
    tool = catalog.get(name)
    if tool is None and not is_stored:
        raise ValueError(f"there is no tool {name!r}")
    return list_types(tool.schema, param, "" if is_stored else name) if tool else frozenset()


def _parse_history(sentence: Sentence, row: Row) -> Any:
    if sentence is Sentence.ORIGIN:
        return True
    if sentence is Sentence.ONLY_AFTER:
        return {
            "tool": _require(row, AFTER),
            "param": row.get(SAME.name, "").strip() or _require(row, PARAM),
        }
    return {"most": _parse_number(_require(row, MOST)), "period": row.get("period", "")}


def _parse_compared(rule: Rule, param: str, text: str, types: frozenset[str]) -> Any:
    if rule in _TEXTS:
        return text.rstrip("\r\n")
    if rule is Rule.ONE_OF:
        return [
            _parse_value(line.strip(), param, types) for line in text.splitlines() if line.strip()
        ]
    if rule in (Rule.MINIMUM, Rule.MAXIMUM, Rule.MAX_LENGTH):
        return _parse_number(text.strip())
    return _parse_value(text.strip(), param, types)


def _parse_number(text: str) -> int | float:
    try:
        number = json.loads(text.replace(",", ""), parse_constant=refuse_constant)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
    if not is_number(number):
        raise ValueError(f"{text!r} is not a number")
    found: int | float = number
    return found


def _parse_value(text: str, param: str, types: frozenset[str]) -> Any:
    """Parse a value by the types of its param. A text needs quotes only if it could also be read as
    another value."""
    try:
        value = json.loads(text, parse_constant=refuse_constant)
    except ValueError:
        if types and "string" not in types:
            raise ValueError(
                f"{text!r} is not a value of {param}, which is {' or '.join(sorted(types))}"
            ) from None
        return text
    return value if isinstance(value, str) or types != {"string"} else text


def _write_value(value: Any, types: frozenset[str]) -> str:
    """Write a value in a form that is parsed as the same value."""
    if isinstance(value, str) and len(value.splitlines()) == 1:
        try:
            if _parse_value(value.strip(), "", types) == value:
                return value
        except ValueError:
            pass
    return json.dumps(value, ensure_ascii=False)


def _require(row: Row, blank: Blank) -> str:
    text = row.get(blank.name, "").strip()
    if not text:
        raise ValueError(f"fill in “{blank.label}”")
    return text


_RULE_OF = {
    Sentence.CALL_COUNT: Rule.CALL_COUNT,
    Sentence.SUM: Rule.SUM,
    Sentence.ONLY_AFTER: Rule.ONLY_AFTER,
    Sentence.ORIGIN: Rule.NOT_FROM_OUTSIDE,
}
_SENTENCE_OF = {rule: sentence for sentence, rule in _RULE_OF.items()}
