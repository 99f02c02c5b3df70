"""The actions that the search offers: each is a link to the form on its page."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from agents.accounts.models import Membership, Role


@dataclass(frozen=True)
class OfferedAction:
    """An action of a member.

    Attributes:
        page: the name of the address with its form.
        words: other words by which people look for it.
        rest: what follows the page's address, such as a fragment.
    """

    name: str
    icon: str
    page: str
    role: Role
    words: str = ""
    rest: str = ""

    @property
    def address(self) -> str:
        return reverse(self.page) + self.rest


ACTIONS = (
    OfferedAction("Assign a task", "play", "home", Role.OPERATOR, "start new run", "#new-task"),
    OfferedAction("Stop everything", "ban", "stop", Role.OPERATOR, "halt emergency pause"),
    OfferedAction("Show past decisions", "list-checks", "approvals", Role.VIEWER, "approval history", "?history=1"),
    OfferedAction("Invite a person", "plus", "users", Role.ADMIN, "add user member invitation", "#invite-head"),
    OfferedAction("Create a schedule", "clock", "schedules", Role.OPERATOR, "new cron repeat", "#new-schedule"),
    OfferedAction("Upload files", "upload", "files", Role.OPERATOR, "add", "#upload-head"),
    OfferedAction("Import records", "upload", "records-import", Role.ADMIN, "csv add"),
    OfferedAction("Add an employee", "plus", "admin:employees_employee_add", Role.ADMIN, "new create hire"),
    OfferedAction("Change your password", "key-round", "own-password", Role.VIEWER, "account"),
)


def list_actions(member: Membership) -> list[OfferedAction]:
    """List the actions that the member's role permits."""
    return [each for each in ACTIONS if member.may(each.role) and _may_open(member, each)]


def _may_open(member: Membership, action: OfferedAction) -> bool:
    return member.user.is_staff or not action.page.startswith("admin:")
