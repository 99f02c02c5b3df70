"""The operations on records and drafts that the office registers."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from pydantic import ValidationError

from tools.contract import Target
from tools.office.demo_companies import add_demo_companies
from tools.office.records import changes, csv_export, csv_import, lists
from tools.office.records.fields import RecordFields
from tools.office.records.models import NAME_KEYS, Draft, RecordChange, Status
from tools.office.records.queries import get_records
from tools.registries.records import RecordLists, RecordStore, RecordTransfer


def get_changes(organization_id: int) -> QuerySet[RecordChange]:
    """Return the history entries of an organization's records."""
    return RecordChange.objects.filter(record__organization_id=organization_id)


def get_drafts(organization_id: int) -> QuerySet[Draft]:
    """Return all drafts of one organization."""
    return Draft.objects.filter(organization_id=organization_id)


def find_faults(fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the name and the fault of each wrong field of a record."""
    try:
        RecordFields.model_validate(dict(fields))
    except ValidationError as error:
        return [(str(fault["loc"][0]), fault["msg"]) for fault in error.errors()]
    return []


def create_record(organization_id: int, fields: Mapping[str, Any], actor: str) -> int:
    """Create a record with its first history entry, and return its id."""
    return changes.create_record(organization_id, fields, changes.ChangeAuthor(actor)).pk


def update_record(organization_id: int, target: Target, actor: str) -> None:
    """Apply the target's new values.

    Raises:
        ToolError: NOT_FOUND, or OPERATION_FAILED: the record has changed since the target's
            version.
    """
    changes.update_records(organization_id, [target], changes.ChangeAuthor(actor))


RECORDS = RecordStore(
    get_records=get_records,
    get_changes=get_changes,
    get_drafts=get_drafts,
    draft_kinds=Draft.Kind.choices,
    lists=RecordLists(
        statuses=Status.choices,
        parse_sort=lists.parse_sort,
        filter_records=lists.filter_records,
        load_page=lists.load_page,
        list_values_in_use=lists.list_values_in_use,
        get_record_lists=lists.list_record_lists,
    ),
    transfer=RecordTransfer(
        columns=csv_import.COLUMNS,
        ignored_columns=csv_import.ONLY_EXPORTED,
        max_rows=csv_import.MAX_ROWS,
        read_csv=csv_import.read_csv,
        create_records=csv_import.create_records,
        format_header=csv_export.format_header,
        format_rows_after=csv_export.format_rows_after,
    ),
    find_faults=find_faults,
    create_record=create_record,
    update_record=update_record,
    add_demo_companies=add_demo_companies,
    tool_family="data",
    name_keys=NAME_KEYS,
)
