"""Pages of lists. A cursor holds the id of the last row, so that new rows never shift the next page."""

import base64
import binascii
from typing import TypeVar

from django.db.models import Model, QuerySet

from agents.api.schemas import PageQuery
from agents.platform.refusals import Invalid
from agents.platform.row_ids import parse_row_id

Row = TypeVar("Row", bound=Model)


def take_newest(rows: QuerySet[Row], paging: PageQuery) -> tuple[list[Row], str | None]:
    """Return one page, newest first, and the cursor of the next page or None.

    Raises:
        Invalid: the cursor is not valid.
    """
    if paging.cursor:
        rows = rows.filter(pk__lt=decode_id(paging.cursor))
    return take_page(rows.order_by("-pk"), paging)


def take_oldest(rows: QuerySet[Row], paging: PageQuery) -> tuple[list[Row], str | None]:
    """Return one page, oldest first, and the cursor of the next page or None.

    Raises:
        Invalid: the cursor is not valid.
    """
    if paging.cursor:
        rows = rows.filter(pk__gt=decode_id(paging.cursor))
    return take_page(rows.order_by("pk"), paging)


def encode_cursor(row: str) -> str:
    """Return the cursor after the row with this key."""
    return base64.urlsafe_b64encode(row.encode()).decode().rstrip("=")


def decode_key(cursor: str) -> str:
    """Return the key of the row before the cursor.

    Raises:
        Invalid: the text is not a cursor.
    """
    try:
        return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except (binascii.Error, ValueError) as error:
        raise Invalid("cursor", f"{cursor[:40]!r} is not a cursor. Send the `next_cursor` of a response.") from error


def decode_id(cursor: str) -> int:
    """Return the id of the row before the cursor.

    Raises:
        Invalid: the text is not a cursor with an id.
    """
    try:
        return parse_row_id(decode_key(cursor))
    except ValueError as error:
        raise Invalid("cursor", f"{cursor[:40]!r} is not a cursor. Send the `next_cursor` of a response.") from error


def take_page(rows: QuerySet[Row], paging: PageQuery) -> tuple[list[Row], str | None]:
    """Return the first page of sorted rows, and the cursor of the next page or None."""
    page = list(rows[: paging.limit + 1])
    if len(page) <= paging.limit:
        return page, None
    page.pop()
    return page, encode_cursor(str(page[-1].pk))
