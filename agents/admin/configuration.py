"""The base class of the admin pages that change the configuration. Each change is recorded in the
audit, in the same transaction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.db import IntegrityError
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponseBase

from agents.accounts import audit
from agents.admin.audit_subjects import format_kind, format_subject, get_organization_id
from agents.admin.confirmation import ConfirmationForm, needs_confirmation
from agents.admin.edit_conflicts import add_conflict_check
from agents.admin.scope import ScopedAdmin, get_user

LONGEST_VALUE = 2_000


def to_audit_value(value: Any) -> Any:
    """Return the value as JSON for the audit: rows become {id, name}, and long texts are cut at
    2,000 characters."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Model):
        return {"id": str(value.pk), "name": str(value)}
    if isinstance(value, dict):
        return {str(key): to_audit_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset | QuerySet):
        return [to_audit_value(item) for item in value]
    return str(value)[:LONGEST_VALUE]


def record_change(request: HttpRequest, row: Model, action: str, payload: dict[str, Any]) -> None:
    """Record in the audit what a person did to a row; call this in the transaction of the action.

    Args:
        action: added, changed or deleted; the audit's action is e.g. `employee_changed`.
        payload: the fields, see `ConfigurationAdmin.describe_change`; the audit's payload is
            {"row", "fields"}.
    """
    actor = f"user:{get_user(request).get_username()}"
    details = {"row": str(row)[:200], "fields": payload}
    entry = audit.NewEntry(actor, f"{format_kind(row)}_{action}", format_subject(row), details)
    audit.append(get_organization_id(row), [entry])


def _describe_list(change: Any) -> str:
    """Return a text such as ` (added a, b; removed c)` about a changed list; empty for any other
    change."""
    if not isinstance(change, dict) or not all(
        isinstance(change.get(side), list) for side in ("before", "after")
    ):
        return ""
    before, after = ([_name(item) for item in change[side]] for side in ("before", "after"))
    parts = {
        "added": [name for name in after if name not in before],
        "removed": [n for n in before if n not in after],
    }
    words = "; ".join(
        f"{word} {', '.join(sorted(names))}" for word, names in parts.items() if names
    )
    return f" ({words})" if words else ""


def _name(item: Any) -> str:
    return str(item.get("name", item)) if isinstance(item, dict) else str(item)


class ConfigurationAdmin(ScopedAdmin):
    """The base class of the pages that change rows.

    Attributes:
        secret_fields: form fields whose values are never written to the audit.
        immutable_fields: fields that are set when the row is created and cannot be changed
            afterwards.
    """

    change_form_before_template = "admin/form_head.html"
    secret_fields: Iterable[str] = ()
    immutable_fields: tuple[str, ...] = ("organization",)

    def get_readonly_fields(
        self, request: HttpRequest, obj: Model | None = None
    ) -> tuple[str, ...]:
        always = tuple(super().get_readonly_fields(request, obj))
        return always if obj is None else (*always, *self.immutable_fields)

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """Put the field for confirmations first once the form has been submitted."""
        fieldsets = list(super().get_fieldsets(request, obj))
        may_save = (
            self.has_add_permission(request)
            if obj is None
            else self.has_change_permission(request, obj)
        )
        if request.method == "POST" and may_save and issubclass(self.form, ConfirmationForm):
            fieldsets.insert(0, (None, {"fields": ("confirmed",)}))
        return fieldsets

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        return [
            name
            for name in super().get_fields(request, obj)
            if name not in ("confirmed", "shown_fingerprints")
        ]

    def get_form(
        self, request: HttpRequest, obj: Model | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        """Return a form that refuses to overwrite a concurrent edit."""
        if obj is not None:
            form: Any = kwargs.get("form", self.form)
            kwargs["form"] = add_conflict_check(form, self.get_readonly_fields(request, obj))
        return super().get_form(request, obj, change, **kwargs)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Do not show error messages if the form only needs confirmation."""
        if needs_confirmation(context["adminform"].form):
            context = {**context, "errors": (), "needs_confirmation": True}
        return super().render_change_form(request, context, *args, **kwargs)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Retry once after an integrity error: the second attempt validates the form again, and
        reports the conflict with a concurrent request."""
        view = super().changeform_view
        try:
            response: HttpResponseBase = view(request, *args, **kwargs)
        except IntegrityError:
            if request.method != "POST":
                raise
            response = view(request, *args, **kwargs)
        return response

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> Any:
        """Return the sentence about a change for the history, with the entries added to and removed
        from each changed list."""
        if add:
            return super().construct_change_message(request, form, formsets, add)
        details = self.describe_change(form, change=True)
        changes = [
            f"{form[name].label}{_describe_list(details.get(name))}" for name in form.changed_data
        ]
        return f"Changed {'; '.join(changes)}." if changes else "No fields changed."

    def save_model(
        self, request: HttpRequest, obj: Any, form: forms.ModelForm[Any], change: bool
    ) -> None:
        """Save only the editable columns, so that values set elsewhere, such as a stop, are
        kept."""
        own = [
            field.name
            for field in obj._meta.concrete_fields
            if field.editable and not field.primary_key
        ]
        obj.save(update_fields=own if change else None)

    def save_related(
        self, request: HttpRequest, form: forms.ModelForm[Any], formsets: Any, change: bool
    ) -> None:
        """Save the related rows, then record the whole change in the audit."""
        super().save_related(request, form, formsets, change)
        if form.changed_data or not change:
            record_change(
                request,
                form.instance,
                "changed" if change else "added",
                self.describe_change(form, change=change),
            )

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        record_change(request, obj, "deleted", self.describe_cascade(obj))
        super().delete_model(request, obj)

    def describe_cascade(self, obj: Model) -> dict[str, Any]:
        """Return the audit's details about everything that is deleted together with the row."""
        return {}

    def describe_change(self, form: forms.ModelForm[Any], *, change: bool) -> dict[str, Any]:
        """Return the audit's details of a saved form: {field: {before, after}}, or {field: after}
        for a new row."""
        fields = form.changed_data if change else list(form.cleaned_data)
        details: dict[str, Any] = {}
        for name in fields:
            if name in self.secret_fields:
                details[name] = "set" if form.cleaned_data.get(name) else "not set"
                continue
            after = to_audit_value(form.cleaned_data.get(name))
            details[name] = (
                {"before": to_audit_value(form.initial.get(name)), "after": after}
                if change
                else after
            )
        return details
