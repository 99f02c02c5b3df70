"""The page of a source's tools: an admin picks those that employees may be granted, and says how dangerous each is."""

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

from tools.connections.changes import choose
from tools.connections.models import Source, SourceTool

from .configuration import record_change
from .credential_links import lacking
from .scope import ScopedAdmin
from .source_choices import DEFINITIONS, Sent, lines_of

A_PAGE = 50
STATES = ("offered", "quarantined", "not chosen", "gone")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
READING, TESTING = "reading", "testing"
"""The address says since when the page waits, and for what: with this stamp, the source was not asked again yet."""
LOOKS_AGAIN_S = 2


class Filters(forms.Form):
    """Which tools are shown: by text, tag, method and state; what makes no sense filters nothing."""

    text = forms.CharField(required=False, max_length=200)
    tag = forms.CharField(required=False, max_length=200)
    method = forms.ChoiceField(required=False, choices=[("", "all"), *((each, each) for each in METHODS)])
    state = forms.ChoiceField(required=False, choices=[("", "all"), *((each, each) for each in STATES)])

    def fitting(self, rows: Iterable[SourceTool]) -> list[SourceTool]:
        """Those of the rows that are wanted, in the same order."""
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


def stamp_of(source: Source) -> str:
    """Another one once the source was asked again."""
    return source.checked_at.isoformat() if source.checked_at else "never"


def choose_tools(page: ScopedAdmin, request: HttpRequest, source: Source) -> HttpResponse:
    """Shows them, and on POST saves the choices of the page that was shown."""
    if request.method != "POST":
        return _shown(page, request, source, None)
    sent = Sent(source, request.POST)
    if sent.problem:
        messages.error(request, sent.problem)
        return _shown(page, request, source, sent)
    if sent.questions:
        return _shown(page, request, source, sent)
    _save(request, source, sent)
    return redirect(request.get_full_path())


def _shown(page: ScopedAdmin, request: HttpRequest, source: Source, sent: Sent | None) -> HttpResponse:
    """The tools as they are, or with what somebody has sent in vain."""
    rows = list(SourceTool.objects.filter(source=source).defer(*DEFINITIONS))
    filters = Filters(request.GET)
    fitting = filters.fitting(rows)
    shown = Paginator(fitting, A_PAGE).get_page(request.GET.get("p"))
    waits_for = _waits_for(request, source)
    context = {
        **page.admin_site.each_context(request),
        "opts": page.opts,
        "original": source,
        "title": f"Tools of {source.name}",
        "waits_for": waits_for,
        "is_tested": TESTING in request.GET and not waits_for,
        "lacking": lacking(source),
        "filters": filters,
        "tags": sorted({tag for row in rows for tag in row.tags}),
        "total": len(rows),
        "described": sum(row.gone_at is None for row in rows),
        "chosen": sum(row.gone_at is None and row.is_chosen for row in rows),
        "found": len(fitting),
        "page": shown,
        "query": _query_of(request),
        "lines": lines_of(source, shown, sent),
        "questions": sent.questions if sent and not sent.problem else {},
        "change_url": reverse("admin:connections_source_change", args=(source.pk,)),
    }
    headers = {"Refresh": str(LOOKS_AGAIN_S)} if waits_for and sent is None else {}
    return TemplateResponse(request, "admin/source_tools.html", context, headers=headers)


def _waits_for(request: HttpRequest, source: Source) -> str:
    """READING, TESTING, or nothing: a source that is switched off is asked by nobody."""
    waiting = [name for name in (READING, TESTING) if request.GET.get(name) == stamp_of(source)]
    return waiting[0] if waiting and source.is_active else ""


def _save(request: HttpRequest, source: Source, sent: Sent) -> None:
    with transaction.atomic():
        changed = choose(source, sent.choices)
        if changed:
            record_change(request, source, "changed", {"tools": _told(sent, changed)})
    late = [row.tool for row in SourceTool.objects.filter(pk__in=sent.meant) if row.state != "offered"]
    if late:
        messages.error(request, f"Changed meanwhile, and not accepted: {', '.join(late)}. Look at them again.")
    messages.success(request, f"{len(changed)} changed." if changed else "Nothing was changed.")


def _told(sent: Sent, changed: Iterable[SourceTool]) -> dict[str, Any]:
    return {row.tool: {"before": _words(sent.rows[row.pk]), "after": _words(row)} for row in changed}


def _words(row: SourceTool) -> dict[str, Any]:
    told = {"state": row.state, "level": row.effective_level.value, "definition": row.accepted_hash[:12]}
    return {**told, "inferred": row.inferred_level} if row.level not in ("", row.inferred_level) else told


def _query_of(request: HttpRequest) -> str:
    kept = request.GET.copy()
    for name in ("p", READING, TESTING):
        kept.pop(name, None)
    return kept.urlencode()
