"""Sources of tools from outside, and the hosts that may be reached: connected here, tested here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, F, Model, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.views.decorators.http import require_POST

from agents.sources import Asked, ask, refresh
from tools.connections.changes import allow_private, new_generation
from tools.connections.models import AllowedHost, Source, SourceKind
from tools.contract import ToolError
from tools.network import host_in

from .configuration import ConfigurationAdmin
from .confirming import ConfirmingForm
from .scope import ScopedRelatedFilter, person
from .source_forms import FORMS, fieldsets_of, private_network
from .source_tools import choose_tools


@admin.register(Source)
class SourceAdmin(ConfigurationAdmin):
    """APIs and MCP servers of the organisations in which the person is admin."""

    fixed = ("organization", "kind", "name")
    list_display = ("name", "kind", "organization", "state", "tools_offered", "checked_at", "is_active")
    list_filter = ("kind", "is_active", ("organization", ScopedRelatedFilter))
    list_select_related = ("organization",)
    search_fields = ("name", "title")
    ordering = ("name", "id")
    change_form_outer_after_template = "admin/source_actions.html"

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
        if _kind(request, None) is None:
            return self._choice(request)
        answer: HttpResponse = super().add_view(request, form_url, extra_context)
        return answer

    def _choice(self, request: HttpRequest) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "What do you want to connect?",
            "kinds": [(kind.value, kind.label, FORMS[kind].told) for kind in _kinds_for(request)],
        }
        return TemplateResponse(request, "admin/choose_source.html", context)

    def get_form(self, request: HttpRequest, obj: Model | None = None, change: bool = False, **kwargs: Any) -> Any:
        kind = _kind(request, obj)
        if kind is None or (obj is None and kind not in _kinds_for(request)):
            raise PermissionDenied
        kwargs["form"] = FORMS[kind]
        form = super().get_form(request, obj, change, **kwargs)
        form.kind = kind
        return form

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        kind = _kind(request, obj)
        fieldsets = fieldsets_of(kind, is_new=obj is None) if kind else []
        if request.method == "POST":
            fieldsets.insert(0, (None, {"fields": ("confirmed",)}))
        return fieldsets

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        told = ("state", "title", "described_version", "checked_at", "refreshed_at")
        return super().get_readonly_fields(request, obj) if obj is None else (*self.fixed, *told)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """A program that runs on this machine belongs to those who run the installation."""
        is_program = isinstance(obj, Source) and obj.kind == SourceKind.MCP_STDIO
        return super().has_change_permission(request, obj) and (not is_program or person(request).is_superuser)

    def save_model(self, request: HttpRequest, obj: Source, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if form.cleaned_data.get("may_be_private"):
            allow_private(obj)
        new_generation(obj.organization_id)

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        assert isinstance(obj, Source)
        new_generation(obj.organization_id)
        super().delete_model(request, obj)

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        """The description is read at once, and its tools can be chosen."""
        transaction.on_commit(lambda: self._tell(request, obj, refresh(obj)))
        return redirect("admin:source-tools", obj.pk)

    def test(self, request: HttpRequest, source_id: int) -> HttpResponse:
        """Asks the source as it was saved last, and changes nothing but its state."""
        source = self._one(request, source_id)
        self._tell(request, source, ask(source))
        return redirect("admin:connections_source_change", source.pk)

    def read_again(self, request: HttpRequest, source_id: int) -> HttpResponse:
        """Reads the description anew: what has changed is told."""
        source = self._one(request, source_id)
        self._tell(request, source, refresh(source))
        return redirect("admin:source-tools", source.pk)

    def choose(self, request: HttpRequest, source_id: int) -> HttpResponse:
        """The page of a source's tools: which are offered, and at which level."""
        return choose_tools(self, request, self._one(request, source_id))

    def _one(self, request: HttpRequest, source_id: int) -> Source:
        source = self.get_object(request, str(source_id))
        if not isinstance(source, Source) or not self.has_change_permission(request, source):
            raise Http404
        return source

    def _tell(self, request: HttpRequest, source: Source, asked: Asked) -> None:
        if asked.problem:
            messages.error(request, f"{source.name} does not work: {asked.problem}")
        else:
            messages.success(request, f"{source.name} answers. {asked.told}")

    @admin.display(description="State")
    def state(self, source: Source) -> str:
        if not source.is_active:
            return "switched off"
        if source.checked_at is None:
            return "never asked"
        return source.problem or "works"

    @admin.display(description="Tools")
    def tools_offered(self, source: Source) -> str:
        told = f"{source.offered} of {source.described}"  # type: ignore[attr-defined]  # by get_queryset
        waiting = source.quarantined  # type: ignore[attr-defined]
        return f"{told}, {waiting} quarantined" if waiting else told


def _kind(request: HttpRequest, obj: Model | None) -> SourceKind | None:
    """That of the row, or for a new one what the address names."""
    asked = obj.kind if isinstance(obj, Source) else request.GET.get("kind", "")
    return SourceKind(asked) if asked in SourceKind.values else None


def _kinds_for(request: HttpRequest) -> list[SourceKind]:
    """Whoever does not run the installation may not say which programs it runs."""
    return [kind for kind in SourceKind if kind != SourceKind.MCP_STDIO or person(request).is_superuser]


class HostForm(ConfirmingForm):
    """One host; letting tools into a network that is not public is confirmed."""

    class Meta:
        model = AllowedHost
        fields = ("organization", "host", "may_be_private")
        help_texts = {"host": "Its name or address, e.g. api.example.com, without https:// and without a port."}

    def clean_host(self) -> str:
        try:
            return host_in(self.cleaned_data["host"])
        except ToolError as error:
            raise forms.ValidationError(error.message) from error

    def consequences(self, cleaned: dict[str, Any]) -> Iterator[str]:
        if cleaned["may_be_private"] and not self.initial.get("may_be_private"):
            yield private_network(cleaned.get("host", self.instance.host))


@admin.register(AllowedHost)
class AllowedHostAdmin(ConfigurationAdmin):
    """Where tools may go without a card."""

    form = HostForm
    fixed = ("organization", "host")
    list_display = ("host", "may_be_private", "organization", "created_at")
    list_filter = ("may_be_private", ("organization", ScopedRelatedFilter))
    list_select_related = ("organization",)
    search_fields = ("host",)
    ordering = ("host", "id")

    def save_model(self, request: HttpRequest, obj: AllowedHost, form: forms.ModelForm[Any], change: bool) -> None:
        super().save_model(request, obj, form, change)
        new_generation(obj.organization_id)

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        assert isinstance(obj, AllowedHost)
        new_generation(obj.organization_id)
        super().delete_model(request, obj)
