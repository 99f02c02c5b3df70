"""Base class of all tools that change records: they apply exactly the previewed effect."""

from abc import abstractmethod
from typing import Any

from django.db import transaction

from tools.contract import ErrorCode, Level, Preview, Tool, ToolContext, ToolError, ToolResult
from tools.office.records.changes import ChangeAuthor
from tools.office.records.fields import Selection


class RecordWrite(Tool):
    """A transactional tool that writes the sealed preview, or a new preview if approval was not
    needed."""

    level = Level.WRITE
    transactional = True

    @abstractmethod
    def preview(self, params: Any, context: ToolContext) -> Preview:
        """Compute the targets, locked if a transaction is open.

        Raises:
            ToolError: why the call is impossible or needless, e.g. NOT_FOUND or NOTHING_TO_DO.
        """

    @abstractmethod
    def apply(self, params: Any, effect: Preview, context: ToolContext) -> ToolResult:
        """Apply the effect, inside a transaction."""

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        with transaction.atomic():
            sealed = context.preview
            effect = self.preview(params, context) if sealed is None or sealed.problem else sealed
            return self.apply(params, effect, context)


def build_author(context: ToolContext) -> ChangeAuthor:
    return ChangeAuthor(context.employee_name or context.user.name, context.run_id, context.call_id)


def require_selection(selection: Selection) -> None:
    """Require ids or filters but not both: without them, the call would affect all records, and
    with both it would be ambiguous."""
    if selection.record_ids and selection.filters is not None:
        raise ToolError(
            ErrorCode.INVALID_PARAMETER,
            "Both 'record_ids' and 'filters' are given.",
            parameter="filters",
            expected="either record_ids or filters",
            attempted=False,
        )
    if not selection.record_ids and not (selection.filters and selection.filters.get_conditions()):
        raise ToolError(
            ErrorCode.MISSING_PARAMETER,
            "No records are selected: 'record_ids' and 'filters' are empty.",
            parameter="record_ids",
            expected="ids of records, or filters with at least one condition",
            example='{"filters": {"region": "EU", "status": "inactive"}}',
            attempted=False,
        )
