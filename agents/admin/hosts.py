"""Allowed hosts: hosts that tools reach without approval, and hosts that may be in a private
network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminTextInputWidget

from agents.admin.configuration import ConfigurationAdmin
from agents.admin.confirmation import ConfirmationForm
from agents.admin.scope import ScopedRelatedFilter, get_user
from tools.connections.changes import bump_tools_version
from tools.connections.models import AllowedHost
from tools.contract import HostPort, NetworkAccess, ToolError
from tools.network import get_host, parse_host, read_url
from tools.network.addresses import find_forbidden_kind
from tools.network.urls import parse_ip

LONGEST_ADDRESS = 2_000
ONLY_SUPERUSERS = "Only a superuser of this installation can allow private addresses."
BY_SETTING = "with the setting ALLOWED_PRIVATE_HOSTS"


def describe_private_access(host: str) -> str:
    """Describe the consequence of allowing a host in a private network."""
    return f"Tools will be able to reach {host}, even in a private network or on this machine."


def refuse_unreachable(host: str) -> None:
    """Refuse an IP address that no setting can allow. A host name is not checked here: the
    addresses behind it are checked at each connection.

    Raises:
        ValidationError: the host is such an address.
    """
    address = parse_ip(host)
    if address is None:
        return
    kind = find_forbidden_kind(address, HostPort(host, 0), NetworkAccess(private=frozenset({host})))
    if kind is not None:
        raise forms.ValidationError(f"{host} is {kind.value}. Tools can never reach it.")


class PrivateNetworkForm(ConfirmationForm):
    """A form with `may_be_private`: superusers may always tick it, admins only for hosts that
    ALLOWED_PRIVATE_HOSTS covers.

    Attributes:
        by_superuser: True if a superuser edits the form; set by the page.
    """

    by_superuser = False

    def refuse_private(self, hosts: Iterable[str], opened: Iterable[str]) -> None:
        """Refuse private access to hosts that this person may not open. Hosts in `opened` are
        accepted, because a superuser has opened them."""
        for host in [] if self.by_superuser else sorted(set(hosts) - set(opened)):
            if not settings.ALLOWED_PRIVATE_HOSTS.may_cover(host, parse_ip(host)):
                self.add_error(
                    "may_be_private",
                    f"{ONLY_SUPERUSERS} The installation can also allow {host} {BY_SETTING}.",
                )
                return


class HostForm(PrivateNetworkForm):
    """The form for one host; private access to the host must be confirmed."""

    host = forms.CharField(
        max_length=LONGEST_ADDRESS,
        widget=UnfoldAdminTextInputWidget,
        help_text="A name or an IP address, e.g. api.example.com. Only the host of a URL is stored. "
        "Covers all ports of the host, but not its subdomains.",
    )

    class Meta:
        model = AllowedHost
        fields = ("organization", "host", "without_card", "may_be_private")

    def clean_host(self) -> str:
        typed: str = self.cleaned_data["host"]
        try:
            host = get_host(read_url(typed)) if "://" in typed else parse_host(typed)
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

    def list_consequences(self, cleaned: dict[str, Any]) -> Iterator[str]:
        if cleaned["may_be_private"] and not (
            self.is_opened or (self._was_ticked and not self.by_superuser)
        ):
            yield describe_private_access(cleaned.get("host", self.instance.host))

    @property
    def is_opened(self) -> bool:
        """True if a superuser has already allowed private access to this host."""
        return self._was_ticked and self.instance.opened_by_superuser

    @property
    def _was_ticked(self) -> bool:
        return bool(self.initial.get("may_be_private"))


@admin.register(AllowedHost)
class AllowedHostAdmin(ConfigurationAdmin):
    """Hosts that tools may reach without approval, and hosts that may be in a private network."""

    form = HostForm
    immutable_fields = ("organization", "host")
    list_display = ("host", "without_card", "private_access", "organization", "created_at")
    list_filter = ("without_card", "may_be_private", ("organization", ScopedRelatedFilter))
    list_select_related = ("organization",)
    search_fields = ("host",)
    ordering = ("host", "id")

    def get_form(
        self, request: HttpRequest, obj: Model | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        form.by_superuser = bool(get_user(request).is_superuser)
        return form

    @admin.display(description="Private network")
    def private_access(self, host: AllowedHost) -> str:
        """Describe the private access to a host. An admin's tick counts only if the installation
        allows the host."""
        if not host.may_be_private:
            return "no"
        return "yes" if host.opened_by_superuser else "if ALLOWED_PRIVATE_HOSTS covers it"

    def save_model(
        self, request: HttpRequest, obj: AllowedHost, form: forms.ModelForm[Any], change: bool
    ) -> None:
        assert isinstance(form, HostForm)
        obj.opened_by_superuser = obj.may_be_private and (form.by_superuser or form.is_opened)
        super().save_model(request, obj, form, change)
        bump_tools_version(obj.organization_id)

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        assert isinstance(obj, AllowedHost)
        bump_tools_version(obj.organization_id)
        super().delete_model(request, obj)
