"""Model providers: addresses and keys of models, and scripts that are played instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.views.decorators.http import require_POST
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextareaWidget, UnfoldAdminURLInputWidget

from agents.employees.models import Employee, ModelProvider, ProviderKind
from agents.providers.base import ProviderError
from agents.providers.scripts import validate_script
from agents.runs.engine.context import address_refusal, check_provider

from .configuration import ConfigurationAdmin
from .confirming import ConfirmingForm
from .prices import PricesField, without_price
from .scope import ScopedRelatedFilter

PATIENCE_S = 10.0
LOOKUP_S = 2.0


class ProviderForm(ConfirmingForm):
    """A provider; its key can be given and forgotten, and is never shown."""

    never_shown = ("new_key",)

    base_url = forms.URLField(
        label="Address",
        required=False,
        assume_scheme="https",
        widget=UnfoldAdminURLInputWidget,
        help_text="Where the model is, e.g. https://models.example.com/v1. A private address, such as "
        "http://localhost:11434 for Ollama, must be allowed by the setting ALLOWED_PRIVATE_HOSTS. "
        "Empty: the provider's own address.",
    )
    new_key = forms.CharField(
        label="API key",
        required=False,
        max_length=1_000,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text="Kept encrypted and never shown again. Empty keeps the key that is there.",
    )
    forget_key = forms.BooleanField(label="Forget the key", required=False)
    prices = PricesField()

    class Meta:
        model = ModelProvider
        fields = ("organization", "name", "kind", "base_url", "prices", "script", "timeout_s", "is_active")
        labels = {"timeout_s": "Timeout in seconds"}
        widgets = {"script": UnfoldAdminTextareaWidget(attrs={"rows": 24, "spellcheck": "false"})}

    address_fault = ""
    """The reason why the typed address is not allowed; set by the page, which looks it up before the transaction."""

    def clean(self) -> dict[str, Any]:
        """A script must be one, and a key is never sent to an address that it was not given for."""
        cleaned = super().clean() or {}
        moved = "base_url" in self.changed_data or "kind" in self.changed_data
        if self.address_fault and (moved or cleaned.get("is_active")):
            self.add_error("base_url", self.address_fault)
        if cleaned.get("kind") == ProviderKind.SCRIPTED:
            self._check_script(cleaned.get("script", ""))
        given, forgotten = cleaned.get("new_key"), cleaned.get("forget_key")
        if moved and self.instance.api_key and not (given or forgotten):
            self.add_error("new_key", "The address has changed: give the key for it, or tick “Forget the key”.")
        if given and forgotten:
            self.add_error("forget_key", "Either give a key or forget it.")
        return cleaned

    def consequences(self, cleaned: dict[str, Any]) -> Iterator[str]:
        """Who works with the provider follows it to another address, and stops with it."""
        employees = self._employees()
        names = ", ".join(employee.name for employee in employees)
        if not names:
            return
        moved = "base_url" in self.changed_data or "kind" in self.changed_data
        if moved and cleaned["kind"] != ProviderKind.SCRIPTED:
            place = cleaned["base_url"] or "the provider's own address"
            key = "with the key that you give now" if cleaned["new_key"] else "without a key"
            yield f"All that {names} read, and their instructions, go to {place} from now on, {key}."
        if "is_active" in self.changed_data and not cleaned["is_active"]:
            yield f"Every run of {names} ends with an error at its next step."
        yield from self._unpriced(employees, ModelProvider(kind=cleaned["kind"], prices=cleaned["prices"]))

    def _unpriced(self, employees: list[Employee], changed: ModelProvider) -> Iterator[str]:
        """Who loses the price without which no budget of money holds."""
        kept = ModelProvider(kind=self.initial["kind"], prices=self.initial["prices"])
        before = {employee.pk for employee in without_price(kept, employees)}
        for employee in without_price(changed, employees):
            if employee.pk not in before and _costs_are_limited(employee):
                yield f"What {employee.name} costs is not counted any more, so that no budget of money ends its runs."

    def _employees(self) -> list[Employee]:
        rows = Employee.objects.filter(provider=self.instance.pk) if self.instance.pk else Employee.objects.none()
        return list(rows.select_related("organization").order_by("name"))

    def _check_script(self, script: str) -> None:
        try:
            validate_script(script)
        except ValueError as error:
            self.add_error("script", str(error))

    def save(self, commit: bool = True) -> ModelProvider:
        if key := self.cleaned_data.get("new_key"):
            self.instance.api_key = key.strip()
        elif self.cleaned_data.get("forget_key"):
            self.instance.api_key = ""
        saved: ModelProvider = super().save(commit)
        return saved


def _address_fault(request: HttpRequest) -> str:
    """Say why the address in this form is not allowed; empty if it is, or if the form refuses it anyway."""
    kind, typed = request.POST.get("kind", ""), request.POST.get("base_url", "")
    try:
        address = forms.URLField(required=False, assume_scheme="https").clean(typed)
        return address_refusal(kind, address, LOOKUP_S)
    except (forms.ValidationError, ProviderError):
        return ""


def _costs_are_limited(employee: Employee) -> bool:
    limits = (employee.run_cost, employee.month_cost, employee.organization.month_cost)
    return any(limit is not None for limit in limits)


@admin.register(ModelProvider)
class ProviderAdmin(ConfigurationAdmin):
    """Providers of the organisations in which the person is admin."""

    form = ProviderForm
    secrets = ("new_key",)
    list_display = ("name", "kind", "organization", "base_url", "has_key", "is_active")
    list_filter = ("kind", "is_active", ("organization", ScopedRelatedFilter))
    list_select_related = ("organization",)
    search_fields = ("name",)
    ordering = ("name", "id")
    readonly_fields = ("has_key",)
    fieldsets = (
        (None, {"fields": ("organization", "name", "kind", "is_active")}),
        ("Model", {"fields": ("base_url", "has_key", "new_key", "forget_key", "timeout_s", "prices")}),
        ("Script", {"fields": ("script",)}),
    )

    change_form_outer_after_template = "admin/test_connection.html"

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method == "POST":
            request.address_fault = _address_fault(request)  # type: ignore[attr-defined]
        return super().changeform_view(request, *args, **kwargs)

    def get_form(self, request: HttpRequest, obj: Model | None = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        form.address_fault = getattr(request, "address_fault", "")
        return form

    def get_urls(self) -> list[URLPattern]:
        tested = self.admin_site.admin_view(require_POST(self.test_connection))
        address = path("<int:provider_id>/test-connection/", tested, name="test-connection")
        return [address, *super().get_urls()]

    def test_connection(self, request: HttpRequest, provider_id: int) -> HttpResponse:
        """Asks the saved provider for something that costs nothing, and says what is wrong."""
        provider = self.get_object(request, str(provider_id))
        if provider is None or not self.has_change_permission(request, provider):
            raise Http404
        try:
            check_provider(provider, PATIENCE_S)
        except ProviderError as error:
            messages.error(request, f"{provider.name} does not work: {error.message}")
        else:
            messages.success(request, f"{provider.name} answers.")
        return redirect("admin:employees_modelprovider_change", provider.pk)

    @admin.display(description="Key", boolean=True)
    def has_key(self, provider: ModelProvider) -> bool:
        return bool(provider.api_key)
