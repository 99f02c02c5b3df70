"""The form for approval rules: the cards that a rule covers, the people it requires, and its
escalation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django import forms
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from agents.accounts.models import Organization
from agents.admin.available_tools import list_available_tools
from agents.admin.confirmation import CONFIRM_FIRST, ConfirmationForm
from agents.admin.rule_conditions import (
    RULE_COMPARISONS,
    build_conditions,
    read_blanks,
    warn_of_types,
)
from agents.approval_rules.loading import load_voters
from agents.approval_rules.models import MAX_NEEDED, ApprovalRule, ApproverGroup
from agents.employees.toolboxes import load_toolbox
from tools.contract import Level, Tool
from tools.toolbox import Condition

CONDITION = {
    "param": "condition_param",
    "comparison": "condition_comparison",
    "value": "condition_value",
}
"""The name of the form's field for each part of a condition."""
SCOPE = ("tool", "category", "level", "employee")
NOTHING_CHOSEN = {
    "employee": "every employee",
    "group": "every approver",
    "second_group": "no second group",
}
MAX_HOURS = 720
OTHER_CARDS = "Other cards need one approver, unless another rule covers them."
ITS_CARDS = "Its cards need one approver, unless another rule covers them."
SIMULATE = "_simulate"
"""The name of the button that simulates the rule instead of saving it."""
KEPT_CONDITIONS = "This rule has conditions that cannot be edited here. They stay unchanged."


def find_organization(form: forms.ModelForm[Any], cleaned: dict[str, Any]) -> Organization | None:
    """Return the organization of the form's row; None if no organization is chosen."""
    chosen: Organization | None = cleaned.get("organization") or getattr(
        form.instance, "organization", None
    )
    return chosen


