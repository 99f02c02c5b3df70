"""The actions and settings that the search offers: links to forms on other pages, and actions that
need no form."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from agents.accounts.membership import list_memberships
from agents.accounts.models import Membership, Role
from agents.web.frame.theme import THEMES


@dataclass(frozen=True)
class OfferedAction:
    """An action that the search offers to members with at least this role.

    Attributes:
        page: the URL name of the page with the action's form, or of the address to send the fields
            to.
        words: other search terms for the action.
        rest: the part after the page's address, such as a fragment.
        fields: the fields to send to the address; None to only open the address.
    """

    name: str
    icon: str
    page: str
    role: Role
    words: str = ""
    rest: str = ""
    fields: tuple[tuple[str, str], ...] | None = None

    @property
    def address(self) -> str:
        return reverse(self.page) + self.rest


ACTIONS = (
    OfferedAction("Assign a task", "play", "home", Role.OPERATOR, "start new run", "#new-task"),
    OfferedAction("Stop everything", "ban", "stop", Role.OPERATOR, "halt emergency pause"),
    OfferedAction("Stop an employee", "ban", "stop", Role.OPERATOR, "halt pause", "#employees"),
    OfferedAction("Stop a tool", "ban", "stop", Role.OPERATOR, "halt pause", "#tools"),
    OfferedAction(
        "Confirm restored limits",
        "circle-check",
        "restored-limits",
        Role.ADMIN,
        "backup restore resume",
    ),
    OfferedAction(
        "Show past decisions",
        "list-checks",
        "approvals",
        Role.VIEWER,
        "approval history",
        "?history=1",
    ),
    OfferedAction(
        "See who may decide", "users", "who-may-decide", Role.VIEWER, "approval rules groups people"
    ),
    OfferedAction(
        "Pre-approve calls",
        "circle-check",
        "grant-new",
        Role.APPROVER,
        "standing grant allow more new",
    ),
    OfferedAction(
        "Invite a person", "plus", "users", Role.ADMIN, "add user member invitation", "#invite-head"
    ),
    OfferedAction(
        "Create a schedule", "clock", "schedules", Role.OPERATOR, "new cron repeat", "#new-schedule"
    ),
    OfferedAction(
        "Create a trigger",
        "plus",
        "triggers",
        Role.OPERATOR,
        "new webhook hook message",
        "#new-trigger",
    ),
    OfferedAction("Upload files", "upload", "files", Role.OPERATOR, "add", "#upload-head"),
    OfferedAction("Import records", "upload", "records-import", Role.ADMIN, "csv add"),
    OfferedAction("Export records", "download", "records-export", Role.VIEWER, "csv download"),
    OfferedAction("Export the audit log", "download", "audit-export", Role.ADMIN, "csv download"),
    OfferedAction(
        "Export oversight", "download", "oversight-export", Role.ADMIN, "csv download decisions"
    ),
    OfferedAction(
        "Show requests from agents", "globe", "asks", Role.VIEWER, "asks agents elsewhere"
    ),
    OfferedAction(
        "Verify the audit log",
        "shield-check",
        "audit-verify",
        Role.ADMIN,
        "integrity signature",
        fields=(),
    ),
    OfferedAction(
        "Add an employee", "plus", "admin:employees_employee_add", Role.ADMIN, "new create hire"
    ),
    OfferedAction(
        "Choose your notices",
        "bell",
        "notices",
        Role.VIEWER,
        "notifications e-mail push chat quiet hours",
    ),
    OfferedAction(
        "Show your messages", "bell", "notifications", Role.VIEWER, "notices sent notifications"
    ),
    OfferedAction(
        "Add a deputy", "users", "deputies", Role.APPROVER, "deputies vacation away absence"
    ),
    OfferedAction(
        "Choose your preferences",
        "settings",
        "preferences",
        Role.VIEWER,
        "language time zone units",
    ),
    OfferedAction("Change your password", "key-round", "own-password", Role.VIEWER, "account"),
    OfferedAction(
        "Read the API documentation",
        "file-text",
        "api-1.0:openapi-view",
        Role.VIEWER,
        "rest docs swagger",
    ),
    OfferedAction("Log out", "log-out", "logout", Role.VIEWER, "sign out leave account", fields=()),
)


def list_actions(member: Membership) -> list[OfferedAction]:
    """List the actions that the member's role permits."""
    offered = (*ACTIONS, *_list_themes(), *_list_organizations(member))
    return [each for each in offered if member.may(each.role) and _may_open(member, each)]


def _list_themes() -> list[OfferedAction]:
    words = "dark light mode colors appearance"
    return [
        OfferedAction(
            f"Theme: {label.lower()}",
            "settings",
            "theme",
            Role.VIEWER,
            words,
            fields=(("theme", value),),
        )
        for value, label in THEMES
    ]


def _list_organizations(member: Membership) -> list[OfferedAction]:
    others = [each for each in list_memberships(member.user) if each.pk != member.pk]
    return [
        OfferedAction(
            f"Switch to {each.organization.name}",
            "users",
            "switch-organization",
            Role.VIEWER,
            "organization change",
            fields=(("organization", str(each.organization_id)),),
        )
        for each in others
    ]


def _may_open(member: Membership, action: OfferedAction) -> bool:
    return member.user.is_staff or not action.page.startswith("admin:")
