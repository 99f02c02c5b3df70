"""Business records with their lists and drafts, the data that employees work on."""

from __future__ import annotations

from typing import Any

from django import forms
from django.apps import apps
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import HttpRequest

from agents.admin.configuration import ConfigurationAdmin
from agents.admin.scope import PATH_TO_ORGANIZATION, ScopedRelatedFilter, get_user
from tools.contract import Target
from tools.registries.records import RECORD_STORE

Record: Any = apps.get_model("records.Record")
RecordChange: Any = apps.get_model("records.RecordChange")
RecordList: Any = apps.get_model("records.RecordList")
ListEntry: Any = apps.get_model("records.ListEntry")
Draft: Any = apps.get_model("records.Draft")
PATH_TO_ORGANIZATION.update(
    {
        Record: "organization",
        RecordChange: "record__organization",
        RecordList: "organization",
        ListEntry: "list__organization",
        Draft: "organization",
    }
)
EDITABLE = ("name", "region", "category", "status", "score", "email", "domain", "phone", "notes")


class RecordForm(forms.ModelForm):  # type: ignore[type-arg]
    """The form for one record. It contains the record's version, so that it never overwrites a
    concurrent edit."""

    seen_version = forms.IntegerField(widget=forms.HiddenInput, required=False)

    class Meta:
        model = Record
        fields = ("organization", *EDITABLE)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["seen_version"] = self.instance.version

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        given = {name: value for name in EDITABLE if (value := cleaned.get(name)) not in (None, "")}
        for name, fault in RECORD_STORE.get().find_faults(given):
            if name not in self.errors:
                self.add_error(name, fault)
        if self.instance.pk:
            self._check_version(cleaned.get("seen_version"))
        return cleaned

    def _check_version(self, seen: int | None) -> None:
        locked = Record.objects.select_for_update(no_key=True).filter(pk=self.instance.pk)
        if seen != locked.values_list("version", flat=True).first():
            raise ValidationError(
                "The record has changed since you opened it. Open it again and repeat your change."
            )


@admin.register(Record)
class RecordAdmin(ConfigurationAdmin):
    """Records; a change made here increments the record's version and is added to its history, like
    any other change."""

    form = RecordForm
    list_display = ("name", "region", "category", "status", "score", "organization", "updated_at")
    list_filter = ("status", ("organization", ScopedRelatedFilter))
    list_select_related = ("organization",)
    search_fields = ("name", "domain")
    ordering = ("name", "id")
    readonly_fields = (
        "attributes",
        "qualification",
        "qualification_reason",
        "version",
        "created_at",
        "updated_at",
    )

    def get_readonly_fields(
        self, request: HttpRequest, obj: Model | None = None
    ) -> tuple[str, ...]:
        """Return the read-only fields; a new record does not have any, because they do not have
        values yet."""
        return super().get_readonly_fields(request, obj) if obj is not None else ()

    def save_model(
        self, request: HttpRequest, obj: Any, form: forms.ModelForm[Any], change: bool
    ) -> None:
        store, actor = RECORD_STORE.get(), get_user(request).get_username()
        names = [name for name in EDITABLE if not change or name in form.changed_data]
        after = {name: form.cleaned_data[name] for name in names}
        if not change:
            obj.pk = store.create_record(obj.organization_id, after, actor)
        elif after:
            before = {name: form.initial[name] for name in names}
            target = Target(str(obj.pk), obj.name, form.cleaned_data["seen_version"], before, after)
            store.update_record(obj.organization_id, target, actor)
        obj.refresh_from_db()


@admin.register(RecordList)
class RecordListAdmin(ConfigurationAdmin):
    """Named lists of records."""

    fields = ("organization", "name")
    list_display = ("name", "organization", "created_at")
    list_filter = (("organization", ScopedRelatedFilter),)
    list_select_related = ("organization",)
    search_fields = ("name",)
    ordering = ("name", "id")


@admin.register(ListEntry)
class ListEntryAdmin(ConfigurationAdmin):
    """Entries of record lists; an entry can be removed."""

    may_add = may_change = False
    immutable_fields = ()
    list_display = ("id", "record", "list", "added_at")
    list_filter = (("list", ScopedRelatedFilter),)
    list_select_related = ("record", "list")


@admin.register(Draft)
class DraftAdmin(ConfigurationAdmin):
    """Drafts by employees, which can be read and deleted."""

    may_add = may_change = False
    list_display = ("title", "kind", "employee", "organization", "created_at")
    list_filter = ("kind", ("organization", ScopedRelatedFilter))
    list_select_related = ("organization",)
    search_fields = ("title",)
    fields = ("organization", "kind", "title", "body", "employee", "run_id", "created_at")
