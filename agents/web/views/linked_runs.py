"""The runs that drafts and records mention by id. The id is stored as text, and may come from
another system."""

from __future__ import annotations

from collections.abc import Iterable

from agents.accounts.models import Membership
from agents.platform.row_ids import parse_row_id_or_none
from agents.runs.models import Run


def load_linked_runs(member: Membership, run_ids: Iterable[str]) -> dict[str, Run]:
    """Load the runs of the member's organization, by the id as text; ids without a run are left
    out."""
    found = Run.objects.filter(
        organization_id=member.organization_id, pk__in=parse_stored_ids(run_ids)
    )
    return {str(run.pk): run for run in found.only("title", "task")}


def parse_stored_ids(texts: Iterable[str]) -> set[int]:
    """Parse the valid ids among these texts."""
    return {number for text in texts if (number := parse_row_id_or_none(text)) is not None}
