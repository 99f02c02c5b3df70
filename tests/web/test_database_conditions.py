"""Pages and REST return 503 and name the condition while the database is locked or read-only."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connection
from django.test import RequestFactory

from agents.runs.models import Approval, ApprovalStatus
from agents.web.views.unavailable import handle_error
from tests.workshop.conditions import (
    be_read_only,
    impatience,
    locked_database,
    read_only_connections,
)
from tests.world import World, post, problem

pytestmark = pytest.mark.django_db(transaction=True)

BUSY = "The database is busy: something else holds a lock."


def test_a_decision_on_a_page_gets_an_error_page_while_the_database_is_locked(
    world: World,
) -> None:
    card, client = world.card(), world.client("approver")
    with impatience(), locked_database():
        response = client.post(f"/approvals/{card.pk}/deny/", {"digest": card.digest})
    text = response.content.decode()
    assert (response.status_code, response["Retry-After"]) == (503, "5")
    assert BUSY in text
    assert "may not have been saved" in text
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING
    assert client.post(f"/approvals/{card.pk}/deny/", {"digest": card.digest}).status_code == 302


def test_a_decision_over_rest_gets_a_problem_response_while_the_database_is_locked(
    world: World,
) -> None:
    card, client = world.card(), world.client("approver")
    with impatience(), locked_database():
        response = post(client, f"/api/approvals/{card.pk}/deny", {"digest": card.digest})
    told = problem(response, 503)
    assert (told["code"], told["detail"]) == ("database_away", f"{BUSY} Try again.")
    assert response["Retry-After"]


def test_a_read_only_database_is_reported(world: World) -> None:
    """PostgreSQL reports a read-only database with a separate class of errors."""
    card, client = world.card(), world.client("approver")
    with read_only_connections():
        page = client.post(f"/approvals/{card.pk}/deny/", {"digest": card.digest})
        response = post(client, f"/api/approvals/{card.pk}/deny", {"digest": card.digest})
    assert page.status_code == 503
    assert "is read-only" in page.content.decode()
    assert "is read-only" in problem(response, 503)["detail"]


def test_an_error_outside_of_views_gets_the_same_page() -> None:
    request = RequestFactory().get("/")
    try:
        be_read_only()
    except DatabaseError:
        assert handle_error(request).status_code == 503
    connection.close()
    try:
        raise ValueError("no condition")
    except ValueError:
        assert handle_error(request).status_code == 500
