"""The pages of the side bar, with the key that opens each: `g`, then the letter."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from agents.accounts.models import Membership, Role


@dataclass(frozen=True)
class Place:
    """A page of the side bar.

    Attributes:
        page: the URL name of the page, and the folder of its templates unless `folder` is set.
        key: the letter that opens it after `g`.
        words: other search terms for the page.
    """

    page: str
    icon: str
    label: str
    key: str
    folder: str = ""
    words: str = ""

    @property
    def address(self) -> str:
        return reverse(self.page)

    def is_current(self, folder: str) -> bool:
        """True if a page whose templates are in this folder belongs to the place."""
        return folder == (self.folder or self.page)


PLACES = (
    Place("home", "house", "Start", "h", words="home dashboard"),
    Place("approvals", "inbox", "Approvals", "a", words="inbox cards decisions"),
    Place("runs", "list-checks", "Runs", "r", words="tasks history"),
    Place("employees", "users", "Employees", "e"),
    Place("tools", "wrench", "Tools", "t"),
    Place("agents", "globe", "Agents", "y", words="keys mcp hooks"),
    Place("users", "user-cog", "Users", "u", words="members people"),
    Place("audit", "scroll-text", "Audit", "l", words="log"),
    Place("oversight", "shield-check", "Oversight", "o", words="figures decisions people"),
    Place("simulator", "calculator", "Simulator", "p", words="policy drafts shadow"),
    Place("records", "database", "Records", "c", words="data companies"),
    Place("drafts", "file-text", "Drafts", "d"),
    Place("schedules", "clock", "Schedules", "s"),
    Place("triggers", "arrow-right", "Triggers", "i", words="incoming hooks messages"),
    Place("webhooks", "send", "Webhooks", "w", words="outgoing events"),
    Place("grants", "circle-check", "Standing grants", "n", words="pre-approved rules"),
    Place("files", "folder", "Files", "f", words="documents uploads"),
    Place("stop", "ban", "Stop", "x", folder="stops", words="halt emergency pause"),
)
ADMINS_ONLY = frozenset({"audit", "oversight", "simulator", "webhooks"})
ADMIN = Place("admin:index", "settings", "Admin", "m", words="settings configuration")


def list_places(member: Membership) -> list[Place]:
    """List the pages that the member may open, in the order of the side bar."""
    is_admin = member.may(Role.ADMIN)
    places = [place for place in PLACES if is_admin or place.page not in ADMINS_ONLY]
    return [*places, ADMIN] if is_admin and member.user.is_staff else places
