"""The hosts that tools may reach: written in one form, whatever was typed, and opened only on purpose."""

from __future__ import annotations

import pytest
from django.test import Client

from agents.engine.connected import reach_for
from agents.models import AuditEntry, Organization
from tests.web.admin_rows import address, confirmed, faults, filled_form, make_admin_world
from tests.web.world import World
from tools.connections.models import AllowedHost

pytestmark = pytest.mark.django_db

ADD = address(AllowedHost, "add")


@pytest.fixture
def world() -> World:
    return make_admin_world()


@pytest.fixture
def admin(world: World) -> Client:
    return world.client("admin")


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
def test_a_host_is_kept_as_it_is_compared(world: World, admin: Client, typed: str, kept: str) -> None:
    assert admin.post(ADD, {"organization": world.acme.pk, "host": typed, "without_card": "on"}).status_code == 302
    assert AllowedHost.objects.get().host == kept
    assert AuditEntry.objects.get().payload["fields"]["host"] == kept
    Organization.objects.get(pk=world.acme.pk)
    assert reach_for(world.acme.pk).allowed == {kept}


@pytest.mark.parametrize(
    "typed",
    [
        *("", "*.example.com", "api.example.com/path", "api.example.com:443", "user@api.example.com"),
        *("2130706433", "127.1", "0x7f.1", "exa mple.com", "-x.example", "a" * 64 + ".example", "x\\y"),
        *("ftp://api.example.com", "https://user:secret@api.example.com/", "://", "https://", "a." * 130 + "example"),
    ],
)
def test_what_is_no_host_is_refused(world: World, admin: Client, typed: str) -> None:
    assert list(faults(admin.post(ADD, {"organization": world.acme.pk, "host": typed}))) == ["host"]
    assert not AllowedHost.objects.exists()


def test_a_private_network_is_confirmed_and_leaving_it_is_not(world: World, admin: Client) -> None:
    sent = {"organization": world.acme.pk, "host": "wiki.internal", "may_be_private": "on"}
    assert admin.post(ADD, confirmed(admin, ADD, sent)).status_code == 302
    row = AllowedHost.objects.get()
    Organization.objects.get(pk=world.acme.pk)
    assert reach_for(world.acme.pk).private == {"wiki.internal"}
    path = address(row, "change")
    assert admin.post(path, filled_form(admin, path, may_be_private=None)).status_code == 302
    Organization.objects.get(pk=world.acme.pk)
    assert reach_for(world.acme.pk).private == frozenset()


def test_a_host_is_there_once_however_it_is_written(world: World, admin: Client) -> None:
    for typed, status in (("api.example.com", 302), ("https://API.example.com/", 200)):
        assert admin.post(ADD, {"organization": world.acme.pk, "host": typed}).status_code == status
    assert AllowedHost.objects.count() == 1


def test_what_is_deleted_is_not_reached_any_more(world: World, admin: Client) -> None:
    row = AllowedHost.objects.create(organization=world.acme, host="api.example.com")
    assert admin.post(address(row, "delete"), {"post": "yes"}).status_code == 302
    Organization.objects.get(pk=world.acme.pk)
    assert reach_for(world.acme.pk).allowed == frozenset()
    assert admin.post(address(row, "change"), {"may_be_private": "on"}).status_code == 302  # it is gone: back to all
