"""On this machine, the login page has a button for each of the demo's people, while DEBUG is on and
their accounts exist.

The address to which the buttons post follows the same rules.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from gadget_site.demo import building
from gadget_site.demo.login import PEOPLE
from gadget_site.demo.names import PASSWORD
from gadget_site.edge.proxies import FORWARDED_HEADER

pytestmark = [pytest.mark.django_db, pytest.mark.once]

ADDRESS = "/login/demo/"


@pytest.fixture(autouse=True)
def demo(settings: Settings) -> None:
    settings.DEBUG = settings.GADGET_ONLY_LOCAL = True
    building.build()


def read_login_page(client: Client | None = None) -> str:
    response = (client or Client()).get("/login/")
    assert response.status_code == 200
    return response.content.decode()


def offered(html: str) -> list[str]:
    return re.findall(r'name="username" value="(\w+)"', html)


def log_in(username: str, **more: str) -> tuple[int, str]:
    """Return the response's status, and the name of the account that is then logged in."""
    client = Client()
    response = client.post(ADDRESS, {"username": username, **more})
    pk = client.session.get("_auth_user_id")
    return response.status_code, User.objects.get(pk=pk).username if pk else ""


def test_every_demo_person_can_log_in_with_one_click_and_no_password_is_on_the_page() -> None:
    html = read_login_page()
    assert offered(html) == list(PEOPLE)
    assert PASSWORD not in html
    for name in PEOPLE:
        assert log_in(name) == (302, name)


def test_the_click_leads_to_the_requested_page_but_never_to_another_site() -> None:
    for wanted, reached in (("/runs/", "/runs/"), ("https://evil.example/", "/"), ("", "/")):
        assert Client().post(ADDRESS, {"username": "viewer", "next": wanted})["Location"] == reached


def test_the_buttons_are_absent_while_debug_is_off(settings: Settings) -> None:
    assert log_in("viewer") == (302, "viewer")
    settings.DEBUG = False
    assert "demo" not in read_login_page()
    assert log_in("viewer") == (404, "")
    assert Client().get(ADDRESS).status_code == 404


@pytest.mark.parametrize(
    ("origin", "is_only_local"),
    [
        ({"REMOTE_ADDR": "10.0.0.7"}, True),
        ({"REMOTE_ADDR": "2001:db8::1"}, True),
        ({f"HTTP_{FORWARDED_HEADER.decode().upper().replace('-', '_')}": "1"}, True),
        ({}, False),
    ],
    ids=[
        "another machine",
        "another machine by IPv6",
        "through a proxy",
        "where others may reach Gadget",
    ],
)
def test_the_buttons_are_absent_on_other_machines(
    settings: Settings, origin: dict[str, Any], is_only_local: bool
) -> None:
    settings.GADGET_ONLY_LOCAL = is_only_local
    client = Client(**origin)
    assert "demo" not in read_login_page(client)
    response = client.post(ADDRESS, {"username": "admin"})
    assert (response.status_code, client.session.get("_auth_user_id")) == (404, None)
    settings.GADGET_ONLY_LOCAL = True
    assert offered(read_login_page(Client(REMOTE_ADDR="::1"))) == list(PEOPLE)


def test_the_buttons_are_absent_without_demo_accounts() -> None:
    User.objects.exclude(username="viewer").delete()
    assert offered(read_login_page()) == ["viewer"]
    assert log_in("admin") == (404, "")
    User.objects.all().delete()
    assert "demo" not in read_login_page()
    assert log_in("viewer") == (404, "")


@pytest.mark.parametrize(
    "change", [{"email": "me@company.example"}, {"is_active": False}, {"username": "viewer2"}]
)
def test_an_account_not_created_by_the_demo_is_not_offered(change: dict[str, object]) -> None:
    User.objects.filter(username="viewer").update(**change)
    assert "viewer" not in "".join(offered(read_login_page()))
    assert log_in("viewer") == (404, "")


def test_an_account_outside_the_demo_organizations_is_not_offered() -> None:
    User.objects.get(username="viewer").memberships.all().delete()
    assert log_in("viewer") == (404, "")


def test_a_click_does_not_log_in_to_an_account_with_a_changed_password() -> None:
    user = User.objects.get(username="admin")
    user.set_password("a password of its own")
    user.save()
    client = Client()
    response = client.post(ADDRESS, {"username": "admin"})
    assert "The password of this demo account was changed" in response.content.decode()
    assert "_auth_user_id" not in client.session


def test_only_forms_of_this_site_can_log_a_person_in() -> None:
    client = Client(enforce_csrf_checks=True)
    assert client.get(ADDRESS).status_code == 405
    assert client.post(ADDRESS, {"username": "viewer"}).status_code == 403
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', read_login_page(client))
    assert token is not None
    assert (
        client.post(ADDRESS, {"username": "viewer", "csrfmiddlewaretoken": token[1]}).status_code
        == 302
    )
