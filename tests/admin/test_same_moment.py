"""Two admins save the same row simultaneously: the second gets a form error, and nothing is saved
partially."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections, transaction
from django.db.models import Model

from agents.accounts.models import AuditEntry, Credential
from agents.approval_rules.models import ApprovalRule
from agents.employees.models import Employee, Grant, ModelProvider, ToolRule
from tests.admin.rows import address, filled_form
from tests.admin.source_pages import add, values
from tests.world import World
from tools.connections.models import AllowedHost, Source

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE_S = 20.0
AHEAD_S = 1.0
"""The seconds for which the first transaction stays open, so that the second form is validated and
waits in the meantime."""


def meanwhile(row: Callable[[], Model], act: Callable[[], Any]) -> Any:
    """Create the row in a transaction that stays open for a while; call `act` before it commits,
    and return the response."""
    made = threading.Event()

    def make_first() -> None:
        with transaction.atomic():
            row().save(force_insert=True)
            made.set()
            threading.Event().wait(AHEAD_S)
        connections.close_all()

    with ThreadPoolExecutor(1) as other:
        first: Future[None] = other.submit(make_first)
        assert made.wait(PATIENCE_S)
        response = act()
        first.result(PATIENCE_S)
    return response


def added(world: World, model: type[Model], values: dict[str, Any], query: str = "") -> Any:
    path = f"{address(model, 'add')}{query}"
    return world.client("admin").post(path, {"organization": world.acme.pk, **values})


def test_the_second_credentials_for_the_same_service_are_refused(world: World) -> None:
    response = meanwhile(
        lambda: Credential(
            organization=world.acme, service="github", fields='{"token": "the-first-ones"}'
        ),
        lambda: added(world, Credential, {"value_token": "the-second-ones"}, "?for=github"),
    )
    assert response.status_code == 200
    assert (
        "Acme already has credentials for github. Change them instead." in response.content.decode()
    )
    assert "the-first-ones" in Credential.objects.get().fields
    assert not AuditEntry.objects.exists()


def test_the_second_rule_for_the_same_tool_is_refused(world: World) -> None:
    response = meanwhile(
        lambda: ToolRule(organization=world.acme, tool="data.getStats", stopped_by="operator"),
        lambda: added(world, ToolRule, {"tool": "data.getStats", "level": "write"}),
    )
    assert response.status_code == 200
    assert "already exists" in response.content.decode()
    assert ToolRule.objects.get().stopped_by == "operator"
    assert not AuditEntry.objects.exists()


def test_the_second_approval_rule_with_the_same_name_is_refused(world: World) -> None:
    response = meanwhile(
        lambda: ApprovalRule(organization=world.acme, name="payments", needed=2),
        lambda: added(world, ApprovalRule, {"name": "payments", "needed": "1"}),
    )
    assert response.status_code == 200
    assert (
        "The name &#x27;payments&#x27; is already used in Acme. Choose another one."
        in response.content.decode()
    )
    assert ApprovalRule.objects.get().needed == 2
    assert not AuditEntry.objects.exists()


def test_the_second_provider_with_the_same_name_is_refused(world: World) -> None:
    values = {
        "name": "Local",
        "kind": "openai",
        "base_url": "http://localhost:9",
        "timeout_s": "30",
    }
    response = meanwhile(
        lambda: ModelProvider(organization=world.acme, name="Local", kind="ollama"),
        lambda: added(world, ModelProvider, values),
    )
    assert response.status_code == 200
    assert "already exists" in response.content.decode()
    assert ModelProvider.objects.get(name="Local").kind == "ollama"


def test_the_second_source_with_the_same_name_is_refused(world: World) -> None:
    response = meanwhile(
        lambda: Source(
            organization=world.acme, kind="mcp_http", name="pets", address="https://first.example"
        ),
        lambda: world.client("admin").post(add(), values(world, address="https://second.example")),
    )
    assert response.status_code == 200
    assert "already exists" in response.content.decode()
    assert Source.objects.get().address == "https://first.example"
    assert not AuditEntry.objects.exists()


def test_the_second_row_for_the_same_host_is_refused(world: World) -> None:
    response = meanwhile(
        lambda: AllowedHost(organization=world.acme, host="wiki.example", without_card=False),
        lambda: added(world, AllowedHost, {"host": "wiki.example", "without_card": "on"}),
    )
    assert response.status_code == 200
    assert "already exists" in response.content.decode()
    assert not AllowedHost.objects.get().without_card
    assert not AuditEntry.objects.exists()


def test_a_tool_granted_twice_at_the_same_time_to_an_employee_has_one_grant(world: World) -> None:
    client, path = world.client("admin"), address(world.employee, "change")
    form = filled_form(client, path)
    form["allowed_tools"] = [*form["allowed_tools"], "data.getStats"]
    response = meanwhile(
        lambda: Grant(employee=world.employee, tool="data.getStats"),
        lambda: client.post(path, form),
    )
    assert response.status_code == 302
    assert (
        Grant.objects.filter(
            employee=Employee.objects.get(pk=world.employee.pk), tool="data.getStats"
        ).count()
        == 1
    )
