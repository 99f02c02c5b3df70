"""The organization's business records: the list, one record with its history, and CSV import and
export."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, cast

from asgiref.sync import sync_to_async
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.db.models import QuerySet
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    QueryDict,
    StreamingHttpResponse,
)
from django.shortcuts import redirect
from django.utils import timezone

from agents.accounts import audit
from agents.accounts.models import Membership, Role
from agents.platform.refusals import Forbidden, Invalid
from agents.platform.row_ids import get_row, parse_row_id
from agents.runs.models import Approval, ApprovalStatus, Run, name_decider
from agents.web.views import one_time_reports
from agents.web.views.linked_runs import load_linked_runs, parse_stored_ids
from agents.web.views.pages import as_download, member_view, render_page
from tools.registries.records import (
    LARGEST_IMPORT,
    MAX_CHOICES,
    RECORD_STORE,
    ImportRefusedError,
    ImportReport,
    RecordListQuery,
    SortOrder,
)

MAX_STEPS = 50
MAX_LINKS = 100
MAX_BAD_ROWS = 200
REPORT_KEY = "import_report"
"""The session key under which an import's report is stored until it is shown."""
FIELDS = (
    ("status", "Status"),
    ("score", "Score"),
    ("region", "Region"),
    ("category", "Category"),
    ("domain", "Domain"),
    ("email", "Email"),
    ("phone", "Phone"),
    ("qualification", "Qualification"),
    ("qualification_reason", "Reason"),
    ("notes", "Notes"),
)
ORDERS = (
    ("name", "Name, A to Z"),
    ("-name", "Name, Z to A"),
    ("-score", "Score, highest first"),
    ("score", "Score, lowest first"),
    ("-changed", "Changed, newest first"),
    ("changed", "Changed, oldest first"),
)
FIRST_DIRECTIONS = {"name": "name", "score": "-score", "changed": "-changed"}


