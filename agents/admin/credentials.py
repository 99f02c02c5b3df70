"""Credentials of organizations. Values can be entered but never read back; only the names of fields
are shown."""

from __future__ import annotations

import json
import re
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.validators import RegexValidator
from django.db.models import Model
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from unfold.widgets import (
    UnfoldAdminPasswordWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanWidget,
)

from agents.accounts.models import Credential
from agents.admin.configuration import ConfigurationAdmin, record_change
from agents.admin.confirmation import ENTER_AGAIN
from agents.admin.fields import FIELD_NAME, find_secret_fault
from agents.admin.scope import ScopedRelatedFilter, get_user, limit_to_user
from agents.employees.toolboxes import bump_credentials_version, parse_fields
from agents.platform.known_secrets import KNOWN_SECRETS
from agents.platform.log_context import log_for_organization
from tools.connections.models import Source
from tools.connections.servers import required_fields
from tools.contract import KNOWN_SERVICES, SHORTEST_SECRET, collect_secrets
from tools.contract.outside_text import OutsideText

SERVICE_LABELS = {"google.cse": "Google search", "github": "GitHub", "slack": "Slack"}
SERVICES = {name: (SERVICE_LABELS[name], fields) for name, fields in KNOWN_SERVICES.items()}
"""Known services, as {name: (label, fields)}."""
OTHER = "other"
ROWS = range(1, 5)
MAX_FIELDS = 20
MAX_SERVICES = 50
LONGEST_VALUE = 8_000
SERVICE_NAME = RegexValidator(
    r"\A[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*\Z",
    "Enter the name that tools use, e.g. github or google.cse.",
)
OPEN_FIELDS = re.compile(
    r"(?i)(.*[._-])?(user|username|login|account|email|url|host|domain|region|id)"
)
"""Matches names of fields that usually do not hold a secret, such as `username` and `base_url`;
these fields accept any value."""
NOTHING_LEFT = "No value would be left. Delete these credentials instead."
NAME_HELP = "The field name that the tool reads, in lowercase letters, digits and _, e.g. token."


class CredentialForm(forms.ModelForm):  # type: ignore[type-arg]
    """Values for the fields of one service; an empty input keeps the stored value.

    Attributes:
        preset_service: the service, if it was chosen before the form was shown.
        names: the fields that have their own input.
        stored: the fields that have a stored value.
        new_values, removed: after cleaning, the new values by field, and the fields to remove.
    """

    preset_service = ""
    names: tuple[str, ...] = ()
    stored: frozenset[str] = frozenset()
    new_values: dict[str, str]
    removed: frozenset[str]

    class Meta:
        model = Credential
        fields = ("organization", "service")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.preset_service and not self.instance.pk:
            self.instance.service = self.preset_service
        if "service" in self.fields:
            self.fields["service"].validators.append(SERVICE_NAME)

    def full_clean(self) -> None:
        """Ask for each secret again if the form has an error: the page never sends typed secrets
        back."""
        super().full_clean()
        if self.is_bound and self.errors:
            for name in list(self.fields):
                if (
                    name.startswith("value_")
                    and self.data.get(self.add_prefix(name))
                    and name not in self.errors
                ):
                    self.add_error(name, ENTER_AGAIN)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        self.removed = frozenset(name for name in self.names if cleaned.get(f"forget_{name}"))
        self.new_values = {
            name: value for name in self.names if (value := cleaned.get(f"value_{name}"))
        }
        for name in self.removed & self.new_values.keys():
            self.add_error(
                f"forget_{name}", "Enter a new value or remove the stored one, not both."
            )
        for name, value in self.new_values.items():
            self._check_value(name, f"value_{name}", value)
        for row in ROWS:
            self._read_row(row, cleaned.get(f"name_{row}", ""), cleaned.get(f"value_{row}", ""))
        self._check_total(cleaned)
        return cleaned

    def _read_row(self, row: int, name: str, value: str) -> None:
        """Read one row of the form: a name and a value. Errors never quote the input, because it
        may be a misplaced secret."""
        if not name and not value:
            return
        if not FIELD_NAME.fullmatch(name):
            self.add_error(
                f"name_{row}", NAME_HELP if name else "Enter the name of the field for this value."
            )
        elif not value and f"value_{row}" not in self.errors:
            self.add_error(f"value_{row}", "Enter a value, or clear the name.")
        elif name in self.names or name in self.new_values:
            self.add_error(
                f"name_{row}", "This field is already on the form. Enter its value there."
            )
        else:
            self.new_values[name] = value
            self._check_value(name, f"value_{row}", value)

    def _check_value(self, name: str, entered_in: str, value: str) -> None:
        """Refuse a secret that is a common value, such as a word."""
        if not OPEN_FIELDS.fullmatch(name) and (fault := find_secret_fault(value)) is not None:
            self.add_error(entered_in, fault)

    def _check_total(self, cleaned: dict[str, Any]) -> None:
        left = (self.stored - self.removed) | self.new_values.keys()
        if not left and not self.errors:
            self.add_error(None, NOTHING_LEFT if self.stored else "Enter a value.")
        if len(left) > MAX_FIELDS:
            self.add_error(
                None,
                f"A service can have {MAX_FIELDS} fields, but these are {len(left)}. Remove some.",
            )
        service, owner = self.preset_service or cleaned.get("service"), cleaned.get("organization")
        if not self.instance.pk and owner is not None and _has_credentials(owner.pk, service):
            self.add_error(
                None, f"{owner} already has credentials for {service}. Change them instead."
            )
        elif (
            not self.instance.pk and owner is not None and owner.credentials.count() >= MAX_SERVICES
        ):
            self.add_error(
                None,
                f"{owner} has credentials for {MAX_SERVICES} services, the limit. Delete some first.",
            )


