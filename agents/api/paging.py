"""Lists in pages: the cursor is the id of the last row, so that new rows never shift what comes next."""

import base64
import binascii
from typing import TypeVar

from django.db.models import Model, QuerySet

from agents.api.schemas import Paging
from agents.platform.refusals import Invalid
from agents.platform.row_ids import row_id

Row = TypeVar("Row", bound=Model)


def newest_first(rows: QuerySet[Row], paging: Paging) -> tuple[list[Row], str | None]:
    """One page in falling order of ids, and the cursor of the next page or None.

    Raises:
        Invalid: the cursor is not one of ours.
    """
    if paging.cursor:
        rows = rows.filter(pk__lt=id_in(paging.cursor))
    return cut(rows.order_by("-pk"), paging)


def oldest_first(rows: QuerySet[Row], paging: Paging) -> tuple[list[Row], str | None]:
    """One page in rising order of ids, and the cursor of the next page or None.

    Raises:
        Invalid: the cursor is not one of ours.
    """
    if paging.cursor:
        rows = rows.filter(pk__gt=id_in(paging.cursor))
    return cut(rows.order_by("pk"), paging)


def cursor_of(row: str) -> str:
    """The cursor behind the row of this key."""
    return base64.urlsafe_b64encode(row.encode()).decode().rstrip("=")


def key_in(cursor: str) -> str:
    """The key of the row that a cursor stands behind.

    Raises:
        Invalid: it is not a cursor.
    """
    try:
        return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except (binascii.Error, ValueError) as error:
        raise Invalid("cursor", f"{cursor[:40]!r} is not a cursor; send the next_cursor of an answer.") from error


def id_in(cursor: str) -> int:
    """The id of the row that a cursor stands behind.

    Raises:
        Invalid: it is not a cursor of rows.
    """
    try:
        return row_id(key_in(cursor))
    except ValueError as error:
        raise Invalid("cursor", f"{cursor[:40]!r} is not a cursor; send the next_cursor of an answer.") from error


def cut(rows: QuerySet[Row], paging: Paging) -> tuple[list[Row], str | None]:
    """Return the first page of sorted rows, and the cursor of the next page or None."""
    page = list(rows[: paging.limit + 1])
    if len(page) <= paging.limit:
        return page, None
    page.pop()
    return page, cursor_of(str(page[-1].pk))
