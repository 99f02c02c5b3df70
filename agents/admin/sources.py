"""Sources of tools from outside: connected here, tested here, and their tools chosen."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, F, Model, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from agents.employees.models import Grant, ToolRule
from agents.employees.sources import Asked, ask, refresh_soon
from tools.connections.asking import Patience
from tools.connections.changes import allow_private, forbid_private, new_generation
from tools.connections.models import Source, SourceKind

from .configuration import ConfigurationAdmin
from .credential_links import lacking
from .scope import ScopedRelatedFilter, person
from .source_forms import FORMS, READ_ANEW_IF, SHOWN_IF, fieldsets_of
from .source_tools import READING, TESTING, choose_tools, stamp_of

WHILE_TESTING = Patience(seconds=10.0)
STATE = '<span class="source-state" data-state="{}"><strong><span aria-hidden="true">{}</span> {}</strong> {}</span>'
NOT_YOURS = "Only a superuser of this installation may say which programs it runs"


@admin.register(Source)
class SourceAdmin(ConfigurationAdmin):
    """APIs and MCP servers of the organisations in which the person is admin."""

    fixed = ("organization", "kind", "name")
    list_display = ("name", "kind", "organization", "state", "tools_offered", "checked_at")
    list_filter = ("kind", "is_active", ("organization", ScopedRelatedFilter))
    list_select_related = ("organization",)
    search_fields = ("name", "title")
    ordering = ("name", "id")
    change_form_outer_before_template = "admin/source_actions.html"
    conditional_fields = SHOWN_IF

    def get_queryset(self, request: HttpRequest) -> Any:
        waiting = Q(tools__is_chosen=True, tools__gone_at=None) & ~Q(tools__hash=F("tools__accepted_hash"))
        offered = Q(tools__is_chosen=True, tools__gone_at=None, tools__hash=F("tools__accepted_hash"))
        counted = super().get_queryset(request).defer("document")
        return counted.annotate(
            described=Count("tools", filter=Q(tools__gone_at=None)),
            offered=Count("tools", filter=offered),
            quarantined=Count("tools", filter=waiting),
        )

    def get_urls(self) -> list[URLPattern]:
        def guarded(view: Any) -> Any:
            return self.admin_site.admin_view(view)

        return [
            path("<int:source_id>/test/", guarded(require_POST(self.test)), name="test-source"),
            path("<int:source_id>/refresh/", guarded(require_POST(self.read_again)), name="refresh-source"),
            path("<int:source_id>/tools/", guarded(self.choose), name="source-tools"),
            *super().get_urls(),
        ]

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """First the choice of the kind, then its form."""
        kind = _kind(request, None)
        if kind not in _kinds_for(request):
            return self._choice(request, kind)
        no_more = {"show_save_and_add_another": False, "show_save_and_continue": False}
        answer: HttpResponse = super().add_view(request, form_url, {**no_more, **(extra_context or {})})
        return answer

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Says which credentials it lacks."""
        source = self.get_object(request, object_id)
        told = {"lacking": lacking(source)} if isinstance(source, Source) else {}
        answer: HttpResponse = super().change_view(request, object_id, form_url, {**told, **(extra_context or {})})
        return answer

    def _choice(self, request: HttpRequest, refused: SourceKind | None) -> HttpResponse:
        """Of all kinds; one that this person may not connect says so."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "What do you want to connect?",
            "kinds": [
                (kind.value, kind.label, FORMS[kind].told, "" if kind in _kinds_for(request) else NOT_YOURS)
                for kind in SourceKind
            ],
            "refused": f"{NOT_YOURS}." if refused else "",
        }
        return TemplateResponse(request, "admin/choose_source.html", context, status=403 if refused else 200)

    def get_form(self, request: HttpRequest, obj: Model | None = None, change: bool = False, **kwargs: Any) -> Any:
        kind = _kind(request, obj)
        if kind is None or (obj is None and kind not in _kinds_for(request)):
            raise PermissionDenied
        kwargs["form"] = FORMS[kind]
        form = super().get_form(request, obj, change, **kwargs)
        form.kind = kind
        form.by_superuser = bool(person(request).is_superuser)
        return form

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        kind = _kind(request, obj)
        may_save = obj is None or self.has_change_permission(request, obj)
        fieldsets = fieldsets_of(kind, is_new=obj is None, may_save=may_save) if kind else []
        if request.method == "POST" and may_save:
            fieldsets.insert(0, (None, {"fields": ("confirmed",)}))
        return fieldsets

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        told = ("state", "title", "described_version", "checked_at", "refreshed_at", "reading_told")
        return super().get_readonly_fields(request, obj) if obj is None else (*self.fixed, *told)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_change_permission(request, obj) and _may_touch(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_delete_permission(request, obj) and _may_touch(request, obj)

    def save_model(self, request: HttpRequest, obj: Source, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        changed = READ_ANEW_IF & set(form.changed_data)
        request.reads_anew = bool(changed) or obj.refreshed_at is None  # type: ignore[attr-defined]
        if form.cleaned_data.get("may_be_private"):
            allow_private(obj, by_superuser=form.by_superuser)
        elif "may_be_private" in form.changed_data:
            forbid_private(obj)
        new_generation(obj.organization_id)

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        """With every permission to use its tools: another source of its name would inherit them."""
        assert isinstance(obj, Source)
        new_generation(obj.organization_id)
        grants, rules = _grants_of(obj), _rules_of(obj)
        super().delete_model(request, obj)
        grants.delete()
        rules.delete()

    def lost_with(self, obj: Model) -> dict[str, Any]:
        assert isinstance(obj, Source)
        return {"grants": list(map(_told_of, _grants_of(obj))), "tool_rules": list(map(str, _rules_of(obj)))}

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Also who may not use its tools any more."""
        deleted, *rest = super().get_deleted_objects(objs, request)
        lost = [f"Grant of {_told_of(grant)}" for source in objs for grant in _grants_of(source)]
        return [*deleted, *lost], *rest

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        """The description is read at once, and its tools can be chosen."""
        transaction.on_commit(lambda: self._read(request, obj))
        return redirect(_tools_url(obj, READING))

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        """What may describe something else by now, or never did describe anything, is read anew as a new one is."""
        answer: HttpResponse = super().response_change(request, obj)
        if not (obj.is_active and request.reads_anew):  # type: ignore[attr-defined]
            return answer
        transaction.on_commit(lambda: self._read(request, obj))
        return answer if "_continue" in request.POST else redirect(_tools_url(obj, READING))

    def test(self, request: HttpRequest, source_id: int) -> HttpResponse:
        """Asks the source as it was saved last, and changes nothing but its state; a program is a worker's to read."""
        source = self._one(request, source_id)
        if source.kind == SourceKind.MCP_STDIO:
            return self._read_and_wait(request, source, TESTING)
        self._tell(request, source, ask(source, WHILE_TESTING))
        return redirect("admin:connections_source_change", source.pk)

    def read_again(self, request: HttpRequest, source_id: int) -> HttpResponse:
        """Reads the description anew: what has changed is told."""
        return self._read_and_wait(request, self._one(request, source_id), READING)

    def choose(self, request: HttpRequest, source_id: int) -> HttpResponse:
        """The page of a source's tools: which are offered, and at which level."""
        return choose_tools(self, request, self._one(request, source_id))

    def _one(self, request: HttpRequest, source_id: int) -> Source:
        source = self.get_object(request, str(source_id))
        if not isinstance(source, Source) or not self.has_change_permission(request, source):
            raise Http404
        return source

    def _read_and_wait(self, request: HttpRequest, source: Source, why: str) -> HttpResponse:
        if not source.is_active:
            messages.error(request, f"{source.name} is switched off: nobody asks it.")
            return redirect("admin:connections_source_change", source.pk)
        answer = redirect(_tools_url(source, why))
        self._read(request, source)
        return answer

    def _read(self, request: HttpRequest, source: Source) -> None:
        """Now, or by a worker if it takes long: the page waits for that, see READING."""
        asked = refresh_soon(source) if source.is_active else None
        if asked is not None and not asked.problem:  # a problem stands on the page
            self._tell(request, source, asked)

    def _tell(self, request: HttpRequest, source: Source, asked: Asked) -> None:
        if asked.problem:
            messages.error(request, f"{source.name} does not work: {asked.problem}")
        else:
            messages.success(request, f"{source.name} answers. {asked.told}")

    @admin.display(description="State")
    def state(self, source: Source) -> SafeString:
        """A mark, a word, and what is wrong."""
        mark, word, told = "✓", "works", ""
        if not source.is_active:
            mark, word = "○", "switched off"
        elif source.checked_at is None:
            mark, word = "○", "never asked"
        elif source.problem or source.leads_nowhere:
            mark, word = "✗", "does not work"
            told = source.problem or "It does not say where its operations go."
        return format_html(STATE, word, mark, word, told)

    @admin.display(description="Import log")
    def reading_told(self, source: Source) -> str:
        return source.told or "nothing yet"

    @admin.display(description="Tools")
    def tools_offered(self, source: Source) -> str:
        waiting = source.quarantined  # type: ignore[attr-defined]  # by get_queryset
        told = f"{source.offered + waiting} chosen of {source.described}"  # type: ignore[attr-defined]
        return f"{told}, {waiting} of them quarantined" if waiting else told


