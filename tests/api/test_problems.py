"""Every error under /api/ is a problem document that says what to do and does not leak details."""

from __future__ import annotations

import pytest
from django.conf import settings

from tests.world import World, nobody, post, problem

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "path", ["/api/", "/api/nothing", "/api/runs/1/nothing", "/api/runs/", "/api/%00", "/api/../x"]
)
def test_an_unknown_route_is_reported_as_a_problem_document(path: str) -> None:
    for method in ("get", "head", "post", "put", "patch", "delete", "options"):
        response = getattr(nobody(), method)(path)
        assert response.status_code == 404
        assert response["Content-Type"] == "application/problem+json"


def test_an_unsupported_method_gets_the_list_of_allowed_methods() -> None:
    response = nobody().delete("/api/runs")
    assert problem(response, 405)["code"] == "method_not_allowed"
    assert {each.strip() for each in response["Allow"].split(",")} == {"GET", "POST"}


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"nonsense",
        b'{"task": NaN}',
        b'{"task": "a", "task": "b"}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"1" * 5000,
    ],
)
def test_a_body_that_is_not_json_is_refused(world: World, body: bytes) -> None:
    response = world.client("operator").post("/api/runs", body, content_type="application/json")
    assert problem(response, 400)["code"] == "bad_request"


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b'"text"', b"5"])
def test_a_body_of_another_shape_is_refused(world: World, body: bytes) -> None:
    response = world.client("operator").post("/api/runs", body, content_type="application/json")
    assert problem(response, 422)["field"] == "body"


def test_a_body_that_is_too_large_is_refused(world: World) -> None:
    body = b'{"task": "' + b"x" * (settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0) + b'"}'
    response = world.client("operator").post("/api/runs", body, content_type="application/json")
    assert problem(response, 413)["code"] == "too_large"


def test_a_malformed_cookie_is_refused_without_an_internal_error() -> None:
    client = nobody()
    client.cookies[settings.SESSION_COOKIE_NAME] = "a" * 20 + "\x00"
    assert client.get("/api/runs").status_code in (401, 422)


def test_a_conflict_over_a_run_names_the_runs_status(world: World) -> None:
    run = world.run()
    client = world.client("operator")
    post(client, f"/api/runs/{run.pk}/cancel")
    response = problem(post(client, f"/api/runs/{run.pk}/cancel"), 409)
    assert (response["code"], response["run_status"]) == ("conflict", "cancelled")


def test_responses_are_not_cached(world: World) -> None:
    assert world.client("viewer").get("/api/runs")["Cache-Control"] == "no-store"


def test_an_internal_error_is_logged_and_reported_without_details(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    run = world.run()
    world.call(run, result={"no result": "of any tool"})
    told = problem(world.client("viewer").get(f"/api/runs/{run.pk}"), 500)
    assert told["code"] == "internal_error"
    assert "KeyError" not in str(told)
    assert "KeyError" in caplog.text
