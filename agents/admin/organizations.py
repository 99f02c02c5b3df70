"""Organizations and their members, whose roles decide who may use the admin."""

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
from django.utils.html import format_html, format_html_join
from django.utils.safestring import mark_safe
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget

from agents.accounts import members
from agents.accounts.languages import LANGUAGE_CODE, describe_learned, name_language
from agents.accounts.models import Membership, Organization, Role
from agents.admin.configuration import ConfigurationAdmin
from agents.admin.confirmation import ConfirmationForm
from agents.admin.fields import LinesField
from agents.admin.prices import list_unpriced
from agents.admin.scope import ScopedRelatedFilter, get_user, may_configure
from agents.employees.models import Employee
from agents.platform.refusals import Refusal


class OrganizationForm(ConfirmationForm):
    """The form for an organization; only superusers can change its plan."""

    plan_features = LinesField(help_text="Features of the plan, one per line.", longest=60)
    languages = LinesField(
        help_text="Codes of the languages that you write, one per line, such as tr, fa or ja. "
        "Cards don't warn of what is ordinary in them, such as the joiners of Persian.",
        longest=35,
    )

    class Meta:
        model = Organization
        fields = (
            *("name", "slug", "four_eyes", "break_glass", "break_glass_address", "card_days"),
            *(
                "confirm_count",
                "confirm_percent",
                "plan_features",
                "currency",
                "month_tokens",
                "month_cost",
                "languages",
                "learns_languages",
            ),
        )

    def clean_currency(self) -> str:
        """Return the currency code in capitals; refuse a text that does not have three letters."""
        code = str(self.cleaned_data["currency"]).strip().upper()
        if not (len(code) == 3 and code.isascii() and code.isalpha()):
            raise ValidationError(
                f"{code!r} is not a currency. Enter a code of three letters, such as USD or EUR."
            )
        return code

    def clean_languages(self) -> list[str]:
        """Return the codes of the languages."""
        codes: list[str] = self.cleaned_data["languages"]
        for code in codes:
            if not LANGUAGE_CODE.fullmatch(code):
                raise ValidationError(
                    f"{code!r} is not a language code. Enter a code such as fa or zh-Hant."
                )
        return codes

    def list_consequences(self, cleaned: dict[str, Any]) -> Iterator[str]:
        """List weaker rules for approval, fewer warnings, a new currency, and employees that a new
        cost limit does not cover."""
        if self.instance.pk and "four_eyes" in self.changed_data and not cleaned["four_eyes"]:
            yield "From now on, people can decide the cards of runs that they started themselves."
        if self.instance.pk and "break_glass" in self.changed_data and cleaned["break_glass"]:
            yield "From now on, an admin can approve a card alone in an emergency, bypassing the approval rules."
        raised = [
            name
            for name in ("confirm_count", "confirm_percent")
            if cleaned.get(name, 0) > self.initial.get(name, 0)
        ]
        if self.instance.pk and raised:
            yield "From now on, larger changes can be approved without typing a confirmation."
        added = set(cleaned.get("languages", ())) - set(self.initial.get("languages") or ())
        if self.instance.pk and added:
            names = ", ".join(map(name_language, sorted(added)))
            yield f"From now on, cards don't warn of letters that are ordinary in: {names}."
        if self.instance.pk and "currency" in self.changed_data:
            yield f"From now on, all prices and budgets are in {cleaned['currency']}. No amount is converted."
        if (
            self.instance.pk
            and "month_cost" in self.changed_data
            and cleaned["month_cost"] is not None
        ):
            yield from self._list_uncounted_employees()

    def _list_uncounted_employees(self) -> Iterator[str]:
        """List the employees whose model has no price, so that their cost does not count toward the
        budget."""
        rows = Employee.objects.filter(organization=self.instance, is_active=True).select_related(
            "provider"
        )
        for employee in rows.order_by("name"):
            if list_unpriced(employee.provider, [employee]):
                yield f"The cost of {employee.name} is not counted: {employee.provider} has no price for its model."


@admin.register(Organization)
class OrganizationAdmin(ConfigurationAdmin):
    """Organizations: admins configure their own; only superusers create one or change its plan."""

    may_delete = False
    form = OrganizationForm
    immutable_fields = ()
    list_display = ("name", "slug", "four_eyes", "card_days")
    search_fields = ("name", "slug")
    ordering = ("name", "id")

    def get_readonly_fields(
        self, request: HttpRequest, obj: Model | None = None
    ) -> tuple[str, ...]:
        learned = ("show_learned",) if obj is not None else ()
        if get_user(request).is_superuser:
            return learned
        return ("slug", "plan_features", "break_glass_address", *learned)

    @admin.display(description="Learned languages")
    def show_learned(self, obj: Organization) -> str:
        """Show each language that the organization learned, and why."""
        return (
            format_html_join(mark_safe("<br>"), "{}", ((one,) for one in describe_learned(obj)))
            or "None yet"
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(get_user(request).is_superuser)

    def save_model(
        self, request: HttpRequest, obj: Model, form: forms.ModelForm[Any], change: bool
    ) -> None:
        """Make a superuser without an organization an admin of the new one, because every page
        needs an organization."""
        super().save_model(request, obj, form, change)
        user = get_user(request)
        if change or Membership.objects.filter(user=user).exists():
            return
        assert isinstance(obj, Organization)
        members.add_member(members.Superuser(user, obj.pk), user, Role.ADMIN)
        messages.info(
            request, format_html('You are an admin of {}. <a href="/">Open Gadget</a>', obj.name)
        )


class MembershipForm(ConfirmationForm):
    """The form for a new member, with a new or an existing account; only superusers see it."""

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
        help_text="The initial password of a new account.",
    )
    write_only_fields = ("password",)

    class Meta:
        model = Membership
        fields = ("organization", "role")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if "username" in self.fields and cleaned.get("username"):
            self._check_person(cleaned)
        return cleaned

    def list_consequences(self, cleaned: dict[str, Any]) -> Iterator[str]:
        """Describe the rights of a new admin."""
        if cleaned["role"] == Role.ADMIN:
            yield members.describe_admin_rights(cleaned["username"])

    def _check_person(self, cleaned: dict[str, Any]) -> None:
        username = User.normalize_username(cleaned["username"])
        found = User.objects.filter(username=username).first()
        if found is None:
            self._check_password(username, cleaned.get("password", ""))
        elif cleaned.get("password"):
            self.add_error(
                "password", f"{username!r} already has an account. Leave the password empty."
            )
        elif Membership.objects.filter(
            organization=cleaned.get("organization"), user=found
        ).exists():
            self.add_error("username", f"{username!r} is already a member of this organization.")

    def _check_password(self, username: str, password: str) -> None:
        if not password:
            self.add_error(
                "password", f"{username!r} has no account yet. Enter an initial password."
            )
            return
        try:
            validate_password(password, User(username=username))
        except ValidationError as error:
            self.add_error("password", error)

    def get_account(self) -> User:
        """Return the account that becomes a member; if it is a new account, it is not saved yet."""
        username = User.normalize_username(self.cleaned_data["username"])
        known = User.objects.filter(username=username).first()
        return known or User(
            username=username, password=make_password(self.cleaned_data["password"])
        )


