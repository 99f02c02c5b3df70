"""Access to rows in the admin, limited to organizations in which the person is an admin."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.contrib.admin import RelatedFieldListFilter
from django.contrib.admin.models import LogEntry
from django.contrib.admin.options import ModelAdmin as DjangoModelAdmin
from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.db.models import Field, ForeignKey, ManyToManyField, Model, QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.paginator import InfinitePaginator

from agents.accounts.models import ApiToken, AuditEntry, Credential, Membership, Organization, Role
from agents.approval_rules.models import ApprovalRule, ApproverGroup, Deputy
from agents.employees.models import Employee, Grant, ModelProvider, ToolRule
from agents.runs.models import Approval, Event, Message, Pass, Run, ToolCall
from agents.standing_grants.models import StandingGrant
from tools.connections.models import AllowedHost, Source

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
    StandingGrant: "organization",
    ApproverGroup: "organization",
    ApprovalRule: "organization",
    Deputy: "member__organization",
    Event: "run__organization",
    AuditEntry: "organization",
    Source: "organization",
    AllowedHost: "organization",
    User: "memberships__organization",
}
"""The lookup from each model to its organization; records.py adds the models of records. A model
without a lookup does not have a page."""


def get_user(request: HttpRequest) -> User:
    """Return the user who is logged in to the admin."""
    return cast("User", request.user)


def get_administered_ids(request: HttpRequest) -> frozenset[int]:
    """Return the ids of the organizations in which this person is an admin; cached on the
    request."""
    known: frozenset[int] | None = getattr(request, "administered_organizations", None)
    if known is None:
        memberships = Membership.objects.filter(user_id=get_user(request).pk, role=Role.ADMIN)
        known = frozenset(memberships.values_list("organization_id", flat=True))
        request.administered_organizations = known  # type: ignore[attr-defined]
    return known


def may_configure(request: HttpRequest) -> bool:
    """Return True for a superuser and for an admin of at least one organization."""
    user = get_user(request)
    return user.is_active and (user.is_superuser or bool(get_administered_ids(request)))


def limit_to_user(rows: QuerySet[Any], request: HttpRequest) -> QuerySet[Any]:
    """Return the rows of the organizations that this person administers; all rows for a superuser.

    Raises:
        KeyError: the model is not in PATH_TO_ORGANIZATION.
    """
    path = PATH_TO_ORGANIZATION[rows.model]
    if get_user(request).is_superuser:
        return rows
    scoped = rows.filter(**{f"{path}__in": get_administered_ids(request)})
    return scoped.distinct() if rows.model is User else scoped


class ScopedRelatedFilter(RelatedFieldListFilter):
    """A list filter over a foreign key that offers only rows this person may see."""

    def field_choices(
        self, field: Field[Any, Any], request: HttpRequest, model_admin: DjangoModelAdmin[Any]
    ) -> list[tuple[str, Any]]:
        related = cast("type[Model]", field.related_model)
        rows = limit_to_user(related._default_manager.all(), request)
        return [(str(row.pk), str(row)) for row in rows]


def _preselect_only_choice(field: forms.ModelChoiceField[Any]) -> None:
    """Preselect the choice of a field that offers only one choice, and drop the empty choice."""
    assert field.queryset is not None
    offered = field.queryset.order_by("pk")[:2]
    if len(offered) == 1:
        field.initial, field.empty_label = offered[0].pk, None


class ScopedAdmin(ModelAdmin):  # type: ignore[misc]
    """The base class of all admin pages. It limits rows and choices by organization, and rights by
    role.

    Lists do not count their rows. Bulk actions are not offered, because each change must be
    recorded separately.

    Attributes:
        may_add, may_change, may_delete: the actions that the page offers to people with access.
    """

    may_add = may_change = may_delete = True
    actions = None
    show_full_result_count = False
    paginator = InfinitePaginator
    list_per_page = 50
    ordering: tuple[str, ...] = ("-id",)

    class Media:
        css = {"all": ("css/admin.css",)}

    def get_paginator(
        self, request: HttpRequest, queryset: Any, per_page: int, *args: Any, **kwargs: Any
    ) -> Any:
        """Return a paginator that counts the entries of a row's short history, but does not count
        the rows of a list."""
        if queryset.model is LogEntry:
            return Paginator(queryset, per_page, *args, **kwargs)
        return super().get_paginator(request, queryset, per_page, *args, **kwargs)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return limit_to_user(super().get_queryset(request), request)

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> forms.ModelChoiceField[Any] | None:
        kwargs["queryset"] = self.get_choices(db_field, request)
        field: forms.ModelChoiceField[Any] | None = super().formfield_for_foreignkey(
            db_field, request, **kwargs
        )
        if (
            field is not None
            and field.required
            and db_field.related_model in (Organization, Membership)
        ):
            _preselect_only_choice(field)
        return field

    def formfield_for_manytomany(
        self, db_field: ManyToManyField[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> forms.ModelMultipleChoiceField[Any] | None:
        kwargs["queryset"] = self.get_choices(db_field, request)
        field: forms.ModelMultipleChoiceField[Any] | None = super().formfield_for_manytomany(
            db_field, request, **kwargs
        )
        return field

    def get_choices(self, field: Field[Any, Any], request: HttpRequest) -> QuerySet[Any]:
        """Return the rows that this person may choose for the field; the form also validates
        against these rows."""
        related = cast("type[Model]", field.related_model)
        return limit_to_user(related._default_manager.all(), request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return may_configure(request)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self._has_access(request, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.may_add and may_configure(request)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.may_change and self._has_access(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.may_delete and self._has_access(request, obj)

    def _has_access(self, request: HttpRequest, obj: Model | None) -> bool:
        if obj is None or obj.pk is None or get_user(request).is_superuser:
            return may_configure(request)
        return bool(limit_to_user(type(obj)._default_manager.filter(pk=obj.pk), request).exists())


class ReadOnlyAdmin(ScopedAdmin):
    """The base class of the pages that only show rows."""

    may_add = may_change = may_delete = False
