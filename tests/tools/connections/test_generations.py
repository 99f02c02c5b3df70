"""Every process has the newest tools: its cache holds exactly the committed tools."""

from __future__ import annotations

import threading

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from agents.accounts.models import Organization
from agents.accounts.models.organization_versions import (
    OrganizationVersions,
    get_newest_versions,
    record_versions,
)
from agents.employees.toolboxes import load_network_access, load_toolbox
from agents.runs.engine.context import load_grants
from tests.features import feature
from tests.tools.connections.api import Api, operation
from tests.tools.connections.connecting import (
    connect_api,
    grant,
    leave,
    offer,
    set_credentials,
    take,
)
from tests.workshop import Workshop, all_at_once, asking, beside, build_workshop, call, statuses
from tools.connections.changes import bump_tools_version
from tools.connections.models import AllowedHost, Source, SourceTool
from tools.contract import NetworkAccess

pytestmark = pytest.mark.django_db(transaction=True)

LIST = "crm.listContacts"


class _NotCommittedError(Exception):
    """Raised to roll the transaction back."""


@pytest.fixture
def source(workshop: Workshop, api: Api) -> Source:
    return connect_api(workshop, api)


def look(workshop: Workshop) -> bool:
    """Read the organization from the database; return True if this process then has the tool."""
    Organization.objects.get(pk=workshop.organization.pk)
    return load_toolbox(workshop.organization.pk).get_tool(LIST) is not None


class TestAToolboxChange:
    def test_is_visible_after_reading_the_organization(
        self, workshop: Workshop, source: Source
    ) -> None:
        assert not look(workshop)
        take(source, LIST)
        assert look(workshop)
        leave(source, LIST)
        assert not look(workshop)

    def test_is_visible_after_reading_the_grants(self, workshop: Workshop, source: Source) -> None:
        assert not look(workshop)
        grant(workshop, LIST)
        take(source, LIST)
        load_grants(workshop.employee.pk, "general")
        assert load_toolbox(workshop.organization.pk).get_tool(LIST)

    def test_is_not_cached_before_its_commit(self, workshop: Workshop, source: Source) -> None:
        """Another thread loads the toolbox after this thread has read its own new generation, and
        before it commits."""
        assert not look(workshop)
        seen: list[bool] = []
        with transaction.atomic():
            SourceTool.objects.filter(tool=LIST).update(is_chosen=True, accepted_hash=hash_of(LIST))
            bump_tools_version(workshop.organization.pk)
            Organization.objects.get(pk=workshop.organization.pk)
            with beside(
                lambda: seen.append(
                    load_toolbox(workshop.organization.pk).get_tool(LIST) is not None
                )
            ):
                pass
        assert seen == [False]
        assert look(workshop)

    def test_has_no_effect_if_it_is_rolled_back(self, workshop: Workshop, source: Source) -> None:
        def change() -> None:
            with transaction.atomic():
                SourceTool.objects.filter(tool=LIST).update(
                    is_chosen=True, accepted_hash=hash_of(LIST)
                )
                bump_tools_version(workshop.organization.pk)
                assert look(workshop)  # inside the transaction
                raise _NotCommittedError

        assert not look(workshop)
        with pytest.raises(_NotCommittedError):
            change()
        assert not look(workshop)
        assert get_newest_versions(workshop.organization.pk) == stored(workshop)
        take(source, LIST)  # reuses the version number for different content
        assert look(workshop)

    def test_of_credentials_rebuilds_the_tools_that_contain_them(
        self, workshop: Workshop, source: Source
    ) -> None:
        before = load_toolbox(workshop.organization.pk)
        set_credentials(workshop.organization, "crm", token="a-new-token")
        Organization.objects.get(pk=workshop.organization.pk)
        assert load_toolbox(workshop.organization.pk) is not before

    def test_of_allowed_hosts_is_visible(self, workshop: Workshop) -> None:
        organization = workshop.organization
        assert not load_network_access(organization.pk).allowed
        AllowedHost.objects.create(organization=organization, host="example.com")
        bump_tools_version(organization.pk)
        Organization.objects.get(pk=organization.pk)
        assert load_network_access(organization.pk) == NetworkAccess(
            allowed=frozenset({"example.com"})
        )
        assert "example.com" in load_toolbox(organization.pk).policy.allowed_hosts


