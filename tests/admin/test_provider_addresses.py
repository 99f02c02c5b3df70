"""An address without a scheme is tried over https and http, and the page says which scheme
works."""

from __future__ import annotations

import html
import socket
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from agents.employees.models import ModelProvider, ProviderKind
from tests.admin.rows import address, faults, filled_form
from tests.features import feature
from tests.model_server import ModelServer, Response
from tests.world import World
from tools.contract import PrivateHosts

pytestmark = pytest.mark.django_db


def add(world: World, admin: Client, typed: str, **more: Any) -> Any:
    sent = {
        "organization": world.acme.pk,
        "name": "New",
        "kind": "openai",
        "timeout_s": 60,
        "is_active": "on",
    }
    return admin.post(
        address(ModelProvider, "add"), {**sent, "base_url": typed, **more}, follow=True
    )


def strip(url: str) -> str:
    return url.removeprefix("http://")


@feature(
    "Models",
    "A provider's address without a scheme is tried over https and http",
    "agents/admin/provider_addresses.py",
    whole_file=True,
)
def test_an_address_without_a_scheme_is_saved_with_the_scheme_that_works(
    world: World, admin: Client
) -> None:
    with ModelServer() as server:
        page = add(world, admin, strip(server.url))
        assert server.requests == []
        assert not any("authorization" in headers for headers in server.request_headers)
    assert ModelProvider.objects.get(name="New").base_url == server.url
    assert f"{strip(server.url)} responds via http." in html.unescape(page.content.decode())


def test_a_server_that_requires_a_key_is_treated_as_reachable(world: World, admin: Client) -> None:
    with ModelServer() as server:
        server.models = Response(status=401, body='{"error": {"message": "no key"}}')
        add(world, admin, f" {strip(server.url)} ")
    assert ModelProvider.objects.get(name="New").base_url == server.url


def test_an_unreachable_address_is_refused_and_stays_in_the_form_as_typed(
    world: World, admin: Client
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        typed = f"127.0.0.1:{unused.getsockname()[1]}"
        page = add(world, admin, typed)
    (fault,) = faults(page)["base_url"]
    assert fault.startswith(f"Nothing responds at https://{typed} or http://{typed}.")
    assert f'value="{typed}"' in page.content.decode()
    assert not ModelProvider.objects.filter(name="New").exists()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_address_with_a_scheme_is_saved_without_connecting_to_it(
    world: World, admin: Client, scheme: str
) -> None:
    with ModelServer() as server:
        typed = f"{scheme}://{strip(server.url)}"
        add(world, admin, typed)
        assert server.connections == 0
    assert ModelProvider.objects.get(name="New").base_url == typed


def test_a_private_address_is_refused_without_connecting_to_it(
    world: World, admin: Client, settings: Settings
) -> None:
    settings.PRIVATE_PROVIDERS = PrivateHosts()
    with ModelServer() as server:
        page = add(world, admin, strip(server.url))
        assert "is not allowed" in faults(page)["base_url"][0]
        assert server.connections == 0


def test_the_key_need_not_be_retyped_if_the_same_server_is_typed_without_a_scheme(
    world: World, admin: Client
) -> None:
    with ModelServer() as server:
        provider = ModelProvider.objects.create(
            organization=world.acme,
            name="Real",
            kind=ProviderKind.OPENAI,
            base_url=server.url,
            api_key="sk-0123456789",
        )
        path = address(provider, "change")
        saved = admin.post(path, filled_form(admin, path, base_url=strip(server.url)))
        assert saved.status_code == 302, faults(saved)
    provider.refresh_from_db()
    assert (provider.base_url, provider.api_key) == (server.url, "sk-0123456789")


def test_the_time_limit_for_a_whole_response_defaults_to_30_minutes_and_can_be_changed(
    world: World, admin: Client
) -> None:
    add(world, admin, "https://models.example.com/v1")
    provider = ModelProvider.objects.get(name="New")
    assert (provider.timeout_s, provider.answer_timeout_s) == (60, 1_800)
    path = address(provider, "change")
    assert admin.post(path, filled_form(admin, path, answer_timeout_s="7200")).status_code == 302
    provider.refresh_from_db()
    assert provider.answer_timeout_s == 7_200


def test_the_connection_test_reports_a_server_that_drops_tools(world: World, admin: Client) -> None:
    with ModelServer() as server:
        server.pages = {"/props": '{"chat_template_caps": {"supports_tools": false}}'}
        provider = ModelProvider.objects.create(
            organization=world.acme, name="Real", kind=ProviderKind.OPENAI, base_url=server.url
        )
        path = f"/admin/employees/modelprovider/{provider.pk}/test-connection/"
        told = html.unescape(admin.post(path, follow=True).content.decode())
    assert "Connection to Real works. But the server says" in told
