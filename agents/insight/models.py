"""Rows of figures: counts of calls, cards, passes and runs, so that pages and monitoring never have
to count rows."""

from django.db import models

from agents.accounts.models.organization import Organization
from agents.employees.models.employee import Employee

BUCKETS = {
    "within_1": 1,
    "within_2": 2,
    "within_5": 5,
    "within_10": 10,
    "within_20": 20,
    "within_50": 50,
    "within_100": 100,
    "within_200": 200,
    "within_500": 500,
    "within_1000": 1_000,
    "within_2000": 2_000,
    "within_5000": 5_000,
    "within_10000": 10_000,
    "within_20000": 20_000,
    "within_60000": 60_000,
    "within_300000": 300_000,
    "within_1800000": 1_800_000,
}
"""The columns of the histogram, each with its longest duration in ms. Longer durations are counted
in the column `longer`."""
LONGEST_ERROR = 200


class CallFigures(models.Model):
    """Counts of calls. A call counts once it has succeeded or failed; refused, denied and duplicate
    calls do not.

    Attributes:
        asked, approved, denied: the number of cards that were shown, and of each decision; a
            decision counts even if it was undone.
        cost_micros: the cost that results report, in millionths of the organization's currency.
        duration_ms: the sum of the durations that the histogram counts.
    """

    succeeded = models.PositiveBigIntegerField(default=0)
    failed = models.PositiveBigIntegerField(default=0)
    asked = models.PositiveBigIntegerField(default=0)
    approved = models.PositiveBigIntegerField(default=0)
    denied = models.PositiveBigIntegerField(default=0)
    cost_micros = models.PositiveBigIntegerField(default=0)
    duration_ms = models.PositiveBigIntegerField(default=0)
    slowest_ms = models.PositiveBigIntegerField(default=0)
    within_1 = models.PositiveBigIntegerField(default=0)
    within_2 = models.PositiveBigIntegerField(default=0)
    within_5 = models.PositiveBigIntegerField(default=0)
    within_10 = models.PositiveBigIntegerField(default=0)
    within_20 = models.PositiveBigIntegerField(default=0)
    within_50 = models.PositiveBigIntegerField(default=0)
    within_100 = models.PositiveBigIntegerField(default=0)
    within_200 = models.PositiveBigIntegerField(default=0)
    within_500 = models.PositiveBigIntegerField(default=0)
    within_1000 = models.PositiveBigIntegerField(default=0)
    within_2000 = models.PositiveBigIntegerField(default=0)
    within_5000 = models.PositiveBigIntegerField(default=0)
    within_10000 = models.PositiveBigIntegerField(default=0)
    within_20000 = models.PositiveBigIntegerField(default=0)
    within_60000 = models.PositiveBigIntegerField(default=0)
    within_300000 = models.PositiveBigIntegerField(default=0)
    within_1800000 = models.PositiveBigIntegerField(default=0)
    longer = models.PositiveBigIntegerField(default=0)

    class Meta:
        abstract = True


class UseFigures(models.Model):
    """Usage of models by passes, title requests and unusable responses, and the number of ended
    runs by outcome; a continued run counts each time it ends.

    Attributes:
        duration_ms: the sum of the response times of models.
    """

    passes = models.PositiveBigIntegerField(default=0)
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cost_micros = models.PositiveBigIntegerField(default=0)
    duration_ms = models.PositiveBigIntegerField(default=0)
    runs_succeeded = models.PositiveBigIntegerField(default=0)
    runs_failed = models.PositiveBigIntegerField(default=0)
    runs_cancelled = models.PositiveBigIntegerField(default=0)

    class Meta:
        abstract = True


class DayFigures(CallFigures):
    """The calls of a tool on a day in UTC, with the newest failure."""

    day = models.DateField()
    tool = models.CharField(max_length=120)
    last_error_code = models.CharField(max_length=40, blank=True)
    last_error = models.CharField(max_length=LONGEST_ERROR, blank=True)
    last_error_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.tool} on {self.day}"


