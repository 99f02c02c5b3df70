"""External sources of tools: connect one, test it, and choose its tools."""

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

from agents.admin.configuration import ConfigurationAdmin
from agents.admin.missing_credentials import find_missing_credentials
from agents.admin.scope import ScopedRelatedFilter, get_user
from agents.admin.source_forms import FORMS, REFRESH_FIELDS, VISIBILITY_CONDITIONS, build_fieldsets
from agents.admin.source_tools import READING, TESTING, format_check_stamp, show_tools_page
from agents.employees.models import Grant, ToolRule
from agents.employees.sources import SourceReport, check_source, refresh_source_or_queue
from tools.connections.changes import allow_private, bump_tools_version, forbid_private
from tools.connections.descriptions import FetchLimits
from tools.connections.models import Source, SourceKind

TEST_LIMITS = FetchLimits(seconds=10.0)
STATE = '<span class="source-state" data-state="{}"><strong><span aria-hidden="true">{}</span> {}</strong> {}</span>'
SUPERUSERS_ONLY = "Only a superuser of this installation can connect programs"


@admin.register(Source)
class SourceAdmin(ConfigurationAdmin):
    """APIs and MCP servers of the organizations in which the person is an admin."""

    immutable_fields = ("organization", "kind", "name")
    list_display = ("name", "kind", "organization", "state", "tools_enabled", "checked_at")
    list_filter = ("kind", "is_active", ("organization", ScopedRelatedFilter))
    list_select_related = ("organization",)
    search_fields = ("name", "title")
    ordering = ("name", "id")
    change_form_outer_before_template = "admin/source_actions.html"
    conditional_fields = VISIBILITY_CONDITIONS

    def get_queryset(self, request: HttpRequest) -> Any:
        waiting = Q(tools__is_chosen=True, tools__gone_at=None) & ~Q(
            tools__hash=F("tools__accepted_hash")
        )
        offered = Q(
            tools__is_chosen=True, tools__gone_at=None, tools__hash=F("tools__accepted_hash")
        )
        rows = super().get_queryset(request).defer("document")
        return rows.annotate(
            described=Count("tools", filter=Q(tools__gone_at=None)),
            offered=Count("tools", filter=offered),
            quarantined=Count("tools", filter=waiting),
        )

    def get_urls(self) -> list[URLPattern]:
        def require_admin(view: Any) -> Any:
            return self.admin_site.admin_view(view)

        return [
            path(
                "<int:source_id>/test/",
                require_admin(require_POST(self.test_connection)),
                name="test-source",
            ),
            path(
                "<int:source_id>/refresh/",
                require_admin(require_POST(self.refresh)),
                name="refresh-source",
            ),
            path("<int:source_id>/tools/", require_admin(self.choose_tools), name="source-tools"),
            *super().get_urls(),
        ]

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the choice of a kind first, then the form for the chosen kind."""
        kind = _get_kind(request, None)
        if kind not in _list_allowed_kinds(request):
            return self._show_kinds(request, kind)
        buttons = {"show_save_and_add_another": False, "show_save_and_continue": False}
        response: HttpResponse = super().add_view(
            request, form_url, {**buttons, **(extra_context or {})}
        )
        return response

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the form, with the credentials that the source still needs."""
        source = self.get_object(request, object_id)
        context = (
            {"missing_credentials": find_missing_credentials(source)}
            if isinstance(source, Source)
            else {}
        )
        response: HttpResponse = super().change_view(
            request, object_id, form_url, {**context, **(extra_context or {})}
        )
        return response

    def _show_kinds(self, request: HttpRequest, refused: SourceKind | None) -> HttpResponse:
        """Show all kinds, with a note on those that this person may not connect."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        allowed = _list_allowed_kinds(request)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "What do you want to connect?",
            "kinds": [
                (
                    kind.value,
                    kind.label,
                    FORMS[kind].summary,
                    "" if kind in allowed else SUPERUSERS_ONLY,
                )
                for kind in SourceKind
            ],
            "refused": f"{SUPERUSERS_ONLY}." if refused else "",
        }
        return TemplateResponse(
            request, "admin/choose_source.html", context, status=403 if refused else 200
        )

    def get_form(
        self, request: HttpRequest, obj: Model | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        kind = _get_kind(request, obj)
        if kind is None or (obj is None and kind not in _list_allowed_kinds(request)):
            raise PermissionDenied
        kwargs["form"] = FORMS[kind]
        form = super().get_form(request, obj, change, **kwargs)
        form.kind = kind
        form.by_superuser = bool(get_user(request).is_superuser)
        return form

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        kind = _get_kind(request, obj)
        may_save = obj is None or self.has_change_permission(request, obj)
        fieldsets = build_fieldsets(kind, is_new=obj is None, may_save=may_save) if kind else []
        if request.method == "POST" and may_save:
            fieldsets.insert(0, (None, {"fields": ("confirmed",)}))
        return fieldsets

    def get_readonly_fields(
        self, request: HttpRequest, obj: Model | None = None
    ) -> tuple[str, ...]:
        status = ("state", "title", "described_version", "checked_at", "refreshed_at", "import_log")
        return (
            super().get_readonly_fields(request, obj)
            if obj is None
            else (*self.immutable_fields, *status)
        )

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_change_permission(request, obj) and _may_edit(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_delete_permission(request, obj) and _may_edit(request, obj)

    def save_model(self, request: HttpRequest, obj: Source, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        changed = REFRESH_FIELDS & set(form.changed_data)
        request.needs_refresh = bool(changed) or obj.refreshed_at is None  # type: ignore[attr-defined]
        if form.cleaned_data.get("may_be_private"):
            allow_private(obj, by_superuser=form.by_superuser)
        elif "may_be_private" in form.changed_data:
            forbid_private(obj)
        bump_tools_version(obj.organization_id)

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        """Delete the source with the grants and rules of its tools; otherwise, a later source of
        the same name would inherit them."""
        assert isinstance(obj, Source)
        bump_tools_version(obj.organization_id)
        grants, rules = _find_grants(obj), _find_rules(obj)
        super().delete_model(request, obj)
        grants.delete()
        rules.delete()

    def describe_cascade(self, obj: Model) -> dict[str, Any]:
        assert isinstance(obj, Source)
        return {
            "grants": list(map(_describe_grant, _find_grants(obj))),
            "tool_rules": list(map(str, _find_rules(obj))),
        }

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """List what is deleted with the sources, including the grants of their tools."""
        deleted, *rest = super().get_deleted_objects(objs, request)
        grants = [
            f"Grant of {_describe_grant(grant)}"
            for source in objs
            for grant in _find_grants(source)
        ]
        return [*deleted, *grants], *rest

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Start reading the description of the new source, and redirect to the page of its
        tools."""
        transaction.on_commit(lambda: self._refresh(request, obj))
        return redirect(_build_tools_url(obj, READING))

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        """Read the description again if the change may affect it, or if it was never read."""
        response: HttpResponse = super().response_change(request, obj)
        if not (obj.is_active and request.needs_refresh):  # type: ignore[attr-defined]
            return response
        transaction.on_commit(lambda: self._refresh(request, obj))
        return response if "_continue" in request.POST else redirect(_build_tools_url(obj, READING))

    def test_connection(self, request: HttpRequest, source_id: int) -> HttpResponse:
        """Test the saved source, and change only its state; a worker tests sources that are
        programs."""
        source = self._get_source_or_404(request, source_id)
        if source.kind == SourceKind.MCP_STDIO:
            return self._refresh_and_wait(request, source, TESTING)
        self._show_report(request, source, check_source(source, TEST_LIMITS))
        return redirect("admin:connections_source_change", source.pk)

    def refresh(self, request: HttpRequest, source_id: int) -> HttpResponse:
        """Read the description again, and report the changes."""
        return self._refresh_and_wait(request, self._get_source_or_404(request, source_id), READING)

    def choose_tools(self, request: HttpRequest, source_id: int) -> HttpResponse:
        """Show the page where an admin enables a source's tools and sets their levels."""
        return show_tools_page(self, request, self._get_source_or_404(request, source_id))

    def _get_source_or_404(self, request: HttpRequest, source_id: int) -> Source:
        source = self.get_object(request, str(source_id))
        if not isinstance(source, Source) or not self.has_change_permission(request, source):
            raise Http404
        return source

    def _refresh_and_wait(self, request: HttpRequest, source: Source, why: str) -> HttpResponse:
        if not source.is_active:
            messages.error(request, f"{source.name} is off. Tick “Active” and save it first.")
            return redirect("admin:connections_source_change", source.pk)
        response = redirect(_build_tools_url(source, why))
        self._refresh(request, source)
        return response

    def _refresh(self, request: HttpRequest, source: Source) -> None:
        """Read the description now, or let a worker read it if that may take a long time.

        If a worker reads the description, the page waits for it, see READING.
        """
        report = refresh_source_or_queue(source) if source.is_active else None
        if report is not None and report.problem is None:  # the page shows a problem anyway
            self._show_report(request, source, report)

    def _show_report(self, request: HttpRequest, source: Source, report: SourceReport) -> None:
        if report.problem is not None:
            messages.error(request, f"Connection to {source.name} failed: {report.problem}")
        else:
            messages.success(request, f"Connection to {source.name} works. {report.summary}")

    @admin.display(description="State")
    def state(self, source: Source) -> SafeString:
        """Show the state as a symbol and a word, followed by the problem if there is one."""
        symbol, word, problem = "✓", "connected", ""
        if not source.is_active:
            symbol, word = "○", "off"
        elif source.checked_at is None:
            symbol, word = "○", "not tested"
        elif source.problem or source.lacks_base_url:
            symbol, word = "✗", "failed"
            problem = source.problem or "The source has no address for its operations."
        return format_html(STATE, word, symbol, word, problem)

    @admin.display(description="Import log")
    def import_log(self, source: Source) -> str:
        return source.told or "Nothing yet."

    @admin.display(description="Tools")
    def tools_enabled(self, source: Source) -> str:
        waiting = source.quarantined  # type: ignore[attr-defined]  # by get_queryset
        text = f"{source.offered + waiting} of {source.described} enabled"  # type: ignore[attr-defined]
        return f"{text}, {waiting} quarantined" if waiting else text


