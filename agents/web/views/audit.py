"""The audit: who decided, executed and configured what; filtered, exported, and on request verified. For admins."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.utils import timezone

from agents.accounts import audit
from agents.accounts.models import AuditEntry, AuditHead, Membership, Role
from agents.platform.refusals import Conflict, Forbidden, Invalid
from agents.platform.row_ids import parse_row_id_or_none
from agents.web.lists.audit_lines import GROUPS, lines_of
from agents.web.lists.audit_pages import Wanted, entries_wanted, page_of_entries
from agents.web.lists.run_pages import MOST_LOOKED_THROUGH
from agents.web.views.pages import member_view, render_page
from tools.records.csv_import import is_formula

CHUNK = 1_000
MOST_EXPORTED = 500_000
"""Entries of one file: no more than even a slow reader has before the server ends the connection."""
MOST_VERIFIED = 20_000
"""Entries that one request reads; the page offers to go on."""
MOST_FAULTS = 20
COLUMNS = ("seq", "at", "actor", "action", "subject", "payload", "previous_hash", "hash", "key_id")


@member_view("GET")
def all_entries(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Entries, newest first; the cursor `?before=` is the number of the last one looked at."""
    return _shown(request, _admin(member), {})


@member_view("POST", page="audit")
def verify(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Reads the newest part of the chain, or the part before entry `before`, and says whether it holds."""
    checked = audit.verify_part(
        _admin(member).organization_id, MOST_VERIFIED, parse_row_id_or_none(request.POST.get("before", ""))
    )
    shown = {"checked": checked, "faults": checked.faults[:MOST_FAULTS], "checked_at": timezone.now()}
    return _shown(request, member, shown)


@member_view("GET")
def export(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """All entries that fit, oldest first, as `?format=csv` or `json`: sent while they are read.

    The name of the file says how many they are, so that one that was cut off is known by it.
    """
    format_ = request.GET.get("format", "csv")
    if format_ not in _WRITERS:
        raise Invalid("format", f"{format_[:40]!r} is not a format. Formats: {', '.join(_WRITERS)}.")
    organization_id = _admin(member).organization_id
    newest = AuditHead.objects.filter(organization_id=organization_id).values_list("seq", flat=True).first() or 0
    rows = entries_wanted(organization_id, replace(_wanted(request), before=newest + 1))
    count = rows[: MOST_EXPORTED + 1].count()
    if count > MOST_EXPORTED:
        most = f"More than {MOST_EXPORTED:,} entries match, too many for one file."
        raise Conflict(f"{most} Set From and To to export a part at a time.")
    content_type, write = _WRITERS[format_]
    response = StreamingHttpResponse(write(rows), content_type=content_type)
    name = f"audit-{member.organization.slug}-{timezone.now():%Y-%m-%d}-{count}-entries.{format_}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    return response


def _admin(member: Membership) -> Membership:
    if not member.may(Role.ADMIN):
        raise Forbidden("Only admins can read the audit.")
    return member


def _shown(request: HttpRequest, member: Membership, extra: dict[str, Any]) -> HttpResponseBase:
    found = page_of_entries(member.organization_id, _wanted(request))
    query = request.GET.copy()
    query.pop("before", None)
    filters = query.urlencode()
    query["before"] = str(found.next_before or "")
    context = {
        "lines": lines_of(member.organization_id, found.entries),
        "looked_back_to": found.looked_back_to,
        "most_looked_through": f"{MOST_LOOKED_THROUGH:,}",
        "next_query": query.urlencode() if found.next_before else "",
        "filters": filters,
        "head": AuditHead.objects.filter(organization_id=member.organization_id).first(),
        "most_exported": f"{MOST_EXPORTED:,}",
        "groups": [(name, actions.items()) for name, actions in GROUPS],
        "chosen": request.GET,
        "checked": None,
    }
    return render_page(request, member, "audit/list.html", context | extra)


def _wanted(request: HttpRequest) -> Wanted:
    actor, action = (request.GET.get(name, "").replace("\0", "").strip()[:200] for name in ("actor", "action"))
    last = _day(request.GET.get("to", ""))
    return Wanted(
        actor=actor,
        action=action,
        since=_day(request.GET.get("from", "")),
        until=last + timedelta(days=1) if last else None,
        before=parse_row_id_or_none(request.GET.get("before", "")),
    )


def _day(text: str) -> datetime | None:
    """The start of the day in UTC; None if it is no day."""
    try:
        day = date.fromisoformat(text)
        return datetime.combine(day, time.min, UTC) if day < date.max else None
    except ValueError:
        return None


async def _chunks(rows: QuerySet[AuditEntry]) -> AsyncIterator[list[dict[str, Any]]]:
    """All rows in the order of their numbers, a thousand at a time."""
    behind = 0
    while part := await sync_to_async(_next_rows)(rows, behind):
        yield part
        behind = part[-1]["seq"]


def _next_rows(rows: QuerySet[AuditEntry], behind: int) -> list[dict[str, Any]]:
    return list(rows.filter(seq__gt=behind).values(*COLUMNS)[:CHUNK])


async def _as_csv(rows: QuerySet[AuditEntry]) -> AsyncIterator[str]:
    yield ",".join(COLUMNS) + "\r\n"
    async for part in _chunks(rows):
        text = io.StringIO()
        csv.writer(text).writerows([_cell(name, row[name]) for name in COLUMNS] for row in part)
        yield text.getvalue()


def _cell(name: str, value: Any) -> str:
    """A value as text that no spreadsheet takes for a formula."""
    text = json.dumps(value) if name == "payload" else _plain(value)
    return f"'{text}" if is_formula(text) else text


async def _as_json(rows: QuerySet[AuditEntry]) -> AsyncIterator[str]:
    separator = "[\n"
    async for part in _chunks(rows):
        for row in part:
            row["at"] = _plain(row["at"])
        yield separator + ",\n".join(json.dumps(row) for row in part)
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"


def _plain(value: Any) -> str:
    return value.astimezone(UTC).isoformat(timespec="microseconds") if isinstance(value, datetime) else str(value)


_WRITERS: dict[str, tuple[str, Callable[[QuerySet[AuditEntry]], AsyncIterator[str]]]] = {
    "csv": ("text/csv; charset=utf-8", _as_csv),
    "json": ("application/json", _as_json),
}