def _has_credentials(organization_id: int, service: str | None) -> bool:
    return Credential.objects.filter(organization_id=organization_id, service=service).exists()


def _build_form(
    base: type[forms.ModelForm[Any]],
    preset_service: str,
    row: Credential | None,
    known: tuple[str, ...],
) -> type[forms.ModelForm[Any]]:
    """Build a form with an input for each field of the service; an unknown service gets rows for
    names and values."""
    stored = parse_fields(row.fields) if row is not None else None
    names = tuple(dict.fromkeys((*known, *(stored or ()))))
    inputs: dict[str, Any] = {
        "preset_service": preset_service,
        "names": names,
        "stored": frozenset(stored or ()),
    }
    for name in names:
        is_stored = name in inputs["stored"]
        help_text = (
            "A value is stored. Leave empty to keep it." if is_stored else "No value is stored yet."
        )
        inputs[f"value_{name}"] = _build_secret_input(name, help_text)
        if is_stored:
            inputs[f"forget_{name}"] = forms.BooleanField(
                label=f"Remove stored {name}", required=False, widget=UnfoldBooleanWidget
            )
    for number in () if known else ROWS:
        inputs[f"name_{number}"] = forms.CharField(
            label=f"Field name ({number})",
            required=False,
            help_text=NAME_HELP,
            widget=_NameInput(attrs={"autocomplete": "off"}),
        )
        inputs[f"value_{number}"] = _build_secret_input(
            f"Value ({number})", "Stored encrypted and never shown again."
        )
    return type("CredentialForm", (base,), inputs)


class _NameInput(UnfoldAdminTextInputWidget):  # type: ignore[misc]
    """An input that never repeats an invalid name: it may be a secret typed into the wrong
    field."""

    def format_value(self, value: Any) -> Any:
        return value if FIELD_NAME.fullmatch(str(value or "")) else ""


def _build_secret_input(label: str, help_text: str) -> forms.CharField:
    return forms.CharField(
        label=label,
        required=False,
        max_length=LONGEST_VALUE,
        help_text=help_text,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "off"}),
    )


