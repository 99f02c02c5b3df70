"""The levels of actions: an admin sets them, and the list shows only the organization's levels."""

from __future__ import annotations

import pytest
from django.db.models.functions import Now

from agents.accounts.models import AuditEntry
from agents.employees.models import ToolRule
from agents.gateway.levels import ActionLevel, list_levels, set_level
from agents.gateway.models import AgentKey
from agents.platform.refusals import Forbidden, Invalid
from tests.gateway.conftest import make_key
from tests.gateway.test_asks import ACTION, ask
from tests.workshop import Workshop, build_workshop
from tools.contract import Level


def test_actions_with_a_level_and_requested_actions_are_listed(
    workshop: Workshop, key: AgentKey
) -> None:
    others = build_workshop("globex")
    others.raise_for_all("ask/pay.invoice", Level.READ)
    workshop.raise_for_all("probe.effect", Level.READ)
    workshop.raise_for_all("ask/deploy.staging", Level.WRITE)
    ToolRule.objects.create(
        organization=workshop.organization, tool="ask/wipe", stopped_at=Now(), stopped_by="ada"
    )
    ask(key)
    ask(make_key(others), action="pay.salary")
    assert list_levels(workshop.organization.pk) == [
        ActionLevel(ACTION, Level.DESTRUCTIVE, is_set=False),
        ActionLevel("deploy.staging", Level.WRITE, is_set=True),
    ]


def test_the_list_shows_the_level_that_an_ask_gets(workshop: Workshop, key: AgentKey) -> None:
    for action, level in [
        ("deploy.staging", Level.READ),
        ("Deploy.Staging", Level.WRITE),
        ("deploy.tests", Level.READ),
    ]:
        workshop.raise_for_all(f"ask/{action}", level)
    ask(key, action="DEPLOY.staging", level="read")
    listed = {each.action: each.level for each in list_levels(workshop.organization.pk)}
    assert listed == {
        "deploy.staging": Level.WRITE,
        "Deploy.Staging": Level.WRITE,
        "DEPLOY.staging": Level.DESTRUCTIVE,
        "deploy.tests": Level.READ,
    }
    for action, level in listed.items():
        asked = ask(key, action=action, level="read", params={"again": action})
        assert workshop.card(asked.run).level == level


def test_a_change_is_audited_with_the_previous_level(workshop: Workshop) -> None:
    build_workshop("globex").raise_for_all(f"ask/{ACTION}", Level.READ)
    workshop.raise_for_all("ask/deploy.staging", Level.READ)
    set_level(workshop.admin, ACTION, "write")
    set_level(workshop.admin, ACTION, "draft")
    changes = (
        AuditEntry.objects.filter(action="action_level_set")
        .order_by("pk")
        .values_list("payload", flat=True)
    )
    assert [change["level"] for change in changes] == [
        {"before": "destructive", "after": "write"},
        {"before": "write", "after": "draft"},
    ]


@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
def test_only_an_admin_can_set_a_level(workshop: Workshop, role: str) -> None:
    with pytest.raises(Forbidden):
        set_level(workshop.members[role], ACTION, "write")
    assert not ToolRule.objects.exists()


@pytest.mark.parametrize(
    ("action", "level", "field"), [(ACTION, "harmless", "level"), ("rm -rf", "write", "action")]
)
def test_an_invalid_field_is_reported(
    workshop: Workshop, action: str, level: str, field: str
) -> None:
    with pytest.raises(Invalid) as refusal:
        set_level(workshop.admin, action, level)
    assert refusal.value.extra["field"] == field
    assert not ToolRule.objects.exists()
