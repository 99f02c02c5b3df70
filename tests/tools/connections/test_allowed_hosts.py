"""Allowed hosts: the hosts that calls reach without a card, and the hosts that calls can reach at
all."""

from __future__ import annotations

import pytest

from agents.accounts.models import Organization
from tests.tools.connections.api import Api
from tests.tools.connections.connecting import connect_api, grant, offer
from tests.workshop import Workshop, asking, call, calls, error_code, statuses
from tools.connections.changes import allow_private, bump_tools_version, forbid_private
from tools.connections.models import AllowedHost

pytestmark = pytest.mark.django_db(transaction=True)

FETCH = "web.fetchPage"


@pytest.fixture
def reading(workshop: Workshop, api: Api) -> Workshop:
    """The workshop, whose employee reads a page on this machine."""
    grant(workshop, FETCH)
    workshop.play(asking(call(FETCH, url=f"{api.url}/about")))
    return workshop


def allow(workshop: Workshop, *, may_be_private: bool) -> None:
    AllowedHost.objects.create(
        organization=workshop.organization, host="127.0.0.1", may_be_private=may_be_private
    )
    bump_tools_version(workshop.organization.pk)


def test_a_host_that_is_not_allowed_needs_approval(reading: Workshop, api: Api) -> None:
    run = reading.work()
    assert statuses(run) == ["awaiting_approval"]
    assert "contacts 127.0.0.1, not on the list of allowed hosts" in reading.card(run).why
    assert api.received == []


def test_a_private_host_is_refused_even_if_the_call_is_approved(
    reading: Workshop, api: Api
) -> None:
    run = reading.work()
    reading.approve(reading.card(run))
    run = reading.drive(run)
    assert (statuses(run), error_code(calls(run)[0])) == (["failed"], "SECURITY_VIOLATION")
    assert api.received == []


def test_an_allowed_host_without_private_access_is_refused_without_a_card(
    reading: Workshop, api: Api
) -> None:
    allow(reading, may_be_private=False)
    run = reading.work()
    assert (statuses(run), error_code(calls(run)[0])) == (["failed"], "SECURITY_VIOLATION")
    assert api.received == []


def test_an_allowed_host_with_private_access_is_reached_without_a_card(
    reading: Workshop, api: Api
) -> None:
    allow(reading, may_be_private=True)
    run = reading.work()
    assert statuses(run) == ["succeeded"]
    assert [request.path for request in api.received] == ["/about"]


def test_a_host_allowed_by_another_organization_needs_approval(reading: Workshop, api: Api) -> None:
    other = Organization.objects.create(name="Globex", slug="globex")
    AllowedHost.objects.create(organization=other, host="127.0.0.1", may_be_private=True)
    AllowedHost.objects.create(organization=reading.organization, host="example.com")
    for organization in (other, reading.organization):
        bump_tools_version(organization.pk)
    assert statuses(reading.work()) == ["awaiting_approval"]
    assert api.received == []


def test_a_private_host_of_a_source_needs_approval_if_a_call_names_the_address(
    reading: Workshop, api: Api
) -> None:
    source = connect_api(reading, api)
    allow_private(source)
    run = reading.work()
    assert statuses(run) == ["awaiting_approval"]
    reading.approve(reading.card(run))
    assert statuses(reading.drive(run)) == ["succeeded"]


def test_a_host_that_is_no_longer_allowed_needs_approval_again(reading: Workshop, api: Api) -> None:
    allow(reading, may_be_private=True)
    assert statuses(reading.work()) == ["succeeded"]
    AllowedHost.objects.all().delete()
    bump_tools_version(reading.organization.pk)
    assert statuses(reading.work()) == ["awaiting_approval"]


def test_a_call_to_a_source_in_a_private_network_fails_unless_it_is_allowed(
    workshop: Workshop, api: Api
) -> None:
    source = connect_api(workshop, api)
    offer(workshop, source, "crm.listContacts")
    forbid_private(source)
    workshop.play(asking(call("crm.listContacts")))
    run = workshop.work()
    assert (statuses(run), error_code(calls(run)[0])) == (["failed"], "SECURITY_VIOLATION")
    assert api.received == []
