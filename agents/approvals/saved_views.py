"""Saved views: a member's named filters of the inbox."""

from urllib.parse import parse_qsl, urlencode

from agents.accounts.models import Membership
from agents.approvals.models import SavedView
from agents.platform.refusals import Invalid, NotFound

MAX_VIEWS = 20
MAX_NAME = 60
MAX_QUERY = 500


def list_views(member: Membership) -> list[SavedView]:
    """List the member's saved views, sorted by name."""
    return list(SavedView.objects.filter(organization_id=member.organization_id, user=member.user))


def save_view(member: Membership, name: str, query: str, allowed: tuple[str, ...]) -> SavedView:
    """Save a filter under a name, and replace any view with the same name.

    Args:
        query: the query string; its params that are not in `allowed` are dropped.

    Raises:
        Invalid: there is no name or no filter, one of them is too long, or there are too many
            views.
    """
    name = " ".join(name.split())
    kept = urlencode([(key, value) for key, value in parse_qsl(query) if key in allowed])
    if not 0 < len(name) <= MAX_NAME:
        raise Invalid("name", f"give the view a name of at most {MAX_NAME} characters")
    if not 0 < len(kept) <= MAX_QUERY:
        raise Invalid("query", "choose a filter or an order first")
    own = SavedView.objects.filter(organization_id=member.organization_id, user=member.user)
    if own.exclude(name=name).count() >= MAX_VIEWS:
        raise Invalid("name", f"delete a view first: at most {MAX_VIEWS} can be saved")
    return own.update_or_create(
        organization_id=member.organization_id,
        user=member.user,
        name=name,
        defaults={"query": kept},
    )[0]


def delete_view(member: Membership, view_id: int) -> None:
    """Delete one of the member's views.

    Raises:
        NotFound: the member does not have this view.
    """
    own = SavedView.objects.filter(
        organization_id=member.organization_id, user=member.user, pk=view_id
    )
    if not own.delete()[0]:
        raise NotFound(f"There is no view {view_id}.")
