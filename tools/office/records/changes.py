"""Apply previewed targets to records; creations and updates are added to the history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from tools.contract import ErrorCode, Target, ToolError, canonical_json
from tools.contract.look_alikes import compute_look
from tools.contract.name_likeness import compute_stem
from tools.office.records.models import ListEntry, Record, RecordChange, RecordList
from tools.office.records.queries import build_missing_error, get_records, lock_records

ATTRIBUTE = "attributes."
ARCHIVED = "archived"
DELETION_FIELDS = ("region", "category", "status", "score", "email", "domain")


@dataclass(frozen=True)
class ChangeAuthor:
    """The author of a change, for the history."""

    actor: str = ""
    run_id: str = ""
    call_id: str = ""


def build_creation_target(fields: Mapping[str, Any]) -> Target:
    """Build the target of a new record; `fields` are values by column, without empty ones."""
    return Target(id="", label=fields["name"], after=dict(fields))


def build_update_target(record: Record, wanted: Mapping[str, Any]) -> Target | None:
    """Build the target of an update to the wanted values; return None if nothing would change.

    Args:
        wanted: values by column; `attributes` holds only the keys to set (None removes a key), and
            `archived` is a bool.
    """
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for key, value in _flatten(wanted).items():
        current = _read_current(record, key)
        if current != value or type(current) is not type(value):
            before[key], after[key] = current, value
    return Target(str(record.pk), record.name, record.version, before, after) if after else None


def build_unchanged_target(record: Record, wanted: Mapping[str, Any]) -> Target:
    """Build the target of an update without changes. The target does not have a version, because
    any version will do."""
    values = _flatten(wanted)
    return Target(str(record.pk), record.name, before=values, after=dict(values))


def build_deletion_target(record: Record) -> Target:
    """Build the target of a deletion, with the values that would be lost."""
    shown = {
        field: value
        for field in DELETION_FIELDS
        if (value := getattr(record, field)) not in (None, "")
    }
    return Target(
        str(record.pk), record.name, record.version, before={"name": record.name, **shown}
    )


def create_record(organization_id: int, fields: Mapping[str, Any], author: ChangeAuthor) -> Record:
    """Create a record and the first entry of its history."""
    with transaction.atomic():
        record = Record.objects.create(organization_id=organization_id, **fields)
        _record_changes(
            {record.pk: 1}, [Target(str(record.pk), record.name, after=dict(fields))], author
        )
    return record


def update_records(organization_id: int, targets: Sequence[Target], author: ChangeAuthor) -> None:
    """Apply the `after` of every target, with one query for each different set of values.

    Raises:
        ToolError: NOT_FOUND, or OPERATION_FAILED: a target has changed since its version; nothing
            was changed.
    """
    with transaction.atomic():
        locked = _lock_targets(organization_id, targets)
        for values, ids in _group_equal_changes(locked, targets):
            values.update(version=F("version") + 1, updated_at=Now())
            if "name" in values:
                values["look"] = compute_look(values["name"])
                values["stem"] = compute_stem(values["name"])
            get_records(organization_id).filter(pk__in=ids).update(**values)
        _record_changes({pk: record.version + 1 for pk, record in locked.items()}, targets, author)


def delete_records(organization_id: int, targets: Sequence[Target]) -> None:
    """Delete every target permanently, with its history and its list entries.

    Raises:
        ToolError: NOT_FOUND, or OPERATION_FAILED: a target has changed since its version; nothing
            was deleted.
    """
    with transaction.atomic():
        locked = _lock_targets(organization_id, targets)
        get_records(organization_id).filter(pk__in=list(locked)).delete()


def add_to_list(organization_id: int, name: str, targets: Sequence[Target]) -> RecordList:
    """Add every target to the list of that name, and create the list if it does not exist.

    Raises:
        ToolError: NOT_FOUND, or OPERATION_FAILED: a target has changed since its version; nothing
            was added.
    """
    with transaction.atomic():
        locked = _lock_targets(organization_id, targets)
        record_list, _ = RecordList.objects.get_or_create(
            organization_id=organization_id, name=name
        )
        entries = [ListEntry(list=record_list, record_id=pk) for pk in locked]
        ListEntry.objects.bulk_create(entries, ignore_conflicts=True)
    return record_list


def _flatten(wanted: Mapping[str, Any]) -> dict[str, Any]:
    flat = {key: value for key, value in wanted.items() if key != "attributes"}
    flat.update(
        {f"{ATTRIBUTE}{key}": value for key, value in (wanted.get("attributes") or {}).items()}
    )
    return flat


def _read_current(record: Record, key: str) -> Any:
    if key == ARCHIVED:
        return record.archived_at is not None
    if key.startswith(ATTRIBUTE):
        return record.attributes.get(key.removeprefix(ATTRIBUTE))
    return getattr(record, key)


def _lock_targets(organization_id: int, targets: Sequence[Target]) -> dict[int, Record]:
    ids = [int(target.id) for target in targets]
    locked = {
        record.pk: record
        for record in lock_records(get_records(organization_id).filter(pk__in=ids))
    }
    if absent := [target.id for target in targets if int(target.id) not in locked]:
        raise build_missing_error(absent)
    for target in targets:
        if locked[int(target.id)].version != target.version:
            raise ToolError(
                ErrorCode.OPERATION_FAILED,
                f"Record {target.id} ({target.label}) has changed since it was read; nothing was done.",
                recovery_hint="Read the record again, and repeat the call if it is still right.",
                attempted=False,
            )
    return locked


def _group_equal_changes(
    locked: Mapping[int, Record], targets: Sequence[Target]
) -> list[tuple[dict[str, Any], list[int]]]:
    """Group the ids of the records whose columns get the same values."""
    groups: dict[str, tuple[dict[str, Any], list[int]]] = {}
    for target in targets:
        columns = _build_columns(locked[int(target.id)], target.after)
        groups.setdefault(canonical_json(columns), (columns, []))[1].append(int(target.id))
    return [(_set_archived(columns), ids) for columns, ids in groups.values()]


def _build_columns(record: Record, after: Mapping[str, Any]) -> dict[str, Any]:
    columns = {key: value for key, value in after.items() if not key.startswith(ATTRIBUTE)}
    named = {
        key.removeprefix(ATTRIBUTE): value
        for key, value in after.items()
        if key.startswith(ATTRIBUTE)
    }
    if named:
        merged = {**record.attributes, **named}
        columns["attributes"] = {key: value for key, value in merged.items() if value is not None}
    return columns


def _set_archived(columns: Mapping[str, Any]) -> dict[str, Any]:
    if ARCHIVED not in columns:
        return dict(columns)
    rest = {key: value for key, value in columns.items() if key != ARCHIVED}
    return {**rest, "archived_at": Now() if columns[ARCHIVED] else None}


def _record_changes(
    versions: Mapping[int, int], targets: Sequence[Target], author: ChangeAuthor
) -> None:
    RecordChange.objects.bulk_create(
        RecordChange(
            record_id=int(target.id),
            version=versions[int(target.id)],
            call_id=author.call_id,
            run_id=author.run_id,
            actor=author.actor[:200],
            before=target.before,
            after=target.after,
        )
        for target in targets
    )
