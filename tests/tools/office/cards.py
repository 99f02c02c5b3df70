"""Helpers that take a write from its params through its card to its execution, in the engine's
order."""

import json
from typing import Any

from django.db import transaction

from agents.accounts.models import Organization
from tools.contract import Preview, Tool, ToolContext, ToolResult


def context_of(organization: Organization, **more: Any) -> ToolContext:
    return ToolContext(
        organization_id=organization.pk, employee_name="Dana", run_id="7", call_id="70", **more
    )


def card(tool: Tool, params: dict[str, Any], organization: Organization) -> tuple[str, Preview]:
    """Return the sentence and the effect that the card of this call shows."""
    loaded = tool.load_params(tool.check_params(params))
    preview = tool.preview(loaded, context_of(organization))
    assert preview is not None
    return tool.sentence(loaded, preview), preview


def sealed(preview: Preview) -> Preview:
    """Return the preview after a round trip through the database."""
    return Preview.from_json(json.loads(json.dumps(preview.as_json())))


def approve(
    tool: Tool, params: dict[str, Any], organization: Organization, preview: Preview | None
) -> ToolResult:
    """Check that the approved effect is unchanged if one is given, and execute the call in a
    transaction with a savepoint."""
    loaded = tool.load_params(tool.check_params(params))
    with transaction.atomic(), transaction.atomic():
        if preview is not None:
            again = tool.preview(loaded, context_of(organization))
            assert again is not None
            assert again.seal == preview.seal
        result = tool.execute(loaded, context_of(organization, preview=preview))
    assert isinstance(result, ToolResult)
    return result
