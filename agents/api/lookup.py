"""Lookup of rows by the ids in paths. Rows of other organizations are not found, which is the
authorization."""

from typing import Annotated, Any, TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet
from pydantic import BeforeValidator, WithJsonSchema

from agents.platform.refusals import NotFound
from agents.platform.row_ids import parse_row_id

Row = TypeVar("Row", bound=Model)


def _parse_path_id(value: Any) -> int:
    try:
        return parse_row_id(value)
    except ValueError as error:
        raise NotFound(f"{error}, so there is nothing here.") from error


def _parse_path_uuid(value: Any) -> UUID:
    try:
        return UUID(str(value))
    except ValueError as error:
        raise NotFound(f"{str(value)[:40]!r} is not a UUID, so there is nothing here.") from error


PathUuid = Annotated[
    UUID, BeforeValidator(_parse_path_uuid), WithJsonSchema({"type": "string", "format": "uuid"})
]
"""A UUID in a path; an invalid one returns 404."""
PathId = Annotated[int, BeforeValidator(_parse_path_id), WithJsonSchema({"type": "string"})]
"""An id in a path; an invalid or too large one returns 404."""


def get_row(rows: QuerySet[Row], pk: int, noun: str) -> Row:
    """Return the row with this id, if it is among the rows that the member may see.

    Raises:
        NotFound: it is not; the error does not reveal whether it exists elsewhere.
    """
    row = rows.filter(pk=pk).first()
    if row is None:
        raise NotFound(f"There is no {noun} {pk}.")
    return row
