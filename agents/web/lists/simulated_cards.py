"""The outcome of simulated approval rules, as its page shows it: counts, and the cards that would
have changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agents.policy.models import ShadowCard
from agents.policy.rule_simulation import CardCounts, CardOutcome, JudgedCard, RuleReport
from agents.runs.models import APPROVED_STATES, ApprovalStatus
from agents.web.lists.simulated_calls import REMOVED
from tools.contract.outside_text import OutsideText

OUTCOMES = {
    CardOutcome.ENOUGH.value: "the same approvals suffice",
    CardOutcome.MORE.value: "needs more or other people",
    CardOutcome.FEWER.value: "needs fewer people",
    CardOutcome.PREAPPROVED.value: "a standing grant approves it",
    CardOutcome.PAUSED.value: "becomes a card, because the maker of its standing grant cannot decide it alone",
    CardOutcome.OPEN.value: "is not approved",
}
COLUMNS = {
    CardOutcome.ENOUGH: "Same approvals suffice",
    CardOutcome.MORE: "More or other people",
    CardOutcome.FEWER: "Fewer people",
    CardOutcome.PREAPPROVED: "Standing grant approves",
    CardOutcome.PAUSED: "Standing grant pauses",
    CardOutcome.OPEN: "Not approved",
}
_SKIPPED = {
    CardOutcome.ERASED.value: "Erased, so the rule cannot be compared with the parameters",
    CardOutcome.UNREADABLE.value: "Damaged record",
}


@dataclass(frozen=True)
class CardCountsRow:
    """The number of cards with each outcome, for one tool, one employee, or all cards; `cells` is
    in the order of `COLUMNS`."""

    label: str
    counts: CardCounts

    @property
    def cells(self) -> list[int]:
        return [self.counts.outcomes[outcome] for outcome in COLUMNS]


@dataclass(frozen=True)
class ChangedCard:
    """One card that would have changed; `warning` is set if a person denied it and it would have
    been approved."""

    card_id: int
    tool: str
    employee: str
    before: str
    after: str
    needs: str
    is_stuck: bool
    warning: bool


def build_card_tables(
    report: RuleReport, titles: Mapping[str, str], employees: Mapping[int, str]
) -> list[tuple[str, list[CardCountsRow]]]:
    """Build the tables: all cards, then by tool and by employee, sorted by the number of
    changes."""
    by_tool = [
        CardCountsRow(titles.get(tool, OutsideText(tool)), counts)
        for tool, counts in report.by_tool.items()
    ]
    by_employee = [
        CardCountsRow(employees.get(pk, REMOVED), counts)
        for pk, counts in report.by_employee.items()
    ]
    return [
        ("All", [CardCountsRow("All cards", report.total)]),
        ("Tool", _sort(by_tool)),
        ("Employee", _sort(by_employee)),
    ]


def _sort(rows: list[CardCountsRow]) -> list[CardCountsRow]:
    return sorted(rows, key=lambda row: (-row.counts.changed, row.label.casefold()))


def describe_cards(
    cards: Iterable[JudgedCard], titles: Mapping[str, str], employees: Mapping[int, str]
) -> list[ChangedCard]:
    """Describe the listed cards that would have changed."""
    return [
        ChangedCard(
            card_id=card.row.pk,
            tool=titles.get(card.row.tool, OutsideText(card.row.tool)),
            employee=employees.get(card.row.employee_id, REMOVED),
            before=describe_status(card.row.status, card.row.grant_id),
            after=OUTCOMES[card.outcome.value],
            needs=card.needs,
            is_stuck=card.is_stuck,
            warning=card.is_alarming,
        )
        for card in cards
    ]


def describe_shadow_cards(
    cards: Iterable[ShadowCard], titles: Mapping[str, str], employees: Mapping[int, str]
) -> list[ChangedCard]:
    """Describe the cards that would have changed under a policy draft in shadow mode; the rows of
    their cards must be loaded."""
    return [
        ChangedCard(
            card_id=each.card_id,
            tool=titles.get(each.card.tool_call.tool, OutsideText(each.card.tool_call.tool)),
            employee=employees.get(each.card.run.employee_id, REMOVED),
            before=describe_status(each.card.status, each.card.standing_grant_id),
            after=OUTCOMES.get(each.outcome, each.outcome),
            needs=each.needs,
            is_stuck=each.is_stuck,
            warning=each.outcome == CardOutcome.FEWER and each.card.status == ApprovalStatus.DENIED,
        )
        for each in cards
    ]


def describe_status(status: str, grant_id: int | None) -> str:
    """Describe how the card ended, such as `approved by standing grant 12`."""
    if status in APPROVED_STATES:
        return f"approved by standing grant {grant_id}" if grant_id is not None else "approved"
    return ApprovalStatus(status).label.lower()


def describe_skipped_cards(counts: Mapping[str, int]) -> list[tuple[int, str]]:
    """Return the number of cards that were not judged, by the reason in words."""
    return [(counts[kind], words) for kind, words in _SKIPPED.items() if counts.get(kind)]
