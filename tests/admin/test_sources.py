"""An admin connects APIs and MCP servers, from the choice of the kind to grantable tools."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from agents.accounts.models import AuditEntry, Credential
from agents.employees import sources
from tests.admin.rows import address, confirmed, faults, filled_form, make_admin_world
from tests.admin.source_pages import (
    PATHS,
    add,
    chosen,
    form_on,
    offered,
    text_of,
    tools_page,
    values,
)
from tests.features import feature
from tests.tools.mcp_servers.http_server import older_server
from tests.tools.sources.outside import Outside, Reply, described, running
from tests.world import World
from tools.connections.models import AllowedHost, Source, SourceTool

pytestmark = pytest.mark.django_db

Capture = Callable[..., AbstractContextManager[list[Any]]]


@pytest.fixture
def world() -> World:
    made = make_admin_world()
    made.users["root"] = User.objects.create_superuser("root")
    return made


@pytest.fixture
def outside() -> Iterator[Outside]:
    with running() as api:
        yield api


@pytest.fixture
def connect(
    world: World, admin: Client, django_capture_on_commit_callbacks: Capture
) -> Callable[..., Any]:
    """Send the form with its confirmations, and return the next page."""

    def connected(kind: str = "openapi", *, is_private: bool = True, **more: Any) -> Any:
        sent = values(world, **more, **({"may_be_private": "on"} if is_private else {}))
        if is_private:
            sent = confirmed(admin, add(kind), sent)
        with django_capture_on_commit_callbacks(execute=True):
            response = admin.post(add(kind), sent)
        assert response.status_code == 302, faults(response)
        return admin.get(response["Location"])

    return connected


@pytest.fixture
def pets(connect: Callable[..., Any], outside: Outside) -> Source:
    outside.replies.append(Reply(content=described(PATHS).encode()))
    connect(address=f"{outside.url}/openapi.json")
    return Source.objects.get()


class TestConnectingASource:
    @feature("Connected sources", "Only superusers can connect programs", "agents/admin/sources.py")
    def test_programs_are_offered_only_to_superusers(self, world: World, admin: Client) -> None:
        assert "kind=mcp_stdio" not in text_of(admin.get(address(Source, "add")))
        assert "kind=mcp_stdio" in text_of(world.client("root").get(address(Source, "add")))
        sent = values(world, command_line="true")
        assert admin.get(add("mcp_stdio")).status_code == 403
        assert admin.post(add("mcp_stdio"), sent).status_code == 403
        assert (
            "command_line" not in admin.post(add("mcp_http"), sent).context["adminform"].form.fields
        )
        assert not Source.objects.exists()

    @pytest.mark.parametrize(
        ("kind", "there", "not_there"),
        [
            ("openapi", {"address", "file", "base_url", "token_url"}, {"command_line"}),
            (
                "mcp_http",
                {"address", "key_name"},
                {"file", "base_url", "token_url", "command_line"},
            ),
            (
                "mcp_stdio",
                {"command_line", "variables"},
                {"address", "may_be_private", "authentication"},
            ),
        ],
    )
    def test_each_form_has_the_fields_of_its_kind(
        self, world: World, kind: str, there: set[str], not_there: set[str]
    ) -> None:
        fields = set(world.client("root").get(add(kind)).context["adminform"].form.fields)
        assert there <= fields
        assert not not_there & fields

    @feature(
        "Connected sources",
        "An API is imported when it is saved, from an address or a file",
        "agents/admin/sources.py",
    )
    def test_an_api_is_read_when_it_is_saved(
        self, connect: Callable[..., Any], outside: Outside
    ) -> None:
        outside.replies.append(Reply(content=described(PATHS).encode()))
        page = text_of(connect(address=f"{outside.url}/openapi.json"))
        assert "3 of 3 tools" in page
        for row in SourceTool.objects.all():
            assert f"<code>{row.tool}</code>" in page
        assert AllowedHost.objects.get().may_be_private
        assert AuditEntry.objects.filter(action="source_added").count() == 1

    def test_an_api_can_be_read_from_an_uploaded_file(
        self, connect: Callable[..., Any], outside: Outside
    ) -> None:
        text = described(PATHS, servers=[{"url": outside.url}]).encode()
        connect(is_private=False, file=SimpleUploadedFile("api.json", text))
        assert Source.objects.get().tools.count() == 3
        assert Source.objects.get().base_url == outside.url
        assert not outside.received

    def test_the_tools_of_an_mcp_server_are_listed_without_a_level(
        self, connect: Callable[..., Any]
    ) -> None:
        with older_server() as server:
            page = text_of(connect("mcp_http", address=server.url("works")))
        assert "<code>pets.save</code>" in page
        assert "Choose a level" in page

    def test_a_refused_private_address_names_the_option_that_allows_it(
        self, connect: Callable[..., Any], outside: Outside
    ) -> None:
        page = text_of(connect(address=f"{outside.url}/openapi.json", is_private=False))
        assert "tick “Allow private networks”" in page
        assert not outside.received

    @pytest.mark.parametrize(
        ("reply", "told"),
        [
            (Reply(404), "returned status 404"),
            (
                Reply(content=b"<html><body>Hi</body></html>"),
                "This is a web page, not an OpenAPI description",
            ),
            (
                Reply(content=b'{"openapi": "3.1.0",\n "info": '),
                "neither JSON nor YAML: line 2, column ",
            ),
            (
                Reply(content=b"[1, 2]"),
                "This is a text, a number or a list, not an OpenAPI description.",
            ),
            (Reply(302, headers={"Location": "http://10.0.0.1/"}), "redirect"),
        ],
    )
    def test_failures_are_explained_in_plain_words(
        self, connect: Callable[..., Any], outside: Outside, reply: Reply, told: str
    ) -> None:
        outside.replies.append(reply)
        assert told in text_of(connect(address=f"{outside.url}/openapi.json"))
        assert told in Source.objects.get().problem

    @feature(
        "Connected sources",
        "A worker imports large descriptions while the page waits",
        "agents/employees/sources.py",
    )
    def test_a_large_description_is_read_by_a_worker_while_the_page_waits(
        self, connect: Callable[..., Any], outside: Outside, admin: Client
    ) -> None:
        large = described(
            PATHS, info={"title": "Large", "version": "1", "description": "x" * 2_000_000}
        ).encode()
        outside.replies += [Reply(content=large), Reply(content=large)]
        page = connect(address=f"{outside.url}/openapi.json")
        assert "is reading the description" in text_of(page)
        assert page["Refresh"]
        sources.refresh_source_by_id(Source.objects.get().pk)  # as the worker does
        page = admin.get(page.wsgi_request.get_full_path())
        assert "3 of 3 tools" in text_of(page)
        assert "Refresh" not in page

    @pytest.mark.parametrize(
        ("more", "field"),
        [
            ({"name": "data", "address": "https://api.example.com"}, "name"),
            ({"name": "Pets", "address": "https://api.example.com"}, "name"),
            ({"address": "file:///etc/passwd"}, "address"),
            ({"address": "https://user:secret@api.example.com"}, "address"),
            ({"address": "no address"}, "address"),
            ({}, "address"),
            ({"address": "https://api.example.com", "base_url": "ftp://x.example"}, "base_url"),
            (
                {"address": "https://api.example.com", "base_url": "https://x.example/v1?to="},
                "base_url",
            ),
            (
                {"address": "https://api.example.com", "base_url": "https://x.example/v1#to"},
                "base_url",
            ),
            ({"address": "https://api.example.com", "authentication": "api_key"}, "key_name"),
            ({"address": "https://api.example.com", "authentication": "oauth2"}, "token_url"),
        ],
    )
    def test_each_error_is_shown_beside_its_field(
        self, world: World, admin: Client, more: dict[str, str], field: str
    ) -> None:
        assert list(faults(admin.post(add(), values(world, **more)))) == [field]

    def test_a_source_with_a_taken_name_is_refused(
        self, world: World, admin: Client, pets: Source
    ) -> None:
        again = admin.post(add(), values(world, address="https://api.example.com"))
        assert "already exists" in str(faults(again))
        elsewhere = values(world, organization=world.globex.pk, address="https://api.example.com")
        assert "organization" in faults(admin.post(add(), elsewhere))


class TestCredentialsOfSources:
    @feature(
        "Connected sources",
        "Missing credentials are named, with a link to their form",
        "agents/admin/missing_credentials.py",
    )
    def test_missing_credentials_are_reported_with_a_link_to_their_form(
        self, world: World, connect: Callable[..., Any], outside: Outside, admin: Client
    ) -> None:
        outside.replies.append(Reply(content=described(PATHS).encode()))
        page = connect(address=f"{outside.url}/openapi.json", authentication="basic")
        missing = page.context["missing_credentials"]
        assert missing.fields == ("username", "password")
        assert missing.url in page.content.decode().replace("&amp;", "&")
        response = admin.get(missing.url)
        form = response.context["adminform"].form
        assert [name for name in form.fields if name.startswith("value_")] == [
            "value_username",
            "value_password",
        ]
        assert form["organization"].value() == str(world.acme.pk)
        sent = {
            "organization": world.acme.pk,
            "value_username": "acme-user",
            "value_password": "acme-password",
        }
        assert admin.post(missing.url, sent).status_code == 302
        assert json.loads(Credential.objects.get(service="pets").fields).keys() == {
            "username",
            "password",
        }
        assert admin.get(tools_page(Source.objects.get())).context["missing_credentials"] is None

    def test_sources_of_another_organization_are_not_offered(
        self, world: World, pets: Source
    ) -> None:
        Source.objects.update(authentication="bearer", service="of-acme")
        choice = f"{address(Credential, 'add')}"
        assert "of-acme" in text_of(world.client("admin").get(choice))
        assert "of-acme" not in text_of(world.client("outsider").get(choice))
        form = world.client("outsider").get(f"{choice}?for=of-acme").context["adminform"].form
        assert "value_token" not in form.fields


class TestChoosingTools:
    def test_ticked_tools_are_enabled_and_audited(self, admin: Client, pets: Source) -> None:
        assert admin.post(tools_page(pets), chosen(pets, "listPets")).status_code == 302
        assert offered(pets) == {"pets.listPets"}
        entry = AuditEntry.objects.filter(action="source_changed").get()
        assert entry.payload["fields"]["tools"]["pets.listPets"]["after"]["state"] == "offered"

    @feature(
        "Connected sources",
        "Tools can be filtered by text, tag, method and state",
        "agents/admin/source_tools.py",
    )
    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("text=pet+LIST", {"listPets"}),
            ("tag=pets", {"listPets", "addPet"}),
            ("method=DELETE", {"dropToy"}),
            ("state=offered", set()),
            ("state=not+chosen&method=POST", {"addPet"}),
            ("method=NONSENSE", {"listPets", "addPet", "dropToy"}),
        ],
    )
    def test_each_filter_selects_the_matching_tools(
        self, admin: Client, pets: Source, query: str, found: set[str]
    ) -> None:
        page = admin.get(f"{tools_page(pets)}?{query}")
        assert {line.row.tool.partition(".")[2] for line in page.context["rows"]} == found

    def test_one_button_enables_or_disables_all_shown_tools(
        self, admin: Client, pets: Source
    ) -> None:
        assert admin.post(tools_page(pets), {**chosen(pets), "every": "all"}).status_code == 302
        assert len(offered(pets)) == 3
        assert admin.post(tools_page(pets), {**chosen(pets), "every": "none"}).status_code == 302
        assert offered(pets) == set()

    @feature(
        "Connected sources",
        "A level below the inferred one needs confirmation",
        "agents/admin/source_choices.py",
    )
    def test_a_level_below_the_inferred_level_needs_confirmation(
        self, admin: Client, pets: Source
    ) -> None:
        sent = chosen(pets, "addPet", addPet="read")
        page = admin.post(tools_page(pets), sent)
        ((key, sentence),) = page.context["consequences"].items()
        assert "“pets.addPet” (inferred: write)" in sentence
        assert offered(pets) == set()
        other = chosen(pets, "addPet", "dropToy", addPet="read", dropToy="read")
        assert admin.post(tools_page(pets), {**other, "confirmed": key}).status_code == 200
        assert admin.post(tools_page(pets), {**sent, "confirmed": key}).status_code == 302
        assert pets.tools.get(tool="pets.addPet").effective_level == "read"
        told = (
            AuditEntry.objects.filter(action="source_changed")
            .get()
            .payload["fields"]["tools"]["pets.addPet"]
        )
        assert (told["after"]["level"], told["after"]["inferred"]) == ("read", "write")

    @feature(
        "Connected sources",
        "The confirmation is asked once the tool is chosen, regardless of earlier input",
        "agents/admin/source_choices.py",
    )
    @pytest.mark.parametrize("how", ["tick", "all"])
    def test_a_low_level_sent_before_its_tool_is_enabled_needs_confirmation(
        self, admin: Client, pets: Source, how: str
    ) -> None:
        path, row = tools_page(pets), pets.tools.get(tool="pets.addPet")
        first = {**form_on(admin.get(path)), f"level-{row.pk}": "read"}
        assert admin.post(path, first).status_code == 302
        second = form_on(admin.get(path)) | (
            {"every": "all"} if how == "all" else {f"chosen-{row.pk}": "on"}
        )
        page = admin.post(path, second)
        ((key, sentence),) = page.context["consequences"].items()
        assert "“pets.addPet” (inferred: write)" in sentence
        assert offered(pets) == set()
        assert admin.post(path, {**form_on(page), **second, "confirmed": key}).status_code == 302
        assert "pets.addPet" in offered(pets)
        assert admin.post(path, form_on(admin.get(path))).status_code == 302, (
            "what was confirmed is not asked again"
        )

    def test_a_raised_level_does_not_need_confirmation(self, admin: Client, pets: Source) -> None:
        assert (
            admin.post(tools_page(pets), chosen(pets, "listPets", listPets="write")).status_code
            == 302
        )
        assert pets.tools.get(tool="pets.listPets").effective_level == "write"

    def test_a_definition_that_changed_while_it_was_reviewed_is_not_accepted(
        self, admin: Client, pets: Source
    ) -> None:
        sent = chosen(pets, "listPets")
        SourceTool.objects.filter(tool="pets.listPets").update(hash="another")
        page = admin.post(tools_page(pets), sent)
        assert "The definition of pets.listPets has changed" in text_of(page)
        assert offered(pets) == set()

    @feature(
        "Connected sources",
        "An MCP tool needs a level, and a changed one needs a separate confirmation",
        "agents/admin/source_choices.py",
    )
    def test_a_changed_definition_is_accepted_only_with_its_own_checkbox(
        self, admin: Client, pets: Source
    ) -> None:
        admin.post(tools_page(pets), chosen(pets, "listPets"))
        row = pets.tools.get(tool="pets.listPets")
        SourceTool.objects.filter(pk=row.pk).update(hash="another")
        assert "Its definition has changed" in text_of(admin.get(tools_page(pets)))
        admin.post(tools_page(pets), chosen(pets, "listPets", "dropToy"))
        assert offered(pets) == {"pets.dropToy"}
        admin.post(
            tools_page(pets), {**chosen(pets, "listPets", "dropToy"), f"accept-{row.pk}": "on"}
        )
        assert offered(pets) == {"pets.dropToy", "pets.listPets"}

    def test_a_tool_of_an_mcp_server_needs_a_level(
        self, connect: Callable[..., Any], admin: Client
    ) -> None:
        with older_server() as server:
            connect("mcp_http", address=server.url("works"))
        source = Source.objects.get()
        assert "Choose a level for pets.save" in text_of(
            admin.post(tools_page(source), chosen(source, "save"))
        )
        assert offered(source) == set()
        assert (
            admin.post(tools_page(source), chosen(source, "save", save="destructive")).status_code
            == 302
        )
        assert offered(source) == {"pets.save"}

    @pytest.mark.parametrize("level", ["admin", "READ", "\0"])
    def test_an_unknown_level_is_refused(self, admin: Client, pets: Source, level: str) -> None:
        sent = chosen(pets, "listPets", listPets=level)
        assert "is not a level" in text_of(admin.post(tools_page(pets), sent))
        assert offered(pets) == set()

    def test_rows_of_another_source_stay_unchanged(
        self, world: World, admin: Client, pets: Source
    ) -> None:
        other = Source.objects.create(organization=world.globex, kind="openapi", name="other")
        row = SourceTool.objects.create(
            source=other,
            key="GET /",
            tool="other.x",
            definition={},
            hash="1",
            inferred_level="read",
        )
        sent = {"shown": [row.pk, "x", "9" * 30], f"chosen-{row.pk}": "on", f"seen-{row.pk}": "1"}
        admin.post(tools_page(pets), sent)
        assert offered(other) == set()


class TestAccessToSources:
    @pytest.mark.parametrize("page", ["test/", "refresh/", "tools/"])
    def test_strangers_cannot_open_or_connect_a_source(
        self, world: World, pets: Source, outside: Outside, page: str
    ) -> None:
        asked, path = len(outside.received), f"/admin/connections/source/{pets.pk}/{page}"
        assert world.client("outsider").post(path).status_code == 404
        assert world.client("operator").post(path).status_code == 302
        assert world.client("operator").post(path)["Location"].startswith("/admin/login/")
        assert world.client("admin", needs_csrf=True).post(path).status_code == 403
        assert len(outside.received) == asked

    @pytest.mark.parametrize("page", ["test/", "refresh/"])
    def test_connecting_requires_a_post_request(
        self, admin: Client, pets: Source, page: str
    ) -> None:
        assert admin.get(f"/admin/connections/source/{pets.pk}/{page}").status_code == 405

    def test_a_deleted_source_is_not_found(self, admin: Client, pets: Source) -> None:
        sent = chosen(pets, "listPets")
        assert admin.post(address(pets, "delete"), {"post": "yes"}).status_code == 302
        assert admin.post(tools_page(pets), sent).status_code == 404
        assert admin.post(f"/admin/connections/source/{pets.pk}/test/").status_code == 404
        assert not SourceTool.objects.exists()

    def test_a_switched_off_source_is_not_contacted(
        self, admin: Client, pets: Source, outside: Outside
    ) -> None:
        Source.objects.update(is_active=False)
        asked = len(outside.received)
        admin.post(f"/admin/connections/source/{pets.pk}/refresh/")
        assert len(outside.received) == asked


class TestGrantingTools:
    @feature(
        "Connected sources",
        "A granted tool that cannot be used now shows the reason",
        "tools/connections/unavailable_tools.py",
    )
    @feature(
        "Connected sources",
        "The catalog shows each tool's source and filters by it",
        "agents/web/views/tools.py",
    )
    def test_a_tool_is_shown_with_its_source_and_if_unavailable_with_the_reason(
        self, world: World, admin: Client, pets: Source
    ) -> None:
        admin.post(tools_page(pets), chosen(pets, "listPets"))
        path = address(world.employee, "change")
        sent = filled_form(admin, path)
        sent["allowed_tools"] = [*sent["allowed_tools"], "pets.listPets"]
        assert admin.post(path, sent).status_code == 302
        operator = world.client("operator")
        found = operator.get("/tools/?source=pets")
        assert re.findall(r'</b> <code class="small">([^<]+)</code>', text_of(found)) == [
            "pets.listPets"
        ]
        assert re.search(
            r"<dt>Source</dt><dd><strong[^>]*><bdi>pets</bdi></strong></dd>", text_of(found)
        )
        for change, reason in (
            ({"hash": "another"}, "its definition has changed"),
            ({"is_chosen": False}, "it is not enabled among the tools of pets"),
        ):
            SourceTool.objects.filter(tool="pets.listPets").update(**change)
            world.acme.refresh_from_db()
            type(world.acme).objects.filter(pk=world.acme.pk).update(
                tools_version=world.acme.tools_version + 1
            )
            assert f"unavailable: {reason}" in text_of(
                operator.get(f"/employees/{world.employee.pk}/")
            )
            assert f"pets.listPets · {reason}" in text_of(admin.get(path))
