"""The model of values from outside that an employee stored in the organization's own data; they are
still treated as values from outside."""

from django.db import models
from django.db.models.functions import Now

from agents.accounts.models.organization import Organization
from agents.runs.models.tool_call import ToolCall


class OutsideValue(models.Model):
    """A value from outside that a call wrote into a record, a file or a schedule.

    Attributes:
        key: the digest of the value, from `tools.toolbox.provenance`, or of a file with too many
            values to list; the value itself stays in the call.
        param: the param of the call that had the value, such as `changes.email`.
        title: the title of the tool that first returned the value.
        call: the first call that stored the value.
    """

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    key = models.CharField(max_length=32)
    param = models.CharField(max_length=200)
    title = models.CharField(max_length=200)
    call = models.ForeignKey(ToolCall, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(fields=("organization", "key"), name="outside_value_once"),
        )

    def __str__(self) -> str:
        return f"{self.param} of call {self.call_id}"