@member_view("GET")
def record_list(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show records, filtered by text, region, category, status and list; `?after=` is the last
    record shown."""
    lists = RECORD_STORE.get().lists
    filters, sort = _read_query(request.GET), lists.parse_sort(request.GET.get("sort", ""))
    after = request.GET.get("after", "")
    page = lists.load_page(lists.filter_records(member.organization_id, filters), sort, after)
    context = {
        "records": page.records,
        "filters": filters,
        "sort": sort,
        "orders": ORDERS,
        "columns": {by: _build_column(request.GET, sort, by) for by in FIRST_DIRECTIONS},
        "choices": _list_choices(member, filters),
        "statuses": [*lists.statuses, ("archived", "Archived records")],
        "lists": [(each.pk, each.name) for each in lists.get_record_lists(member.organization_id)],
        "is_filtered": filters != RecordListQuery(),
        "next_query": _build_query_string(request.GET, after=page.after) if page.after else "",
        "first_query": _build_query_string(request.GET, after=""),
        "is_later_page": bool(after),
        "export_query": _build_query_string(request.GET, after="", sort=""),
        "may_import": member.may(Role.ADMIN),
    }
    return render_page(request, member, "records/list.html", context)


@member_view("GET")
def record_page(request: HttpRequest, member: Membership, record_id: int) -> HttpResponseBase:
    """Show a record and its history, newest first; `?before=ID` shows older changes."""
    records = RECORD_STORE.get().get_records(member.organization_id)
    record = get_row(records, record_id, "record")
    steps, before = _load_steps(member, record, request.GET.get("before", ""))
    entries = record.list_entries.filter(list__organization_id=member.organization_id)
    context = {
        "record": record,
        "fields": [(label, getattr(record, name)) for name, label in FIELDS],
        "lists": [
            entry.list for entry in entries.select_related("list").order_by("id")[:MAX_LINKS]
        ],
        "drafts": record.drafts.filter(organization_id=member.organization_id).defer("body")[
            :MAX_LINKS
        ],
        "steps": steps,
        "before": before,
        "is_newest": "before" not in request.GET,
    }
    return render_page(request, member, "records/one.html", context)


@member_view("GET", "POST")
def import_records(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show the import form, and directly after an import its report; POST imports a file's valid
    rows."""
    if not member.may(Role.ADMIN):
        raise Forbidden("Only admins can import records.")
    if request.method != "POST":
        return _render_import_page(
            request, member, {"report": one_time_reports.take_report(request, member, REPORT_KEY)}
        )
    try:
        report = _import_file(request, member)
    except (Invalid, ImportRefusedError) as refusal:
        return _render_import_page(request, member, {"problem": str(refusal)}, status=422)
    stored = {
        "imported": report.imported,
        "left_out": len(report.bad_rows),
        "bad_rows": report.bad_rows[:MAX_BAD_ROWS],
    }
    one_time_reports.store_report(request, member, REPORT_KEY, stored)
    return redirect("records-import")


@member_view("GET")
def export_records(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Stream the filtered list as a CSV file."""
    records = RECORD_STORE.get().lists.filter_records(
        member.organization_id, _read_query(request.GET)
    )
    response = StreamingHttpResponse(_stream_lines(records), content_type="text/csv; charset=utf-8")
    name = f"records-{member.organization.slug}-{timezone.now():%Y-%m-%d}.csv"
    return as_download(response, name)


# The list


def _read_query(query: QueryDict) -> RecordListQuery:
    text, region, category, status = (
        query.get(name, "").replace("\0", "").strip()
        for name in ("q", "region", "category", "status")
    )
    filters = RecordListQuery(text, region, category, status)
    with suppress(ValueError):
        filters = replace(filters, list_id=parse_row_id(query.get("list", "")))
    return filters


@dataclass(frozen=True)
class FilterChoice:
    """A filter by one of the values in use; the value is typed if there are too many to list."""

    name: str
    label: str
    values: list[str]
    chosen: str

    @property
    def is_typed(self) -> bool:
        return len(self.values) >= MAX_CHOICES

    @property
    def options(self) -> list[tuple[str, str]]:
        return [(value, value) for value in self.values]


def _list_choices(member: Membership, filters: RecordListQuery) -> list[FilterChoice]:
    lists, organization_id = RECORD_STORE.get().lists, member.organization_id
    regions = lists.list_values_in_use(organization_id, "region")
    categories = lists.list_values_in_use(organization_id, "category")
    return [
        FilterChoice("region", "Region", _add_chosen(regions, filters.region), filters.region),
        FilterChoice(
            "category", "Category", _add_chosen(categories, filters.category), filters.category
        ),
    ]


def _add_chosen(values: list[str], chosen: str) -> list[str]:
    """Add the chosen value if it is not one of the values in use."""
    return values if not chosen or chosen in values else [*values, chosen]


@dataclass(frozen=True)
class SortableColumn:
    """A column heading that sorts the list, or reverses the direction of the current sort."""

    by: str
    query: str
    direction: str


def _build_column(query: QueryDict, sort: SortOrder, by: str) -> SortableColumn:
    is_current = sort.by == by
    next_sort = str(sort.reversed) if is_current else FIRST_DIRECTIONS[by]
    direction = ("descending" if sort.descending else "ascending") if is_current else ""
    return SortableColumn(by, _build_query_string(query, sort=next_sort, after=""), direction)


def _build_query_string(query: QueryDict, **changes: str) -> str:
    """Return the query string with these values changed; empty values are omitted."""
    values = {**{name: query.get(name, "") for name in query}, **changes}
    changed = QueryDict(mutable=True)
    changed.update({name: value for name, value in values.items() if value})
    return changed.urlencode()


# One record


@dataclass(frozen=True)
class HistoryStep:
    """One change of a record: its author, its run, its approver, and each value before and
    after."""

    change: Any
    run: Run | None
    approved_by: str

    @property
    def is_by_employee(self) -> bool:
        return bool(self.change.run_id)

    @property
    def is_creation(self) -> bool:
        return not self.change.before and self.change.version == 1

    @property
    def values(self) -> Iterable[tuple[str, Any, Any]]:
        before, after = self.change.before, self.change.after
        return [(name, before.get(name), after.get(name)) for name in {**before, **after}]


def _load_steps(
    member: Membership, record: Any, before: str
) -> tuple[list[HistoryStep], int | None]:
    """Load the newest steps, or the steps before the given id, and the cursor for older steps."""
    changes = record.changes.order_by("-id")
    with suppress(ValueError):
        changes = changes.filter(pk__lt=parse_row_id(before))
    rows = list(changes[: MAX_STEPS + 1])
    shown = rows[:MAX_STEPS]
    runs = load_linked_runs(member, {change.run_id for change in shown})
    approvers = _load_approvers(member, {change.call_id for change in shown})
    steps = [
        HistoryStep(change, runs.get(change.run_id), approvers.get(change.call_id, ""))
        for change in shown
    ]
    return steps, shown[-1].pk if len(rows) > MAX_STEPS else None


def _load_approvers(member: Membership, call_ids: set[str]) -> dict[str, str]:
    """Load the name of each call's approver, a person or a standing grant, by the call's id as
    text."""
    approved = Approval.objects.filter(
        organization_id=member.organization_id,
        tool_call_id__in=parse_stored_ids(call_ids),
        status=ApprovalStatus.CONSUMED,
        decided_by__isnull=False,
    )
    rows = approved.values_list("tool_call_id", "decided_by__username", "standing_grant_id")
    return {str(call): name_decider(name, grant) for call, name, grant in rows}


# Import and export


def _render_import_page(
    request: HttpRequest, member: Membership, extra: dict[str, Any], status: int = 200
) -> HttpResponse:
    transfer = RECORD_STORE.get().transfer
    context = {
        "columns": transfer.columns,
        "ignored_columns": transfer.ignored_columns,
        "max_rows": f"{transfer.max_rows:,}",
        "max_file_mb": LARGEST_IMPORT // 1_000_000,
        "report": None,
        "problem": "",
    }
    page = render_page(request, member, "records/import.html", context | extra)
    page.status_code = status
    return page


def _import_file(request: HttpRequest, member: Membership) -> ImportReport:
    """Import the uploaded file; the records and their audit entry are written in one
    transaction."""
    upload = request.FILES.get("file")
    if not isinstance(upload, UploadedFile):
        raise Invalid("file", "Choose a CSV file.")
    transfer = RECORD_STORE.get().transfer
    rows = transfer.read_csv(cast("BinaryIO", upload))
    username = member.user.get_username()
    with transaction.atomic():
        report = transfer.create_records(rows, member.organization_id, f"{username} (CSV import)")
        if report.imported:
            audit.record(
                member,
                "records_imported",
                "records",
                file=str(upload.name)[:200],
                imported=report.imported,
                left_out=len(report.bad_rows),
            )
    return report


async def _stream_lines(records: QuerySet[Any]) -> AsyncIterator[str]:
    transfer = RECORD_STORE.get().transfer
    yield transfer.format_header()
    lines, last_id = await sync_to_async(transfer.format_rows_after)(records, 0)
    while lines:
        yield lines
        lines, last_id = await sync_to_async(transfer.format_rows_after)(records, last_id)
