"""Each page and each refusal has the strict Content Security Policy; only the admin may run inline
code."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from agents.accounts.models import Membership
from agents.urls import urlpatterns
from tests.web.addresses import build_address
from tests.web.test_access import READ
from tests.world import World, make_world, nobody

pytestmark = [pytest.mark.django_db, pytest.mark.once]

HEADER = "Content-Security-Policy"
STRICT = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "manifest-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
INLINE = {
    "script-src": "'self' 'unsafe-inline' 'unsafe-eval'",
    "style-src": "'self' 'unsafe-inline'",
}


@pytest.fixture
def world() -> World:
    return make_world()


def policy_of(response: Any) -> dict[str, str]:
    """Return the policy's directives; check that there is exactly one policy, and that it is
    enforced."""
    assert f"{HEADER}-Report-Only" not in response
    assert "," not in response[HEADER]
    parts = (part.strip().partition(" ") for part in response[HEADER].split(";") if part.strip())
    return {name: sources for name, _, sources in parts}


@pytest.mark.parametrize("name", [str(pattern.name) for pattern in urlpatterns])
def test_every_page_has_the_strict_policy_with_any_status(world: World, name: str) -> None:
    path = build_address(world, name)
    seen = set()
    for client in (
        nobody(),
        world.client("viewer"),
        world.client("admin"),
        world.client("outsider"),
        world.client("stranger"),
    ):
        for response in (client.get(path), client.post(path, {"text": "x"}), client.put(path)):
            assert policy_of(response) == STRICT, (name, response.status_code)
            assert response["X-Content-Type-Options"] == "nosniff"
            assert response["X-Frame-Options"] == "DENY"
            seen.add(response.status_code)
    assert len(seen) > 1 or name in ("logout", "not-offered"), seen


def test_every_kind_of_refusal_has_the_strict_policy(world: World) -> None:
    card, admin = world.card(), world.client("admin")
    responses = {
        301: admin.get("/runs"),
        302: nobody().get("/"),
        403: world.client("viewer").post(f"/approvals/{card.pk}/approve/", {"digest": card.digest}),
        404: admin.get("/no/such/page/"),
        405: admin.put(f"/approvals/{card.pk}/approve/"),
        422: admin.post("/", {"employee": "none", "task": "x"}),
    }
    for status, response in responses.items():
        assert response.status_code == status, (status, response.status_code)
        assert policy_of(response) == STRICT, status
    without_token = nobody(needs_csrf=True).post("/login/", {})
    assert (without_token.status_code, policy_of(without_token)) == (403, STRICT)
    Membership.objects.all().delete()
    homeless = admin.get("/")
    assert (homeless.status_code, policy_of(homeless)) == (403, STRICT)


def test_a_wrong_host_and_an_overlong_query_get_the_strict_policy(client: Client) -> None:
    wrong_host = client.get("/login/", headers={"host": "evil.example"})
    assert (wrong_host.status_code, policy_of(wrong_host)) == (400, STRICT)
    too_many = client.post(
        "/login/", {f"f{n}": "x" for n in range(settings.DATA_UPLOAD_MAX_NUMBER_FIELDS + 1)}
    )
    assert (too_many.status_code, policy_of(too_many)) == (400, STRICT)


@pytest.mark.parametrize(
    "path",
    [
        "/adminx/",
        "/ADMIN/",
        "//admin/",
        "/x/admin/",
        "/admin",
        "/api/docs",
        "/api/health",
        "/api/runs",
    ],
)
def test_paths_that_only_resemble_the_admin_have_the_strict_policy(world: World, path: str) -> None:
    assert policy_of(world.client("admin").get(path)) == STRICT


@pytest.mark.parametrize(
    "path", ["/admin/", "/admin/login/", "/admin/runs/run/", "/admin/no/such/"]
)
def test_only_the_admin_can_run_inline_code_and_it_loads_nothing_from_other_sites(
    world: World, path: str
) -> None:
    assert policy_of(world.client("admin").get(path)) == STRICT | INLINE


def test_every_listed_page_exists() -> None:
    assert set(READ) <= {str(pattern.name) for pattern in urlpatterns}