def format_count(number: int, noun: str) -> str:
    """Format a number with its noun, e.g. `1 hour`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def refuse_taken_name(
    form: forms.ModelForm[Any], cleaned: dict[str, Any], organization: Organization
) -> None:
    """Add an error to the form if another row of the organization has the entered name."""
    others = type(form.instance)._default_manager.exclude(pk=form.instance.pk)
    if others.filter(organization=organization, name=cleaned.get("name", "")).exists():
        form.add_error(
            "name",
            f"The name {cleaned['name']!r} is already used in {organization}. Choose another one.",
        )


def count_approvers(organization: Organization, group: ApproverGroup | None) -> int:
    """Count the active approvers of the group, or of the whole organization."""
    voters = load_voters(organization.pk).values()
    return sum(
        voter.may_approve and (group is None or group.pk in voter.groups) for voter in voters
    )


class ApprovalRuleForm(ConfirmationForm):
    """A form for a rule about the people who must approve certain cards. It refuses a rule that
    nobody can meet."""

    tool = forms.ChoiceField(required=False, widget=UnfoldAdminSelectWidget)
    category = forms.ChoiceField(
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text="The category of the tools, as on the tools page.",
    )
    level = forms.ChoiceField(
        required=False,
        choices=[("", "every level"), *((level.value, level.value) for level in Level)],
        widget=UnfoldAdminSelectWidget,
        help_text="The level of the card. It can be higher than the tool's own.",
    )
    condition_param = forms.CharField(
        label="Parameter",
        required=False,
        max_length=200,
        widget=UnfoldAdminTextInputWidget(attrs={"spellcheck": "false"}),
        help_text="A parameter of the call, e.g. amount. Calls without it are not covered. Leave empty for every call.",
    )
    condition_comparison = forms.ChoiceField(
        label="Comparison",
        required=False,
        choices=list(RULE_COMPARISONS.items()),
        widget=UnfoldAdminSelectWidget,
    )
    condition_value = forms.CharField(
        label="Value",
        required=False,
        strip=False,
        max_length=2_000,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 2, "spellcheck": "false"}),
        help_text="If the parameter is a list, one matching entry is enough.",
    )
    needed = forms.IntegerField(
        label="People needed",
        initial=1,
        min_value=1,
        max_value=MAX_NEEDED,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text=f"The number of people who must approve each card, from 1 to {MAX_NEEDED}.",
    )
    escalate_hours = forms.IntegerField(
        label="Escalate after (hours)",
        required=False,
        min_value=1,
        max_value=MAX_HOURS,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="After this time, approvals by people of the second group also count. Empty: never.",
    )

    class Meta:
        model = ApprovalRule
        fields = (
            *(
                "organization",
                "name",
                "is_active",
                *SCOPE,
                "needed",
                "group",
                "excludes_requesters",
            ),
            *("escalate_hours", "second_group"),
        )
        labels = {"is_active": "Active", "excludes_requesters": "Others must approve"}
        help_texts = {
            "is_active": "Only active rules apply.",
            "group": "Only approvals by people of this group count.",
            "excludes_requesters": "Approvals by people who asked for the call or edited it do not count.",
            "second_group": "Needs a time and a group above.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conditions_before = list(self.instance.conditions or ()) if self.instance.pk else []
        tools = [tool for tool in list_available_tools(self) if not tool.is_system]
        self._offer("tool", "every tool", (tool.name for tool in tools))
        self._offer("category", "every category", (tool.category for tool in tools))
        for name, nothing in NOTHING_CHOSEN.items():
            self._offer_own_rows(name, nothing)
        self._fill_condition(tools)

    def _offer(self, name: str, every: str, found: Iterable[str]) -> None:
        """Offer the found values in the field, together with the stored value, which may no longer
        be available."""
        field, stored = self.fields.get(name), getattr(self.instance, name)
        if isinstance(field, forms.ChoiceField):
            choices = sorted({*found, stored} - {""})
            field.choices = [("", every), *((choice, choice) for choice in choices)]

    def _offer_own_rows(self, name: str, nothing: str) -> None:
        """Offer only rows of the organization, once the organization is known, and use `nothing` as
        the label of the empty choice."""
        field = self.fields.get(name)
        if not isinstance(field, forms.ModelChoiceField) or field.queryset is None:
            return
        field.empty_label = nothing
        if self.instance.pk:
            field.queryset = field.queryset.filter(organization_id=self.instance.organization_id)

    def _fill_condition(self, tools: Iterable[Tool]) -> None:
        tool = next((tool for tool in tools if tool.name == self.instance.tool), None)
        try:
            blanks = read_blanks(self.conditions_before, tool)
        except (TypeError, ValueError):
            for name in CONDITION.values():
                self.fields[name].disabled = True
            self.fields["condition_param"].help_text = KEPT_CONDITIONS
            return
        self.initial.update({CONDITION[blank]: text for blank, text in blanks.items()})

    def full_clean(self) -> None:
        """Validate the form; a form that is sent to the simulator is never valid, so it is not
        saved."""
        super().full_clean()
        if self.is_bound and SIMULATE in self.data and not self.errors:
            self.add_error("confirmed", CONFIRM_FIRST)

    def clean(self) -> dict[str, Any]:
        """Check that the rule fits its organization, that its parts fit together, and that people
        can meet it."""
        cleaned = super().clean() or {}
        organization = find_organization(self, cleaned)
        if organization is None:
            return cleaned
        if "name" in cleaned:
            refuse_taken_name(self, cleaned, organization)
        self._check_owner(cleaned, organization)
        self._check_scope(cleaned, organization)
        self._check_escalation(cleaned, organization)
        if not self.errors and cleaned["is_active"]:
            self._check_people(cleaned, organization)
        return cleaned

    def _check_owner(self, cleaned: dict[str, Any], organization: Organization) -> None:
        for name in NOTHING_CHOSEN:
            row = cleaned.get(name)
            if row is not None and row.organization_id != organization.pk:
                self.add_error(
                    name, f"{row} does not belong to {organization}. Choose another one."
                )

    def _check_scope(self, cleaned: dict[str, Any], organization: Organization) -> None:
        """Check the tool, the category, the level and the condition, which must be consistent."""
        toolbox, name = load_toolbox(organization.pk), cleaned.get("tool", "")
        tool, category = toolbox.get_tool(name) if name else None, cleaned.get("category", "")
        if name and tool is None and name != self.initial.get("tool"):
            self.add_error("tool", f"{organization} has no such tool. Choose another one.")
        is_known = category in (
            "",
            self.initial.get("category"),
            *(each.category for each in toolbox.tools()),
        )
        if not is_known:
            self.add_error(
                "category", f"{organization} has no tools in {category!r}. Choose another one."
            )
        if tool and is_known and category not in ("", tool.category):
            self.add_error(
                "category",
                f"{name} is in the category {tool.category!r}. Choose it, or every category.",
            )
        level = cleaned.get("level", "")
        if tool and level and Level(level).rank < tool.level.rank:
            self.add_error(
                "level",
                f"{name} has the level {tool.level.value}. Choose that level or a higher one.",
            )
        if not self.fields["condition_param"].disabled:
            self._store_condition(cleaned, tool)

    def _store_condition(self, cleaned: dict[str, Any], tool: Tool | None) -> None:
        blanks = {blank: str(cleaned.get(name) or "") for blank, name in CONDITION.items()}
        if self.errors.keys() & set(CONDITION.values()):
            return
        try:
            self.instance.conditions = build_conditions(blanks, tool)
        except ValueError as error:
            self.add_error("condition_param", f"This condition cannot be used: {error}.")

    def _check_escalation(self, cleaned: dict[str, Any], organization: Organization) -> None:
        if self.errors.keys() & {"escalate_hours", "group", "second_group"}:
            return
        hours, group, second = cleaned["escalate_hours"], cleaned["group"], cleaned["second_group"]
        if (hours is None) != (second is None):
            self.add_error(
                "second_group" if second is None else "escalate_hours",
                "To escalate, enter a time and choose a second group. Otherwise leave both empty.",
            )
        elif second is not None and group is None:
            self.add_error("group", "To escalate to a second group, choose a first one.")
        elif second is not None and second == group:
            self.add_error("second_group", "This is the first group. Choose another one.")
        elif hours is not None and hours >= organization.card_days * 24:
            days = organization.card_days
            self.add_error(
                "escalate_hours",
                f"Cards expire after {days} days. Enter fewer than {days * 24} hours.",
            )

    def _check_people(self, cleaned: dict[str, Any], organization: Organization) -> None:
        """Refuse a rule that nobody can meet, because it needs more approvers than are active, or
        escalates to a group without active approvers."""
        group, needed, second = cleaned["group"], cleaned["needed"], cleaned["second_group"]
        able = count_approvers(organization, group)
        if able < needed:
            has = f"{group or organization} has {format_count(able, 'active approver')}"
            self.add_error("needed", f"{has}, but this rule needs {needed}.")
        if second is not None and not count_approvers(organization, second):
            self.add_error("second_group", f"{second} has no active approver. Add one first.")

    def list_consequences(self, cleaned: dict[str, Any]) -> Iterator[str]:
        """List the ways in which the rule becomes weaker: it is switched off, covers fewer cards,
        needs fewer people, or accepts other people."""
        yield from self._warn_of_types(cleaned)
        if not self.instance.pk or not self.initial["is_active"]:
            return
        name = f"“{cleaned['name']}”"
        if not cleaned["is_active"]:
            yield describe_end(f"{name} no longer applies")
            return
        if self._is_narrower(cleaned):
            yield f"{name} will match fewer cards. {OTHER_CARDS}"
        if cleaned["needed"] < self.initial["needed"]:
            yield f"From now on, {name} needs {cleaned['needed']} instead of {self.initial['needed']} approvals."
        yield from self._list_new_people(cleaned, name)

    def _warn_of_types(self, cleaned: dict[str, Any]) -> Iterator[str]:
        """Warn about tools whose schema does not fit a new condition: to be safe, the rule covers
        calls of these tools."""
        conditions, organization = self.instance.conditions, find_organization(self, cleaned)
        scope = ("tool", "category")
        is_old = all(cleaned[name] == self.initial.get(name) for name in scope)
        if not conditions or organization is None:
            return
        if self.instance.pk and is_old and conditions == self.conditions_before:
            return
        tools = [
            tool
            for tool in load_toolbox(organization.pk).tools()
            if not tool.is_system
            and all(cleaned[name] in ("", _read(tool, name)) for name in scope)
        ]
        yield from warn_of_types(Condition.from_json(conditions[0]), tools)

    def _list_new_people(self, cleaned: dict[str, Any], name: str) -> Iterator[str]:
        """Describe the people whose approvals did not count before, but count from now on."""
        before = ApproverGroup.objects.filter(pk=self.initial["group"]).first()
        if before is not None and before != cleaned["group"]:
            who = f"people of {cleaned['group']}" if cleaned["group"] else "all approvers"
            yield f"From now on, approvals by {who} count for {name} instead of approvals by people of {before}."
        if self.initial["excludes_requesters"] and not cleaned["excludes_requesters"]:
            yield f"From now on, people's approvals count for {name} even if they asked for the call or edited it."
        hours, second = cleaned["escalate_hours"], cleaned["second_group"]
        is_later = hours is not None and hours >= (self.initial["escalate_hours"] or MAX_HOURS + 1)
        if second is not None and not (second.pk == self.initial["second_group"] and is_later):
            yield f"After {format_count(hours, 'hour')}, approvals by people of {second} also count for {name}."

    def _is_narrower(self, cleaned: dict[str, Any]) -> bool:
        """Return True if the rule may apply to fewer calls than before: a part of its scope was
        added or replaced."""
        values = {name: getattr(cleaned[name], "pk", cleaned[name]) for name in SCOPE}
        has_new_part = any(value and value != self.initial[name] for name, value in values.items())
        conditions = self.instance.conditions
        return has_new_part or bool(conditions and conditions != self.conditions_before)


def _read(tool: Tool, scope: str) -> str:
    return tool.name if scope == "tool" else tool.category


def describe_end(what: str) -> str:
    """Describe the consequence of ending a rule."""
    return f"From now on, {what}. {ITS_CARDS}"
