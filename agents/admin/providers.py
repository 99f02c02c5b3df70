"""Model providers: the address and key of a model server, or scripts that replace it."""

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
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminPasswordWidget,
    UnfoldAdminURLInputWidget,
)

from agents.admin.configuration import ConfigurationAdmin
from agents.admin.confirmation import ConfirmationForm
from agents.admin.fields import find_secret_fault
from agents.admin.prices import PricesField, list_unpriced
from agents.admin.provider_addresses import FoundAddress, find_address
from agents.admin.scope import ScopedRelatedFilter
from agents.employees.models import LONGEST_RESPONSE_S, Employee, ModelProvider, ProviderKind
from agents.employees.provider_settings import check_provider
from agents.providers.base import ProviderError

TEST_TIMEOUT_S = 10.0


class ProviderForm(ConfirmationForm):
    """The form for a provider. The provider's key can be set and removed, but is never shown."""

    write_only_fields = ("new_key",)

    base_url = forms.URLField(
        label="Address",
        required=False,
        assume_scheme="https",
        widget=UnfoldAdminURLInputWidget,
        help_text="Address of the model server, e.g. https://models.example.com/v1. Leave empty for the default. "
        "Without https:// or http://, both are tried. "
        "Private addresses, such as http://localhost:11434 for Ollama, need the setting ALLOWED_PRIVATE_HOSTS.",
    )
    new_key = forms.CharField(
        label="API key",
        required=False,
        max_length=1_000,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text="Stored encrypted and never shown again. Leave empty to keep the stored key.",
    )
    forget_key = forms.BooleanField(label="Remove stored key", required=False)
    answer_timeout_s = forms.IntegerField(
        label="Longest response (seconds)",
        required=False,
        min_value=1,
        max_value=32_767,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="Time limit for one whole response. A slow model needs a long one. Leave empty for 1,800.",
    )
    prices = PricesField()

    class Meta:
        model = ModelProvider
        fields = (
            "organization",
            "name",
            "kind",
            "base_url",
            "prices",
            "timeout_s",
            "answer_timeout_s",
            "is_active",
        )

    found = FoundAddress("")
    """The address found for the submitted text. The page sets it before the transaction, because
    finding it may need requests."""

    def clean(self) -> dict[str, Any]:
        """Ask for the key again if the address changes, so that no other server receives it."""
        cleaned = super().clean() or {}
        if "base_url" in cleaned:
            cleaned["base_url"] = self.found.address or cleaned["base_url"]
        has_moved = self._has_moved(cleaned)
        if self.found.fault is not None and (has_moved or cleaned.get("is_active")):
            self.add_error("base_url", self.found.fault)
        new_key, removed = cleaned.get("new_key"), cleaned.get("forget_key")
        if has_moved and self.instance.api_key and not (new_key or removed):
            self.add_error(
                "new_key",
                "The address has changed. Enter the key for it, or tick “Remove stored key”.",
            )
        if (fault := find_secret_fault(new_key or "")) is not None:
            self.add_error("new_key", f"{fault} Leave it empty if the server needs no key.")
        if new_key and removed:
            self.add_error("forget_key", "Enter a new key or remove the stored one, not both.")
        return cleaned

    def clean_answer_timeout_s(self) -> int:
        """Return the timeout in seconds; the default if the field is empty."""
        return self.cleaned_data["answer_timeout_s"] or LONGEST_RESPONSE_S

    def _has_moved(self, cleaned: dict[str, Any]) -> bool:
        """Return True if the provider's requests would go to another server."""
        has_other_address = cleaned.get("base_url", "") != (self.initial.get("base_url") or "")
        return has_other_address or "kind" in self.changed_data

    def list_consequences(self, cleaned: dict[str, Any]) -> Iterator[str]:
        """List the employees whose data goes to another server, whose runs end, or whose cost limit
        stops working."""
        employees = self._list_employees()
        names = ", ".join(employee.name for employee in employees)
        if not names:
            return
        if self._has_moved(cleaned) and cleaned["kind"] != ProviderKind.SCRIPTED:
            address = cleaned["base_url"] or "the provider's default address"
            key = "with the new key" if cleaned["new_key"] else "without a key"
            yield f"From now on, the instructions of {names} and everything they read go to {address}, {key}."
        if "is_active" in self.changed_data and not cleaned["is_active"]:
            yield f"Every run of {names} ends with an error at its next step."
        yield from self._list_broken_budgets(
            employees, ModelProvider(kind=cleaned["kind"], prices=cleaned["prices"])
        )

    def _list_broken_budgets(
        self, employees: list[Employee], changed: ModelProvider
    ) -> Iterator[str]:
        """List the employees whose cost limit this change makes useless, because their model no
        longer has a price."""
        stored = ModelProvider(kind=self.initial["kind"], prices=self.initial["prices"])
        before = {employee.pk for employee in list_unpriced(stored, employees)}
        for employee in list_unpriced(changed, employees):
            if employee.pk not in before and _has_cost_limit(employee):
                yield f"The cost of {employee.name} is no longer counted, so its cost limit no longer ends runs."

    def _list_employees(self) -> list[Employee]:
        rows = (
            Employee.objects.filter(provider=self.instance.pk)
            if self.instance.pk
            else Employee.objects.none()
        )
        return list(rows.select_related("organization").order_by("name"))

    def save(self, commit: bool = True) -> ModelProvider:
        if key := self.cleaned_data.get("new_key"):
            self.instance.api_key = key.strip()
        elif self.cleaned_data.get("forget_key"):
            self.instance.api_key = ""
        saved: ModelProvider = super().save(commit)
        return saved