def _tools_url(source: Source, why: str) -> str:
    """Of the page of its tools, which waits for what is read now, to know its tools or whether it answers."""
    where = reverse("admin:source-tools", args=(source.pk,))
    return f"{where}?{urlencode({why: stamp_of(source)})}"


def _grants_of(source: Source) -> QuerySet[Grant]:
    """Of its tools, to the employees of its organisation."""
    names = list(source.tools.values_list("tool", flat=True))
    grants = Grant.objects.filter(employee__organization_id=source.organization_id, tool__in=names)
    return grants.select_related("employee").order_by("tool", "employee_id")


def _told_of(grant: Grant) -> str:
    return f"{grant.tool} to {grant.employee}"


def _rules_of(source: Source) -> QuerySet[ToolRule]:
    names = list(source.tools.values_list("tool", flat=True))
    return ToolRule.objects.filter(organization_id=source.organization_id, tool__in=names)


def _kind(request: HttpRequest, obj: Model | None) -> SourceKind | None:
    """That of the row, or for a new one what the address names."""
    asked = obj.kind if isinstance(obj, Source) else request.GET.get("kind", "")
    return SourceKind(asked) if asked in SourceKind.values else None


def _kinds_for(request: HttpRequest) -> list[SourceKind]:
    """Whoever does not run the installation may not say which programs it runs."""
    return [kind for kind in SourceKind if kind != SourceKind.MCP_STDIO or person(request).is_superuser]


def _may_touch(request: HttpRequest, obj: Model | None) -> bool:
    """A program that runs on this machine belongs to those who run the installation."""
    return not isinstance(obj, Source) or obj.kind in _kinds_for(request)