@admin.register(Credential)
class CredentialAdmin(ConfigurationAdmin):
    """Credentials of the organizations in which the person is an admin."""

    form = CredentialForm
    immutable_fields = ("organization", "service")
    list_display = ("service", "organization", "field_names", "changed_by", "changed_at")
    list_filter = (("organization", ScopedRelatedFilter),)
    list_select_related = ("organization",)
    search_fields = ("service",)
    ordering = ("service", "id")

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the choice of a service first, then the form for its fields."""
        if request.method == "GET" and "for" not in request.GET:
            return self._show_services(request)
        response: HttpResponse = super().add_view(request, form_url, extra_context)
        return response

    def _show_services(self, request: HttpRequest) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Add credentials: choose a service",
            "services": [
                (key, label, ", ".join(names))
                for key, (label, names) in _list_services(request, None).items()
            ],
            "other": OTHER,
        }
        return TemplateResponse(request, "admin/choose_service.html", context)

    def get_form(
        self, request: HttpRequest, obj: Model | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        kwargs["form"] = self._build_own_form(request, obj)
        return super().get_form(request, obj, change, **kwargs)

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        own = self._build_own_form(request, obj)
        head = (
            ("organization",)
            if _get_preset_service(request, obj) and obj is None
            else ("organization", "service")
        )
        status = ("field_names", "changed_by", "changed_at") if obj is not None else ()
        values = f"Values for {own.preset_service}" if own.preset_service else "Values"
        return [
            (None, {"fields": (*head, *status)}),
            (values, {"fields": tuple(own.declared_fields)}),
        ]

    def get_readonly_fields(
        self, request: HttpRequest, obj: Model | None = None
    ) -> tuple[str, ...]:
        status = ("field_names", "changed_by", "changed_at") if obj is not None else ()
        return (*super().get_readonly_fields(request, obj), *status)

    def _build_own_form(self, request: HttpRequest, obj: Model | None) -> Any:
        row, preset_service = (
            obj if isinstance(obj, Credential) else None,
            _get_preset_service(request, obj),
        )
        known = _list_services(request, row).get(preset_service, ("", ()))[1]
        return _build_form(CredentialForm, preset_service, row, known)

    def save_model(
        self, request: HttpRequest, obj: Credential, form: forms.ModelForm[Any], change: bool
    ) -> None:
        """Merge the new values into the values that are stored now, which may come from a
        concurrent edit."""
        assert isinstance(form, CredentialForm)
        if change and not form.new_values and not form.removed:
            return
        now = Credential.objects.select_for_update().get(pk=obj.pk) if change else None
        before = parse_fields(now.fields) if now is not None else None
        stored = {name: value for name, value in (before or {}).items() if name not in form.removed}
        log_for_organization(obj.organization_id)
        KNOWN_SECRETS.learn(
            collect_secrets({obj.service: form.new_values}), owner=obj.organization_id
        )
        obj.fields = json.dumps({**stored, **form.new_values})
        obj.changed_by, obj.changed_at = get_user(request).get_username(), Now()
        obj.save()
        bump_credentials_version(obj.organization_id)
        if short := sorted(
            name for name, value in form.new_values.items() if len(value) < SHORTEST_SECRET
        ):
            messages.warning(
                request,
                f"{', '.join(short)}: too short to be masked in tool results (below {SHORTEST_SECRET} characters).",
            )

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        assert isinstance(obj, Credential)
        bump_credentials_version(obj.organization_id)
        record_change(
            request, obj, "deleted", dict.fromkeys(parse_fields(obj.fields) or (), "removed")
        )
        obj.delete()

    def describe_change(self, form: forms.ModelForm[Any], *, change: bool) -> dict[str, Any]:
        """Return the service and the names of the changed fields, but never a value."""
        assert isinstance(form, CredentialForm)
        actions = dict.fromkeys(sorted(form.removed), "removed") | dict.fromkeys(
            sorted(form.new_values), "set"
        )
        return actions if change else {"service": form.instance.service, **actions}

    @admin.display(description="Fields")
    def field_names(self, row: Credential) -> str:
        names = parse_fields(row.fields)
        return ", ".join(names) if names is not None else "Cannot be read. Enter the values again."


def _get_preset_service(request: HttpRequest, obj: Model | None) -> str:
    """Return the service of the row, or the service that the URL names; empty if the person has to
    choose the service in the form."""
    if isinstance(obj, Credential):
        return obj.service
    requested = request.GET.get("for", "")
    return requested if requested in _list_services(request, None) else ""


def _list_services(
    request: HttpRequest, row: Credential | None
) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the services of built-in tools and of the sources that this person may see, as {name:
    (label, fields)}."""
    sources = limit_to_user(Source.objects.defer("document"), request)
    if row is not None:
        sources = sources.filter(organization_id=row.organization_id)
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    for source in sources.order_by("name"):
        service, needed = source.credentials_service, required_fields(source)
        if needed:
            _, known = found.get(service, ("", ()))
            title = f" ({OutsideText(source.title)})" if source.title else ""
            found[service] = (f"{source.name}{title}", tuple(dict.fromkeys((*known, *needed))))
    for service, (label, names) in SERVICES.items():
        found[service] = (label, tuple(dict.fromkeys((*names, *found.get(service, ("", ()))[1]))))
    return found
