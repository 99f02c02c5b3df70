"""Tools that change, archive or delete many records at once, at most 1,000."""

from typing import Any

from pydantic import Field

from tools.contract import (
    ErrorCode,
    Level,
    NothingToDo,
    Preview,
    ToolContext,
    ToolError,
    ToolResult,
)
from tools.office.records.changes import (
    build_deletion_target,
    build_unchanged_target,
    build_update_target,
    delete_records,
    update_records,
)
from tools.office.records.fields import Selection, SharedChanges
from tools.office.records.queries import load_selection
from tools.office.tools.outputs import ArchivedCount, BulkDeletionCount, BulkUpdateCount
from tools.office.tools.record_sentences import (
    describe_changes,
    describe_new_values,
    describe_subject,
)
from tools.office.tools.record_writes import RecordWrite, build_author, require_selection


class BulkUpdate(RecordWrite):
    """Result data: {updated, record_ids}."""

    name = "data.bulkUpdate"
    display_name = "Update many records"
    description = (
        "Make the same change to many records (at most 1,000), selected by ids or by filters. "
        "Archived records change only if their ids are given."
    )
    Output = BulkUpdateCount

    class Params(Selection):
        changes: SharedChanges = Field(
            description='The change for all of them, e.g. {"status": "inactive"}'
        )

    def validate(self, params: Params) -> None:
        require_selection(params)
        if not params.changes.model_dump(mode="json"):
            raise ToolError(
                ErrorCode.MISSING_PARAMETER,
                "'changes' is empty.",
                parameter="changes",
                expected="at least one of region, category, status, score",
                attempted=False,
            )

    def preview(self, params: Params, context: ToolContext) -> Preview:
        changes = params.changes.model_dump(mode="json")
        return _build_effect("update", params, context, changes)

    def sentence(self, params: Params, preview: Preview) -> str:
        if preview.total == 1:
            target = preview.targets[0]
            return f"Update {describe_subject(params, preview)}: {describe_changes(target.before, target.after)}"
        changes = describe_new_values(params.changes.model_dump(mode="json"))
        return f"Update {describe_subject(params, preview)}: {changes}"

    def apply(self, params: Params, effect: Preview, context: ToolContext) -> ToolResult:
        update_records(context.organization_id, effect.targets, build_author(context))
        return _build_result("updated", effect)


class BulkDelete(RecordWrite):
    """Result data: {deleted, record_ids}."""

    name = "data.bulkDelete"
    display_name = "Delete records"
    description = (
        "Permanently delete records (at most 1,000), selected by ids or by filters. This cannot be undone; "
        "data.archiveAll only hides them."
    )
    level = Level.DESTRUCTIVE
    Output = BulkDeletionCount

    class Params(Selection):
        pass

    def validate(self, params: Params) -> None:
        require_selection(params)

    def preview(self, params: Params, context: ToolContext) -> Preview:
        records = load_selection(context.organization_id, params)
        return Preview(
            "delete", tuple(build_deletion_target(record) for record in records), reversible=False
        )

    def sentence(self, params: Params, preview: Preview) -> str:
        return f"Permanently delete {describe_subject(params, preview)}"

    def apply(self, params: Params, effect: Preview, context: ToolContext) -> ToolResult:
        delete_records(context.organization_id, effect.targets)
        return _build_result("deleted", effect)


class ArchiveAll(RecordWrite):
    """Result data: {archived, record_ids}."""

    name = "data.archiveAll"
    display_name = "Archive records"
    description = (
        "Move records to the archive (at most 1,000), selected by ids or by filters: searches no longer find them. "
        "data.updateRecord with archived: false restores one."
    )
    level = Level.DESTRUCTIVE
    Output = ArchivedCount

    class Params(Selection):
        pass

    def validate(self, params: Params) -> None:
        require_selection(params)

    def preview(self, params: Params, context: ToolContext) -> Preview:
        return _build_effect("archive", params, context, {"archived": True})

    def sentence(self, params: Params, preview: Preview) -> str:
        return f"Archive {describe_subject(params, preview)}"

    def apply(self, params: Params, effect: Preview, context: ToolContext) -> ToolResult:
        update_records(context.organization_id, effect.targets, build_author(context))
        return _build_result("archived", effect)


def _build_effect(
    effect: str, selection: Selection, context: ToolContext, changes: dict[str, Any]
) -> Preview:
    records = load_selection(context.organization_id, selection)
    targets = tuple(
        target for record in records if (target := build_update_target(record, changes)) is not None
    )
    if not targets:
        done = tuple(build_unchanged_target(record, changes) for record in records)
        raise NothingToDo("The selected records already have these values.", Preview(effect, done))
    return Preview(effect, targets)


def _build_result(verb: str, effect: Preview) -> ToolResult:
    ids = [target.id for target in effect.targets]
    noun = "record" if len(ids) == 1 else "records"
    return ToolResult.ok(
        {verb: len(ids), "record_ids": ids}, f"{verb.capitalize()} {len(ids):,} {noun}"
    )
