"""Forms that are sent after the session has ended: typed texts are restored after the login, but
secrets are not."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from agents.runs.models import Approval, ApprovalStatus
from agents.web.frame.unsent_texts import MAX_LENGTH
from tests.world import World, nobody

pytestmark = [pytest.mark.django_db, pytest.mark.once]

PASSWORD = "a long and plain password"


@pytest.fixture
def browser() -> Client:
    """A browser whose session has ended, but whose CSRF cookie is still valid."""
    client = nobody()
    client.cookies["csrftoken"] = "x" * 32
    return client


def read_kept(page: Any) -> str:
    found = re.search(r'name="unsent" value="([^"]*)"', page.content.decode())
    return unescape(found[1]) if found else ""


def log_in(world: World, browser: Client, **more: str) -> Any:
    user = world.users["approver"]
    user.set_password(PASSWORD)
    user.save()
    form = {"username": user.get_username(), "password": PASSWORD, **more}
    return browser.post("/login/", form)


def test_texts_are_restored_once_after_the_login(world: World, browser: Client) -> None:
    card = world.card()
    path = f"/approvals/{card.pk}/deny/"
    page = browser.post(path, {"digest": card.digest, "reason": "ask <Ann>\nfirst", "preset": ""})
    assert page.status_code == 403
    assert "Log in to get your text back." in page.content.decode()
    assert not browser.session.keys(), "nothing of strangers is stored"
    response = log_in(world, browser, next=f"/approvals/{card.pk}/", unsent=read_kept(page))
    assert response["Location"] == f"/approvals/{card.pk}/"
    shown = browser.get(response["Location"]).content.decode()
    assert f'data-unsent="{path}"' in shown
    assert 'data-unsent-name="reason" data-unsent-text="ask &lt;Ann&gt;\nfirst"' in shown
    assert "data-unsent=" not in browser.get(response["Location"]).content.decode()
    assert Approval.objects.get().status == ApprovalStatus.PENDING


def test_a_wrong_password_keeps_the_texts(world: World, browser: Client) -> None:
    kept = json.dumps({"path": "/", "texts": [["task", "Tidy up"]]})
    page = log_in(world, browser, password="wrong", unsent=kept)
    assert json.loads(read_kept(page)) == json.loads(kept)


def test_a_script_gets_401_instead_of_the_login_page(world: World, browser: Client) -> None:
    card = world.card()
    response = browser.post(
        f"/approvals/{card.pk}/take/", {}, headers={"accept": "application/json"}
    )
    assert (response.status_code, response.json()["code"]) == (401, "login_required")


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/account/password/", {"old_password": "a", "new_password1": "b", "new_password2": "b"}),
        (
            "/notices/channels/browser/",
            {"endpoint": "https://push.example", "p256dh": "k", "auth": "s"},
        ),
        ("/notices/channels/1/confirm/", {"code": "123456"}),
        ("/", {"task": "x" * MAX_LENGTH}),
        ("/approvals/1/approve/", {"digest": "d", "confirm": "12", "seen_approvals": "ann"}),
    ],
)
def test_secrets_long_texts_and_fields_that_people_do_not_type_are_not_kept(
    world: World, browser: Client, path: str, form: dict[str, str]
) -> None:
    response = browser.post(path, form)
    assert response.status_code == 302
    assert response["Location"].startswith("/login/?next=/")


@pytest.mark.parametrize(
    "kept", ["", "x", "[]", "{}", '{"path": 1, "texts": 2}', "[" * 50_000, "9" * 70_000]
)
def test_kept_texts_that_are_malformed_are_ignored_at_the_login(
    world: World, browser: Client, kept: str
) -> None:
    assert log_in(world, browser, next="/runs/", unsent=kept)["Location"] == "/runs/"
    assert "data-unsent=" not in browser.get("/runs/").content.decode()


def test_a_request_for_a_fragment_does_not_consume_the_kept_texts(
    world: World, browser: Client
) -> None:
    kept = json.dumps({"path": "/", "texts": [["task", "Tidy up"]]})
    log_in(world, browser, unsent=kept)
    assert (
        "data-unsent=" not in browser.get("/", headers={"sec-fetch-mode": "cors"}).content.decode()
    )
    assert (
        "data-unsent=" in browser.get("/", headers={"sec-fetch-mode": "navigate"}).content.decode()
    )
