"""The runs that members follow to be notified when they end."""

from __future__ import annotations

from agents.accounts.models import Membership
from agents.notices.models import FollowedRun
from agents.platform.refusals import Conflict
from agents.platform.row_ids import get_row
from agents.runs.models import Run


def follow_run(member: Membership, run_id: int) -> None:
    """Notify the member when the run has ended. Following it again has no effect.

    Raises:
        NotFound: there is no such run.
        Conflict: the run has ended.
    """
    if _load_run(member, run_id).has_ended:
        raise Conflict("This run has ended already.")
    FollowedRun.objects.get_or_create(membership=member, run_id=run_id)


def unfollow_run(member: Membership, run_id: int) -> None:
    """Stop following the run, so that the member is not notified when it ends.

    Raises:
        NotFound: there is no such run.
    """
    FollowedRun.objects.filter(membership=member, run=_load_run(member, run_id)).delete()


def is_following(member: Membership, run: Run) -> bool:
    """Return True if the member will be notified when the run ends."""
    return FollowedRun.objects.filter(membership=member, run=run).exists()


def _load_run(member: Membership, run_id: int) -> Run:
    return get_row(Run.objects.filter(organization_id=member.organization_id), run_id, "run")