def test_a_change_leaves_the_generations_of_other_organizations_unchanged(
    workshop: Workshop,
) -> None:
    other = build_workshop("globex").organization
    bump_tools_version(workshop.organization.pk)
    set_credentials(workshop.organization, "crm", token="of-acme")
    other.refresh_from_db()
    assert (other.tools_version, other.credentials_version) == (0, 0)


def test_concurrent_updates_never_lower_the_recorded_versions() -> None:
    wrong: list[OrganizationVersions] = []

    def note(number: int) -> None:
        for step in range(200):
            record_versions(-1, step, number)
            seen = get_newest_versions(-1)
            if seen is None or seen.tools < step or seen.credentials < number:
                wrong.append(seen or OrganizationVersions())

    threads = [threading.Thread(target=note, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not wrong
    assert get_newest_versions(-1) == OrganizationVersions(199, 7)


def test_concurrent_changes_each_increase_the_generation(workshop: Workshop) -> None:
    all_at_once([lambda: bump_tools_version(workshop.organization.pk) for _ in range(6)])
    assert stored(workshop).tools == 6


class TestCostOfLoading:
    def test_is_zero_without_connected_sources(self, workshop: Workshop) -> None:
        look(workshop)
        with CaptureQueriesContext(connection) as asked:
            load_toolbox(workshop.organization.pk)
            load_network_access(workshop.organization.pk)
        assert len(asked) == 0

    @feature(
        "Connected sources",
        "Web and workers build the tools from the database, once per generation",
        "agents/employees/toolboxes.py",
    )
    def test_is_three_statements_for_51_tools_and_none_once_they_are_cached(
        self, workshop: Workshop, api: Api
    ) -> None:
        connect_fifty(workshop, api)
        set_credentials(workshop.organization, "crm0", token="some-token-of-ours")
        Organization.objects.get(pk=workshop.organization.pk)
        with CaptureQueriesContext(connection) as first:
            made = load_toolbox(workshop.organization.pk)
        assert len([tool for tool in made.tools() if tool.name.startswith("crm")]) == 51
        with CaptureQueriesContext(connection) as again:
            assert load_toolbox(workshop.organization.pk) is made
        assert (len(first), len(again)) == (3, 0)

    def test_does_not_add_statements_to_a_pass(self, workshop: Workshop, api: Api) -> None:
        other = build_workshop("globex")
        connect_fifty(workshop, api)
        numbers = []
        for each in (workshop, other):
            each.play(asking(call("data.searchRecords")))
            each.work()
            with CaptureQueriesContext(connection) as asked:
                run = each.work()
            assert statuses(run) == ["succeeded"]
            numbers.append(len(asked))
        assert numbers[0] == numbers[1]


def connect_fifty(workshop: Workshop, api: Api) -> None:
    """Connect three sources with 17 tools each, and grant all of them."""
    api.paths = {
        f"/things/{number}": {"get": operation(f"getThing{number}")} for number in range(17)
    }
    for place in range(3):
        source = connect_api(workshop, api, f"crm{place}")
        offer(workshop, source, *(f"crm{place}.getThing{number}" for number in range(17)))


def hash_of(tool: str) -> str:
    return SourceTool.objects.get(tool=tool).hash


def stored(workshop: Workshop) -> OrganizationVersions:
    row = Organization.objects.values_list("tools_version", "credentials_version").get(
        pk=workshop.organization.pk
    )
    return OrganizationVersions(*row)
