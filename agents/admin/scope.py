"""Who sees which rows in the admin: the organisations in which a person is admin, and nothing beyond."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.contrib.admin import RelatedFieldListFilter
from django.contrib.admin.options import ModelAdmin as DjangoModelAdmin
from django.contrib.auth.models import User
from django.db.models import Field, ForeignKey, ManyToManyField, Model, QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.paginator import InfinitePaginator

from agents.accounts.models import ApiToken, AuditEntry, Credential, Membership, Organization, Role
from agents.approvals.models import Approval
from agents.employees.models import Employee, Grant, ModelProvider, ToolRule
from agents.runs.models import Event, Message, Pass, Run, ToolCall
from tools.connections.models import AllowedHost, Source
from tools.records.models import Draft, ListEntry, Record, RecordChange, RecordList

PATH_TO_ORGANIZATION: dict[type[Model], str] = {
    Organization: "pk",
    Membership: "organization",
    ApiToken: "membership__organization",
    ModelProvider: "organization",
    Credential: "organization",
    Employee: "organization",
    Grant: "employee__organization",
    Run: "organization",
    Message: "run__organization",
    Pass: "run__organization",
    ToolCall: "organization",
    ToolRule: "organization",
    Approval: "organization",
    Event: "run__organization",
    AuditEntry: "organization",
    Record: "organization",
    RecordChange: "record__organization",
    RecordList: "organization",
    ListEntry: "list__organization",
    Draft: "organization",
    Source: "organization",
    AllowedHost: "organization",
    User: "memberships__organization",
}
"""The lookup that leads from a row to its organisation; a model that is missing here cannot be shown."""


def person(request: HttpRequest) -> User:
    """The user who is logged in to the admin."""
    return cast("User", request.user)


def administered(request: HttpRequest) -> frozenset[int]:
    """Ids of the organisations in which this person is admin; asked of the database once for each request."""
    known: frozenset[int] | None = getattr(request, "administered_organizations", None)
    if known is None:
        mine = Membership.objects.filter(user_id=person(request).pk, role=Role.ADMIN)
        known = frozenset(mine.values_list("organization_id", flat=True))
        request.administered_organizations = known  # type: ignore[attr-defined]
    return known


def may_configure(request: HttpRequest) -> bool:
    """True for a superuser and for the admin of at least one organisation."""
    user = person(request)
    return user.is_active and (user.is_superuser or bool(administered(request)))


def visible(rows: QuerySet[Any], request: HttpRequest) -> QuerySet[Any]:
    """The rows of this person's organisations; all of them for a superuser.

    Raises:
        KeyError: the model has no path to an organisation.
    """
    path = PATH_TO_ORGANIZATION[rows.model]
    if person(request).is_superuser:
        return rows
    scoped = rows.filter(**{f"{path}__in": administered(request)})
    return scoped.distinct() if rows.model is User else scoped


class ScopedRelatedFilter(RelatedFieldListFilter):
    """A list filter over a foreign key that offers only rows of this person's organisations."""

    def field_choices(
        self, field: Field[Any, Any], request: HttpRequest, model_admin: DjangoModelAdmin[Any]
    ) -> list[tuple[str, Any]]:
        related = cast("type[Model]", field.related_model)
        rows = visible(related._default_manager.all(), request)
        return [(str(row.pk), str(row)) for row in rows]


def _choose_the_only_one(field: forms.ModelChoiceField[Any]) -> None:
    """Where there is nothing to choose, it is chosen already."""
    assert field.queryset is not None
    offered = field.queryset.order_by("pk")[:2]
    if len(offered) == 1:
        field.initial, field.empty_label = offered[0].pk, None


class ScopedAdmin(ModelAdmin):  # type: ignore[misc]
    """Base of all admin pages: rows and choices by organisation, rights by the role in it, lists without counting.

    There are no actions on many rows at once: every change of the configuration is one recorded act.

    Attributes:
        may_add, may_change, may_delete: what this page offers at all, whoever the person is.
    """

    may_add = may_change = may_delete = True
    actions = None
    show_full_result_count = False
    paginator = InfinitePaginator
    list_per_page = 50
    ordering: tuple[str, ...] = ("-id",)

    class Media:
        css = {"all": ("css/admin.css",)}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return visible(super().get_queryset(request), request)

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> forms.ModelChoiceField[Any] | None:
        kwargs["queryset"] = self.choices_for(db_field, request)
        field: forms.ModelChoiceField[Any] | None = super().formfield_for_foreignkey(db_field, request, **kwargs)
        if field is not None and field.required and db_field.related_model in (Organization, Membership):
            _choose_the_only_one(field)
        return field

    def formfield_for_manytomany(
        self, db_field: ManyToManyField[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> forms.ModelMultipleChoiceField[Any] | None:
        kwargs["queryset"] = self.choices_for(db_field, request)
        field: forms.ModelMultipleChoiceField[Any] | None = super().formfield_for_manytomany(
            db_field, request, **kwargs
        )
        return field

    def choices_for(self, field: Field[Any, Any], request: HttpRequest) -> QuerySet[Any]:
        """The rows that this person may choose for the field; the form checks the answer against them too."""
        related = cast("type[Model]", field.related_model)
        return visible(related._default_manager.all(), request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return may_configure(request)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self._may(request, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.may_add and may_configure(request)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.may_change and self._may(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.may_delete and self._may(request, obj)

    def _may(self, request: HttpRequest, obj: Model | None) -> bool:
        if obj is None or obj.pk is None or person(request).is_superuser:
            return may_configure(request)
        return bool(visible(type(obj)._default_manager.filter(pk=obj.pk), request).exists())


class ReadOnlyAdmin(ScopedAdmin):
    """What happened can be looked at here, and nothing else."""

    may_add = may_change = may_delete = False
