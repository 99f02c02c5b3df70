"""The hosts that tools may reach without a card, and those of a network that is not public."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminTextInputWidget

from tools.connections.changes import new_generation
from tools.connections.models import AllowedHost
from tools.contract import Reach, ToolError
from tools.network import host_in, host_of, read_url
from tools.network.addresses import fault_of
from tools.network.urls import literal

from .configuration import ConfigurationAdmin
from .confirming import ConfirmingForm
from .scope import ScopedRelatedFilter

LONGEST_ADDRESS = 2_000


def private_network(host: str) -> str:
    """What it means to let tools into a network that is not public."""
    return f"Tools may reach {host} even where it lies in a private network, or on this machine itself."


def refuse_unreachable(host: str) -> None:
    """Refuse an address that tools never reach, whatever an admin allows; what a name leads to is seen later.

    Raises:
        ValidationError: it is one.
    """
    address = literal(host)
    if address is not None and (fault := fault_of(address, host, Reach(private=frozenset({host})))):
        raise forms.ValidationError(f"{host} is {fault}: no tool ever reaches it, whatever is allowed.")


class HostForm(ConfirmingForm):
    """One host; letting tools into a network that is not public is confirmed."""

    host = forms.CharField(
        max_length=LONGEST_ADDRESS,
        widget=UnfoldAdminTextInputWidget,
        help_text="Its name or address, e.g. api.example.com; of a whole address its host is taken. "
        "Every port of it, and no other name below it.",
    )

    class Meta:
        model = AllowedHost
        fields = ("organization", "host", "without_card", "may_be_private")

    def clean_host(self) -> str:
        typed: str = self.cleaned_data["host"]
        try:
            host = host_of(read_url(typed)) if "://" in typed else host_in(typed)
        except ToolError as error:
            raise forms.ValidationError(error.message) from error
        refuse_unreachable(host)
        return host

    def consequences(self, cleaned: dict[str, Any]) -> Iterator[str]:
        if cleaned["may_be_private"] and not self.initial.get("may_be_private"):
            yield private_network(cleaned.get("host", self.instance.host))


@admin.register(AllowedHost)
class AllowedHostAdmin(ConfigurationAdmin):
    """Where tools may go without a card, and which hosts may be in a private network."""

    form = HostForm
    fixed = ("organization", "host")
    list_display = ("host", "without_card", "may_be_private", "organization", "created_at")
    list_filter = ("without_card", "may_be_private", ("organization", ScopedRelatedFilter))
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
