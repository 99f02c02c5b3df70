"""The hosts that tools may reach without a card, and those of a network that is not public."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminTextInputWidget

from tools.connections.changes import new_generation
from tools.connections.models import AllowedHost
from tools.contract import HostPort, Reach, ToolError
from tools.network import host_in, host_of, read_url
from tools.network.addresses import fault_of
from tools.network.urls import literal

from .configuration import ConfigurationAdmin
from .confirming import ConfirmingForm
from .scope import ScopedRelatedFilter, person

LONGEST_ADDRESS = 2_000
ONLY_SUPERUSERS = "Only a superuser of this installation may allow private addresses."
BY_SETTING = "with the setting ALLOWED_PRIVATE_HOSTS"


def private_network(host: str) -> str:
    """What it means to let tools into a network that is not public."""
    return f"Tools may reach {host} even where it lies in a private network, or on this machine itself."


def refuse_unreachable(host: str) -> None:
    """Refuse an address that tools never reach, whatever an admin allows; what a name leads to is seen later.

    Raises:
        ValidationError: it is one.
    """
    address = literal(host)
    if address is not None and (fault := fault_of(address, HostPort(host, 0), Reach(private=frozenset({host})))):
        raise forms.ValidationError(f"{host} is {fault}: no tool ever reaches it, whatever is allowed.")


class PrivateNetworkForm(ConfirmingForm):
    """A form with the tick `may_be_private`, for superusers, and for admins within what the installation allows.

    Attributes:
        by_superuser: set by the page.
    """

    by_superuser = False

    def refuse_private(self, hosts: Iterable[str], opened: Iterable[str]) -> None:
        """Refuse the tick for hosts that this person may not open; hosts that a superuser `opened` stay open."""
        for host in [] if self.by_superuser else sorted(set(hosts) - set(opened)):
            if not settings.ALLOWED_PRIVATE_HOSTS.may_cover(host, literal(host)):
                self.add_error(
                    "may_be_private", f"{ONLY_SUPERUSERS} The installation can also allow {host} {BY_SETTING}."
                )
                return


class HostForm(PrivateNetworkForm):
    """One host; letting tools into a network that is not public is confirmed."""

    host = forms.CharField(
        max_length=LONGEST_ADDRESS,
        widget=UnfoldAdminTextInputWidget,
        help_text="A name or an IP address, such as api.example.com. Of a URL, only its host is kept. "
        "This covers all ports of the host, but none of its subdomains.",
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

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        host = cleaned.get("host", self.instance.host)
        if cleaned.get("may_be_private") and host:
            self.refuse_private([host], [host] if self.is_opened else [])
        return cleaned

    def consequences(self, cleaned: dict[str, Any]) -> Iterator[str]:
        if cleaned["may_be_private"] and not (self.is_opened or (self._was_ticked and not self.by_superuser)):
            yield private_network(cleaned.get("host", self.instance.host))

    @property
    def is_opened(self) -> bool:
        """Return True if a superuser ticked it before."""
        return self._was_ticked and self.instance.opened_by_superuser

    @property
    def _was_ticked(self) -> bool:
        return bool(self.initial.get("may_be_private"))


@admin.register(AllowedHost)
class AllowedHostAdmin(ConfigurationAdmin):
    """Where tools may go without a card, and which hosts may be in a private network."""

    form = HostForm
    fixed = ("organization", "host")
    list_display = ("host", "without_card", "private_network", "organization", "created_at")
    list_filter = ("without_card", "may_be_private", ("organization", ScopedRelatedFilter))
    list_select_related = ("organization",)
    search_fields = ("host",)
    ordering = ("host", "id")

    def get_form(self, request: HttpRequest, obj: Model | None = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        form.by_superuser = bool(person(request).is_superuser)
        return form

    @admin.display(description="Private network")
    def private_network(self, host: AllowedHost) -> str:
        """Mark the ticks by admins that hold only as far as the installation allows."""
        if not host.may_be_private:
            return "no"
        return "yes" if host.opened_by_superuser else "as far as ALLOWED_PRIVATE_HOSTS allows"

    def save_model(self, request: HttpRequest, obj: AllowedHost, form: forms.ModelForm[Any], change: bool) -> None:
        assert isinstance(form, HostForm)
        obj.opened_by_superuser = obj.may_be_private and (form.by_superuser or form.is_opened)
        super().save_model(request, obj, form, change)
        new_generation(obj.organization_id)

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        assert isinstance(obj, AllowedHost)
        new_generation(obj.organization_id)
        super().delete_model(request, obj)
