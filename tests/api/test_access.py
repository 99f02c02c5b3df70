"""Permissions on every route of the OpenAPI document: a new route fails here until a request for it
is defined."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import pytest
from django.db.models.functions import Now
from django.test import Client

from agents.api import api
from agents.notices.models import Delivery
from agents.runs.models import (
    Approval,
    ApprovalStatus,
    CallStatus,
    Run,
    RunStatus,
    ToolCall,
    WithheldBulk,
)
from agents.standing_grants.models import StandingGrant
from tests.notices.conftest import make_failed_delivery
from tests.world import World, make_world, nobody, post, problem

pytestmark = [pytest.mark.django_db, pytest.mark.once]  # permissions do not depend on the database


class Route(NamedTuple):
    """An operation in the OpenAPI document."""

    method: str
    path: str
    is_open: bool

    @property
    def changes(self) -> bool:
        return self.method != "get"


def routes() -> list[Route]:
    document = api.get_openapi_schema(path_prefix="/api/")
    return [
        Route(method, path, "security" not in operation)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]


def named(route: Route) -> str:
    return f"{route.method} {route.path}"


ROUTES = routes()
OPEN_PATHS = {"/api/health", "/api/ready"}
OF_OWN = {"/api/notices/{notice_id}/retry"}
"""Routes that change a member's own data, whatever the member's role."""
DECIDING = {
    "/api/approvals/decide",
    "/api/approvals/undo",
    "/api/approvals/bulks/{bulk_id}/undo",
    "/api/approvals/{approval_id}/approve",
    "/api/approvals/{approval_id}/deny",
    "/api/approvals/{approval_id}/dismiss",
    "/api/approvals/{approval_id}/undo",
    "/api/tool_calls/{call_id}/resolve",
    "/api/standing_grants",
    "/api/standing_grants/{grant_id}/revoke",
}


class Target(NamedTuple):
    """The data that requests for all routes need: a world with a card, the ids for the paths, and
    the bodies."""

    world: World
    card: Approval
    ids: dict[str, str]
    bodies: dict[str, dict[str, Any] | None]


def undone_bulk(world: World) -> UUID:
    """Let the approver and the admin each undo a bulk approval with the same id; return that id."""
    bulk_id = uuid4()
    for role in ("approver", "admin"):
        card, decided = (
            world.card(),
            {"decided_by": world.users[role], "decided_at": Now(), "start_after": Now()},
        )
        Approval.objects.filter(pk=card.pk).update(status="approved", bulk_id=bulk_id, **decided)
        WithheldBulk.objects.create(
            organization=world.acme, user=world.users[role], bulk_id=bulk_id
        )
    return bulk_id


@pytest.fixture
def target() -> Target:
    world = make_world()
    card = world.card()
    call = world.unknown_call()
    decision = {"digest": card.digest, "reason": "No."}
    return Target(
        world,
        card,
        {
            "run_id": str(card.run_id),
            "approval_id": str(card.pk),
            "bulk_id": str(undone_bulk(world)),
            "call_id": str(call.pk),
            "employee_id": str(world.employee.pk),
            "grant_id": str(world.standing_grant().pk),
            "ask_id": str(world.ask().pk),
            "notice_id": str(make_failed_delivery(world.member("admin")).pk),
        },
        {
            "/api/runs": {"employee_id": str(world.employee.pk), "task": "Search."},
            "/api/runs/{run_id}/cancel": None,
            "/api/runs/{run_id}/messages": {"text": "Go on."},
            "/api/runs/{run_id}/continue": {"max_passes": 3},
            "/api/approvals/decide": {
                "decisions": [{"approval_id": str(card.pk), "action": "deny", **decision}]
            },
            "/api/approvals/bulks/{bulk_id}/undo": None,
            "/api/approvals/undo": {"approval_ids": [str(card.pk)]},
            "/api/approvals/{approval_id}/approve": {"digest": card.digest},
            "/api/approvals/{approval_id}/deny": decision,
            "/api/approvals/{approval_id}/dismiss": decision,
            "/api/approvals/{approval_id}/undo": None,
            "/api/approvals/{approval_id}/answer": {"text": "The first."},
            "/api/standing_grants": {
                "tool": "data.updateRecord",
                "employee_id": str(world.employee.pk),
                "conditions": [{"param": "record_id", "rule": "equals", "value": "1"}],
                "max_uses": 5,
                "lifetime_s": 60,
            },
            "/api/standing_grants/{grant_id}/revoke": None,
            "/api/notices/{notice_id}/retry": None,
            "/api/asks": {"action": "deploy"},
            "/api/asks/{ask_id}/redeem": {"receipt": "x"},
            "/api/asks/{ask_id}/outcome": {"outcome": "succeeded"},
            "/api/asks/{ask_id}/cancel": None,
            "/api/asks/cancel": {"effect_key_prefix": "session:1:"},
            "/api/tool_calls/{call_id}/resolve": {"outcome": "succeeded", "reason": "I looked."},
        },
    )


def ask(
    client: Client, route: Route, target: Target, ids: dict[str, str] | None = None, **headers: str
) -> Any:
    path = route.path.format(**(ids or target.ids))
    if not route.changes:
        return client.get(path, headers=headers)
    return post(client, path, target.bodies[route.path], **headers)


def state_of_everything() -> tuple[list[Any], ...]:
    return (
        list(Run.objects.order_by("pk").values()),
        list(Approval.objects.order_by("pk").values()),
        list(ToolCall.objects.order_by("pk").values()),
        list(StandingGrant.objects.order_by("pk").values()),
        list(Delivery.objects.order_by("pk").values()),
    )


@pytest.fixture
def nothing_changes(target: Target) -> Iterator[None]:
    before = state_of_everything()
    yield
    assert state_of_everything() == before


def test_every_route_except_health_requires_a_login() -> None:
    assert {route.path for route in ROUTES if route.is_open} == OPEN_PATHS


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize("route", [route for route in ROUTES if not route.is_open], ids=named)
class TestRequestsWithoutAccess:
    def test_without_a_login_are_refused(self, route: Route, target: Target) -> None:
        assert problem(ask(nobody(), route, target), 401)["code"] == "login_required"

    def test_with_a_wrong_token_are_refused(self, route: Route, target: Target) -> None:
        response = ask(nobody(), route, target, authorization="Bearer gadget_wrong")
        assert problem(response, 401)["code"] == "login_required"
        assert response["WWW-Authenticate"] == "Bearer"

    def test_of_an_account_without_a_membership_are_refused(
        self, route: Route, target: Target
    ) -> None:
        assert (
            problem(ask(target.world.client("stranger"), route, target), 403)["code"] == "forbidden"
        )

    def test_of_a_member_of_another_organization_do_not_find_the_rows(
        self, route: Route, target: Target
    ) -> None:
        response = ask(target.world.client("outsider"), route, target)
        if route.path in ("/api/asks", "/api/asks/cancel") and route.changes:
            problem(response, 403)
        elif "{" in route.path or (route.path == "/api/runs" and route.changes):
            problem(response, 404)
        elif route.path == "/api/standing_grants" and route.changes:
            problem(response, 422)
        elif route.path in ("/api/approvals/decide", "/api/approvals/undo"):
            assert [outcome["status"] for outcome in response.json()["outcomes"]] == [404]
        elif route.path == "/api/tools":
            assert all(
                tool["figures"]["calls"] == tool["figures"]["approvals"] == 0
                for tool in response.json()["items"]
            )
        else:
            assert {item["id"] for item in response.json()["items"]} <= {
                str(target.world.others_employee.pk)
            }


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize("route", [route for route in ROUTES if route.changes], ids=named)
class TestRequestsWithoutTheRole:
    def test_from_a_viewer_are_refused(self, route: Route, target: Target) -> None:
        problem(
            ask(target.world.client("viewer"), route, target), 404 if route.path in OF_OWN else 403
        )

    def test_from_a_browser_without_the_csrf_token_are_refused(
        self, route: Route, target: Target
    ) -> None:
        assert (
            problem(ask(target.world.client("admin", needs_csrf=True), route, target), 403)["code"]
            == "csrf"
        )

    def test_with_other_http_methods_are_refused(self, route: Route, target: Target) -> None:
        path, client = route.path.format(**target.ids), target.world.client("admin")
        for method in ("get", "head", "options", "put", "patch", "delete"):
            response = getattr(client, method)(path)
            is_list = path in ("/api/runs", "/api/standing_grants", "/api/asks") and method in (
                "get",
                "head",
            )
            assert response.status_code == (200 if is_list else 405)


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.path in DECIDING and route.changes], ids=named
)
def test_an_operator_cannot_decide(route: Route, target: Target) -> None:
    problem(ask(target.world.client("operator"), route, target), 403)


def test_every_listed_deciding_route_exists() -> None:
    assert not DECIDING - {route.path for route in ROUTES}


@pytest.mark.parametrize(
    "route", [route for route in ROUTES if not route.changes and not route.is_open], ids=named
)
def test_a_viewer_can_read_every_route(route: Route, target: Target) -> None:
    assert ask(target.world.client("viewer"), route, target).status_code == 200


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize("route", [route for route in ROUTES if "{" in route.path], ids=named)
def test_an_invalid_id_is_not_found(route: Route, target: Target) -> None:
    client = target.world.client("admin")
    for wrong in (
        "0",
        "99999999",
        "9" * 30,
        str(2**63),
        "-1",
        "abc",
        "1.0",
        "１",  # noqa: RUF001
        "%00",
        "1%00",
        "null",
    ):
        problem(ask(client, route, target, dict.fromkeys(target.ids, wrong)), 404)


def test_a_deactivated_users_session_is_refused_as_not_logged_in(target: Target) -> None:
    client = target.world.client("admin")
    assert client.get("/api/runs").status_code == 200
    target.world.users["admin"].is_active = False
    target.world.users["admin"].save()
    problem(client.get("/api/runs"), 401)


def test_a_lowered_role_takes_effect_immediately(target: Target) -> None:
    client = target.world.client("approver")
    member = target.world.member("approver")
    member.role = "viewer"
    member.save()
    problem(
        post(client, f"/api/approvals/{target.card.pk}/deny", {"digest": target.card.digest}), 403
    )


def test_the_fixture_contains_the_rows_that_the_other_tests_assume(target: Target) -> None:
    assert target.card.status == ApprovalStatus.PENDING
    assert Run.objects.filter(status=RunStatus.WAITING).exists()
    assert ToolCall.objects.filter(status=CallStatus.OUTCOME_UNKNOWN).exists()
