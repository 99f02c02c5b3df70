"""Approval rules, the groups that they name, and deputies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import IntegrityError
from django.db.models import Count, Field, Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminTextInputWidget

from agents.accounts.models import Membership
from agents.admin.approval_rule_forms import (
    CONDITION,
    SCOPE,
    SIMULATE,
    ApprovalRuleForm,
    describe_end,
    find_organization,
    format_count,
    refuse_taken_name,
)
from agents.admin.approval_rule_simulation import build_removal_address, simulate_form
from agents.admin.configuration import ConfigurationAdmin
from agents.admin.confirmation import ConfirmationForm, needs_confirmation
from agents.admin.scope import ScopedRelatedFilter
from agents.approval_rules.loading import load_voters
from agents.approval_rules.models import ApprovalRule, ApproverGroup, Deputy
from agents.platform.refusals import Refusal


class MomentField(forms.DateTimeField):
    """A date and time in one input."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, widget=MomentInput())


class MomentInput(forms.DateTimeInput):
    """An input for a date and time, styled like the other inputs."""

    input_type = "datetime-local"

    def __init__(self) -> None:
        attrs = UnfoldAdminTextInputWidget(attrs={"step": "1"}).attrs
        super().__init__(attrs=attrs, format="%Y-%m-%dT%H:%M:%S")


class ApproverGroupForm(ConfirmationForm):
    """A group and its members, who belong to its organization."""

    class Meta:
        model = ApproverGroup
        fields = ("organization", "name", "members")
        widgets = {"members": UnfoldAdminCheckboxSelectMultipleWidget}
        help_texts = {"members": "Only approvals by members with the approver or admin role count."}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields.get("members")
        if (
            self.instance.pk
            and isinstance(field, forms.ModelMultipleChoiceField)
            and field.queryset is not None
        ):
            field.queryset = field.queryset.filter(organization_id=self.instance.organization_id)

    def clean(self) -> dict[str, Any]:
        """Check the name, and that each member belongs to the organization."""
        cleaned = super().clean() or {}
        organization = find_organization(self, cleaned)
        if organization is None:
            return cleaned
        if "name" in cleaned:
            refuse_taken_name(self, cleaned, organization)
        strangers = [
            row for row in cleaned.get("members", ()) if row.organization_id != organization.pk
        ]
        if strangers:
            self.add_error(
                "members",
                f"{strangers[0].user} is not a member of {organization}. Untick this person.",
            )
        return cleaned

    def list_consequences(self, cleaned: dict[str, Any]) -> Iterator[str]:
        """List the rules for which more people count from now on, and the rules that can no longer
        be met because too few people are left."""
        if not self.instance.pk or "members" not in self.changed_data:
            return
        voters = load_voters(self.instance.organization_id).values()
        before = {
            voter.id for voter in voters if voter.may_approve and self.instance.pk in voter.groups
        }
        chosen = {row.user_id for row in cleaned["members"]}
        after = {voter.id for voter in voters if voter.may_approve and voter.id in chosen}
        added = ", ".join(voter.name for voter in voters if voter.id in after - before)
        yield from self._list_rules_with_more_people(added)
        able = len(after)
        if able >= len(before):
            return
        for rule in self.instance.rules.filter(is_active=True, needed__gt=able).order_by("name"):
            needs = f"“{rule.name}” needs {rule.needed} approvals from {cleaned['name']}"
            has = f"which now has {format_count(able, 'active approver')}"
            yield f"{needs}, {has}. Its cards can’t be approved until you fix this."

    def _list_rules_with_more_people(self, added: str) -> Iterator[str]:
        naming = ApprovalRule.objects.filter(
            Q(group=self.instance) | Q(second_group=self.instance), is_active=True
        )
        names = ", ".join(
            f"“{name}”" for name in naming.order_by("name").values_list("name", flat=True)
        )
        if added and names:
            yield f"From now on, approvals by {added} count for {names}."


