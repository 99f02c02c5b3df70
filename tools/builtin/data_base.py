"""What all tools that change records share: they do exactly what their preview shows."""

from abc import abstractmethod
from typing import Any

from django.db import transaction

from tools.contract import ErrorCode, Level, Preview, Tool, ToolContext, ToolError, ToolResult
from tools.records.changes import Author
from tools.records.fields import Selection


class RecordWrite(Tool):
    """A transactional write whose `execute` applies the preview: the sealed one, or its own when nobody was asked."""

    level = Level.WRITE
    transactional = True

    @abstractmethod
    def preview(self, params: Any, context: ToolContext) -> Preview:
        """The targets, locked when a transaction is open.

        Raises:
            ToolError: why the call cannot be done, e.g. NOT_FOUND, INVALID_OPERATION.
        """

    @abstractmethod
    def apply(self, params: Any, effect: Preview, context: ToolContext) -> ToolResult:
        """Do what the effect says, inside a transaction."""

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        with transaction.atomic():
            sealed = context.preview
            effect = self.preview(params, context) if sealed is None or sealed.problem else sealed
            return self.apply(params, effect, context)


def author_of(context: ToolContext) -> Author:
    return Author(context.employee_name or context.user.name, context.run_id, context.call_id)


def nothing_to_do(message: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_OPERATION,
        message,
        recovery_hint="Nothing needs to be done; go on with the task.",
        attempted=False,
    )


def require_selection(selection: Selection) -> None:
    """Refuse a call without, or with both, ids and filters: it would touch everything or nobody knows what."""
    if selection.record_ids and selection.filters is not None:
        raise ToolError(
            ErrorCode.INVALID_PARAMETER,
            "Both 'record_ids' and 'filters' are given.",
            parameter="filters",
            expected="either record_ids or filters",
            attempted=False,
        )
    if not selection.record_ids and not (selection.filters and selection.filters.given()):
        raise ToolError(
            ErrorCode.MISSING_PARAMETER,
            "It is not said which records: 'record_ids' and 'filters' are empty.",
            parameter="record_ids",
            expected="ids of records, or filters with at least one condition",
            example='{"filters": {"region": "EU", "status": "inactive"}}',
            attempted=False,
        )
