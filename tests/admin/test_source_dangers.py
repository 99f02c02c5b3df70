"""Dangerous changes to a source must be confirmed, are audited, and are saved completely or not at
all."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from agents.accounts.models import AuditEntry, Credential
from agents.employees.models import Grant, ToolRule
from tests.admin.rows import address, confirmed, consequences, faults, filled_form
from tests.admin.source_pages import PATHS, add, chosen, text_of, tools_page, values
from tests.admin.test_sources import connect, outside, pets, world
from tests.features import feature
from tests.tools.sources.outside import Outside, Reply, described
from tests.world import World
from tools.connections.models import AllowedHost, Source

__all__ = ["connect", "outside", "pets", "world"]

pytestmark = pytest.mark.django_db


class TestDangers:
    def test_sending_credentials_elsewhere_needs_confirmation(
        self, admin: Client, pets: Source
    ) -> None:
        Source.objects.update(authentication="bearer")
        Credential.objects.create(
            organization=pets.organization, service="pets", fields='{"token": "of-pets"}'
        )
        path = address(pets, "change")
        sent = filled_form(
            admin, path, base_url="https://elsewhere.example", may_be_private=None, file=None
        )
        (sentence,) = consequences(admin.post(path, sent)).values()
        assert "the credentials of pets are sent to" in sentence
        assert "elsewhere.example" in sentence

    @pytest.mark.parametrize(
        "change", [{"authentication": "bearer"}, {"service": "payments", "authentication": "basic"}]
    )
    def test_using_other_credentials_needs_confirmation(
        self, world: World, admin: Client, pets: Source, change: dict[str, str]
    ) -> None:
        path = address(pets, "change")
        for theirs in ("pets", "payments"):
            Credential.objects.create(
                organization=world.globex, service=theirs, fields='{"token": "of-globex"}'
            )
        (sentence,) = consequences(
            admin.post(path, filled_form(admin, path, file=None, **change))
        ).values()
        service = change.get("service", "pets")
        assert (
            f"The credentials of {service} will be sent to 127.0.0.1 once they are entered."
            in sentence
        )
        Credential.objects.create(
            organization=pets.organization, service=service, fields='{"token": "of-pets"}'
        )
        (sentence,) = consequences(
            admin.post(path, filled_form(admin, path, file=None, **change))
        ).values()
        assert f"From now on, the credentials of {service} are sent to 127.0.0.1." in sentence

    @feature(
        "Connected sources",
        "Credentials go only to the description's own server, unless an admin sets another one",
        "tools/connections/descriptions.py",
    )
    def test_a_description_cannot_send_credentials_to_another_server(
        self, connect: Callable[..., Any], outside: Outside
    ) -> None:
        text = described(PATHS, servers=[{"url": "https://elsewhere.example/v1"}]).encode()
        outside.replies.append(Reply(content=text))
        page = connect(address=f"{outside.url}/openapi.json", authentication="bearer")
        assert Source.objects.get().base_url == ""
        assert "The description gives https://elsewhere.example/v1 as the server" in text_of(page)

    @pytest.mark.parametrize("server", ["/v1", "{url}/v1"])
    def test_a_description_may_name_its_own_server(
        self, connect: Callable[..., Any], outside: Outside, server: str
    ) -> None:
        servers = [{"url": "/v0?x="}, {"url": server.format(url=outside.url)}]
        outside.replies.append(Reply(content=described(PATHS, servers=servers).encode()))
        connect(address=f"{outside.url}/openapi.json", authentication="bearer")
        assert Source.objects.get().base_url == f"{outside.url}/v1"

    def test_access_to_private_networks_can_be_withdrawn(self, admin: Client, pets: Source) -> None:
        path = address(pets, "change")
        sent = filled_form(admin, path, file=None)
        assert sent["may_be_private"] == "on"
        assert admin.post(path, {**sent, "timeout_s": 7}).status_code == 302
        assert AllowedHost.objects.get().may_be_private
        sent = filled_form(admin, path, file=None)
        assert admin.post(
            path, {name: value for name, value in sent.items() if name != "may_be_private"}
        ).status_code
        assert not AllowedHost.objects.get().may_be_private

    def test_a_program_needs_confirmation_and_admins_cannot_change_it(
        self, world: World, admin: Client
    ) -> None:
        root, sent = (
            world.client("root"),
            values(world, command_line="true --really", variables="KEY=token"),
        )
        assert (
            root.post(add("mcp_stdio"), confirmed(root, add("mcp_stdio"), sent)).status_code == 302
        )
        source = Source.objects.get()
        assert (source.command, source.environment) == (["true", "--really"], {"KEY": "token"})
        page = admin.get(address(source, "change"))
        assert page.status_code == 200
        assert "really" not in text_of(page)
        before = Source.objects.values().get()
        for path in ("test/", "refresh/", "tools/"):
            assert admin.post(f"/admin/connections/source/{source.pk}/{path}").status_code == 404
        assert admin.get(tools_page(source)).status_code == 404
        assert admin.post(address(source, "change"), sent).status_code == 403
        assert admin.post(address(source, "delete"), {"post": "yes"}).status_code == 403
        assert Source.objects.values().get() == before

    @pytest.mark.parametrize(
        "line", ["KEY", "=token", "KEY=", "1KEY=token", "KEY=to ken", "KEY=TOKEN"]
    )
    def test_each_variable_of_a_program_must_name_a_field(self, world: World, line: str) -> None:
        sent = values(world, command_line="true", variables=line)
        assert list(faults(world.client("root").post(add("mcp_stdio"), sent))) == ["variables"]

    def test_the_audit_does_not_contain_the_document(
        self, connect: Callable[..., Any], outside: Outside
    ) -> None:
        text = described(
            PATHS, info={"title": "Pets", "version": "1", "description": "marker-in-the-document"}
        )
        connect(is_private=False, file=SimpleUploadedFile("api.json", text.encode()))
        assert "marker-in-the-document" not in json.dumps(
            list(AuditEntry.objects.values_list("payload", flat=True))
        )


class TestDeleting:
    @feature(
        "Connected sources",
        "Deleting a source removes the grants and rules of its tools",
        "agents/admin/sources.py",
    )
    def test_removes_the_grants_and_rules_of_its_tools(
        self, world: World, admin: Client, pets: Source
    ) -> None:
        admin.post(tools_page(pets), chosen(pets, "listPets"))
        Grant.objects.create(employee=world.employee, tool="pets.listPets")
        ToolRule.objects.create(organization=world.acme, tool="pets.listPets", level="write")
        ToolRule.objects.create(organization=world.globex, tool="pets.listPets", level="write")
        before = set(Grant.objects.exclude(tool="pets.listPets"))
        told = f"pets.listPets to {world.employee}"
        assert f"Grant of {told}" in text_of(admin.get(address(pets, "delete")))
        assert admin.post(address(pets, "delete"), {"post": "yes"}).status_code == 302
        assert set(Grant.objects.all()) == before
        assert [rule.organization for rule in ToolRule.objects.filter(tool="pets.listPets")] == [
            world.globex
        ]
        entry = AuditEntry.objects.get(action="source_deleted")
        assert entry.payload["fields"] == {"grants": [told], "tool_rules": ["pets.listPets"]}
