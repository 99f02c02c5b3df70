"""The facts about runs and cards that people are told."""

from __future__ import annotations

from datetime import datetime

from agents.accounts.notice_facts import NoticeFact, NoticeKind
from agents.runs.models import Approval, Run


def build_card_fact(kind: NoticeKind, card: Approval) -> NoticeFact:
    """Build the fact about a card; there is one of each kind for each card."""
    return NoticeFact(kind, card.organization_id, str(card.pk), card.run_id, card.pk, is_repeatable=False)


def build_run_fact(kind: NoticeKind, run: Run) -> NoticeFact:
    """Build the fact that a run ended; a run that was continued may end again."""
    return NoticeFact(kind, run.organization_id, f"{run.pk}:{run.next_event_seq}", run.pk, is_repeatable=False)


def build_budget_fact(run: Run, now: datetime) -> NoticeFact:
    """Build the fact that the employee's runs end for lack of a budget; there is one in each month."""
    key, detail = f"{run.employee_id}:{now:%Y-%m}", f"runs of {run.employee.name}"
    return NoticeFact(NoticeKind.BUDGET, run.organization_id, key, detail=detail)