def _has_cost_limit(employee: Employee) -> bool:
    limits = (employee.run_cost, employee.month_cost, employee.organization.month_cost)
    return any(limit is not None for limit in limits)


@admin.register(ModelProvider)
class ProviderAdmin(ConfigurationAdmin):
    """Providers of the organizations in which the person is an admin."""

    form = ProviderForm
    secret_fields = ("new_key",)
    list_display = ("name", "kind", "organization", "base_url", "has_key", "is_active")
    list_filter = ("kind", "is_active", ("organization", ScopedRelatedFilter))
    list_select_related = ("organization",)
    search_fields = ("name",)
    ordering = ("name", "id")
    readonly_fields = ("has_key",)
    fieldsets = (
        (None, {"fields": ("organization", "name", "kind", "is_active")}),
        (
            "Model",
            {
                "fields": (
                    "base_url",
                    "has_key",
                    "new_key",
                    "forget_key",
                    "timeout_s",
                    "answer_timeout_s",
                    "prices",
                )
            },
        ),
    )

    change_form_outer_after_template = "admin/test_connection.html"

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method == "POST":
            found = find_address(request.POST.get("kind", ""), request.POST.get("base_url", ""))
            request.found_address = found  # type: ignore[attr-defined]
        return super().changeform_view(request, *args, **kwargs)

    def get_form(
        self, request: HttpRequest, obj: Model | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        form.found = getattr(request, "found_address", FoundAddress(""))
        return form

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if form.found.note:
            messages.info(request, form.found.note)

    def get_urls(self) -> list[URLPattern]:
        tested = self.admin_site.admin_view(require_POST(self.test_connection))
        address = path("<int:provider_id>/test-connection/", tested, name="test-connection")
        return [address, *super().get_urls()]

    def test_connection(self, request: HttpRequest, provider_id: int) -> HttpResponse:
        """Send the saved provider a request that is free of charge, and report the result."""
        provider = self.get_object(request, str(provider_id))
        if provider is None or not self.has_change_permission(request, provider):
            raise Http404
        try:
            warning = check_provider(provider, TEST_TIMEOUT_S)
        except ProviderError as error:
            messages.error(request, f"Connection to {provider.name} failed: {error.message}")
        else:
            tell = messages.warning if warning else messages.success
            tell(request, f"Connection to {provider.name} works. {warning}".strip())
        return redirect("admin:employees_modelprovider_change", provider.pk)

    @admin.display(description="Key stored", boolean=True)
    def has_key(self, provider: ModelProvider) -> bool:
        return bool(provider.api_key)
