"""Schedules: tasks that start automatically for an employee, at the times of a cron expression."""

from typing import Literal

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tools.schedules.cron_times import LONGEST_CRON, CronTimes

State = Literal["active", "paused", "switched off", "cancelled"]


class Schedule(models.Model):
    """A recurring task of an employee, on behalf of the person who created or last resumed it.

    Attributes:
        next_at: the next time; each time fires at most once, because one commit starts the run and
            advances `next_at`.
        last_at, last_run: the last time that fired, and the run that it started.
        fired: the number of runs that it has started.
        problem: the reason why it was switched off or, while it is active, why a run did not start
            at its last time.
        created_by: the person on whose behalf it works: the creator, or the person who resumed it
            last.
        made_by: the person who created it; resuming does not change this.
        made_in_run: the id of the run in which an employee created it.
        cancelled_by: the name of the person who cancelled it.
    """

    organization = models.ForeignKey(
        "accounts.Organization", models.CASCADE, related_name="schedules", db_index=False
    )
    employee = models.ForeignKey(
        "employees.Employee", models.SET_NULL, null=True, related_name="schedules"
    )
    task = models.TextField()
    cron = models.CharField(max_length=LONGEST_CRON)
    time_zone = models.CharField(max_length=64)
    next_at = models.DateTimeField(null=True)
    last_at = models.DateTimeField(null=True)
    last_run = models.ForeignKey("runs.Run", models.SET_NULL, null=True, related_name="+")
    fired = models.PositiveIntegerField(default=0)
    is_active = models.BooleanField(default=True)
    problem = models.CharField(max_length=300, blank=True, default="")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    made_in_run = models.CharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField(db_default=Now())
    cancelled_at = models.DateTimeField(null=True)
    cancelled_by = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(fields=("organization", "-id"), name="schedule_newest"),
            models.Index(
                fields=("next_at",), name="schedule_due", condition=Q(next_at__isnull=False)
            ),
        )
        constraints = (
            models.CheckConstraint(
                condition=Q(is_active=True, next_at__isnull=False, cancelled_at__isnull=True)
                | Q(is_active=False, next_at__isnull=True),
                name="schedule_has_a_time_while_active",
            ),
        )

    def __str__(self) -> str:
        return " ".join(self.task[:400].split())[:80]

    @property
    def times(self) -> CronTimes:
        return CronTimes(self.cron, self.time_zone)

    @property
    def state(self) -> State:
        if self.cancelled_at is not None:
            return "cancelled"
        if self.is_active:
            return "active"
        return "switched off" if self.problem else "paused"
