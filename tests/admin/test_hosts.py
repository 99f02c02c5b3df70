"""The hosts that tools may reach: they are stored in normalized form, and access to private
networks is opened only after a confirmation."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from agents.accounts.models import AuditEntry, Organization
from agents.employees.toolboxes import load_network_access
from gadget_site.private_hosts import parse_private_hosts
from tests.admin.rows import address, confirmed, faults, filled_form
from tests.features import feature
from tests.world import World
from tools.connections.changes import bump_tools_version
from tools.connections.models import AllowedHost, Source
from tools.contract import HostPort, NetworkAccess, PrivateHosts

pytestmark = pytest.mark.django_db

ADD = address(AllowedHost, "add")


def reach_of(world: World) -> NetworkAccess:
    """Return the current network access of the organization's tools."""
    Organization.objects.get(pk=world.acme.pk)
    return load_network_access(world.acme.pk)


@feature(
    "Network access",
    "Only the installation can allow private addresses",
    "gadget_site/private_hosts.py",
    whole_file=True,
)
@feature(
    "Connected sources",
    "A host is stored in one form, also from a pasted address",
    "agents/admin/hosts.py",
)
@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("api.example.com", "api.example.com"),
        ("API.Example.COM.", "api.example.com"),
        ("https://api.example.com:8443/v1/things?key=1#top", "api.example.com"),
        ("http://10.0.0.5/", "10.0.0.5"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("https://bücher.example/x", "xn--bcher-kva.example"),
        ("2606:4700::1111", "2606:4700::1111"),
        ("[2606:4700::1111]", "2606:4700::1111"),
        (" api.example.com ", "api.example.com"),
    ],
)
def test_a_host_is_stored_in_its_normalized_form(
    world: World, admin: Client, typed: str, kept: str
) -> None:
    assert (
        admin.post(
            ADD, {"organization": world.acme.pk, "host": typed, "without_card": "on"}
        ).status_code
        == 302
    )
    assert AllowedHost.objects.get().host == kept
    assert AuditEntry.objects.get().payload["fields"]["host"] == kept
    Organization.objects.get(pk=world.acme.pk)
    assert load_network_access(world.acme.pk).allowed == {kept}


@pytest.mark.parametrize(
    "typed",
    [
        *(
            "",
            "*.example.com",
            "api.example.com/path",
            "api.example.com:443",
            "user@api.example.com",
        ),
        *(
            "2130706433",
            "127.1",
            "0x7f.1",
            "exa mple.com",
            "-x.example",
            "a" * 64 + ".example",
            "x\\y",
        ),
        *(
            "ftp://api.example.com",
            "https://user:secret@api.example.com/",
            "://",
            "https://",
            "a." * 130 + "example",
        ),
    ],
)
def test_an_invalid_host_is_refused(world: World, admin: Client, typed: str) -> None:
    assert list(faults(admin.post(ADD, {"organization": world.acme.pk, "host": typed}))) == ["host"]
    assert not AllowedHost.objects.exists()


@feature(
    "Connected sources",
    "Hosts of a private network are allowed one by one, after a confirmation",
    "agents/admin/hosts.py",
)
def test_opening_a_private_network_needs_confirmation_and_closing_it_does_not(
    world: World, admin: Client
) -> None:
    sent = {"organization": world.acme.pk, "host": "wiki.internal", "may_be_private": "on"}
    assert admin.post(ADD, confirmed(admin, ADD, sent)).status_code == 302
    row = AllowedHost.objects.get()
    assert reach_of(world).requested == {"wiki.internal"}
    path = address(row, "change")
    assert admin.post(path, filled_form(admin, path, may_be_private=None)).status_code == 302
    assert (reach_of(world).private, reach_of(world).requested) == (frozenset(), frozenset())