@admin.register(ApproverGroup)
class ApproverGroupAdmin(ConfigurationAdmin):
    """Groups of members, which approval rules can name."""

    form = ApproverGroupForm
    delete_confirmation_template = "admin/delete_with_sentence.html"
    list_display = ("name", "organization", "member_count")
    list_filter = (("organization", ScopedRelatedFilter),)
    list_select_related = ("organization",)
    search_fields = ("name",)
    ordering = ("name", "id")
    fieldsets = ((None, {"fields": ("organization", "name", "members")}),)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        counted: QuerySet[Any] = (
            super().get_queryset(request).annotate(found_members=Count("members"))
        )
        return counted

    def get_choices(self, field: Field[Any, Any], request: HttpRequest) -> QuerySet[Any]:
        offered = super().get_choices(field, request)
        return (
            offered.select_related("user", "organization")
            if field.related_model is Membership
            else offered
        )

    @admin.display(description="Members", ordering="found_members")
    def member_count(self, group: ApproverGroup) -> int:
        return int(group.found_members)  # type: ignore[attr-defined]

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Show the page again if a rule that names the group was saved a moment ago."""
        try:
            response: HttpResponseBase = super().delete_view(request, *args, **kwargs)
        except IntegrityError:
            return redirect(request.path)
        return response

    def render_delete_form(self, request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
        """Explain on the page why a group that a rule names cannot be deleted."""
        response: HttpResponse = super().render_delete_form(
            request, {**context, "sentence": _explain_use(context["object"])}
        )
        return response


def _explain_use(group: ApproverGroup) -> str | None:
    """Return a sentence about the rules that name the group; None if there are none."""
    rules = ApprovalRule.objects.filter(Q(group=group) | Q(second_group=group)).order_by("name")
    names = ", ".join(f"“{name}”" for name in rules.values_list("name", flat=True))
    return (
        f"This group cannot be deleted, because it is named by {names}. Change the rule first."
        if names
        else None
    )


@admin.register(ApprovalRule)
class ApprovalRuleAdmin(ConfigurationAdmin):
    """Rules about the people who must approve certain cards."""

    form = ApprovalRuleForm
    delete_confirmation_template = "admin/delete_rule.html"
    list_display = (
        "name",
        "tool",
        "category",
        "level",
        "employee",
        "needed",
        "group",
        "organization",
        "is_active",
    )
    list_filter = (
        "is_active",
        ("organization", ScopedRelatedFilter),
        ("group", ScopedRelatedFilter),
    )
    list_select_related = ("organization", "employee", "group")
    search_fields = ("name", "tool", "category")
    ordering = ("name", "id")
    fieldsets = (
        (None, {"fields": ("organization", "name", "is_active")}),
        ("For which cards", {"fields": SCOPE}),
        ("Only if", {"fields": tuple(CONDITION.values())}),
        ("Who must approve", {"fields": ("needed", "group", "excludes_requesters")}),
        ("Escalation", {"fields": ("escalate_hours", "second_group")}),
    )

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Show the simulation in place of the form if the form requested it and is valid."""
        form = context["adminform"].form
        if SIMULATE in request.POST and needs_confirmation(form):
            try:
                return simulate_form(request, form.instance)
            except Refusal as refusal:
                self.message_user(request, refusal.detail, messages.ERROR)
        return super().render_change_form(request, context, *args, **kwargs)

    def render_delete_form(self, request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
        """State the consequences of deleting the rule, and offer to simulate it."""
        rule = context["object"]
        sentence = describe_end("this rule no longer applies") if rule.is_active else ""
        more = {
            "sentence": sentence,
            "simulation": build_removal_address(rule) if rule.is_active else "",
        }
        response: HttpResponse = super().render_delete_form(request, {**context, **more})
        return response


class DeputyForm(forms.ModelForm):  # type: ignore[type-arg]
    """The form for a member's deputy, who is another member of the organization and acts for a
    limited time."""

    starts_at = MomentField(label="From", help_text="Time in UTC.")
    ends_at = MomentField(
        label="Until", help_text="Time in UTC. To end the period early, set it to now."
    )

    class Meta:
        model = Deputy
        fields = ("member", "deputy", "starts_at", "ends_at")
        help_texts = {
            "member": "The person who is away.",
            "deputy": "Decides in this person's name while both can approve. Together they count as one approval.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance.pk:
            self.initial["starts_at"] = timezone.now().replace(second=0, microsecond=0)

    def clean(self) -> dict[str, Any]:
        """Check that member and deputy are two people of one organization, and that the end is
        after the start."""
        cleaned = super().clean() or {}
        member, deputy = cleaned.get("member"), cleaned.get("deputy")
        if member is not None and deputy is not None:
            if member == deputy:
                self.add_error(
                    "deputy", "A member cannot be their own deputy. Choose another member."
                )
            elif member.organization_id != deputy.organization_id:
                self.add_error(
                    "deputy",
                    f"{deputy.user} is not a member of {member.organization}. Choose one who is.",
                )
        starts_at, ends_at = cleaned.get("starts_at"), cleaned.get("ends_at")
        if starts_at is not None and ends_at is not None and ends_at <= starts_at:
            self.add_error("ends_at", "The end must be after the start. Choose a later time.")
        elif not self.instance.pk and ends_at is not None and ends_at <= timezone.now():
            self.add_error("ends_at", "This time is in the past. Choose a later one.")
        return cleaned


@admin.register(Deputy)
class DeputyAdmin(ConfigurationAdmin):
    """Deputies of members, each for a limited time."""

    form = DeputyForm
    immutable_fields = ("member", "deputy")
    list_display = ("member", "deputy", "starts_at", "ends_at")
    list_filter = (("member__organization", ScopedRelatedFilter),)
    list_select_related = (
        "member__user",
        "member__organization",
        "deputy__user",
        "deputy__organization",
    )
    search_fields = ("member__user__username", "deputy__user__username")
    fieldsets = ((None, {"fields": ("member", "deputy", "starts_at", "ends_at")}),)

    def get_choices(self, field: Field[Any, Any], request: HttpRequest) -> QuerySet[Any]:
        offered: QuerySet[Model] = super().get_choices(field, request)
        return offered.select_related("user", "organization")
