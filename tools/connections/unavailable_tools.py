"""The reasons why connected tools cannot be used at the moment."""

from collections.abc import Collection

from tools.connections.models import SourceTool

_REASONS = {
    "gone": "{source} no longer describes it",
    "quarantined": "its definition has changed, and an admin must accept it",
    "not chosen": "it is not enabled among the tools of {source}",
    "offered": "its description could not be read; see the log",
}


def explain_unavailable(organization_id: int, names: Collection[str]) -> dict[str, str]:
    """Return {tool name: reason} for tools of the organization's sources. Each reason is part of a
    sentence.

    Args:
        names: tools that the organization's toolbox lacks; if empty, there is no query.
    """
    if not names:
        return {}
    rows = SourceTool.objects.filter(source__organization_id=organization_id, tool__in=names)
    found = rows.select_related("source").defer(
        "definition", "accepted_definition", "source__document"
    )
    return {row.tool: _explain(row) for row in found}


def _explain(row: SourceTool) -> str:
    source = row.source.name
    if not row.source.is_active:
        return f"{source} is switched off"
    if row.state == "offered" and row.source.lacks_base_url:
        return f"{source} has no address for its operations"
    return _REASONS[row.state].format(source=source)
