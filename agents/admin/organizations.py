"""Organisations and their members; who may come into the admin follows from the roles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Model
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget

from agents.accounts import members
from agents.accounts.models import Membership, Organization, Role
from agents.employees.models import Employee
from agents.platform.refusals import Refusal

from .configuration import ConfigurationAdmin
from .confirming import ConfirmingForm
from .fields import LinesField
from .prices import without_price
from .scope import ScopedRelatedFilter, may_configure, person


class OrganizationForm(ConfirmingForm):
    """An organisation; its plan is the installation's business."""

    plan_features = LinesField(help_text="Features of the plan, one per line.", longest=60)

    class Meta:
        model = Organization
        fields = ("name", "slug", "four_eyes", "card_days", "plan_features", "currency", "month_tokens", "month_cost")
        labels = {"month_tokens": "Tokens a month", "month_cost": "Cost a month"}
        help_texts = {"four_eyes": "Two-person rule: people who asked for a call cannot decide its card."}

    def clean_currency(self) -> str:
        """A code of three letters, in capitals."""
        code = str(self.cleaned_data["currency"]).strip().upper()
        if not (len(code) == 3 and code.isascii() and code.isalpha()):
            raise ValidationError(f"{code!r} is not a currency; write its code of three letters, such as USD or EUR.")
        return code

    def consequences(self, cleaned: dict[str, Any]) -> Iterator[str]:
        """One person alone may do what took two before."""
        if self.instance.pk and "four_eyes" in self.changed_data and not cleaned["four_eyes"]:
            yield "From now on, people may approve calls they asked for themselves."
        if self.instance.pk and "currency" in self.changed_data:
            yield f"All prices and budgets count as {cleaned['currency']} from now on; no number is converted."
        if self.instance.pk and "month_cost" in self.changed_data and cleaned["month_cost"] is not None:
            yield from self._uncounted()

    def _uncounted(self) -> Iterator[str]:
        """Whose model has no price, so that its cost is not in the budget."""
        rows = Employee.objects.filter(organization=self.instance, is_active=True).select_related("provider")
        for employee in rows.order_by("name"):
            if without_price(employee.provider, [employee]):
                yield f"{employee.name} is not counted: the provider {employee.provider} has no price for its model."


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
    """A member with a new account, or with one that exists: a superuser's form."""

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
        if cleaned["role"] == Role.ADMIN:
            yield members.of_an_admin(cleaned["username"])

    def _check_person(self, cleaned: dict[str, Any]) -> None:
        username = User.normalize_username(cleaned["username"])
        found = User.objects.filter(username=username).first()
        if found is None:
            self._check_password(username, cleaned.get("password", ""))
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

    def account(self) -> User:
        """The account that becomes a member; a new one is not saved yet."""
        username = User.normalize_username(self.cleaned_data["username"])
        known = User.objects.filter(username=username).first()
        return known or User(username=username, password=make_password(self.cleaned_data["password"]))


class ChangedMembershipForm(ConfirmingForm):
    """Only the role of a member changes."""

    by: members.Ruler | None = None

    class Meta:
        model = Membership
        fields = ("role",)

    def consequences(self, cleaned: dict[str, Any]) -> Iterator[str]:
        """Somebody becomes admin, or is none any more."""
        if self.by is None:
            return
        if sentence := members.consequence(self.by, self.instance.pk, cleaned["role"]):
            yield sentence


def _ruler(request: HttpRequest, organization_id: int) -> members.Ruler | None:
    """As whom this person acts on the organisation; None if they rule nothing there."""
    user = person(request)
    if user.is_superuser:
        return members.Superuser(user, organization_id)
    mine = Membership.objects.filter(organization_id=organization_id, user=user, role=Role.ADMIN)
    return mine.select_related("user").first()


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
        kwargs["form"] = MembershipForm if obj is None else ChangedMembershipForm
        form: type[forms.ModelForm[Any]] = super().get_form(request, obj, change, **kwargs)
        if isinstance(obj, Membership) and issubclass(form, ChangedMembershipForm):
            form.by = _ruler(request, obj.organization_id)
        return form

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        return ("organization", "username", "password", "role") if obj is None else ("organization", "user", "role")

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_change_permission(request, obj) and not self._is_own(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_delete_permission(request, obj) and not self._is_own(request, obj)

    def save_model(self, request: HttpRequest, obj: Membership, form: forms.ModelForm[Any], change: bool) -> None:
        """As on the page of users: the last admin stays, and the audit tells it."""
        by = _ruler(request, obj.organization_id)
        if by is None:
            raise PermissionDenied
        if change:
            members.change_role(by, obj.pk, form.cleaned_data["role"])
        elif isinstance(form, MembershipForm) and isinstance(by, members.Superuser):
            obj.user = form.account()
            obj.pk = members.add(by, obj.user, obj.role).pk

    def save_related(self, request: HttpRequest, form: forms.ModelForm[Any], formsets: Any, change: bool) -> None:
        """Nothing hangs on a membership, and `members` has recorded the act."""

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        assert isinstance(obj, Membership)
        by = _ruler(request, obj.organization_id)
        if by is None:
            raise PermissionDenied
        members.remove(by, obj.pk)

    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Lead admins to the invitations, whatever they send: no answer tells them who has an account."""
        if may_configure(request) and not person(request).is_superuser:
            messages.info(request, "Invite people with a link. They join with a new account or the one they have.")
            return redirect("users")
        answer: HttpResponseBase = super().add_view(request, *args, **kwargs)
        return answer

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return self._answered(request, super().changeform_view, *args, **kwargs)

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return self._answered(request, super().delete_view, *args, **kwargs)

    def _answered(
        self, request: HttpRequest, view: Callable[..., HttpResponseBase], *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """What cannot be done is said, once its transaction is taken back."""
        try:
            return view(request, *args, **kwargs)
        except Refusal as refusal:
            messages.error(request, refusal.detail)
            return redirect(request.path)

    def _is_own(self, request: HttpRequest, obj: Model | None) -> bool:
        mine = isinstance(obj, Membership) and obj.user_id == person(request).pk
        return mine and not person(request).is_superuser
