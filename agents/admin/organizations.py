"""Organisations and their members; who may come into the admin follows from the roles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget

from agents.members import let_into_admin
from agents.models import Membership, Organization, Role

from .configuration import ConfigurationAdmin
from .confirming import ConfirmingForm
from .fields import LinesField
from .scope import ScopedRelatedFilter, person


class OrganizationForm(ConfirmingForm):
    """An organisation; its plan is the installation's business."""

    plan_features = LinesField(help_text="Features of the plan, one per line.", longest=60)

    class Meta:
        model = Organization
        fields = ("name", "slug", "four_eyes", "card_days", "plan_features")

    def consequences(self, cleaned: dict[str, Any]) -> Iterator[str]:
        """One person alone may do what took two before."""
        if self.instance.pk and "four_eyes" in self.changed_data and not cleaned["four_eyes"]:
            yield "From now on people may approve the cards of runs that they started themselves."


@admin.register(Organization)
class OrganizationAdmin(ConfigurationAdmin):
    """An admin changes how the own organisation decides; only a superuser founds one or changes its plan."""

    may_delete = False
    form = OrganizationForm
    fixed = ()
    list_display = ("name", "slug", "four_eyes", "card_days")
    search_fields = ("name", "slug")
    ordering = ("name", "id")

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        return () if person(request).is_superuser else ("slug", "plan_features")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(person(request).is_superuser)


class MembershipForm(ConfirmingForm):
    """A member: a role for somebody who is there, or for somebody who gets an account with it.

    An account that exists already is added by a superuser only: an admin who could add any name would learn who works
    for other organisations.
    """

    username = forms.CharField(
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
        help_text="The name that the person logs in with.",
    )
    password = forms.CharField(
        required=False,
        strip=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text="The first password of a new account.",
    )
    by_superuser = False
    never_shown = ("password",)

    class Meta:
        model = Membership
        fields = ("organization", "role")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if "username" in self.fields and cleaned.get("username"):
            self._check_person(cleaned)
        return cleaned

    def consequences(self, cleaned: dict[str, Any]) -> Iterator[str]:
        """A new admin."""
        return _new_admin(cleaned["role"], cleaned["username"])

    def _check_person(self, cleaned: dict[str, Any]) -> None:
        username = User.normalize_username(cleaned["username"])
        found = User.objects.filter(username=username).first()
        if found is None:
            self._check_password(username, cleaned.get("password", ""))
        elif not self.by_superuser:
            self.add_error("username", f"The name {username!r} is taken. Choose another one.")
        elif cleaned.get("password"):
            self.add_error("password", f"{username!r} has an account already: leave the password empty.")
        elif Membership.objects.filter(organization=cleaned.get("organization"), user=found).exists():
            self.add_error("username", f"{username!r} is a member of this organisation already.")

    def _check_password(self, username: str, password: str) -> None:
        if not password:
            self.add_error("password", f"{username!r} has no account yet: give a first password.")
            return
        try:
            validate_password(password, User(username=username))
        except ValidationError as error:
            self.add_error("password", error)

    def save(self, commit: bool = True) -> Membership:
        if "username" in self.fields:
            username = User.normalize_username(self.cleaned_data["username"])
            known = User.objects.filter(username=username).first()
            self.instance.user = known or User.objects.create_user(username, password=self.cleaned_data["password"])
        saved: Membership = super().save(commit)
        return saved


class NewMembershipBySuperuserForm(MembershipForm):
    """A superuser may add accounts that exist."""

    by_superuser = True


class ChangedMembershipForm(ConfirmingForm):
    """Only the role of a member changes."""

    class Meta:
        model = Membership
        fields = ("role",)

    def consequences(self, cleaned: dict[str, Any]) -> Iterator[str]:
        """A new admin."""
        if "role" in self.changed_data:
            yield from _new_admin(cleaned["role"], self.instance.user.get_username())


def _new_admin(role: str, name: str) -> Iterator[str]:
    if role == Role.ADMIN:
        yield f"{name} may change everything here: employees, what they may do, members, keys of models."


@admin.register(Membership)
class MembershipAdmin(ConfigurationAdmin):
    """Members of the organisations in which the person is admin; nobody changes or removes the own membership."""

    form = MembershipForm
    secrets = ("password",)
    fixed = ("organization", "user")
    list_display = ("user", "organization", "role", "created_at")
    list_filter = ("role", ("organization", ScopedRelatedFilter))
    list_select_related = ("organization", "user")
    search_fields = ("user__username",)

    def get_form(
        self,
        request: HttpRequest,
        obj: Model | None = None,
        change: bool = False,
        **kwargs: Any,
    ) -> type[forms.ModelForm[Any]]:
        new = NewMembershipBySuperuserForm if person(request).is_superuser else MembershipForm
        kwargs["form"] = new if obj is None else ChangedMembershipForm
        form: type[forms.ModelForm[Any]] = super().get_form(request, obj, change, **kwargs)
        return form

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        return ("organization", "username", "password", "role") if obj is None else ("organization", "user", "role")

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_change_permission(request, obj) and not self._is_own(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_delete_permission(request, obj) and not self._is_own(request, obj)

    def save_related(self, request: HttpRequest, form: forms.ModelForm[Any], formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        let_into_admin(form.instance.user)

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        super().delete_model(request, obj)
        if isinstance(obj, Membership):
            let_into_admin(obj.user)

    def _is_own(self, request: HttpRequest, obj: Model | None) -> bool:
        mine = isinstance(obj, Membership) and obj.user_id == person(request).pk
        return mine and not person(request).is_superuser
