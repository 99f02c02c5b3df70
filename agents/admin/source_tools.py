"""The page of a source's tools, where an admin enables tools and sets their levels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse

from agents.admin.configuration import record_change
from agents.admin.missing_credentials import find_missing_credentials
from agents.admin.scope import ScopedAdmin
from agents.admin.source_choices import DEFINITIONS, SubmittedChoices, build_choice_rows
from agents.web.text.safe_text import quote_outside
from tools.connections.changes import apply_choices
from tools.connections.models import Source, SourceTool

TOOLS_PER_PAGE = 50
STATES = ("offered", "quarantined", "not chosen", "gone")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
READING, TESTING = "reading", "testing"
"""The query parameters of a page that waits for a worker. Their value is the stamp of the source's
previous check."""
RELOAD_AFTER_S = 2


class ToolFilterForm(forms.Form):
    """The filters of the tools page: by text, tag, method and state. Invalid values are ignored."""

    text = forms.CharField(required=False, max_length=200)
    tag = forms.CharField(required=False, max_length=200)
    method = forms.ChoiceField(
        required=False, choices=[("", "all"), *((each, each) for each in METHODS)]
    )
    state = forms.ChoiceField(
        required=False, choices=[("", "all"), *((each, each) for each in STATES)]
    )

    def filter_rows(self, rows: Iterable[SourceTool]) -> list[SourceTool]:
        """Return the rows that match the filters, in the same order."""
        self.is_valid()
        wanted = {name: value for name, value in self.cleaned_data.items() if value}
        words = wanted.get("text", "").casefold().split()
        return [
            row
            for row in rows
            if all(word in f"{row.key} {row.tool} {row.title}".casefold() for word in words)
            and ("tag" not in wanted or wanted["tag"] in row.tags)
            and ("method" not in wanted or row.key.startswith(f"{wanted['method']} "))
            and ("state" not in wanted or row.state == wanted["state"])
        ]


def format_check_stamp(source: Source) -> str:
    """Return a stamp of the source's last check; the next check changes the stamp."""
    return source.checked_at.isoformat() if source.checked_at else "never"


def show_tools_page(page: ScopedAdmin, request: HttpRequest, source: Source) -> HttpResponse:
    """Show the tools of a source; on POST, save the submitted choices."""
    if request.method != "POST":
        return _render_page(page, request, source, None)
    sent = SubmittedChoices(source, request.POST)
    if sent.problem is not None:
        messages.error(request, sent.problem)
        return _render_page(page, request, source, sent)
    if sent.consequences:
        return _render_page(page, request, source, sent)
    _save(request, source, sent)
    return redirect(request.get_full_path())


def _render_page(
    page: ScopedAdmin, request: HttpRequest, source: Source, sent: SubmittedChoices | None
) -> HttpResponse:
    """Render the page with the saved tools, or with the submitted choices if they could not be
    saved."""
    rows = list(SourceTool.objects.filter(source=source).defer(*DEFINITIONS))
    filters = ToolFilterForm(request.GET)
    matching = filters.filter_rows(rows)
    shown = Paginator(matching, TOOLS_PER_PAGE).get_page(request.GET.get("p"))
    waits_for = _get_pending_job(request, source)
    context = {
        **page.admin_site.each_context(request),
        "opts": page.opts,
        "original": source,
        "title": f"Tools of {source.name}",
        "waits_for": waits_for,
        "is_tested": TESTING in request.GET and not waits_for,
        "missing_credentials": find_missing_credentials(source),
        "filters": filters,
        "tags": sorted({tag for row in rows for tag in row.tags}),
        "total": len(rows),
        "described": sum(row.gone_at is None for row in rows),
        "chosen": sum(row.gone_at is None and row.is_chosen for row in rows),
        "found": len(matching),
        "page": shown,
        "query": _build_query(request),
        "rows": build_choice_rows(source, shown, sent),
        "consequences": sent.consequences if sent and sent.problem is None else {},
        "change_url": reverse("admin:connections_source_change", args=(source.pk,)),
    }
    headers = {"Refresh": str(RELOAD_AFTER_S)} if waits_for and sent is None else {}
    return TemplateResponse(request, "admin/source_tools.html", context, headers=headers)


def _get_pending_job(request: HttpRequest, source: Source) -> str:
    """Return the job that the page waits for, READING or TESTING; empty if a worker has finished
    the job, or if the source is off."""
    waiting = [
        name for name in (READING, TESTING) if request.GET.get(name) == format_check_stamp(source)
    ]
    return waiting[0] if waiting and source.is_active else ""


def _save(request: HttpRequest, source: Source, sent: SubmittedChoices) -> None:
    with transaction.atomic():
        changed = apply_choices(source, sent.choices)
        if changed:
            record_change(request, source, "changed", {"tools": _describe_changes(sent, changed)})
    late = [
        quote_outside(row.tool)
        for row in SourceTool.objects.filter(pk__in=sent.enabled_ids)
        if row.state != "offered"
    ]
    if late:
        messages.error(
            request,
            f"Changed while you saved, so not accepted: {', '.join(late)}. Check them again.",
        )
    messages.success(request, f"Tools changed: {len(changed)}." if changed else "Nothing changed.")


def _describe_changes(sent: SubmittedChoices, changed: Iterable[SourceTool]) -> dict[str, Any]:
    return {
        row.tool: {"before": _describe_tool(sent.rows[row.pk]), "after": _describe_tool(row)}
        for row in changed
    }


def _describe_tool(row: SourceTool) -> dict[str, Any]:
    details = {
        "state": row.state,
        "level": row.effective_level.value,
        "definition": row.accepted_hash[:12],
    }
    details |= {"title": row.accepted_title} if row.accepted_title else {}
    details |= {"names something": row.named_params} if row.named_params else {}
    details |= {"names nothing": row.plain_params} if row.plain_params else {}
    return (
        {**details, "inferred": row.inferred_level}
        if row.level not in ("", row.inferred_level)
        else details
    )


def _build_query(request: HttpRequest) -> str:
    query = request.GET.copy()
    for name in ("p", READING, TESTING):
        query.pop(name, None)
    return query.urlencode()
