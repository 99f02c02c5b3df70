"""The audit log, for admins only: filter, export and verify its entries."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.utils import timezone

from agents.accounts import audit
from agents.accounts.models import AuditEntry, AuditHead, Membership, Role
from agents.platform.refusals import Conflict, Forbidden, Invalid
from agents.platform.row_ids import parse_row_id_or_none
from agents.web.lists.audit_lines import ACTION_GROUPS, describe_entries
from agents.web.lists.audit_pages import AuditFilter, find_entries, load_audit_page
from agents.web.lists.days import parse_day
from agents.web.lists.run_pages import MAX_SCANNED
from agents.web.views.pages import as_download, member_view, render_page
from tools.contract.spreadsheets import guard_cell

CHUNK_SIZE = 1_000
MAX_EXPORTED = 500_000
"""The maximum number of entries in one export: even a slow client receives them before the server
closes the connection."""
MAX_VERIFIED = 20_000
"""The maximum number of entries that one request verifies; the page offers to continue."""
MAX_FAULTS = 20
COLUMNS = ("seq", "at", "actor", "action", "subject", "payload", "previous_hash", "hash", "key_id")


@member_view("GET")
def audit_page(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show entries, newest first; `?before=` continues after the last entry of the previous
    page."""
    return _render_list(request, _require_admin(member), {})


@member_view("POST", page="audit")
def verify(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Verify the newest part of the chain, or the part before entry `before`, and show the
    result."""
    checked = audit.verify_part(
        _require_admin(member).organization_id,
        MAX_VERIFIED,
        parse_row_id_or_none(request.POST.get("before", "")),
    )
    result = {
        "checked": checked,
        "faults": checked.faults[:MAX_FAULTS],
        "checked_at": timezone.now(),
    }
    return _render_list(request, member, result)


@member_view("GET")
def export(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Stream all matching entries, oldest first, as `?format=csv` or `json`.

    The file name contains the number of entries, so that a truncated file can be recognized.
    """
    format_ = request.GET.get("format", "csv")
    if format_ not in _WRITERS:
        raise Invalid(
            "format",
            f"{format_[:40]!r} is not an export format. Choose one of: {', '.join(_WRITERS)}.",
        )
    organization_id = _require_admin(member).organization_id
    newest = (
        AuditHead.objects.filter(organization_id=organization_id)
        .values_list("seq", flat=True)
        .first()
        or 0
    )
    rows = find_entries(organization_id, replace(_read_filter(request), before=newest + 1))
    count = rows[: MAX_EXPORTED + 1].count()
    if count > MAX_EXPORTED:
        problem = f"More than {MAX_EXPORTED:,} entries match, too many for one file."
        raise Conflict(f"{problem} Set From and To to export one part at a time.")
    content_type, write = _WRITERS[format_]
    response = StreamingHttpResponse(write(rows), content_type=content_type)
    name = f"audit-{member.organization.slug}-{timezone.now():%Y-%m-%d}-{count}-entries.{format_}"
    return as_download(response, name)


def _require_admin(member: Membership) -> Membership:
    if not member.may(Role.ADMIN):
        raise Forbidden("Only admins can read the audit.")
    return member


def _render_list(
    request: HttpRequest, member: Membership, extra: dict[str, Any]
) -> HttpResponseBase:
    page = load_audit_page(member.organization_id, _read_filter(request))
    query = request.GET.copy()
    query.pop("before", None)
    filter_query = query.urlencode()
    query["before"] = str(page.next_before or "")
    context = {
        "lines": describe_entries(member.organization_id, page.entries),
        "scanned_to": page.scanned_to,
        "max_scanned": f"{MAX_SCANNED:,}",
        "next_query": query.urlencode() if page.next_before else "",
        "filter_query": filter_query,
        "head": AuditHead.objects.filter(organization_id=member.organization_id).first(),
        "max_exported": f"{MAX_EXPORTED:,}",
        "groups": [(name, actions.items()) for name, actions in ACTION_GROUPS],
        "chosen": request.GET,
        "checked": None,
    }
    return render_page(request, member, "audit/list.html", context | extra)


def _read_filter(request: HttpRequest) -> AuditFilter:
    actor, action = (
        request.GET.get(name, "").replace("\0", "").strip()[:200] for name in ("actor", "action")
    )
    first, last = (_parse_start(request.GET.get(name, "")) for name in ("from", "to"))
    return AuditFilter(
        actor=actor,
        action=action,
        since=first,
        until=last + timedelta(days=1) if last else None,
        before=parse_row_id_or_none(request.GET.get("before", "")),
    )


def _parse_start(text: str) -> datetime | None:
    """Return the start of the day in UTC; None for an invalid date."""
    day = parse_day(text)
    return datetime.combine(day, time.min, UTC) if day is not None else None


async def _read_chunks(rows: QuerySet[AuditEntry]) -> AsyncIterator[list[dict[str, Any]]]:
    """Yield all rows, oldest first, 1,000 at a time."""
    last_seq = 0
    while part := await sync_to_async(_load_next_rows)(rows, last_seq):
        yield part
        last_seq = part[-1]["seq"]


def _load_next_rows(rows: QuerySet[AuditEntry], last_seq: int) -> list[dict[str, Any]]:
    return list(rows.filter(seq__gt=last_seq).values(*COLUMNS)[:CHUNK_SIZE])


async def _write_csv(rows: QuerySet[AuditEntry]) -> AsyncIterator[str]:
    yield ",".join(COLUMNS) + "\r\n"
    async for part in _read_chunks(rows):
        text = io.StringIO()
        csv.writer(text).writerows(
            [_format_cell(name, row[name]) for name in COLUMNS] for row in part
        )
        yield text.getvalue()


def _format_cell(name: str, value: Any) -> str:
    """Format a value as text, quoted if a spreadsheet would read it as a formula."""
    text = json.dumps(value) if name == "payload" else _format_value(value)
    return guard_cell(text)


async def _write_json(rows: QuerySet[AuditEntry]) -> AsyncIterator[str]:
    separator = "[\n"
    async for part in _read_chunks(rows):
        for row in part:
            row["at"] = _format_value(row["at"])
        yield separator + ",\n".join(json.dumps(row) for row in part)
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"


def _format_value(value: Any) -> str:
    return (
        value.astimezone(UTC).isoformat(timespec="microseconds")
        if isinstance(value, datetime)
        else str(value)
    )


_WRITERS: dict[str, tuple[str, Callable[[QuerySet[AuditEntry]], AsyncIterator[str]]]] = {
    "csv": ("text/csv; charset=utf-8", _write_csv),
    "json": ("application/json", _write_json),
}
