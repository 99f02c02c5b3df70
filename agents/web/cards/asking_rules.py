"""The rules that make a card necessary, each with its remedy and links to its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from agents.runs.models import ToolCall
from tools.contract import Level, Tool
from tools.toolbox.permissions import CauseKind
from tools.toolbox.standing_grants import GRANTABLE

_MUST_BE = ", but must be "
_NOT_FROM_OUTSIDE = " comes from outside: "
_ONCE_PER_RUN = (
    "After your approval, this reason no longer applies to the same tool and hosts in this run."
)


@dataclass(frozen=True)
class RuleLink:
    """A link to a rule; `needs_admin` is True for a page of the configuration."""

    label: str
    address: str
    needs_admin: bool = True


@dataclass(frozen=True)
class AskingRule:
    """One rule that makes a call need approval.

    Attributes:
        text: the reason in plain words, as a sentence.
        remedy: the condition under which the rule would not apply; empty if unknown.
        has_values: True if the reason names values of the call.
    """

    text: str
    remedy: str
    links: tuple[RuleLink, ...] = ()
    has_values: bool = False


@dataclass(frozen=True)
class AskingReasons:
    """The reasons why a call needs approval.

    Attributes:
        notice: a reason besides the rules, such as a change since the earlier card; if there are no
            rules, the whole reason.
        rules: the rules that require approval; empty for a call without stored causes.
    """

    notice: str
    rules: list[AskingRule]


def describe_reasons(why: str, asking: CallToExplain) -> AskingReasons:
    """Describe why a card needs approval; `why` is the reason written on the card."""
    rules = describe_rules(asking)
    return AskingReasons(find_notice(why, asking.call) if rules else why, rules)


def describe_rules(asking: CallToExplain) -> list[AskingRule]:
    """Describe the rules that make the call need approval; empty for a call without stored
    causes."""
    kept = asking.call.judgment or {}
    return [_describe(kind, text, param, asking) for kind, text, param in kept.get("causes", ())]


def find_notice(why: str, call: ToolCall) -> str:
    """Return the part of a card's reason that does not come from the verdict: a change since the
    earlier card."""
    reason = call.why.casefold()
    rest = why.rstrip(".")
    if reason and rest.casefold().endswith(reason.rstrip(".")):
        return rest[: len(rest) - len(reason.rstrip("."))].rstrip()
    return why


@dataclass(frozen=True)
class CallToExplain:
    """A call that needs approval.

    Attributes:
        may_be_granted: True if a standing grant might approve the call.
    """

    call: ToolCall
    employee_id: int
    tool: Tool | None
    may_be_granted: bool = True

    def link_to_tool(self) -> RuleLink:
        address = f"{reverse('tools')}?{urlencode({'q': self.call.tool})}"
        return RuleLink("About this tool", address, needs_admin=False)

    def link_to_limits(self) -> RuleLink:
        address = reverse("admin:employees_employee_change", args=(self.employee_id,))
        return RuleLink("Employee limits", f"{address}#id_limits")

    def link_to_levels(self) -> RuleLink:
        address = reverse("admin:employees_toolrule_changelist")
        return RuleLink("Levels for all employees", f"{address}?{urlencode({'q': self.call.tool})}")

    def advise_on_level(self) -> str:
        if self.call.level == Level.DESTRUCTIVE.value:
            return "Destructive calls always need a person."
        kinds = {kind for kind, _, _ in (self.call.judgment or {}).get("causes", ())}
        is_grantable = self.may_be_granted and kinds <= GRANTABLE
        return "You can pre-approve calls like this." if is_grantable else ""

    def advise_on_raised_level(self) -> str:
        if self.tool is None:
            return ""
        own = self.tool.level
        still = (
            "would still need approval" if own.has_side_effects else "would run without approval"
        )
        return f"At the tool's own level, {own.value}, the call {still}."

    def list_links(self, kind: str) -> Iterator[RuleLink]:
        if kind in (CauseKind.LEVEL, CauseKind.RAISED_LEVEL):
            yield self.link_to_tool()
        if kind == CauseKind.RAISED_LEVEL:
            yield self.link_to_levels()
        if kind in (CauseKind.RAISED_LEVEL, CauseKind.LIMIT):
            yield self.link_to_limits()
        if kind == CauseKind.HOSTS:
            yield RuleLink("Allowed hosts", reverse("admin:connections_allowedhost_changelist"))


def _describe(kind: str, text: str, param: str, asking: CallToExplain) -> AskingRule:
    sentence = f"{text[:1].upper()}{text[1:]}."
    remedy, links = _advise(kind, text, param, asking), tuple(asking.list_links(kind))
    return AskingRule(sentence, remedy, links, kind in (CauseKind.HOSTS, CauseKind.OWN_DATA))


def _advise(kind: str, text: str, param: str, asking: CallToExplain) -> str:
    remedies: dict[CauseKind, Callable[[], str]] = {
        CauseKind.LEVEL: asking.advise_on_level,
        CauseKind.RAISED_LEVEL: asking.advise_on_raised_level,
        CauseKind.HOSTS: lambda: _advise_on_hosts(text),
        CauseKind.OWN_DATA: lambda: "Without these values, this reason would not apply.",
        CauseKind.UNSEEN_TEXT: lambda: _ONCE_PER_RUN,
        CauseKind.LIMIT: lambda: _advise_on_limit(text, param),
    }
    explain = remedies.get(CauseKind(kind)) if kind in tuple(CauseKind) else None
    return explain() if explain else ""


def _advise_on_hosts(text: str) -> str:
    if "any address" in text:
        return "This tool cannot name its hosts, so each of its calls needs approval."
    return "If an admin allowed these hosts, this reason would not apply."


def _advise_on_limit(text: str, param: str) -> str:
    if _MUST_BE in text:
        return f"The call would be within the limit if {param} were {text.rpartition(_MUST_BE)[2]}."
    if _NOT_FROM_OUTSIDE in text:
        return f"The call would be within the limit if {param} did not come from outside."
    return "Within the limit, this reason would not apply."
