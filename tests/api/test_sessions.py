"""A browser's session: changes need the CSRF token, and one organization is active at a time."""

from __future__ import annotations

import pytest

from agents.accounts.membership import (
    ACTIVE_ORGANIZATION,
    list_memberships,
    load_session_member,
    switch_organization,
)
from agents.accounts.models import Membership, Role
from agents.runs.models import Run
from tests.world import World, post, problem

pytestmark = pytest.mark.django_db


def task(world: World) -> dict[str, str]:
    return {"employee_id": str(world.employee.pk), "task": "Search."}


def test_a_get_request_does_not_require_the_csrf_token(world: World) -> None:
    assert world.client("viewer", needs_csrf=True).get("/api/runs").status_code == 200


def test_a_post_request_requires_the_csrf_token(world: World) -> None:
    client = world.client("operator", needs_csrf=True)
    assert problem(post(client, "/api/runs", task(world)), 403)["code"] == "csrf"
    assert not Run.objects.exists()
    client.cookies["csrftoken"] = token = "a" * 32
    assert post(client, "/api/runs", task(world), x_csrftoken="b" * 32).status_code == 403
    assert post(client, "/api/runs", task(world), **{"x-csrftoken": token}).status_code == 201


def test_a_form_posted_from_another_site_is_refused(world: World) -> None:
    response = world.client("operator", needs_csrf=True).post(
        "/api/runs", task(world), headers={"origin": "https://evil.example"}
    )
    assert problem(response, 403)["code"] == "csrf"


def test_a_form_body_instead_of_json_is_refused(world: World) -> None:
    problem(world.client("operator").post("/api/runs", task(world)), 415)


def test_a_member_of_several_organizations_sees_one_at_a_time(world: World) -> None:
    run = world.run()
    user = world.users["operator"]
    Membership.objects.create(organization=world.globex, user=user, role=Role.VIEWER)
    client = world.client("operator")
    assert len(client.get("/api/runs").json()["items"]) == 1
    session = client.session
    session[ACTIVE_ORGANIZATION] = world.globex.pk
    session.save()
    assert client.get("/api/runs").json()["items"] == []
    problem(client.get(f"/api/runs/{run.pk}"), 404)
    problem(post(client, f"/api/runs/{run.pk}/cancel"), 403)


def test_a_session_of_an_ended_membership_falls_back_to_another_organization(world: World) -> None:
    user = world.users["operator"]
    member = load_session_member(user, {ACTIVE_ORGANIZATION: world.globex.pk})
    assert member is not None
    assert member.organization == world.acme


def test_a_user_can_switch_only_to_their_own_organizations(world: World) -> None:
    user = world.users["operator"]
    session: dict[str, int] = {}
    assert switch_organization(user, session, world.globex.pk) is None
    assert session == {}
    member = switch_organization(user, session, world.acme.pk)
    assert member is not None
    assert session == {ACTIVE_ORGANIZATION: world.acme.pk}


def test_deactivating_a_user_ends_their_memberships_immediately(world: World) -> None:
    user = world.users["operator"]
    assert load_session_member(user, {}) is not None
    user.is_active = False
    user.save()
    assert list(list_memberships(user)) == []
    assert load_session_member(user, {}) is None
