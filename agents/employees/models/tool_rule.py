"""An organization's rules for tools, which apply to all its employees."""

from django.db import models

from agents.accounts.models.organization import Organization
from tools.contract import Level


class ToolRule(models.Model):
    """An organization's rule for one tool: its level, and whether it is stopped.

    Attributes:
        level: a higher level than the tool's own; empty if the tool keeps its own level.
        stopped_at, stopped_by: the time when the tool was stopped, and the person who stopped it.
    """

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="tool_rules", db_index=False
    )
    tool = models.CharField(max_length=120)
    level = models.CharField(max_length=11, blank=True)
    stopped_at = models.DateTimeField(null=True, editable=False)
    stopped_by = models.CharField(max_length=150, blank=True, editable=False)

    class Meta:
        ordering = ("tool",)
        constraints = (
            models.UniqueConstraint(fields=("organization", "tool"), name="one_rule_per_tool"),
            models.CheckConstraint(
                condition=models.Q(level__in=("", *(each.value for each in Level))),
                name="rule_level_is_known",
            ),
        )

    def __str__(self) -> str:
        return self.tool
