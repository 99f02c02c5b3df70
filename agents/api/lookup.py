"""The types of ids in paths; an invalid id leads to a 404."""

from typing import Annotated, Any
from uuid import UUID

from pydantic import BeforeValidator, WithJsonSchema

from agents.platform.refusals import NotFound
from agents.platform.row_ids import parse_row_id


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
"""A UUID in a path; an invalid UUID leads to a 404."""
PathId = Annotated[int, BeforeValidator(_parse_path_id), WithJsonSchema({"type": "string"})]
"""An id in a path; an invalid or too large id leads to a 404."""