class ChangedMembershipForm(ConfirmationForm):
    """The form for a member's role; it is the only thing about a member that can be changed."""

    administrator: members.Administrator | None = None

    class Meta:
        model = Membership
        fields = ("role",)

    def list_consequences(self, cleaned: dict[str, Any]) -> Iterator[str]:
        """Describe the consequence of granting or removing the admin role."""
        if self.administrator is None:
            return
        sentence = members.describe_role_change(
            self.administrator, self.instance.pk, cleaned["role"]
        )
        if sentence is not None:
            yield sentence


def _get_administrator(request: HttpRequest, organization_id: int) -> members.Administrator | None:
    """Return this person as an administrator of the organization; None if they are not one."""
    user = get_user(request)
    if user.is_superuser:
        return members.Superuser(user, organization_id)
    memberships = Membership.objects.filter(
        organization_id=organization_id, user=user, role=Role.ADMIN
    )
    return memberships.select_related("user").first()


@admin.register(Membership)
class MembershipAdmin(ConfigurationAdmin):
    """Members of the organizations in which the person is an admin; nobody edits their own
    membership."""

    form = MembershipForm
    secret_fields = ("password",)
    immutable_fields = ("organization", "user")
    list_display = ("user", "organization", "role", "created_at")
    list_filter = ("role", ("organization", ScopedRelatedFilter))
    list_select_related = ("organization", "user")
    search_fields = ("user__username",)

    def get_form(
        self, request: HttpRequest, obj: Model | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        kwargs["form"] = MembershipForm if obj is None else ChangedMembershipForm
        form = super().get_form(request, obj, change, **kwargs)
        if isinstance(obj, Membership) and issubclass(form, ChangedMembershipForm):
            form.administrator = _get_administrator(request, obj.organization_id)
        return form

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        return (
            ("organization", "username", "password", "role")
            if obj is None
            else ("organization", "user", "role")
        )

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_change_permission(request, obj) and not self._is_own(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_delete_permission(request, obj) and not self._is_own(request, obj)

    def save_model(
        self, request: HttpRequest, obj: Membership, form: forms.ModelForm[Any], change: bool
    ) -> None:
        """Save through the actions of the users page, which protect the last admin and write to the
        audit."""
        administrator = _get_administrator(request, obj.organization_id)
        if administrator is None:
            raise PermissionDenied
        if change:
            members.change_role(administrator, obj.pk, form.cleaned_data["role"])
        elif isinstance(form, MembershipForm) and isinstance(administrator, members.Superuser):
            obj.user = form.get_account()
            obj.pk = members.add_member(administrator, obj.user, obj.role).pk

    def save_related(
        self, request: HttpRequest, form: forms.ModelForm[Any], formsets: Any, change: bool
    ) -> None:
        """Do nothing: a membership has no related rows, and `members` has recorded the change."""

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        assert isinstance(obj, Membership)
        administrator = _get_administrator(request, obj.organization_id)
        if administrator is None:
            raise PermissionDenied
        members.remove_member(administrator, obj.pk)

    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Redirect admins to the invitations, so that no response reveals who has an account."""
        if may_configure(request) and not get_user(request).is_superuser:
            messages.info(
                request,
                "Invite people with a link. They can join with a new or an existing account.",
            )
            return redirect("users")
        response: HttpResponseBase = super().add_view(request, *args, **kwargs)
        return response

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return self._show_refusals(request, super().changeform_view, *args, **kwargs)

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return self._show_refusals(request, super().delete_view, *args, **kwargs)

    def _show_refusals(
        self, request: HttpRequest, view: Callable[..., HttpResponseBase], *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """Call the view and show a refusal as a message, after its transaction is rolled back."""
        try:
            return view(request, *args, **kwargs)
        except Refusal as refusal:
            messages.error(request, refusal.detail)
            return redirect(request.path)

    def _is_own(self, request: HttpRequest, obj: Model | None) -> bool:
        is_own = isinstance(obj, Membership) and obj.user_id == get_user(request).pk
        return is_own and not get_user(request).is_superuser
