"""API tokens: created here or by `manage.py create_api_token`, shown once, and revoked
permanently."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Field, Model, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from agents.accounts.membership import issue_token
from agents.accounts.models import ApiToken, Membership
from agents.admin.configuration import ConfigurationAdmin
from agents.admin.scope import ScopedRelatedFilter, get_user


class NewTokenForm(forms.ModelForm):  # type: ignore[type-arg]
    """The form for a new token: its name, and the membership whose rights the token gets."""

    class Meta:
        model = ApiToken
        fields = ("membership", "name")


class RevokeTokenForm(forms.ModelForm):  # type: ignore[type-arg]
    """The form for an existing token, which can only be revoked."""

    revoke = forms.BooleanField(
        required=False, help_text="The token stops working immediately. This cannot be undone."
    )

    class Meta:
        model = ApiToken
        fields: tuple[str, ...] = ()


@admin.register(ApiToken)
class TokenAdmin(ConfigurationAdmin):
    """The tokens of members. People can create tokens only for themselves, so that nobody can
    decide in another person's name."""

    may_delete = False
    immutable_fields = ("membership", "name")
    list_display = ("name", "membership", "created_at", "last_used_at", "revoked_at")
    list_filter = (("membership__organization", ScopedRelatedFilter),)
    list_select_related = ("membership__user", "membership__organization")
    search_fields = ("name",)

    def get_form(
        self, request: HttpRequest, obj: Model | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        kwargs["form"] = NewTokenForm if obj is None else RevokeTokenForm
        return super().get_form(request, obj, change, **kwargs)

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        if not isinstance(obj, ApiToken):
            return ("membership", "name")
        shown = ("membership", "name", "created_at", "last_used_at", "revoked_at")
        return shown if obj.revoked_at else (*shown, "revoke")

    def get_readonly_fields(
        self, request: HttpRequest, obj: Model | None = None
    ) -> tuple[str, ...]:
        return (
            ()
            if obj is None
            else ("membership", "name", "created_at", "last_used_at", "revoked_at")
        )

    def get_choices(self, field: Field[Any, Any], request: HttpRequest) -> QuerySet[Any]:
        offered = super().get_choices(field, request).select_related("user", "organization")
        return (
            offered
            if field.related_model is not Membership
            else offered.filter(user_id=get_user(request).pk)
        )

    def save_model(
        self, request: HttpRequest, obj: ApiToken, form: forms.ModelForm[ApiToken], change: bool
    ) -> None:
        if not change:
            token, secret = issue_token(obj.membership, obj.name)
            obj.pk = token.pk
            request.issued_secret = secret  # type: ignore[attr-defined]
        elif form.cleaned_data.get("revoke"):
            ApiToken.objects.filter(pk=obj.pk, revoked_at=None).update(revoked_at=Now())
        obj.refresh_from_db()

    def response_add(
        self, request: HttpRequest, obj: ApiToken, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the new token's secret. No other page shows it, and like all admin pages, this page
        is never cached."""
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "New API token",
            "token": obj,
            "secret": request.issued_secret,  # type: ignore[attr-defined]
        }
        return TemplateResponse(request, "admin/token_issued.html", context)
