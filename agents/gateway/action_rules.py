"""The organization's rules about an action of agents. A rule applies to every spelling of the
action's name, so that an agent cannot avoid it by using another spelling."""

from collections.abc import Mapping
from typing import NamedTuple, Self

from agents.employees.models import ToolRule
from tools.contract import Level
from tools.toolbox.asked_actions import PREFIX
from tools.toolbox.value_readings import is_same_name


class ActionRules(NamedTuple):
    """The strictest of the rules about an action.

    Attributes:
        stop: the rule that stops the action; None if it is not stopped.
        level: the highest level; None if no rule has a level.
        has_level: True if a level is set for the name exactly as it is written. Only then can the
            action have a lower level than destructive.
    """

    stop: ToolRule | None
    level: Level | None
    has_level: bool

    @classmethod
    def load(cls, organization_id: int, action: str) -> Self:
        """Load the rules about an action by its name, in one query."""
        rules = ToolRule.objects.filter(
            organization_id=organization_id, tool__startswith=PREFIX
        ).order_by("pk")
        named = [(rule.tool.removeprefix(PREFIX), rule) for rule in rules]
        same = [(name, rule) for name, rule in named if is_same_name(name, action)]
        levels = {name: Level(rule.level) for name, rule in same if rule.level}
        return cls(
            next((rule for _, rule in same if rule.stopped_at is not None), None),
            find_highest(levels, action),
            action in levels,
        )


def find_highest(levels: Mapping[str, Level], action: str) -> Level | None:
    """Find the highest level of all spellings of the action's name; None if there is none."""
    same = (level for name, level in levels.items() if is_same_name(name, action))
    return max(same, key=lambda level: level.rank, default=None)
