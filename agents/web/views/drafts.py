"""Drafts: texts that employees wrote for a person to review."""

from __future__ import annotations

import unicodedata
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.text import slugify

from agents.accounts.models import Membership
from agents.employees.models import Employee
from agents.platform.row_ids import get_row
from agents.web.text.markdown import render_markdown
from agents.web.views.linked_runs import load_linked_runs
from agents.web.views.pages import as_download, member_view, read_newest, render_page
from tools.registries.records import RECORD_STORE

PAGE_SIZE = 30
MAX_RECORDS = 50
MAX_QUERY_LENGTH = 200
MAX_FILE_NAME_LENGTH = 80


@member_view("GET")
def draft_list(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show drafts, newest first, filtered by title, kind and employee; `?before=` is the id of the
    last draft shown."""
    rows = _filter_drafts(RECORD_STORE.get().get_drafts(member.organization_id), request).defer(
        "body"
    )
    page = read_newest(request, rows, PAGE_SIZE)
    runs = load_linked_runs(member, {draft.run_id for draft in page.rows})
    query = request.GET.copy()
    query["before"] = str(page.next_before)
    names = (
        Employee.objects.filter(organization_id=member.organization_id)
        .order_by("name")
        .values_list("name", flat=True)
    )
    context = {
        "drafts": [(draft, runs.get(draft.run_id)) for draft in page.rows],
        "next_query": query.urlencode() if page.next_before else "",
        "kinds": RECORD_STORE.get().draft_kinds,
        "employees": [(name, name) for name in names],
        "chosen": request.GET,
        "is_filtered": any(request.GET.get(name) for name in ("q", "kind", "employee")),
    }
    return render_page(request, member, "drafts/list.html", context)


@member_view("GET")
def draft_page(request: HttpRequest, member: Membership, draft_id: int) -> HttpResponseBase:
    """Show one draft, rendered, with its run and its records."""
    draft = _load_draft(member, draft_id)
    records = list(
        draft.records.filter(organization_id=member.organization_id).only("name")[: MAX_RECORDS + 1]
    )
    context = {
        "draft": draft,
        "body": render_markdown(_strip_title(draft), under=1),
        "run": load_linked_runs(member, [draft.run_id]).get(draft.run_id),
        "records": records[:MAX_RECORDS],
        "has_more_records": len(records) > MAX_RECORDS,
    }
    return render_page(request, member, "drafts/one.html", context)


@member_view("GET")
def download(_request: HttpRequest, member: Membership, draft_id: int) -> HttpResponseBase:
    """Download the draft's text as a file."""
    draft = _load_draft(member, draft_id)
    response = HttpResponse(draft.body, content_type="text/markdown; charset=utf-8")
    return as_download(response, _build_file_name(draft))


def _load_draft(member: Membership, draft_id: int) -> Any:
    return get_row(RECORD_STORE.get().get_drafts(member.organization_id), draft_id, "draft")


def _filter_drafts(rows: QuerySet[Any], request: HttpRequest) -> QuerySet[Any]:
    text, kind, employee = (
        request.GET.get(name, "").replace("\0", "").strip()[:MAX_QUERY_LENGTH]
        for name in ("q", "kind", "employee")
    )
    if kind in dict(RECORD_STORE.get().draft_kinds):
        rows = rows.filter(kind=kind)
    if employee:
        rows = rows.filter(employee=employee)
    for word in text.split():
        rows = rows.filter(title__icontains=word)
    return rows


def _strip_title(draft: Any) -> str:
    """Return the text without a first heading that repeats the title, because the page shows the
    title."""
    first, _, rest = draft.body.lstrip().partition("\n")
    return rest if first.strip() == f"# {draft.title}" else str(draft.body)


def _build_file_name(draft: Any) -> str:
    """Return an ASCII file name, which every header and file system accepts."""
    plain = slugify(unicodedata.normalize("NFKD", draft.title))[:MAX_FILE_NAME_LENGTH].strip("-")
    return f"{plain or 'draft'}-{draft.pk}.md"
