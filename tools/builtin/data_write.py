"""Tools that create and change single records and put records on lists."""

from pydantic import Field

from tools.contract import ErrorCode, Preview, Target, ToolContext, ToolError, ToolResult
from tools.records.changes import add_to_list, create_record, creation_target, update_records, update_target
from tools.records.fields import (
    ListName,
    QualificationName,
    Reason,
    RecordChanges,
    RecordFields,
    RecordId,
    Score,
    Selection,
    Sparse,
)
from tools.records.models import ListEntry, RecordList
from tools.records.queries import chosen, one_record, row_of

from .data_base import RecordWrite, author_of, nothing_to_do, require_selection
from .data_words import bold, changes_in_words, named, shown, subject, values_in_words


class CreateRecord(RecordWrite):
    """data: {record}, a row as data.searchRecords gives it."""

    name = "data.createRecord"
    display_name = "Create a record"
    description = "Create a new business record. Search first: a record of the same name may be there already."

    class Params(RecordFields):
        pass

    def preview(self, params: Params, context: ToolContext) -> Preview:
        fields = {key: value for key, value in params.model_dump(mode="json").items() if value not in ("", {})}
        return Preview("create", (creation_target(fields),))

    def sentence(self, params: Params, preview: Preview) -> str:
        rest = {key: value for key, value in params.model_dump(mode="json").items() if key != "name"}
        return f"Create record {bold(params.name)}: {values_in_words(rest)}"

    def apply(self, params: Params, effect: Preview, context: ToolContext) -> ToolResult:
        record = create_record(context.organization_id, effect.targets[0].after, author_of(context))
        return ToolResult.ok({"record": row_of(record)}, f"Created record {record.name}")


class UpdateRecord(RecordWrite):
    """data: {record, changed}; `changed` holds the new values by field."""

    name = "data.updateRecord"
    display_name = "Update a record"
    description = "Change fields of one record. Only the fields given in 'changes' change."

    class Params(Sparse):
        record_id: RecordId = Field(description="Id of the record, from data.searchRecords")
        changes: RecordChanges = Field(description='The fields to change, e.g. {"status": "inactive"}')

    def validate(self, params: Params) -> None:
        if not params.changes.model_dump(mode="json"):
            raise ToolError(
                ErrorCode.MISSING_PARAMETER,
                "'changes' names no field.",
                parameter="changes",
                expected="at least one field with its new value",
                example='{"record_id": "42", "changes": {"status": "inactive"}}',
                attempted=False,
            )

    def preview(self, params: Params, context: ToolContext) -> Preview:
        record = one_record(context.organization_id, params.record_id)
        target = update_target(record, params.changes.model_dump(mode="json"))
        if target is None:
            raise nothing_to_do(f"Record {params.record_id} ({record.name}) has these values already.")
        return Preview("update", (target,))

    def sentence(self, params: Params, preview: Preview) -> str:
        if not preview.targets:
            return f"Update record {bold(params.record_id)}: {values_in_words(params.changes.model_dump(mode='json'))}"
        target = preview.targets[0]
        return f"Update record {bold(target.label)}: {changes_in_words(target.before, target.after)}"

    def apply(self, params: Params, effect: Preview, context: ToolContext) -> ToolResult:
        update_records(context.organization_id, effect.targets, author_of(context))
        record = one_record(context.organization_id, effect.targets[0].id)
        changed = effect.targets[0].after
        summary = f"Updated record {record.name}: {', '.join(changed)}"
        return ToolResult.ok({"record": row_of(record), "changed": changed}, summary)


class QualifyRecord(RecordWrite):
    """data: {record}, a row as data.searchRecords gives it, and its `qualification_reason`."""

    name = "data.qualifyRecord"
    display_name = "Qualify a record"
    description = "Mark a record as qualified or disqualified, with the reason and, if known, a score."

    class Params(Sparse):
        record_id: RecordId = Field(description="Id of the record, from data.searchRecords")
        qualification: QualificationName = Field(description="qualified or disqualified")
        reason: Reason = Field(description="Why, in one sentence of at most 500 characters")
        score: Score | None = Field(None, description="Score from 0 to 100; left out: stays as it is")

    def preview(self, params: Params, context: ToolContext) -> Preview:
        record = one_record(context.organization_id, params.record_id)
        wanted = {"qualification": params.qualification, "qualification_reason": params.reason}
        target = update_target(record, wanted if params.score is None else {**wanted, "score": params.score})
        if target is None:
            raise nothing_to_do(f"Record {params.record_id} ({record.name}) is {params.qualification} so already.")
        return Preview("update", (target,))

    def sentence(self, params: Params, preview: Preview) -> str:
        scored = {key: value for target in preview.targets for key, value in target.after.items() if key == "score"}
        before = {key: value for target in preview.targets for key, value in target.before.items()}
        more = f", {changes_in_words(before, scored)}" if scored else ""
        return (
            f"Mark record {named(preview, params.record_id)} as {params.qualification}: "
            f"reason {shown(params.reason)}{more}"
        )

    def apply(self, params: Params, effect: Preview, context: ToolContext) -> ToolResult:
        update_records(context.organization_id, effect.targets, author_of(context))
        record = one_record(context.organization_id, effect.targets[0].id)
        row = {**row_of(record), "qualification_reason": record.qualification_reason}
        return ToolResult.ok({"record": row}, f"Marked record {record.name} as {params.qualification}")


class AddToList(RecordWrite):
    """data: {list: {id, name, records}, added}; `added` are the ids that were not on it."""

    name = "data.addToList"
    display_name = "Add records to a list"
    description = "Put records on a named list; the list is made if there is none of that name."

    class Params(Selection):
        list_name: ListName = Field(description="Name of the list, e.g. Spring campaign")

    def validate(self, params: Params) -> None:
        require_selection(params)

    def preview(self, params: Params, context: ToolContext) -> Preview:
        records = chosen(context.organization_id, params)
        record_list = RecordList.objects.filter(organization_id=context.organization_id, name=params.list_name).first()
        there: set[int] = set()
        if record_list is not None:
            there.update(ListEntry.objects.filter(list=record_list).values_list("record_id", flat=True))
        after = {"list": params.list_name, "list_is_new": record_list is None}
        targets = tuple(
            Target(str(record.pk), record.name, record.version, after=dict(after))
            for record in records
            if record.pk not in there
        )
        if not targets:
            raise nothing_to_do(f"All of these {len(records)} records are on the list {params.list_name!r} already.")
        return Preview("add", targets)

    def sentence(self, params: Params, preview: Preview) -> str:
        is_new = any(target.after.get("list_is_new") for target in preview.targets)
        return f"Add {subject(params, preview)} to the {'new ' if is_new else ''}list {bold(params.list_name)}"

    def apply(self, params: Params, effect: Preview, context: ToolContext) -> ToolResult:
        record_list = add_to_list(context.organization_id, params.list_name, effect.targets)
        added = [target.id for target in effect.targets]
        shown_list = {"id": str(record_list.pk), "name": record_list.name, "records": record_list.entries.count()}
        noun = "record" if len(added) == 1 else "records"
        return ToolResult.ok(
            {"list": shown_list, "added": added}, f"Added {len(added)} {noun} to the list {record_list.name}"
        )
