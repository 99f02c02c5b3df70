"""The page of a source's tools: an admin picks those that employees may be granted, and says how dangerous each is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.core.paginator import Page, Paginator
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.http.request import QueryDict
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse

from tools.connections.changes import Choice, choose
from tools.connections.models import Source, SourceTool
from tools.contract import Level

from .configuration import record_change
from .scope import ScopedAdmin

A_PAGE = 50
STATES = ("offered", "quarantined", "not chosen", "gone")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


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
        text = wanted.get("text", "").casefold()
        return [
            row
            for row in rows
            if text in f"{row.key} {row.tool} {row.title}".casefold()
            and ("tag" not in wanted or wanted["tag"] in row.tags)
            and ("method" not in wanted or row.key.startswith(f"{wanted['method']} "))
            and ("state" not in wanted or row.state == wanted["state"])
        ]


@dataclass(frozen=True)
class Line:
    """One tool on the page.

    Attributes:
        levels: that it may be given, each with whether it has it now; the first is what was inferred.
    """

    row: SourceTool
    levels: tuple[tuple[str, str, bool], ...]

    @property
    def description(self) -> str:
        return str(self.row.definition.get("description", ""))


def choose_tools(page: ScopedAdmin, request: HttpRequest, source: Source) -> HttpResponse:
    """Shows them, and on POST saves the choices of the page that was shown."""
    rows = list(SourceTool.objects.filter(source=source).defer("definition"))
    filters = Filters(request.GET)
    fitting = filters.fitting(rows)
    shown = Paginator(fitting, A_PAGE).get_page(request.GET.get("p"))
    if request.method == "POST":
        _save(request, source, request.POST)
        return redirect(request.get_full_path())
    context = {
        **page.admin_site.each_context(request),
        "opts": page.opts,
        "original": source,
        "title": f"Tools of {source.name}",
        "filters": filters,
        "tags": sorted({tag for row in rows for tag in row.tags}),
        "total": len(rows),
        "found": len(fitting),
        "page": shown,
        "query": _query_of(request),
        "lines": _lines(source, shown),
        "change_url": reverse("admin:connections_source_change", args=(source.pk,)),
    }
    return TemplateResponse(request, "admin/source_tools.html", context)


def _lines(source: Source, shown: Page[SourceTool]) -> list[Line]:
    """With the definitions, which only the tools of one page need."""
    whole = SourceTool.objects.in_bulk([row.pk for row in shown])
    return [Line(whole[row.pk], _levels(source, whole[row.pk])) for row in shown]


def _levels(source: Source, row: SourceTool) -> tuple[tuple[str, str, bool], ...]:
    """An MCP server's own hints bind nobody, so that a level has to be chosen; an API's method says enough."""
    first = "choose one" if source.is_mcp else f"{row.inferred_level} (inferred)"
    return (("", first, not row.level), *((each.value, each.value, row.level == each.value) for each in Level))


def _save(request: HttpRequest, source: Source, sent: QueryDict) -> None:
    choices = {
        int(key): Choice(f"chosen-{key}" in sent, sent.get(f"level-{key}", ""))
        for key in sent.getlist("shown")
        if key.isdecimal()
    }
    known = {"", *(each.value for each in Level)}
    if any(choice.level not in known for choice in choices.values()):
        messages.error(request, "There is no such level.")
        return
    before = {row.pk: row for row in SourceTool.objects.filter(source=source, pk__in=choices)}
    if problem := _problem(source, choices, before, sent):
        messages.error(request, problem)
        return
    with transaction.atomic():
        changed = choose(source, choices)
        if changed:
            record_change(request, source, "changed", {"tools": _told(before, changed)})
    if lowered := [row.tool for row in changed if row.effective_level.rank < Level(row.inferred_level).rank]:
        messages.warning(request, f"Lower than what was inferred: {', '.join(lowered)}.")
    messages.success(request, f"{len(changed)} changed." if changed else "Nothing was changed.")


def _problem(
    source: Source, choices: Mapping[int, Choice], rows: Mapping[int, SourceTool], sent: Mapping[str, Any]
) -> str:
    """Why the choices cannot be saved; empty if they can. Nothing is accepted that was not on the screen."""
    for key, row in rows.items():
        choice = choices[key]
        if choice.is_chosen and sent.get(f"seen-{key}") != row.hash:
            return f"{row.tool} has changed meanwhile: look at it again."
        if choice.is_chosen and source.is_mcp and not choice.level:
            return f"Say which level {row.tool} has: what its server says of it binds nobody."
    return ""


def _told(before: Mapping[int, SourceTool], changed: Iterable[SourceTool]) -> dict[str, Any]:
    return {row.tool: {"before": _words(before[row.pk]), "after": _words(row)} for row in changed}


def _words(row: SourceTool) -> dict[str, Any]:
    return {"state": row.state, "level": row.effective_level.value, "definition": row.accepted_hash[:12]}


def _query_of(request: HttpRequest) -> str:
    kept = request.GET.copy()
    kept.pop("p", None)
    return kept.urlencode()
