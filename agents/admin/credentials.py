"""Credentials of organisations: values go in and never come out; what can be seen is the names of their fields."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.validators import RegexValidator
from django.db.models import Model
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget, UnfoldBooleanWidget

from agents.accounts.models import Credential
from agents.employees.toolboxes import fields_in, note_changed_credentials
from agents.platform.known_secrets import KNOWN_SECRETS
from tools.connections.models import Source
from tools.connections.servers import needed_fields
from tools.contract import SHORTEST_SECRET, secrets_of

from .configuration import ConfigurationAdmin, record_change
from .confirming import GIVE_AGAIN
from .fields import FIELD_NAME
from .scope import ScopedRelatedFilter, person, visible

SERVICES = {
    "google.cse": ("Google search", ("api_key", "engine_id")),
    "github": ("GitHub", ("token",)),
    "slack": ("Slack", ("token", "signing_secret")),
}
"""Those that tools that ship may ask for, with the fields that they read; see `_services_for`."""
OTHER = "other"
ROWS = range(1, 5)
MOST_FIELDS = 20
MOST_SERVICES = 50
LONGEST_VALUE = 8_000
SERVICE_NAME = RegexValidator(
    r"\A[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*\Z", "Write it as tools name it, e.g. github or google.cse."
)
NAME_HELP = "Small letters, digits and _, as the tool reads it, e.g. token."


class CredentialForm(forms.ModelForm):  # type: ignore[type-arg]
    """Values for the fields of one service. What is left empty stays as it is.

    Attributes:
        chosen: the service, where it is not typed.
        names: the fields that have an input of their own.
        kept: those of them that have a value.
        given, forgotten: after cleaning, new values by field, and fields that go.
    """

    chosen = ""
    names: tuple[str, ...] = ()
    kept: frozenset[str] = frozenset()
    given: dict[str, str]
    forgotten: frozenset[str]

    class Meta:
        model = Credential
        fields = ("organization", "service")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.chosen and not self.instance.pk:
            self.instance.service = self.chosen
        if "service" in self.fields:
            self.fields["service"].validators.append(SERVICE_NAME)

    def full_clean(self) -> None:
        """What was typed into a password's place is gone when something else is wrong, and would be left out."""
        super().full_clean()
        if self.is_bound and self.errors:
            for name in list(self.fields):
                if name.startswith("value_") and self.data.get(self.add_prefix(name)) and name not in self.errors:
                    self.add_error(name, GIVE_AGAIN)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        self.forgotten = frozenset(name for name in self.names if cleaned.get(f"forget_{name}"))
        self.given = {name: value for name in self.names if (value := cleaned.get(f"value_{name}"))}
        for name in self.forgotten & self.given.keys():
            self.add_error(f"forget_{name}", "Either give a value or forget it.")
        for row in ROWS:
            self._add_row(row, cleaned.get(f"name_{row}", ""), cleaned.get(f"value_{row}", ""))
        self._check_whole(cleaned)
        return cleaned

    def _add_row(self, row: int, name: str, value: str) -> None:
        """Nothing that was typed is quoted: it may be a secret in the wrong place."""
        if not name and not value:
            return
        if not FIELD_NAME.fullmatch(name):
            self.add_error(f"name_{row}", NAME_HELP if name else "Say which field this value is for.")
        elif not value and f"value_{row}" not in self.errors:
            self.add_error(f"value_{row}", "Give its value, or leave out the name.")
        elif name in self.names or name in self.given:
            self.add_error(f"name_{row}", "There is a place for this field already.")
        else:
            self.given[name] = value

    def _check_whole(self, cleaned: dict[str, Any]) -> None:
        left = (self.kept - self.forgotten) | self.given.keys()
        if not left and not self.errors:
            told = "Nothing would be left: delete these credentials instead." if self.kept else "Give a value."
            self.add_error(None, told)
        if len(left) > MOST_FIELDS:
            self.add_error(None, f"These are {len(left)} fields; a service has at most {MOST_FIELDS}.")
        service, owner = self.chosen or cleaned.get("service"), cleaned.get("organization")
        if not self.instance.pk and owner is not None and _exists(owner.pk, service):
            self.add_error(None, f"{owner} has credentials for {service} already: change those.")
        elif not self.instance.pk and owner is not None and owner.credentials.count() >= MOST_SERVICES:
            self.add_error(None, f"{owner} has credentials for {MOST_SERVICES} services, and may not have more.")


def _exists(organization_id: int, service: str | None) -> bool:
    return Credential.objects.filter(organization_id=organization_id, service=service).exists()


def _form_of(
    base: type[forms.ModelForm[Any]], chosen: str, row: Credential | None, known: tuple[str, ...]
) -> type[forms.ModelForm[Any]]:
    """The form with an input for each field that the service has, and where none is known of it, for some more."""
    stored = fields_in(row.fields) if row is not None else None
    names = tuple(dict.fromkeys((*known, *(stored or ()))))
    inputs: dict[str, Any] = {"chosen": chosen, "names": names, "kept": frozenset(stored or ())}
    for name in names:
        is_kept = name in inputs["kept"]
        told = "It has a value, which is not shown. Empty keeps it." if is_kept else "It has no value."
        inputs[f"value_{name}"] = _secret(name, told)
        if is_kept:
            inputs[f"forget_{name}"] = forms.BooleanField(
                label=f"Forget {name}", required=False, widget=UnfoldBooleanWidget
            )
    for number in () if known else ROWS:
        inputs[f"name_{number}"] = forms.CharField(
            label=f"Name of a field ({number})",
            required=False,
            help_text=NAME_HELP,
            widget=_NameInput(attrs={"autocomplete": "off"}),
        )
        inputs[f"value_{number}"] = _secret(f"Its value ({number})", "Kept encrypted and never shown again.")
    return type("CredentialForm", (base,), inputs)


