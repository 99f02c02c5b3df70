"""What changes records: every change is a list of targets that was shown before, and leaves a step in the history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from tools.contract import ErrorCode, Target, ToolError, canonical_json

from .models import ListEntry, Record, RecordChange, RecordList, look_of
from .queries import locked, missing, records_of

ATTRIBUTE = "attributes."
ARCHIVED = "archived"
SHOWN_OF_DELETED = ("region", "category", "status", "score", "email", "domain")


@dataclass(frozen=True)
class Author:
    """Who asked for a change, for the history."""

    actor: str = ""
    run_id: str = ""
    call_id: str = ""


def creation_target(fields: Mapping[str, Any]) -> Target:
    """The target of a new record; `fields` are column names with their values, empty ones left out."""
    return Target(id="", label=fields["name"], after=dict(fields))


def update_target(record: Record, wanted: Mapping[str, Any]) -> Target | None:
    """What would change if the record got the wanted values, or None if nothing would.

    Args:
        wanted: values by column; `attributes` holds only the keys to set (None removes one), `archived` a bool.
    """
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for key, value in _flat(wanted).items():
        current = _current(record, key)
        if current != value or type(current) is not type(value):
            before[key], after[key] = current, value
    return Target(str(record.pk), record.name, record.version, before, after) if after else None


def deletion_target(record: Record) -> Target:
    """What would be lost."""
    shown = {field: value for field in SHOWN_OF_DELETED if (value := getattr(record, field)) not in (None, "")}
    return Target(str(record.pk), record.name, record.version, before={"name": record.name, **shown})


def create_record(organization_id: int, fields: Mapping[str, Any], author: Author) -> Record:
    """Makes a record and the first step of its history."""
    with transaction.atomic():
        record = Record.objects.create(organization_id=organization_id, **fields)
        _remember({record.pk: 1}, [Target(str(record.pk), record.name, after=dict(fields))], author)
    return record


def update_records(organization_id: int, targets: Sequence[Target], author: Author) -> None:
    """Gives every target its `after`; the number of queries depends on how many different ones there are.

    Raises:
        ToolError: OPERATION_FAILED, and nothing is changed, if a target is not at its version any more.
    """
    with transaction.atomic():
        held = _held(organization_id, targets)
        for values, ids in _alike(held, targets):
            values.update(version=F("version") + 1, updated_at=Now())
            if "name" in values:
                values["look"] = look_of(values["name"])
            records_of(organization_id).filter(pk__in=ids).update(**values)
        _remember({pk: record.version + 1 for pk, record in held.items()}, targets, author)


def delete_records(organization_id: int, targets: Sequence[Target]) -> None:
    """Deletes every target for good, with its history and its places on lists.

    Raises:
        ToolError: OPERATION_FAILED, and nothing is deleted, if a target is not at its version any more.
    """
    with transaction.atomic():
        held = _held(organization_id, targets)
        records_of(organization_id).filter(pk__in=list(held)).delete()


def add_to_list(organization_id: int, name: str, targets: Sequence[Target]) -> RecordList:
    """Puts every target on the list of that name, which is made if it is not there.

    Raises:
        ToolError: OPERATION_FAILED if a target is not at its version any more.
    """
    with transaction.atomic():
        held = _held(organization_id, targets)
        record_list, _ = RecordList.objects.get_or_create(organization_id=organization_id, name=name)
        entries = [ListEntry(list=record_list, record_id=pk) for pk in held]
        ListEntry.objects.bulk_create(entries, ignore_conflicts=True)
    return record_list


def _flat(wanted: Mapping[str, Any]) -> dict[str, Any]:
    flat = {key: value for key, value in wanted.items() if key != "attributes"}
    flat.update({f"{ATTRIBUTE}{key}": value for key, value in (wanted.get("attributes") or {}).items()})
    return flat


def _current(record: Record, key: str) -> Any:
    if key == ARCHIVED:
        return record.archived_at is not None
    if key.startswith(ATTRIBUTE):
        return record.attributes.get(key.removeprefix(ATTRIBUTE))
    return getattr(record, key)


def _held(organization_id: int, targets: Sequence[Target]) -> dict[int, Record]:
    ids = [int(target.id) for target in targets]
    held = {record.pk: record for record in locked(records_of(organization_id).filter(pk__in=ids))}
    if absent := [target.id for target in targets if int(target.id) not in held]:
        raise missing(absent)
    for target in targets:
        if held[int(target.id)].version != target.version:
            raise ToolError(
                ErrorCode.OPERATION_FAILED,
                f"Record {target.id} ({target.label}) has changed meanwhile; nothing was done.",
                recovery_hint="Look at the record again and repeat the call if it is still right.",
                attempted=False,
            )
    return held


def _alike(held: Mapping[int, Record], targets: Sequence[Target]) -> list[tuple[dict[str, Any], list[int]]]:
    """Column values with the ids of all records that get just these."""
    groups: dict[str, tuple[dict[str, Any], list[int]]] = {}
    for target in targets:
        columns = _columns(held[int(target.id)], target.after)
        groups.setdefault(canonical_json(columns), (columns, []))[1].append(int(target.id))
    return [(_with_archived(columns), ids) for columns, ids in groups.values()]


def _columns(record: Record, after: Mapping[str, Any]) -> dict[str, Any]:
    columns = {key: value for key, value in after.items() if not key.startswith(ATTRIBUTE)}
    named = {key.removeprefix(ATTRIBUTE): value for key, value in after.items() if key.startswith(ATTRIBUTE)}
    if named:
        merged = {**record.attributes, **named}
        columns["attributes"] = {key: value for key, value in merged.items() if value is not None}
    return columns


def _with_archived(columns: Mapping[str, Any]) -> dict[str, Any]:
    if ARCHIVED not in columns:
        return dict(columns)
    rest = {key: value for key, value in columns.items() if key != ARCHIVED}
    return {**rest, "archived_at": Now() if columns[ARCHIVED] else None}


def _remember(versions: Mapping[int, int], targets: Sequence[Target], author: Author) -> None:
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
