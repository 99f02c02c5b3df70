"""The sweeper ends a standing grant whose tool has changed, even if the grant is never compared
with a card."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest
from django.utils import timezone

from agents.accounts.models import AuditEntry
from agents.employees.models import Employee
from agents.employees.models import Grant as AllowedTool
from agents.policy.models import PolicyDraft
from agents.standing_grants.changes import end_changed
from agents.standing_grants.models import StandingGrant
from agents.web.lists.audit_lines import describe_entries
from agents.worker.sweeper import sweep_once
from tests.standing_grants.granting import equals, grant
from tests.tools.connections.api import NAME, Api, operation
from tests.tools.connections.connecting import connect_api, offer, read, set_credentials, take
from tests.workshop import Workshop, build_workshop
from tools.connections.models import AuthenticationMethod, Source
from tools.contract import Level

pytestmark = pytest.mark.django_db(transaction=True)

ADD = "crm.addContact"
RAISED = "An admin has raised the tool’s level."


@dataclass(frozen=True)
class Office:
    """An organization with a connected source, a standing grant for one of its tools, and a grant
    for another tool."""

    workshop: Workshop
    api: Api
    source: Source
    granted: StandingGrant
    other: StandingGrant

    def find_end(self) -> str:
        """Return the reason why the grant for the source's tool ended, empty if it is active; check
        that the other grant is active."""
        self.granted.refresh_from_db()
        self.other.refresh_from_db()
        assert self.other.ended_at is None
        assert bool(self.granted.ended_at) == bool(self.granted.ended_because)
        return self.granted.ended_because


def open_office(workshop: Workshop, api: Api) -> Office:
    source = connect_api(
        workshop, api, authentication=AuthenticationMethod.BEARER, service="contacts"
    )
    offer(workshop, source, ADD)
    set_credentials(
        workshop.organization, "contacts", token=f"first-token-of-{workshop.organization.slug}"
    )
    workshop.organization.refresh_from_db()  # as each request does: now this process knows the new tools
    granted = grant(workshop, ADD, equals("name", "Ada"))
    return Office(
        workshop, api, source, granted, grant(workshop, "probe.effect", equals("name", "Ada"))
    )


@pytest.fixture
def office(workshop: Workshop, api: Api) -> Office:
    return open_office(workshop, api)


def raise_for_employee(office: Office) -> None:
    AllowedTool.objects.filter(employee=office.workshop.employee, tool=ADD).update(
        level=Level.DESTRUCTIVE
    )


def raise_for_all(office: Office) -> None:
    office.workshop.raise_for_all(ADD, Level.DESTRUCTIVE)


def accept_new_definition(office: Office) -> None:
    described = office.api.paths
    office.api.paths = {
        "/contacts": {
            "post": operation("addContact", "Add a contact and tell everybody", name=NAME)
        }
    }
    take(read(office.source), ADD)
    office.api.paths = described


def replace_key(office: Office) -> None:
    organization = office.workshop.organization
    set_credentials(organization, "contacts", token=f"second-token-of-{organization.slug}")


CHANGES = {
    raise_for_employee: RAISED,
    raise_for_all: RAISED,
    accept_new_definition: "The tool’s definition has changed.",
    replace_key: "The account that the tool acts with has changed.",
}


@pytest.mark.parametrize(("change", "because"), CHANGES.items())
def test_a_changed_tool_ends_its_grants_in_this_organization(
    office: Office, change: Callable[[Office], None], because: str
) -> None:
    theirs = open_office(build_workshop("globex"), office.api)
    assert end_changed() == 0
    change(theirs)
    assert end_changed() == 1
    assert (office.find_end(), theirs.find_end()) == ("", because)
    change(office)
    assert end_changed() == 1
    assert office.find_end() == because
    assert end_changed() == 0


def test_the_sweeper_ends_the_grants_of_a_changed_tool_and_records_an_audit_entry(
    office: Office,
) -> None:
    sweep_once()
    assert office.find_end() == ""
    replace_key(office)
    sweep_once()
    because = CHANGES[replace_key]
    assert office.find_end() == because
    (entry,) = AuditEntry.objects.filter(action="standing_grant_ended")
    assert (entry.actor, entry.subject) == ("gadget", f"standing_grant:{office.granted.pk}")
    assert entry.organization_id == office.workshop.organization.pk
    assert entry.payload == {"because": because}
    (line,) = describe_entries(entry.organization_id, [entry])
    assert (line.actor, line.action, line.subject.label) == (
        "gadget",
        "ended a standing grant",
        f"standing grant {office.granted.pk}",
    )


def test_a_damaged_policy_draft_does_not_keep_the_sweeper_from_ending_grants(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    organization, now = office.workshop.organization, timezone.now()
    PolicyDraft.objects.create(
        organization=organization,
        name="damaged",
        changes=["damaged"],
        created_by=office.workshop.admin.user,
        shadow_from=now - timedelta(days=1),
        shadow_until=now + timedelta(days=1),
    )
    replace_key(office)
    sweep_once()
    assert "comparing drafts in shadow mode" in caplog.text
    assert office.find_end() == CHANGES[replace_key]


def test_a_level_raised_for_another_employee_does_not_end_the_grant(office: Office) -> None:
    workshop = office.workshop
    other = Employee.objects.create(
        organization=workshop.organization, name="Eve", provider=workshop.employee.provider
    )
    AllowedTool.objects.create(employee=other, tool=ADD, level=Level.DESTRUCTIVE)
    assert end_changed() == 0


def test_a_grant_for_every_employee_ends_only_if_the_level_is_raised_for_all(
    office: Office,
) -> None:
    everybody = grant(
        office.workshop, ADD, equals("name", "Ada"), employee_id=None, by=office.workshop.admin
    )
    raise_for_employee(office)
    assert end_changed() == 1
    everybody.refresh_from_db()
    assert everybody.ended_at is None
    raise_for_all(office)
    assert end_changed() == 1
    everybody.refresh_from_db()
    assert everybody.ended_because == RAISED


def test_a_lower_level_for_all_does_not_end_the_grant(office: Office) -> None:
    office.workshop.raise_for_all(ADD, Level.DRAFT)
    assert end_changed() == 0