class _NameInput(UnfoldAdminTextInputWidget):  # type: ignore[misc]
    """Shows nothing again that cannot be a name: somebody may have mixed up name and value."""

    def format_value(self, value: Any) -> Any:
        return value if FIELD_NAME.fullmatch(str(value or "")) else ""


def _secret(label: str, help_text: str) -> forms.CharField:
    return forms.CharField(
        label=label,
        required=False,
        max_length=LONGEST_VALUE,
        help_text=help_text,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "off"}),
    )


@admin.register(Credential)
class CredentialAdmin(ConfigurationAdmin):
    """Credentials of the organisations in which the person is admin."""

    form = CredentialForm
    fixed = ("organization", "service")
    list_display = ("service", "organization", "field_names", "changed_by", "changed_at")
    list_filter = (("organization", ScopedRelatedFilter),)
    list_select_related = ("organization",)
    search_fields = ("service",)
    ordering = ("service", "id")

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """First the choice of the service, then the form for its fields."""
        if request.method == "GET" and "for" not in request.GET:
            return self._choice(request)
        answer: HttpResponse = super().add_view(request, form_url, extra_context)
        return answer

    def _choice(self, request: HttpRequest) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Credentials for which service?",
            "services": [
                (key, label, ", ".join(names)) for key, (label, names) in _services_for(request, None).items()
            ],
            "other": OTHER,
        }
        return TemplateResponse(request, "admin/choose_service.html", context)

    def get_form(
        self,
        request: HttpRequest,
        obj: Model | None = None,
        change: bool = False,
        **kwargs: Any,
    ) -> type[forms.ModelForm[Any]]:
        kwargs["form"] = self._own_form(request, obj)
        form: type[forms.ModelForm[Any]] = super().get_form(request, obj, change, **kwargs)
        return form

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        own = self._own_form(request, obj)
        head = ("organization",) if _chosen(request, obj) and obj is None else ("organization", "service")
        told = ("field_names", "changed_by", "changed_at") if obj is not None else ()
        values = f"Values for {own.chosen}" if own.chosen else "Values"
        return [(None, {"fields": (*head, *told)}), (values, {"fields": tuple(own.declared_fields)})]

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        told = ("field_names", "changed_by", "changed_at") if obj is not None else ()
        return (*super().get_readonly_fields(request, obj), *told)

    def _own_form(self, request: HttpRequest, obj: Model | None) -> Any:
        row, chosen = obj if isinstance(obj, Credential) else None, _chosen(request, obj)
        known = _services_for(request, row).get(chosen, ("", ()))[1]
        return _form_of(CredentialForm, chosen, row, known)

    def save_model(self, request: HttpRequest, obj: Credential, form: forms.ModelForm[Any], change: bool) -> None:
        """What is there now is kept beside what was given, even if somebody else has changed it meanwhile."""
        assert isinstance(form, CredentialForm)
        if change and not form.given and not form.forgotten:
            return
        now = Credential.objects.select_for_update().get(pk=obj.pk) if change else None
        before = fields_in(now.fields) if now is not None else None
        kept = {name: value for name, value in (before or {}).items() if name not in form.forgotten}
        KNOWN_SECRETS.learn(secrets_of({obj.service: form.given}), owner=obj.organization_id)
        obj.fields = json.dumps({**kept, **form.given})
        obj.changed_by, obj.changed_at = person(request).get_username(), Now()
        obj.save()
        note_changed_credentials(obj.organization_id)
        if short := sorted(name for name, value in form.given.items() if len(value) < SHORTEST_SECRET):
            messages.warning(
                request,
                f"Shorter than {SHORTEST_SECRET} characters: {', '.join(short)}. "
                "So short a value cannot be told from ordinary text, and is not hidden in what tools answer.",
            )

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        assert isinstance(obj, Credential)
        note_changed_credentials(obj.organization_id)
        record_change(request, obj, "deleted", dict.fromkeys(fields_in(obj.fields) or (), "removed"))
        obj.delete()

    def told(self, form: forms.ModelForm[Any], *, change: bool) -> dict[str, Any]:
        """The service and the names of its fields; never a value."""
        assert isinstance(form, CredentialForm)
        acts = dict.fromkeys(sorted(form.forgotten), "removed") | dict.fromkeys(sorted(form.given), "set")
        return acts if change else {"service": form.instance.service, **acts}

    @admin.display(description="Fields")
    def field_names(self, row: Credential) -> str:
        names = fields_in(row.fields)
        return ", ".join(names) if names is not None else "cannot be read: set the values again"


def _chosen(request: HttpRequest, obj: Model | None) -> str:
    """The service, where it is known before anything is typed."""
    if isinstance(obj, Credential):
        return obj.service
    asked = request.GET.get("for", "")
    return asked if asked in _services_for(request, None) else ""


def _services_for(request: HttpRequest, row: Credential | None) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Those that tools that ship ask for, and those of the sources that this person, or the row's organisation, has."""
    sources = visible(Source.objects.defer("document"), request)
    if row is not None:
        sources = sources.filter(organization_id=row.organization_id)
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    for source in sources.order_by("name"):
        service, needed = source.credentials_service, needed_fields(source)
        if needed:
            _, known = found.get(service, ("", ()))
            found[service] = (source.title or source.name, tuple(dict.fromkeys((*known, *needed))))
    for service, (label, names) in SERVICES.items():
        found[service] = (label, tuple(dict.fromkeys((*names, *found.get(service, ("", ()))[1]))))
    return found
