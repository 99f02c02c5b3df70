"""The fields of results from which a standing grant may take values, and the check of its sources.

A field is chosen from the tool's output schema or from recorded results, so that nobody names a
field that does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from agents.platform.refusals import Invalid
from agents.runs.models import CallStatus, ToolCall
from tools.contract import Tool
from tools.contract.lookups import is_same_source
from tools.contract.outside_text import quote_text
from tools.schemas.param_paths import find_closed_object
from tools.schemas.result_paths import list_result_paths, list_schema_paths
from tools.toolbox.conditions import Condition
from tools.toolbox.grant_sources import (
    ValueSource,
    is_fixing,
    list_sources,
    read_sources,
    replace_sources,
)

MAX_RECORDED = 20
"""The maximum number of recorded results from which fields are taken, newest first."""
FindTool = Callable[[str], Tool | None]


def list_fields(organization_id: int, tool: Tool) -> list[str]:
    """List the paths of the texts and numbers in results of the tool, from its output schema and
    from its newest recorded results."""
    rows = ToolCall.objects.filter(
        organization_id=organization_id,
        tool=tool.name,
        definition_hash=tool.definition_hash,
        status=CallStatus.SUCCEEDED,
        result__isnull=False,
    ).order_by("-pk")
    recorded = rows.values_list("result", flat=True)[:MAX_RECORDED]
    found = dict.fromkeys(list_schema_paths(tool.output_schema))
    for result in recorded:
        if isinstance(result, dict):
            found.update(dict.fromkeys(list_result_paths(result.get("data"))))
    return list(found)


def check_sources(
    organization_id: int, tool: Tool, conditions: Iterable[Condition], find_tool: FindTool
) -> None:
    """Check the sources of the conditions of a standing grant for this tool.

    Raises:
        Invalid: a source belongs to another connection, lacks the field, or leaves a param of its
            calls open.
    """
    for source in {
        each.tool + "\0" + each.path: each for each in list_sources(conditions)
    }.values():
        _check_field(organization_id, tool, source, find_tool)
    for source in list_sources(conditions):
        _check_where(source, find_tool)


def pin_sources(conditions: Iterable[Condition], find_tool: FindTool) -> tuple[Condition, ...]:
    """Return the conditions with the current definitions of the tools that they take values
    from."""
    return tuple(_pin(condition, find_tool) for condition in conditions)


def unpin_sources(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """Return the conditions without definitions."""
    return tuple(_pin(condition, lambda _name: None) for condition in conditions)


def _pin(condition: Condition, find_tool: FindTool) -> Condition:
    sources = [_pin_source(source, find_tool) for source in read_sources(condition)]
    return replace_sources(condition, sources) if sources else condition


def _pin_source(source: ValueSource, find_tool: FindTool) -> ValueSource:
    tool = find_tool(source.tool)
    where = tuple(_pin(each, find_tool) for each in source.where)
    return replace(source, where=where, definition=tool.definition_hash if tool else "")


def _check_field(
    organization_id: int, tool: Tool, source: ValueSource, find_tool: FindTool
) -> None:
    found = find_tool(source.tool)
    if found is None or not is_same_source(found, tool):
        raise Invalid(
            "conditions",
            f"{quote_text(source.tool)} is no tool of the same connection as {quote_text(tool.name)},"
            " so its results cannot be used.",
        )
    if source.path not in list_fields(organization_id, found):
        raise Invalid(
            "conditions",
            f"Results of {quote_text(source.tool)} have no field {source.path!r}, neither in its schema nor"
            " in recorded calls.",
        )


def _check_where(source: ValueSource, find_tool: FindTool) -> None:
    tool = find_tool(source.tool)
    assert tool is not None, "_check_field has found it"
    known = tool.schema.get("properties", {})
    for condition in source.where:
        param = condition.param
        if param.partition(".")[0] not in known or find_closed_object(tool.schema, param):
            raise Invalid("conditions", f"{quote_text(source.tool)} has no parameter {param!r}.")
        if not is_fixing(condition):
            raise Invalid(
                "conditions",
                f"{quote_text(param)} of {quote_text(source.tool)} must be fixed, typed by a person, or come from a"
                " result.",
            )
    missing = set(tool.schema.get("required", ())) - {
        condition.param.partition(".")[0] for condition in source.where
    }
    if missing:
        raise Invalid(
            "conditions",
            f"{quote_text(min(missing))} of {quote_text(source.tool)} needs a condition:"
            " every call has it.",
        )
