"""The pages of the side bar, with the key that opens each: `g`, then the letter."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from agents.accounts.models import Membership, Role


@dataclass(frozen=True)
class Place:
    """A page of the side bar.

    Attributes:
        page: the name of its address; also the folder of its templates, unless `folder` differs.
        key: the letter that opens it after `g`.
    """

    page: str
    icon: str
    label: str
    key: str
    folder: str = ""

    @property
    def address(self) -> str:
        return reverse(self.page)

    def is_current(self, folder: str) -> bool:
        """True if a page whose templates are in this folder belongs to the place."""
        return folder == (self.folder or self.page)


PLACES = (
    Place("home", "house", "Start", "h"),
    Place("approvals", "inbox", "Approvals", "a"),
    Place("runs", "list-checks", "Runs", "r"),
    Place("employees", "users", "Employees", "e"),
    Place("tools", "wrench", "Tools", "t"),
    Place("agents", "globe", "Agents", "y"),
    Place("users", "user-cog", "Users", "u"),
    Place("audit", "scroll-text", "Audit", "l"),
    Place("oversight", "shield-check", "Oversight", "o"),
    Place("simulator", "calculator", "Simulator", "p"),
    Place("records", "database", "Records", "c"),
    Place("drafts", "file-text", "Drafts", "d"),
    Place("schedules", "clock", "Schedules", "s"),
    Place("triggers", "arrow-right", "Triggers", "i"),
    Place("webhooks", "send", "Webhooks", "w"),
    Place("grants", "circle-check", "Standing grants", "n"),
    Place("files", "folder", "Files", "f"),
    Place("stop", "ban", "Stop", "x", folder="stops"),
)
ADMINS_ONLY = frozenset({"audit", "oversight", "simulator", "webhooks"})
ADMIN = Place("admin:index", "settings", "Admin", "m")


def list_places(member: Membership) -> list[Place]:
    """List the pages that the member may open, in the order of the side bar."""
    is_admin = member.may(Role.ADMIN)
    places = [place for place in PLACES if is_admin or place.page not in ADMINS_ONLY]
    return [*places, ADMIN] if is_admin and member.user.is_staff else places
