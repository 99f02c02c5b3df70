"""Finds rows by the ids in addresses; authorisation is the lookup, so a stranger's row is simply not there."""

from typing import Annotated, Any, TypeVar

from django.db.models import Model, QuerySet
from pydantic import BeforeValidator, WithJsonSchema

from agents.platform.refusals import NotFound
from agents.platform.row_ids import row_id

Row = TypeVar("Row", bound=Model)


def _id_in_address(value: Any) -> int:
    try:
        return row_id(value)
    except ValueError as error:
        raise NotFound(f"{error}, so there is nothing here.") from error


PathId = Annotated[int, BeforeValidator(_id_in_address), WithJsonSchema({"type": "string"})]
"""An id in an address; whatever is no id, or larger than any, is not there."""


def found(rows: QuerySet[Row], pk: int, noun: str) -> Row:
    """The row of this id among those that the asker may see.

    Raises:
        NotFound: it is not among them; whether it exists elsewhere is not told.
    """
    row = rows.filter(pk=pk).first()
    if row is None:
        raise NotFound(f"There is no {noun} {pk}.")
    return row
