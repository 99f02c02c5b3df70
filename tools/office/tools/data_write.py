"""Tools that create and change single records, and add records to lists."""

from typing import Any

from pydantic import Field

from tools.contract import (
    ErrorCode,
    NothingToDo,
    Preview,
    Target,
    ToolContext,
    ToolError,
    ToolResult,
)
from tools.contract.sentences import format_name, format_value
from tools.office.records.changes import (
    add_to_list,
    build_creation_target,
    build_unchanged_target,
    build_update_target,
    create_record,
    update_records,
)
from tools.office.records.fields import (
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
from tools.office.records.models import ListEntry, RecordList
from tools.office.records.queries import build_row, load_record, load_selection
from tools.office.tools.outputs import ListAddition, QualifiedRecord, SavedRecord, UpdatedRecord
from tools.office.tools.record_sentences import (
    describe_changes,
    describe_subject,
    describe_values,
    format_target_name,
)
from tools.office.tools.record_writes import RecordWrite, build_author, require_selection


class CreateRecord(RecordWrite):
    """Result data: {record}, a row as in data.searchRecords."""

    name = "data.createRecord"
    display_name = "Create a record"
    description = (
        "Create a new business record. Search first: a record with the same name may already exist."
    )
    Output = SavedRecord

    class Params(RecordFields):
        pass

    def preview(self, params: Params, context: ToolContext) -> Preview:
        fields = {
            key: value
            for key, value in params.model_dump(mode="json").items()
            if value not in ("", {})
        }
        return Preview("create", (build_creation_target(fields),))

    def sentence(self, params: Params, preview: Preview) -> str:
        rest = {
            key: value for key, value in params.model_dump(mode="json").items() if key != "name"
        }
        return f"Create record {format_name(params.name)}: {describe_values(rest)}"

    def apply(self, params: Params, effect: Preview, context: ToolContext) -> ToolResult:
        record = create_record(
            context.organization_id, effect.targets[0].after, build_author(context)
        )
        return ToolResult.ok({"record": build_row(record)}, f"Created record {record.name}")


class UpdateRecord(RecordWrite):
    """Result data: {record, changed}; `changed` holds the new values by field."""

    name = "data.updateRecord"
    display_name = "Update a record"
    description = "Change fields of one record. Fields that are not in 'changes' stay unchanged."
    Output = UpdatedRecord

    class Params(Sparse):
        record_id: RecordId = Field(description="Id of the record, from data.searchRecords")
        changes: RecordChanges = Field(
            description='The fields to change, e.g. {"status": "inactive"}'
        )

    def validate(self, params: Params) -> None:
        if not params.changes.model_dump(mode="json"):
            raise ToolError(
                ErrorCode.MISSING_PARAMETER,
                "'changes' is empty.",
                parameter="changes",
                expected="at least one field with its new value",
                example='{"record_id": "42", "changes": {"status": "inactive"}}',
                attempted=False,
            )

    def preview(self, params: Params, context: ToolContext) -> Preview:
        record = load_record(context.organization_id, params.record_id)
        wanted = params.changes.model_dump(mode="json")
        target = build_update_target(record, wanted)
        if target is None:
            message = f"Record {params.record_id} ({record.name}) already has these values."
            raise NothingToDo(message, Preview("update", (build_unchanged_target(record, wanted),)))
        return Preview("update", (target,))

    def sentence(self, params: Params, preview: Preview) -> str:
        if not preview.targets:
            values = describe_values(params.changes.model_dump(mode="json"))
            return f"Update record {format_name(params.record_id)}: {values}"
        target = preview.targets[0]
        return f"Update record {format_name(target.label)}: {describe_changes(target.before, target.after)}"

    def apply(self, params: Params, effect: Preview, context: ToolContext) -> ToolResult:
        update_records(context.organization_id, effect.targets, build_author(context))
        record = load_record(context.organization_id, effect.targets[0].id)
        changed = effect.targets[0].after
        summary = f"Updated record {record.name}: {', '.join(changed)}"
        return ToolResult.ok({"record": build_row(record), "changed": changed}, summary)


class QualifyRecord(RecordWrite):
    """Result data: {record}, a row as in data.searchRecords, with its `qualification_reason`."""

    name = "data.qualifyRecord"
    display_name = "Qualify a record"
    description = (
        "Mark a record as qualified or disqualified, with the reason and, if known, a score."
    )
    Output = QualifiedRecord

    class Params(Sparse):
        record_id: RecordId = Field(description="Id of the record, from data.searchRecords")
        qualification: QualificationName = Field(description="qualified or disqualified")
        reason: Reason = Field(description="The reason, in one sentence of at most 500 characters")
        score: Score | None = Field(None, description="Score from 0 to 100; unchanged if omitted")

    def preview(self, params: Params, context: ToolContext) -> Preview:
        record = load_record(context.organization_id, params.record_id)
        wanted: dict[str, Any] = {
            "qualification": params.qualification,
            "qualification_reason": params.reason,
        }
        wanted |= {} if params.score is None else {"score": params.score}
        target = build_update_target(record, wanted)
        if target is None:
            message = f"Record {params.record_id} ({record.name}) is already {params.qualification} with this reason."
            raise NothingToDo(message, Preview("update", (build_unchanged_target(record, wanted),)))
        return Preview("update", (target,))

    def sentence(self, params: Params, preview: Preview) -> str:
        scored = {
            key: value
            for target in preview.targets
            for key, value in target.after.items()
            if key == "score"
        }
        before = {key: value for target in preview.targets for key, value in target.before.items()}
        more = f", {describe_changes(before, scored)}" if scored else ""
        return (
            f"Mark record {format_target_name(preview, params.record_id)} as {params.qualification}: "
            f"reason {format_value(params.reason)}{more}"
        )

    def apply(self, params: Params, effect: Preview, context: ToolContext) -> ToolResult:
        update_records(context.organization_id, effect.targets, build_author(context))
        record = load_record(context.organization_id, effect.targets[0].id)
        row = {**build_row(record), "qualification_reason": record.qualification_reason}
        return ToolResult.ok(
            {"record": row}, f"Marked record {record.name} as {params.qualification}"
        )


class AddToList(RecordWrite):
    """Result data: {list: {id, name, records}, added}; `added` holds the ids that were not on the
    list before."""

    name = "data.addToList"
    display_name = "Add records to a list"
    description = "Add records to a named list. The list is created if it does not exist."
    Output = ListAddition

    class Params(Selection):
        list_name: ListName = Field(description="Name of the list, e.g. Spring campaign")

    def validate(self, params: Params) -> None:
        require_selection(params)

    def preview(self, params: Params, context: ToolContext) -> Preview:
        records = load_selection(context.organization_id, params)
        record_list = RecordList.objects.filter(
            organization_id=context.organization_id, name=params.list_name
        ).first()
        on_list: set[int] = set()
        if record_list is not None:
            on_list.update(
                ListEntry.objects.filter(list=record_list).values_list("record_id", flat=True)
            )
        after = {"list": params.list_name, "list_is_new": record_list is None}
        targets = tuple(
            Target(str(record.pk), record.name, record.version, after=dict(after))
            for record in records
            if record.pk not in on_list
        )
        if not targets:
            listed = {"list": params.list_name}
            done = tuple(build_unchanged_target(record, listed) for record in records)
            message = f"The selected records are already on the list {params.list_name!r}."
            raise NothingToDo(message, Preview("add", done))
        return Preview("add", targets)

    def sentence(self, params: Params, preview: Preview) -> str:
        is_new = any(target.after.get("list_is_new") for target in preview.targets)
        kind = "new list" if is_new else "list"
        return (
            f"Add {describe_subject(params, preview)} to the {kind} {format_name(params.list_name)}"
        )

    def apply(self, params: Params, effect: Preview, context: ToolContext) -> ToolResult:
        record_list = add_to_list(context.organization_id, params.list_name, effect.targets)
        added = [target.id for target in effect.targets]
        shown_list = {
            "id": str(record_list.pk),
            "name": record_list.name,
            "records": record_list.entries.count(),
        }
        noun = "record" if len(added) == 1 else "records"
        return ToolResult.ok(
            {"list": shown_list, "added": added},
            f"Added {len(added)} {noun} to the list {record_list.name}",
        )
