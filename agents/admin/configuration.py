"""The admin pages that change the configuration: every change is written to the audit in its own transaction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.db import IntegrityError
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponseBase

from agents.accounts import audit

from .acts import kind_of, organization_id_of, subject_of
from .confirming import ConfirmingForm, only_asks
from .meanwhile import stamped
from .scope import ScopedAdmin, person

LONGEST_VALUE = 2_000


def plain(value: Any) -> Any:
    """The value as JSON for the audit: rows as {id, name}, long texts cut at 2,000 characters."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Model):
        return {"id": str(value.pk), "name": str(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset | QuerySet):
        return [plain(item) for item in value]
    return str(value)[:LONGEST_VALUE]


def record_change(request: HttpRequest, row: Model, action: str, payload: dict[str, Any]) -> None:
    """Write one act of this person to the audit; to be called in the transaction of the act.

    Args:
        action: added, changed or deleted; the audit's action is e.g. `employee_changed`.
        payload: the fields, see `ConfigurationAdmin.told`; the audit's payload is {"row", "fields"}.
    """
    told = {"row": str(row)[:200], "fields": payload}
    actor = f"user:{person(request).get_username()}"
    entry = audit.Entry(actor, f"{kind_of(row)}_{action}", subject_of(row), told)
    audit.append(organization_id_of(row), [entry])


class ConfigurationAdmin(ScopedAdmin):
    """Base of the pages that change something.

    Attributes:
        secrets: form fields whose values never reach the audit.
        fixed: fields that are set when the row is made and cannot be changed afterwards.
    """

    change_form_before_template = "admin/form_head.html"
    secrets: Iterable[str] = ()
    fixed: tuple[str, ...] = ("organization",)

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        always = tuple(super().get_readonly_fields(request, obj))
        return always if obj is None else (*always, *self.fixed)

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """Once something is sent, what has to be confirmed stands first."""
        fieldsets = list(super().get_fieldsets(request, obj))
        may_save = self.has_add_permission(request) if obj is None else self.has_change_permission(request, obj)
        if request.method == "POST" and may_save and issubclass(self.form, ConfirmingForm):
            fieldsets.insert(0, (None, {"fields": ("confirmed",)}))
        return fieldsets

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        return [name for name in super().get_fields(request, obj) if name not in ("confirmed", "shown_as")]

    def get_form(self, request: HttpRequest, obj: Model | None = None, change: bool = False, **kwargs: Any) -> Any:
        """That of a row overwrites nothing that somebody else has changed since it was shown."""
        if obj is not None:
            form: Any = kwargs.get("form", self.form)
            kwargs["form"] = stamped(form, self.get_readonly_fields(request, obj))
        return super().get_form(request, obj, change, **kwargs)

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Where there are questions alone, nothing is to be corrected."""
        if only_asks(context["adminform"].form):
            context = {**context, "errors": (), "only_asks": True}
        return super().render_change_form(request, context, *args, **kwargs)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Somebody who saved the same in this moment may have come first: the form looks again, and then says so."""
        view = super().changeform_view
        try:
            answer: HttpResponseBase = view(request, *args, **kwargs)
        except IntegrityError:
            if request.method != "POST":
                raise
            answer = view(request, *args, **kwargs)
        return answer

    def save_model(self, request: HttpRequest, obj: Any, form: forms.ModelForm[Any], change: bool) -> None:
        """Writes what a form may change, and nothing that is set elsewhere, such as a stop that came meanwhile."""
        own = [field.name for field in obj._meta.concrete_fields if field.editable and not field.primary_key]
        obj.save(update_fields=own if change else None)

    def save_related(self, request: HttpRequest, form: forms.ModelForm[Any], formsets: Any, change: bool) -> None:
        """Saves what hangs on the row, then records the whole act."""
        super().save_related(request, form, formsets, change)
        if form.changed_data or not change:
            record_change(request, form.instance, "changed" if change else "added", self.told(form, change=change))

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        record_change(request, obj, "deleted", self.lost_with(obj))
        super().delete_model(request, obj)

    def lost_with(self, obj: Model) -> dict[str, Any]:
        """What the audit keeps of what goes with a deleted row."""
        return {}

    def told(self, form: forms.ModelForm[Any], *, change: bool) -> dict[str, Any]:
        """What the audit keeps of a saved form: {field: {before, after}}, {field: after} for a new row."""
        fields = form.changed_data if change else list(form.cleaned_data)
        kept: dict[str, Any] = {}
        for name in fields:
            if name in self.secrets:
                kept[name] = "set" if form.cleaned_data.get(name) else "not set"
                continue
            after = plain(form.cleaned_data.get(name))
            kept[name] = {"before": plain(form.initial.get(name)), "after": after} if change else after
        return kept