def _build_tools_url(source: Source, why: str) -> str:
    """Return the URL of the tools page, which waits for the check that has just started."""
    where = reverse("admin:source-tools", args=(source.pk,))
    return f"{where}?{urlencode({why: format_check_stamp(source)})}"


def _find_grants(source: Source) -> QuerySet[Grant]:
    """Find the grants of the source's tools to employees of its organization."""
    names = list(source.tools.values_list("tool", flat=True))
    grants = Grant.objects.filter(employee__organization_id=source.organization_id, tool__in=names)
    return grants.select_related("employee").order_by("tool", "employee_id")


def _describe_grant(grant: Grant) -> str:
    return f"{grant.tool} to {grant.employee}"


def _find_rules(source: Source) -> QuerySet[ToolRule]:
    names = list(source.tools.values_list("tool", flat=True))
    return ToolRule.objects.filter(organization_id=source.organization_id, tool__in=names)


def _get_kind(request: HttpRequest, obj: Model | None) -> SourceKind | None:
    """Return the kind of the row, or for a new row the kind in the URL; None if there is no such
    kind."""
    name = obj.kind if isinstance(obj, Source) else request.GET.get("kind", "")
    return SourceKind(name) if name in SourceKind.values else None


def _list_allowed_kinds(request: HttpRequest) -> list[SourceKind]:
    """List the kinds that this person may connect. Only superusers may connect programs, because
    they run on the installation's own machine."""
    return [
        kind
        for kind in SourceKind
        if kind != SourceKind.MCP_STDIO or get_user(request).is_superuser
    ]


def _may_edit(request: HttpRequest, obj: Model | None) -> bool:
    """Return True if this person may edit the source; only superusers may edit programs."""
    return not isinstance(obj, Source) or obj.kind in _list_allowed_kinds(request)
