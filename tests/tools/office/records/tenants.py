"""Helpers that create organizations and records, and that read records from the database."""

from typing import Any

from agents.accounts.models import Organization
from tools.office.records.models import Record


def make_organization(slug: str = "acme") -> Organization:
    return Organization.objects.create(name=slug.title(), slug=slug)


def make_record(organization: Organization, name: str = "Acme Corp", **fields: Any) -> Record:
    return Record.objects.create(organization=organization, name=name, **fields)


def everything() -> dict[str, dict[str, Any]]:
    """Return all records of all organizations by id, as flat values, without versions and times."""
    return {str(record.pk): flat(record) for record in Record.objects.all()}


def flat(record: Record) -> dict[str, Any]:
    columns = (
        "name", "region", "category", "status", "score", "email", "domain", "phone", "notes", "qualification",
        "qualification_reason",
    )  # fmt: skip
    values = {column: getattr(record, column) for column in columns}
    values.update({f"attributes.{key}": value for key, value in record.attributes.items()})
    return {**values, "archived": record.archived_at is not None}


def differences(
    before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]
) -> dict[str, tuple[Any, Any]]:
    """Return the old and new values of each changed record by id; a side on which the record does
    not exist is {}."""
    found = {}
    for key in before.keys() | after.keys():
        old, new = before.get(key, {}), after.get(key, {})
        if old != new:
            fields = {
                field for field in old.keys() | new.keys() if old.get(field) != new.get(field)
            }
            found[key] = (
                {field: old.get(field) for field in fields} if old else {},
                {field: new.get(field) for field in fields} if new else {},
            )
    return found
