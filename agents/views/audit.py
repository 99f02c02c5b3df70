"""The audit: who decided, executed and configured what; filtered, exported, and on request verified. For admins."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.utils import timezone

from agents import audit
from agents.desk.audit_lines import ACTORS, GROUPS, lines_of
from agents.models import AuditEntry, AuditHead, Membership, Role
from agents.refusals import Forbidden, Invalid
from agents.schemas import row_id
from tools.records.importing import is_formula

from .pages import framed, page

PAGE_SIZE = 50
CHUNK = 1_000
MOST_FAULTS = 20
COLUMNS = ("seq", "at", "actor", "action", "subject", "payload", "previous_hash", "hash")

Filters = dict[str, Any]


@page("GET")
def all_entries(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Entries, newest first; the cursor `?before=` is the number of the last one shown."""
    return _shown(request, _admin(member), {})


@page("POST")
def verify(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Reads the whole chain and says whether it holds."""
    faults = audit.verify(_admin(member).organization_id)
    checked = {"faults": faults[:MOST_FAULTS], "fault_count": len(faults), "at": timezone.now()}
    return _shown(request, member, {"checked": checked})


@page("GET")
def export(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """All entries that fit, oldest first, as `?format=csv` or `json`: sent while they are read."""
    format_ = request.GET.get("format", "csv")
    if format_ not in _WRITERS:
        raise Invalid("format", f"{format_[:40]!r} is not a format. There are: {', '.join(_WRITERS)}.")
    rows = _matching(_admin(member), request)
    content_type, write = _WRITERS[format_]
    response = StreamingHttpResponse(write(rows), content_type=content_type)
    name = f"audit-{member.organization.slug}-{timezone.now():%Y-%m-%d}.{format_}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    return response


def _admin(member: Membership) -> Membership:
    if not member.may(Role.ADMIN):
        raise Forbidden("Only admins of the organisation read its audit.")
    return member


def _shown(request: HttpRequest, member: Membership, extra: dict[str, Any]) -> HttpResponseBase:
    rows = _matching(member, request)
    cursor = _whole(request.GET.get("before", ""))
    if cursor is not None:
        rows = rows.filter(seq__lt=cursor)
    shown = list(rows.order_by("-seq")[: PAGE_SIZE + 1])
    query = request.GET.copy()
    query.pop("before", None)
    filters = query.urlencode()
    query["before"] = str(shown[PAGE_SIZE - 1].seq) if len(shown) > PAGE_SIZE else ""
    context = {
        "lines": lines_of(member.organization_id, shown[:PAGE_SIZE]),
        "next_query": query.urlencode() if query["before"] else "",
        "filters": filters,
        "head": AuditHead.objects.filter(organization_id=member.organization_id).first(),
        "groups": [(name, actions.items()) for name, actions in GROUPS],
        "chosen": request.GET,
    }
    return framed(request, member, "audit/list.html", context | extra)


def _matching(member: Membership, request: HttpRequest) -> QuerySet[AuditEntry]:
    rows = AuditEntry.objects.filter(organization_id=member.organization_id)
    actor, action = (request.GET.get(name, "").replace("\0", "").strip()[:200] for name in ("actor", "action"))
    if actor:
        rows = rows.filter(actor__in=[actor, *(f"{kind}:{actor}" for kind in ACTORS)])
    if action:
        rows = rows.filter(action=action)
    first, last = _day(request.GET.get("from", "")), _day(request.GET.get("to", ""))
    if first:
        rows = rows.filter(at__gte=first)
    if last:
        rows = rows.filter(at__lt=last + timedelta(days=1))
    return rows


def _day(text: str) -> datetime | None:
    """The start of the day in UTC; None if it is no day."""
    try:
        day = date.fromisoformat(text)
        return datetime.combine(day, time.min, UTC) if day < date.max else None
    except ValueError:
        return None


def _whole(text: str) -> int | None:
    try:
        return row_id(text)
    except ValueError:
        return None


async def _chunks(rows: QuerySet[AuditEntry]) -> AsyncIterator[list[dict[str, Any]]]:
    """All rows in the order of their numbers, a thousand at a time."""
    behind = 0
    while part := await sync_to_async(_next_rows)(rows, behind):
        yield part
        behind = part[-1]["seq"]


def _next_rows(rows: QuerySet[AuditEntry], behind: int) -> list[dict[str, Any]]:
    return list(rows.filter(seq__gt=behind).order_by("seq").values(*COLUMNS)[:CHUNK])


async def _as_csv(rows: QuerySet[AuditEntry]) -> AsyncIterator[str]:
    yield ",".join(COLUMNS) + "\r\n"
    async for part in _chunks(rows):
        text = io.StringIO()
        csv.writer(text).writerows([_cell(name, row[name]) for name in COLUMNS] for row in part)
        yield text.getvalue()


def _cell(name: str, value: Any) -> str:
    """A value as text that no spreadsheet takes for a formula."""
    text = json.dumps(value, ensure_ascii=False) if name == "payload" else _plain(value)
    return f"'{text}" if is_formula(text) else text


async def _as_json(rows: QuerySet[AuditEntry]) -> AsyncIterator[str]:
    separator = "[\n"
    async for part in _chunks(rows):
        for row in part:
            row["at"] = _plain(row["at"])
        yield separator + ",\n".join(json.dumps(row, ensure_ascii=False) for row in part)
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"


def _plain(value: Any) -> str:
    return value.astimezone(UTC).isoformat(timespec="microseconds") if isinstance(value, datetime) else str(value)


_WRITERS: dict[str, tuple[str, Callable[[QuerySet[AuditEntry]], AsyncIterator[str]]]] = {
    "csv": ("text/csv; charset=utf-8", _as_csv),
    "json": ("application/json", _as_json),
}
