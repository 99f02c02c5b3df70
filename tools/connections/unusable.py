"""Why tools that an organisation has connected cannot be used now."""

from collections.abc import Collection

from .models import SourceTool

_REASONS = {
    "gone": "{source} describes it no more",
    "quarantined": "its definition has changed, and an admin has to accept it",
    "not chosen": "it is not chosen among the tools of {source}",
    "offered": "it could not be made from its description; the log says why",
}


def why_unusable(organization_id: int, names: Collection[str]) -> dict[str, str]:
    """A reason, as part of a sentence, for each of these names that is a tool of one of the organisation's sources.

    Args:
        names: those that the organisation's toolbox does not have; none costs no query.
    """
    if not names:
        return {}
    rows = SourceTool.objects.filter(source__organization_id=organization_id, tool__in=names)
    found = rows.select_related("source").defer("definition", "accepted_definition", "source__document")
    return {row.tool: _reason_of(row) for row in found}


def _reason_of(row: SourceTool) -> str:
    source = row.source.name
    if not row.source.is_active:
        return f"{source} is switched off"
    if row.state == "offered" and row.source.leads_nowhere:
        return f"{source} does not say where its operations go"
    return _REASONS[row.state].format(source=source)
