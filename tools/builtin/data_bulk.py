"""Tools that change, archive or delete many records at once, at most 1,000."""

from typing import Any

from pydantic import Field

from tools.contract import ErrorCode, Level, Preview, Target, ToolContext, ToolError, ToolResult
from tools.records.changes import delete_records, deletion_target, update_records, update_target
from tools.records.fields import Selection, SharedChanges
from tools.records.queries import chosen

from .data_base import RecordWrite, author_of, nothing_to_do, require_selection
from .data_words import changes_in_words, new_values_in_words, subject


class BulkUpdate(RecordWrite):
    """data: {updated, record_ids}."""

    name = "data.bulkUpdate"
    display_name = "Update many records"
    description = (
        "Make the same change to many records (at most 1,000), chosen by ids or by filters. "
        "Archived records are touched only if their ids are given."
    )

    class Params(Selection):
        changes: SharedChanges = Field(description='The change for all of them, e.g. {"status": "inactive"}')

    def validate(self, params: Params) -> None:
        require_selection(params)
        if not params.changes.model_dump(mode="json"):
            raise ToolError(
                ErrorCode.MISSING_PARAMETER,
                "'changes' names no field.",
                parameter="changes",
                expected="at least one of region, category, status, score",
                attempted=False,
            )

    def preview(self, params: Params, context: ToolContext) -> Preview:
        wanted = params.changes.model_dump(mode="json")
        targets = _changed(params, context, wanted)
        return Preview("update", targets)

    def sentence(self, params: Params, preview: Preview) -> str:
        if preview.total == 1:
            target = preview.targets[0]
            return f"Update {subject(params, preview)}: {changes_in_words(target.before, target.after)}"
        return f"Update {subject(params, preview)}: {new_values_in_words(params.changes.model_dump(mode='json'))}"

    def apply(self, params: Params, effect: Preview, context: ToolContext) -> ToolResult:
        update_records(context.organization_id, effect.targets, author_of(context))
        return _done("updated", effect)


class BulkDelete(RecordWrite):
    """data: {deleted, record_ids}."""

    name = "data.bulkDelete"
    display_name = "Delete records"
    description = (
        "Delete records for good (at most 1,000), chosen by ids or by filters. This cannot be taken back; "
        "data.archiveAll only hides them."
    )
    level = Level.DESTRUCTIVE

    class Params(Selection):
        pass

    def validate(self, params: Params) -> None:
        require_selection(params)

    def preview(self, params: Params, context: ToolContext) -> Preview:
        records = chosen(context.organization_id, params)
        return Preview("delete", tuple(deletion_target(record) for record in records), reversible=False)

    def sentence(self, params: Params, preview: Preview) -> str:
        return f"Delete {subject(params, preview)} for good"

    def apply(self, params: Params, effect: Preview, context: ToolContext) -> ToolResult:
        delete_records(context.organization_id, effect.targets)
        return _done("deleted", effect)


class ArchiveAll(RecordWrite):
    """data: {archived, record_ids}."""

    name = "data.archiveAll"
    display_name = "Archive records"
    description = (
        "Move records to the archive (at most 1,000), chosen by ids or by filters: searches no longer find them. "
        "data.updateRecord with archived: false brings one back."
    )
    level = Level.DESTRUCTIVE

    class Params(Selection):
        pass

    def validate(self, params: Params) -> None:
        require_selection(params)

    def preview(self, params: Params, context: ToolContext) -> Preview:
        return Preview("archive", _changed(params, context, {"archived": True}))

    def sentence(self, params: Params, preview: Preview) -> str:
        return f"Archive {subject(params, preview)}"

    def apply(self, params: Params, effect: Preview, context: ToolContext) -> ToolResult:
        update_records(context.organization_id, effect.targets, author_of(context))
        return _done("archived", effect)


def _changed(selection: Selection, context: ToolContext, wanted: dict[str, Any]) -> tuple[Target, ...]:
    records = chosen(context.organization_id, selection)
    targets = tuple(target for record in records if (target := update_target(record, wanted)) is not None)
    if not targets:
        raise nothing_to_do(f"All of these {len(records)} records have these values already.")
    return targets


def _done(verb: str, effect: Preview) -> ToolResult:
    ids = [target.id for target in effect.targets]
    noun = "record" if len(ids) == 1 else "records"
    return ToolResult.ok({verb: len(ids), "record_ids": ids}, f"{verb.capitalize()} {len(ids):,} {noun}")