class ToolFigures(DayFigures):
    """A tool's figures for a day and an organization. Tools and days limit the number of rows: 20
    tools in 30 days are 600 rows, however many calls there are."""

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="+", db_index=False
    )

    class Meta:
        ordering = ("organization", "day", "tool")
        constraints = (
            models.UniqueConstraint(
                fields=("organization", "day", "tool"), name="tool_figures_of_a_day"
            ),
        )


class EmployeeFigures(DayFigures):
    """A tool's figures for a day and an employee."""

    employee = models.ForeignKey(
        Employee, on_delete=models.CASCADE, related_name="+", db_index=False
    )

    class Meta:
        ordering = ("employee", "day", "tool")
        constraints = (
            models.UniqueConstraint(
                fields=("employee", "day", "tool"), name="employee_figures_of_a_day"
            ),
        )


class EmployeeUse(UseFigures):
    """The passes and runs of an employee on a day in UTC."""

    employee = models.ForeignKey(
        Employee, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    day = models.DateField()

    class Meta:
        ordering = ("employee", "day")
        constraints = (
            models.UniqueConstraint(fields=("employee", "day"), name="employee_use_of_a_day"),
        )

    def __str__(self) -> str:
        return f"{self.passes} passes on {self.day}"


class TotalFigures(CallFigures):
    """All calls of a tool that this installation has ever counted, for monitoring; the numbers
    never decrease."""

    tool = models.CharField(max_length=120)
    currency = models.CharField(max_length=3)

    class Meta:
        ordering = ("tool", "currency")
        constraints = (
            models.UniqueConstraint(fields=("tool", "currency"), name="figures_altogether"),
        )

    def __str__(self) -> str:
        return self.tool


class TotalUse(UseFigures):
    """All passes and runs that this installation has ever counted."""

    currency = models.CharField(max_length=3)

    class Meta:
        ordering = ("currency",)
        constraints = (models.UniqueConstraint(fields=("currency",), name="use_altogether"),)

    def __str__(self) -> str:
        return f"{self.passes} passes"


class FiguresHead(models.Model):
    """The position of the counting: a single row, locked while a process counts.

    Attributes:
        event_id, pass_id: the last event and pass that were counted.
        event_bound, pass_bound: the event and the pass up to which to count next, once no
            transaction can still add an earlier one.
        asked_in: the number of the transaction that began after the bounds were read; transactions
            that can still add an earlier event have lower numbers.
        looked_at: the time when a sweeper last checked.
        due_at: the time of the next count.
    """

    ONLY = 1

    event_id = models.BigIntegerField(default=0)
    pass_id = models.BigIntegerField(default=0)
    event_bound = models.BigIntegerField(default=0)
    pass_bound = models.BigIntegerField(default=0)
    asked_in = models.BigIntegerField(default=0)
    looked_at = models.DateTimeField()
    due_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"up to event {self.event_id}"

    @property
    def is_done(self) -> bool:
        """True if everything up to the bounds was counted."""
        return (self.event_id, self.pass_id) == (self.event_bound, self.pass_bound)


class DecisionFigures(models.Model):
    """The decisions of people on a day in UTC.

    Attributes:
        subject: `people`, `tools`, or `employee:ID`.
        data: nested sums, see `agents.insight.decision_spans`.
    """

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    day = models.DateField()
    subject = models.CharField(max_length=40)
    data = models.JSONField(default=dict)

    class Meta:
        ordering = ("organization", "subject", "day")
        constraints = (
            models.UniqueConstraint(
                fields=("organization", "subject", "day"), name="decision_figures_of_a_day"
            ),
        )

    def __str__(self) -> str:
        return f"{self.subject} on {self.day}"


class DecisionHead(models.Model):
    """The position of the counting of decisions, locked while a process counts.

    Attributes:
        until: the time before which all decisions are counted.
        newest_id: the newest card at the last count. If a newer card was decided before `until`,
            everything is counted again.
    """

    organization = models.OneToOneField(Organization, on_delete=models.CASCADE, related_name="+")
    until = models.DateTimeField()
    newest_id = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"up to {self.until:%Y-%m-%d %H:%M}"
