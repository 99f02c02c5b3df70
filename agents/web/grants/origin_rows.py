"""The parts of a sentence that say where a value comes from: the chosen fields of results, and the
params of the calls with these results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from agents.employees.toolboxes import load_toolbox
from agents.platform.refusals import Invalid
from agents.standing_grants.result_fields import list_fields
from tools.contract import Tool
from tools.contract.lookups import is_same_source
from tools.toolbox.conditions import Condition, Rule
from tools.toolbox.grant_sources import DEEPEST, ValueSource, read_sources

EACH = "each."
ORIGIN_CHOICES = (
    (Rule.COMES_FROM.value, "comes from a result of"),
    (Rule.TYPED.value, "was typed by a person in the run"),
    (f"{EACH}{Rule.HOST}", "each entry is at the domain"),
    (f"{EACH}{Rule.ONE_OF}", "each entry is one of (one per line)"),
    (f"{EACH}{Rule.COMES_FROM}", "each entry comes from a result of"),
    (f"{EACH}{Rule.TYPED}", "each entry was typed by a person in the run"),
)
MAX_OFFERED = 1_500
"""The maximum number of fields that one sentence offers."""
FindTool = Callable[[str], Tool | None]


class OriginPart(NamedTuple):
    """The part of a sentence about the origin of its param.

    Attributes:
        fields: the chosen fields, each as `tool path`.
        only: True if the value must be the only one in its field.
        may_be_empty: True if null is allowed too or, for a sentence about each entry, an empty
            list.
    """

    fields: tuple[str, ...] = ()
    only: bool = False
    may_be_empty: bool = False


NO_ORIGIN = OriginPart()


@dataclass(frozen=True)
class OfferedFields:
    """The fields of one tool's results that a sentence offers, each as value and path."""

    tool: str
    fields: tuple[tuple[str, str], ...]


def is_origin_rule(rule: str) -> bool:
    return rule in dict(ORIGIN_CHOICES)


def offers_fields(rule: str) -> bool:
    return rule.removeprefix(EACH) == Rule.COMES_FROM


class OriginSentence(NamedTuple):
    """A sentence about the origin of a param.

    Attributes:
        rule: one of `ORIGIN_CHOICES`.
        value: the value to compare with, for a rule on each entry that needs one.
    """

    param: str
    rule: str
    value: Any
    part: OriginPart


def build_condition(
    sentence: OriginSentence, wheres: Mapping[str, Sequence[Condition]]
) -> Condition:
    """Build the condition of a sentence.

    Args:
        wheres: by tool, the conditions on its calls.

    Raises:
        Invalid: no field is chosen.
    """
    param, rule, value, part = sentence
    inner = Rule(rule.removeprefix(EACH))
    is_each = rule.startswith(EACH)
    empty: Any = [] if is_each else None
    also = [empty] if part.may_be_empty else []
    if inner is Rule.COMES_FROM:
        if not part.fields:
            raise Invalid(
                "conditions", f"{param}: update the preview, then choose a field of a result."
            )
        value = {"sources": [_build_source(each, part, wheres) for each in part.fields]}
        value |= {"also": [] if is_each else also}
    elif inner is Rule.TYPED:
        value = {"also": [] if is_each else also}
    if not is_each:
        return Condition(param, inner, value)
    return Condition(param, Rule.EACH, {"rule": inner.value, "value": value, "also": also})


def _build_source(
    field: str, part: OriginPart, wheres: Mapping[str, Sequence[Condition]]
) -> dict[str, Any]:
    tool, _, path = field.partition(" ")
    return ValueSource(tool, path, tuple(wheres.get(tool, ())), only=part.only).as_json()


def read_part(condition: Condition) -> OriginPart:
    """Return the part of the sentence that shows this condition."""
    sources = read_sources(condition)
    return OriginPart(
        tuple(f"{each.tool} {each.path}" for each in sources),
        any(each.only for each in sources),
        bool(condition.value["also"]),
    )


def list_tools(parts: Iterable[OriginPart]) -> list[str]:
    """List the tools of the chosen fields, each once."""
    return list(dict.fromkeys(field.partition(" ")[0] for part in parts for field in part.fields))


def check_depth(depth: int) -> None:
    """Check the number of results through which a value is traced back.

    Raises:
        Invalid: there are too many, or they form a circle.
    """
    if depth > DEEPEST:
        raise Invalid(
            "conditions", f"A value can be traced back through at most {DEEPEST} results."
        )


def list_offered(organization_id: int, tool: Tool, param: str) -> list[OfferedFields]:
    """List the fields of results from which the param's value can come; tools with a field of the
    param's name come first."""
    name = param.rpartition(".")[2].rstrip("_").lower()
    tools = [
        each
        for each in load_toolbox(organization_id).tools()
        if is_same_source(each, tool) and not each.is_system
    ]
    found = [(each.name, list_fields(organization_id, each)) for each in tools]
    found.sort(key=lambda each: (not any(_has_name(path, name) for path in each[1]), each[0]))
    offered, left = [], MAX_OFFERED
    for tool_name, fields_of_tool in found:
        paths = sorted(fields_of_tool, key=lambda path: not _has_name(path, name))[:left]
        left -= len(paths)
        if paths:
            fields = tuple((f"{tool_name} {path}", path or "the result") for path in paths)
            offered.append(OfferedFields(tool_name, fields))
    return offered


def _has_name(path: str, name: str) -> bool:
    return path.rpartition(".")[2].lower().endswith(name)