class TestPrivateNetwork:
    """Access to private networks is the installation's decision: only a superuser can allow it, or
    an admin for a host in ALLOWED_PRIVATE_HOSTS."""

    @pytest.fixture(autouse=True)
    def nothing_is_allowed(self, settings: Settings) -> None:
        settings.ALLOWED_PRIVATE_HOSTS = PrivateHosts()

    @pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.5", "wiki.internal"])
    def test_cannot_be_opened_by_an_admin(self, world: World, admin: Client, host: str) -> None:
        sent = {"organization": world.acme.pk, "host": host, "may_be_private": "on"}
        assert "Only a superuser" in faults(admin.post(ADD, sent))["may_be_private"][0]
        assert not AllowedHost.objects.exists()

    def test_can_be_opened_by_a_superuser_and_stays_open(self, world: World, admin: Client) -> None:
        world.users["root"] = User.objects.create_superuser("root")
        root = world.client("root")
        sent = {"organization": world.acme.pk, "host": "wiki.internal", "may_be_private": "on"}
        assert root.post(ADD, confirmed(root, ADD, sent)).status_code == 302
        assert reach_of(world).private == {"wiki.internal"}
        path = address(AllowedHost.objects.get(), "change")
        assert admin.post(path, filled_form(admin, path, without_card="on")).status_code == 302
        assert reach_of(world).private == {"wiki.internal"}
        assert admin.post(path, filled_form(admin, path, may_be_private=None)).status_code == 302
        assert (
            "Only a superuser"
            in faults(admin.post(path, filled_form(admin, path, may_be_private="on"))).popitem()[1][
                0
            ]
        )

    def test_can_be_opened_by_an_admin_only_for_servers_in_allowed_private_hosts(
        self, world: World, admin: Client, settings: Settings
    ) -> None:
        settings.ALLOWED_PRIVATE_HOSTS = parse_private_hosts("wiki.internal:8080,10.1.0.0/16")
        for host, port, leads_to, is_open in (
            ("wiki.internal", 8080, "192.168.7.7", True),
            ("wiki.internal", 22, "192.168.7.7", False),
            ("crm.internal", 80, "10.1.2.3", True),
            ("crm.internal", 80, "10.2.2.3", False),
            ("10.1.0.9", 80, "10.1.0.9", True),
        ):
            sent = {"organization": world.acme.pk, "host": host, "may_be_private": "on"}
            if not AllowedHost.objects.filter(host=host).exists():
                assert admin.post(ADD, confirmed(admin, ADD, sent)).status_code == 302
            assert (
                reach_of(world).allows_private(HostPort(host, port), ip_address(leads_to))
                is is_open
            )
        sent = {"organization": world.acme.pk, "host": "10.2.0.9", "may_be_private": "on"}
        assert "may_be_private" in faults(admin.post(ADD, sent))

    def test_ticked_by_an_admin_stays_closed_until_the_installation_allows_it(
        self, world: World, settings: Settings
    ) -> None:
        AllowedHost.objects.create(organization=world.acme, host="127.0.0.1", may_be_private=True)
        bump_tools_version(world.acme.pk)
        server, here = HostPort("127.0.0.1", 6379), ip_address("127.0.0.1")
        assert not reach_of(world).allows_private(server, here)
        settings.ALLOWED_PRIVATE_HOSTS = parse_private_hosts("127.0.0.1:6379")
        bump_tools_version(world.acme.pk)
        assert reach_of(world).allows_private(server, here)

    def test_cannot_be_opened_by_an_admin_for_a_source(self, world: World, admin: Client) -> None:
        where = f"{address(Source, 'add')}?kind=mcp_http"
        sent = {
            "organization": world.acme.pk,
            "name": "inner",
            "address": "http://10.0.0.5/mcp",
            "may_be_private": "on",
            "authentication": "none",
            "timeout_s": 30,
        }
        assert "Only a superuser" in faults(admin.post(where, sent))["may_be_private"][0]
        assert not Source.objects.exists()
        assert not AllowedHost.objects.exists()


def test_a_host_is_stored_once_even_if_spelled_differently(world: World, admin: Client) -> None:
    for typed, status in (("api.example.com", 302), ("https://API.example.com/", 200)):
        assert admin.post(ADD, {"organization": world.acme.pk, "host": typed}).status_code == status
    assert AllowedHost.objects.count() == 1


def test_a_deleted_host_is_no_longer_reachable(world: World, admin: Client) -> None:
    row = AllowedHost.objects.create(organization=world.acme, host="api.example.com")
    assert admin.post(address(row, "delete"), {"post": "yes"}).status_code == 302
    Organization.objects.get(pk=world.acme.pk)
    assert load_network_access(world.acme.pk).allowed == frozenset()
    # The admin redirects, because the row no longer exists.
    assert admin.post(address(row, "change"), {"may_be_private": "on"}).status_code == 302
