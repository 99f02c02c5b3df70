"""The terms and the state of a standing grant, in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from agents.accounts.models import Membership, Organization
from agents.approvals.warnings.card_marks import load_marks_of
from agents.approvals.warnings.card_reading import find_params_marks
from agents.approvals.warnings.marks import Mark
from agents.employees.models import Employee
from agents.employees.toolboxes import load_toolbox
from agents.insight.suggestions import find_suggestions
from agents.runs.models import Approval
from agents.standing_grants.models import StandingGrant
from agents.standing_grants.pauses import Pause, find_pauses
from agents.web.panel.call_inputs import label_path
from tools.contract import Tool, canonical_json, name_tool
from tools.toolbox.conditions import OF_GRANTS, Condition, Rule
from tools.toolbox.grant_sources import ValueSource, read_grant_condition, read_sources

MAX_SHOWN = 5
USED_UP = "Used up"
_ANYTHING = "any value that does not come from outside"
_WORDS = {
    Rule.EQUALS: "is",
    Rule.ONE_OF: "is one of",
    Rule.MINIMUM: "is at least",
    Rule.MAXIMUM: "is at most",
    Rule.PREFIX: "starts with",
    Rule.HOST: "is at the domain",
}


@dataclass(frozen=True)
class Term:
    """The condition on one param, read as `name` `words` `value`; a free param has no value."""

    name: str
    words: str
    value: str = ""

    @property
    def is_fixed(self) -> bool:
        """True if the param has exactly one value."""
        return self.words == _WORDS[Rule.EQUALS]


@dataclass(frozen=True)
class ShownGrant:
    """A standing grant prepared for its page.

    Attributes:
        used: the number of calls that it approved and that have started or may still start.
        state: the reason why it does not approve calls, in a few words; empty while it is in force.
        marks: the marks that the values of its conditions need.
        latest: the newest cards that it approved, each with its marks.
        pause: the calls that it currently leaves to a person, although it is in force.
    """

    grant: StandingGrant
    tool: Tool | None
    used: int
    state: str
    terms: tuple[Term, ...]
    marks: tuple[Mark, ...]
    latest: tuple[tuple[Approval, tuple[Mark, ...]], ...]
    pause: Pause | None = None

    @property
    def has_ended(self) -> bool:
        """True if the standing grant will never approve another call. A used-up grant has not
        ended: if one of its calls never starts, that use becomes available again."""
        return bool(self.state) and self.state != USED_UP

    @property
    def left(self) -> int:
        return max(self.grant.max_uses - self.used, 0)

    @property
    def title(self) -> str:
        return name_tool(self.tool, self.grant.tool)


def describe_grants(
    organization: Organization, grants: Iterable[StandingGrant]
) -> list[ShownGrant]:
    """Describe rows of `making.list_grants`, each with the newest cards that it approved."""
    rows, toolbox, now = list(grants), load_toolbox(organization.pk), timezone.now()
    latest = _load_latest([row.pk for row in rows])
    shown = []
    for row in rows:
        tool = toolbox.get_defined_tool(row.tool, row.definition_hash)
        used = int(row.used)  # type: ignore[attr-defined]
        conditions = _read_conditions(row.conditions)
        shown.append(
            ShownGrant(
                row,
                tool,
                used,
                _describe_state(row, tool, used, now),
                terms=tuple(describe_terms(_list_params(row), conditions)),
                marks=find_condition_marks(organization.pk, conditions),
                latest=tuple(latest.get(row.pk, ())),
            )
        )
    pauses = find_pauses(organization, [each.grant for each in shown if not each.state])
    return [replace(each, pause=pauses.get(each.grant.pk)) for each in shown]


def describe_terms(params: Iterable[str], conditions: Iterable[Condition]) -> list[Term]:
    """Describe the conditions by param, and the free params last."""
    every = sorted(conditions, key=lambda condition: condition.param)
    terms = [_describe_term(one) for one in every]
    named = {condition.param for condition in every}
    return [
        *terms,
        *(Term(name, _ANYTHING) for name in params if name not in named),
    ]


def find_condition_marks(organization_id: int, conditions: Iterable[Condition]) -> tuple[Mark, ...]:
    """Find the marks that the values of conditions need, as values of a call would."""
    values = [{each.param.rpartition(".")[2]: each.value} for each in conditions]
    return find_params_marks(organization_id, values)


def _describe_term(condition: Condition) -> Term:
    if condition.rule not in OF_GRANTS:
        words = _WORDS.get(condition.rule, str(condition.rule))
        return Term(condition.param, words, format_value(condition.value))
    also = ", ".join(map(format_value, condition.value["also"]))
    allowed = f", or is {also}" if also else ""
    if condition.rule is Rule.EACH:
        entry = Condition(condition.param, Rule(condition.value["rule"]), condition.value["value"])
        inner = _describe_term(entry)
        words = f"has only entries of which each {inner.words}"
        return Term(condition.param, words, f"{inner.value}{allowed}")
    if condition.rule is Rule.TYPED:
        return Term(condition.param, f"was typed by a person in the run{allowed}")
    sources = " or ".join(map(describe_source, read_sources(condition)))
    return Term(condition.param, "comes from", f"{sources}{allowed}")


def describe_source(source: ValueSource) -> str:
    """Describe a field of results: `order.id of shop.getOrder, whose id was typed`."""
    only = "the only " if source.only else ""
    where = "; ".join(
        f"{term.name} {term.words} {term.value}".strip()
        for term in map(_describe_term, source.where)
    )
    return (
        f"{only}{source.path or 'the value'} of {source.tool}{f' (whose {where})' if where else ''}"
    )


def format_value(value: Any) -> str:
    """Format the value as people write it; a list becomes its values, separated by commas."""
    if isinstance(value, list):
        return ", ".join(map(format_value, value))
    return value if isinstance(value, str) else canonical_json(value)


def describe_suggestions(
    member: Membership, employee_id: int | None = None
) -> list[dict[str, Any]]:
    """Describe the suggested standing grants for one employee, or for all employees."""
    found = find_suggestions(member, employee_id)
    rows = Employee.objects.filter(pk__in={each.proposal.employee_id for each in found})
    employees: dict[int | None, Employee] = {employee.pk: employee for employee in rows}
    return [
        {
            "tool": each.tool,
            "employee": employees[each.proposal.employee_id],
            "count": len(each.cards),
            "check": each.check,
            "past": each.past,
            "denied": [
                Term(label_path(one.param), "", format_value(one.figure)) for one in each.denied
            ],
            "card": each.cards[0],
            "marks": find_condition_marks(member.organization_id, each.proposal.conditions),
            "terms": [
                replace(term, name=label_path(term.name))
                for term in describe_terms(each.proposal.params, each.proposal.conditions)
            ],
        }
        for each in found
        if each.proposal.employee_id in employees
    ]


def _list_params(grant: StandingGrant) -> list[str]:
    """List the params that calls may have; none if the stored value is damaged."""
    return list(map(str, grant.params)) if isinstance(grant.params, list) else []


def _read_conditions(stored: Any) -> list[Condition]:
    try:
        return [read_grant_condition(each) for each in stored]
    except (TypeError, ValueError):
        return []


def _describe_state(grant: StandingGrant, tool: Tool | None, used: int, now: datetime) -> str:
    if grant.revoked_at is not None and grant.revoked_by is not None:
        return f"Revoked by {grant.revoked_by.get_username()}"
    if grant.ended_at is not None:
        return grant.ended_because or "Ended"
    if grant.expires_at <= now:
        return "Expired"
    if used >= grant.max_uses:
        return USED_UP
    if tool is None:
        return "The tool is no longer installed."
    return (
        ""
        if tool.definition_hash == grant.definition_hash
        else "The tool’s definition has changed."
    )


def _load_latest(ids: list[int]) -> dict[int, list[tuple[Approval, tuple[Mark, ...]]]]:
    """Load the newest cards that each of these standing grants approved, newest first and with
    their marks, by the grant's id."""
    place = Window(RowNumber(), partition_by="standing_grant_id", order_by="-pk")
    approved = (
        Approval.objects.filter(standing_grant_id__in=ids)
        .annotate(place=place)
        .filter(place__lte=MAX_SHOWN)
    )
    rows = Approval.objects.filter(pk__in=approved.values("pk")).order_by("-pk")
    marks = load_marks_of(rows)
    found: dict[int, list[tuple[Approval, tuple[Mark, ...]]]] = {pk: [] for pk in ids}
    for card in rows.only("pk", "sentence", "status", "decided_at", "standing_grant_id"):
        found[card.standing_grant_id or 0].append((card, marks.get(card.pk, ())))
    return found
