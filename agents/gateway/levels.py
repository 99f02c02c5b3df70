"""The levels that an organization gives to the actions of agents. An action without a level is
destructive."""

from dataclasses import dataclass

from django.db import transaction

from agents.accounts import audit
from agents.accounts.models import Membership, Role
from agents.employees.models import ToolRule
from agents.gateway.action_rules import find_highest
from agents.gateway.asks import check_action
from agents.gateway.models import Ask
from agents.platform.refusals import Forbidden, Invalid
from tools.contract import Level
from tools.toolbox.asked_actions import PREFIX

MAX_LISTED = 200


@dataclass(frozen=True)
class ActionLevel:
    """An action with the level that applies to it.

    Attributes:
        is_set: False if the level is only the default, because none is set for this spelling.
    """

    action: str
    level: Level
    is_set: bool


def list_levels(organization_id: int) -> list[ActionLevel]:
    """List the actions that have a level or that agents asked about, sorted by name.

    Among all spellings of a name, the highest level applies to each spelling that has a level.
    """
    rules = ToolRule.objects.filter(
        organization_id=organization_id, tool__startswith=PREFIX
    ).exclude(level="")
    given = {
        tool.removeprefix(PREFIX): Level(level)
        for tool, level in rules.values_list("tool", "level")
    }
    asked = (
        Ask.objects.filter(run__organization_id=organization_id)
        .order_by()
        .values_list("action", flat=True)
    )
    names = sorted({*given, *asked.distinct()[:MAX_LISTED]})
    levels = {name: find_highest(given, name) for name in given}
    return [
        ActionLevel(name, levels.get(name) or Level.DESTRUCTIVE, name in given) for name in names
    ]


def set_level(member: Membership, action: str, level: str) -> None:
    """Give the action a level. Asks with a lower level are raised to it; asks with a higher level
    keep their own.

    Raises:
        Forbidden, Invalid
    """
    if not member.may(Role.ADMIN):
        raise Forbidden("only an admin can set the levels of actions")
    check_action(action)
    if level not in set(Level):
        raise Invalid("level", f"level is {level[:40]!r}, but must be one of {', '.join(Level)}")
    tool = f"{PREFIX}{action}"
    with transaction.atomic():
        new = ToolRule(organization_id=member.organization_id, tool=tool)
        ToolRule.objects.bulk_create([new], ignore_conflicts=True)
        rule = ToolRule.objects.select_for_update().get(
            organization_id=member.organization_id, tool=tool
        )
        before, rule.level = rule.level, level
        rule.save()
        change = {"before": before or "destructive", "after": level}
        audit.record(member, "action_level_set", f"action:{action}", action=action, level=change)
