"""Pages of lists. A cursor holds the id of the last row, so that new rows never shift the next
page."""

import base64
import binascii
import time
from collections.abc import Callable
from typing import TypeVar

from django.db.models import Model, QuerySet

from agents.api.schemas import PageQuery
from agents.platform.refusals import Invalid
from agents.platform.row_ids import parse_row_id

Row = TypeVar("Row", bound=Model)
Page = tuple[list[Row], str | None]

BATCH = 5_000
LOOKED_THROUGH_S = 0.1


def take_newest(rows: QuerySet[Row], paging: PageQuery) -> Page[Row]:
    """Return one page, newest first, and the cursor of the next page; None if there is no next
    page.

    Raises:
        Invalid: the cursor is not valid.
    """
    return take_page(start_at_cursor(rows.order_by("-pk"), paging), paging)


def start_at_cursor(rows: QuerySet[Row], paging: PageQuery) -> QuerySet[Row]:
    """Select the rows after the cursor; the rows must be sorted newest first.

    Raises:
        Invalid: the cursor is not valid.
    """
    return rows.filter(pk__lt=decode_id(paging.cursor)) if paging.cursor else rows


def take_oldest(rows: QuerySet[Row], paging: PageQuery) -> Page[Row]:
    """Return one page, oldest first, and the cursor of the next page; None if there is no next
    page.

    Raises:
        Invalid: the cursor is not valid.
    """
    if paging.cursor:
        rows = rows.filter(pk__gt=decode_id(paging.cursor))
    return take_page(rows.order_by("pk"), paging)


def encode_cursor(row: str) -> str:
    """Return the cursor that continues after the row with this key."""
    return base64.urlsafe_b64encode(row.encode()).decode().rstrip("=")


def decode_key(cursor: str) -> str:
    """Return the key of the row after which the cursor continues.

    Raises:
        Invalid: the text is not a cursor.
    """
    try:
        return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except (binascii.Error, ValueError) as error:
        raise Invalid(
            "cursor", f"{cursor[:40]!r} is not a cursor. Send the `next_cursor` of a response."
        ) from error


def decode_id(cursor: str) -> int:
    """Return the id of the row after which the cursor continues.

    Raises:
        Invalid: the text is not a cursor with an id.
    """
    try:
        return parse_row_id(decode_key(cursor))
    except ValueError as error:
        raise Invalid(
            "cursor", f"{cursor[:40]!r} is not a cursor. Send the `next_cursor` of a response."
        ) from error


def take_page(rows: QuerySet[Row], paging: PageQuery) -> Page[Row]:
    """Return the first page of sorted rows, and the cursor of the next page; None if there is no
    next page."""
    page = list(rows[: paging.limit + 1])
    if len(page) <= paging.limit:
        return page, None
    page.pop()
    return page, encode_cursor(str(page[-1].pk))


def take_filtered(
    rows: QuerySet[Row], narrow: Callable[[QuerySet[Row]], QuerySet[Row]], paging: PageQuery
) -> Page[Row]:
    """Return a page of the rows that match a filter for which there is no index, and the cursor of
    the next page.

    The rows are searched in batches for at most a tenth of a second, however few of them match. So
    a page may have fewer rows than the limit, or none; its cursor continues with the unsearched
    rows.

    Args:
        rows: the rows to search, newest first, in the order of an index.

    Raises:
        Invalid: the cursor is not valid.
    """
    ahead = start_at_cursor(rows, paging)
    found: list[Row] = []
    until = time.monotonic() + LOOKED_THROUGH_S
    while True:
        end = ahead.values_list("pk", flat=True)[BATCH - 1 : BATCH].first()
        batch = narrow(ahead if end is None else ahead.filter(pk__gte=end))
        found += batch[: paging.limit + 1 - len(found)]
        if len(found) > paging.limit:
            return found[: paging.limit], encode_cursor(str(found[paging.limit - 1].pk))
        if end is None:
            return found, None
        if time.monotonic() >= until:
            return found, encode_cursor(str(end))
        ahead = ahead.filter(pk__lt=end)
