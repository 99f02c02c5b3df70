"""Corrected settings of a source take effect immediately."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.accounts.models import Organization
from agents.employees.toolboxes import load_toolbox
from tests.admin.rows import address, confirmed, faults, filled_form
from tests.admin.source_pages import PATHS, add, chosen, text_of, tools_page, values
from tests.admin.test_sources import connect, outside, pets, world
from tests.features import feature
from tests.tools.sources.outside import Outside, Reply, described
from tests.world import World
from tools.connections.models import AllowedHost, Source

__all__ = ["connect", "outside", "pets", "world"]

pytestmark = pytest.mark.django_db

Capture = Callable[..., AbstractContextManager[list[Any]]]
NEVER = [
    "http://169.254.169.254/latest",
    "http://[fe80::1]/",
    "http://100.100.100.200/",
    "http://0.0.0.0/",
]


@pytest.fixture
def save(admin: Client, django_capture_on_commit_callbacks: Capture) -> Callable[..., Any]:
    """Return a function that saves a change to a source, ticking the confirmations if `asks` is
    True, and returns the next page."""

    def saved(source: Source, *, asks: bool = False, **changes: Any) -> Any:
        path = address(source, "change")
        sent = filled_form(admin, path, file=None, **changes)
        sent = confirmed(admin, path, sent) if asks else sent
        with django_capture_on_commit_callbacks(execute=True):
            response = admin.post(path, sent)
        assert response.status_code == 302, faults(response)
        source.refresh_from_db()
        return admin.get(response["Location"])

    return saved


class TestReadingAgain:
    @feature(
        "Connected sources",
        "Saving corrected settings of a source imports it again",
        "agents/admin/sources.py",
    )
    def test_happens_when_an_unreadable_source_is_corrected(
        self, connect: Callable[..., Any], save: Callable[..., Any], outside: Outside
    ) -> None:
        page = connect(address=f"{outside.url}/openapi.json", is_private=False)
        source = Source.objects.get()
        assert f'action="/admin/connections/source/{source.pk}/refresh/"' in text_of(page)
        outside.replies.append(Reply(content=described(PATHS).encode()))
        page = save(source, asks=True, may_be_private="on")
        assert page.context["total"] == 3
        assert source.problem == ""

    def test_does_not_happen_when_only_the_timeout_changes(
        self, save: Callable[..., Any], pets: Source, outside: Outside
    ) -> None:
        asked = len(outside.received)
        page = save(pets, timeout_s=7)
        assert "lines" not in page.context
        assert len(outside.received) == asked

    def test_happens_when_the_authentication_changes(
        self, save: Callable[..., Any], pets: Source, outside: Outside
    ) -> None:
        outside.replies.append(Reply(content=described({"/pets": PATHS["/pets"]}).encode()))
        page = save(pets, asks=True, authentication="bearer")
        assert page.context["described"] == 2


class TestSourceWithoutBaseAddress:
    def test_finds_its_base_address_again_in_its_description(
        self, save: Callable[..., Any], pets: Source, outside: Outside
    ) -> None:
        outside.replies.append(Reply(content=described(PATHS).encode()))
        before = pets.base_url
        save(pets, base_url="")
        assert pets.base_url == before != ""

    @feature(
        "Connected sources",
        "Tools of an API without a server address are withheld",
        "tools/connections/connected_tools.py",
    )
    def test_withholds_its_tools_and_shows_the_reason_on_the_pages(
        self, admin: Client, save: Callable[..., Any], pets: Source, outside: Outside
    ) -> None:
        admin.post(tools_page(pets), chosen(pets, "listPets"))
        outside.replies.append(Reply(500))
        save(pets, base_url="")
        organization = Organization.objects.get(pk=pets.organization_id)
        told = "“pets.listPets” cannot be used: “pets” has no address for its operations."
        assert load_toolbox(organization.pk).policy.withheld["pets.listPets"] == told
        Source.objects.update(problem="")
        listed = text_of(admin.get(address(Source, "list")))
        assert 'data-state="failed"' in listed
        assert "1 of 3 enabled" in listed
        page = text_of(admin.get(tools_page(pets)))
        assert (
            "The tools of pets cannot be used, because the source has no address for its operations."
            in page
        )
        assert "1 of 3 tools enabled. Shown: 3 of 3 tools" in page


class TestUnreachableAddresses:
    @feature(
        "Connected sources",
        "Forms refuse addresses that tools can never contact",
        "agents/admin/hosts.py",
    )
    @pytest.mark.parametrize("where", NEVER)
    @pytest.mark.parametrize("field", ["address", "base_url", "token_url"])
    def test_are_refused_in_the_form(
        self, world: World, admin: Client, where: str, field: str
    ) -> None:
        known = {"address": "https://api.example.com", field: where, "may_be_private": "on"}
        told = faults(admin.post(add(), values(world, **known)))
        assert list(told) == [field]
        assert "Tools can never reach it." in told[field][0]

    @pytest.mark.parametrize("typed", [*NEVER, "169.254.169.254"])
    def test_are_refused_as_allowed_hosts(self, world: World, admin: Client, typed: str) -> None:
        sent = {"organization": world.acme.pk, "host": typed, "may_be_private": "on"}
        assert list(faults(admin.post(address(AllowedHost, "add"), sent))) == ["host"]


class TestProgramsForAdmins:
    def test_are_listed_as_unavailable_with_the_reason(self, admin: Client) -> None:
        page = text_of(admin.get(address(Source, "add")))
        assert "MCP server as a local program" in page
        assert "Only a superuser of this installation can connect programs" in page
        assert "python manage.py createsuperuser" in page

    def test_are_refused_with_the_reason_if_the_form_is_opened_by_its_address(
        self, admin: Client
    ) -> None:
        response = admin.get(add("mcp_stdio"))
        assert response.status_code == 403
        assert "Only a superuser of this installation" in text_of(response)

    def test_are_not_listed_as_unavailable_to_a_superuser(self, world: World) -> None:
        User.objects.filter(username="root").update(is_staff=True)
        assert "Only a superuser" not in text_of(world.client("root").get(address(Source, "add")))


class TestWording:
    def test_a_confirmation_page_is_not_called_an_error(self, world: World, admin: Client) -> None:
        sent = values(world, address="http://127.0.0.1:9/openapi.json", may_be_private="on")
        page = text_of(admin.post(add(), sent))
        assert "Not saved yet. Confirm the consequences below." in page
        assert "Please correct the error" not in page
        wrong = text_of(admin.post(add(), {**sent, "timeout_s": 0}))
        assert "Please correct the error" in wrong
        assert "Not saved yet" not in wrong

    @feature(
        "Connected sources",
        "A user without access to the admin gets an explanation",
        "templates/django/admin/login.html",
    )
    @pytest.mark.parametrize("who", ["viewer", "operator", "approver"])
    def test_a_person_without_access_to_the_admin_sees_their_account_name(
        self, world: World, who: str
    ) -> None:
        page = text_of(world.client(who).get(address(Source, "list"), follow=True))
        assert f"You are logged in as {who}, an account without access to the admin." in page

    def test_a_stranger_cannot_see_any_account_name(self) -> None:
        assert "You are logged in as" not in text_of(Client().get("/admin/", follow=True))

    def test_the_list_shows_which_sources_work(self, admin: Client, pets: Source) -> None:
        for change, state in (
            ({}, "connected"),
            ({"problem": "It answers with 500."}, "failed"),
            ({"is_active": False}, "off"),
        ):
            Source.objects.update(**change)
            assert f'data-state="{state}"' in text_of(admin.get(address(Source, "list")))

    def test_the_buttons_that_enable_or_disable_tools_say_that_they_save(
        self, admin: Client, pets: Source
    ) -> None:
        page = text_of(admin.get(tools_page(pets)))
        assert "Enable all 3 shown and save" in page
        assert "Disable all shown and save" in page
