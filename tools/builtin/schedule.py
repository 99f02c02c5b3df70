"""Tools of the category schedule: what this employee does by itself, at the times of a cron expression."""

from datetime import UTC, datetime
from typing import Annotated, Any

from django.db import transaction
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from tools.contract import ErrorCode, Level, Preview, Target, Tool, ToolContext, ToolError, ToolResult
from tools.records.queries import when
from tools.records.tables import markdown_table
from tools.schedules.changes import LONGEST_TASK, Wanted, cancel, check_new, create, one_schedule, schedules_of
from tools.schedules.models import Schedule
from tools.schedules.times import EXAMPLE, LONGEST_CRON, SMALLEST_MINUTES, Times, times_of
from tools.schedules.words import in_words, moment_in_words

from .data_base import nothing_to_do
from .data_words import bold, shown
from .outputs import Schedules

SHOWN_OF_TASK = 500
NEXT_TIMES = 5


def _task(text: str) -> str:
    if "\x00" in text:
        raise ValueError("it contains a null character")
    if not text.strip():
        raise ValueError("it is blank")
    return text.strip()


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Task = Annotated[str, Field(max_length=LONGEST_TASK), AfterValidator(_task)]
ScheduleId = Annotated[str, BeforeValidator(_as_text), Field(pattern=r"^[0-9]{1,18}$", examples=["7"])]


class ListSchedules(Tool):
    """data: {schedules: [{id, employee, task, when, cron, time_zone, state, next_at, last_at, problem}]}."""

    name = "schedule.list"
    display_name = "List the schedules"
    description = "List what starts by itself in this organisation: the task, who does it, when, and the next time."
    level = Level.READ
    Output = Schedules
    idempotent = True

    class Params(BaseModel):
        model_config = ConfigDict(extra="forbid")

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        kept = schedules_of(context.organization_id).filter(cancelled_at=None).select_related("employee")
        rows = [_row_of(schedule) for schedule in kept.order_by("pk")]
        columns = ("id", "employee", "task", "when", "state", "next_at")
        table = markdown_table(columns, [[row[column] for column in columns] for row in rows])
        told = "1 schedule" if len(rows) == 1 else f"{len(rows)} schedules"
        return ToolResult.ok({"schedules": rows}, told, table if rows else "There are no schedules.")


class ScheduleWrite(Tool):
    """What both changes share: they are one commit with the engine's record of them."""

    level = Level.WRITE
    transactional = True


class CreateSchedule(ScheduleWrite):
    """data: {schedule, next_times}; `schedule` is a row of schedule.list, `next_times` are the next five."""

    name = "schedule.create"
    display_name = "Create a schedule"
    description = (
        "Give yourself a task again and again, at the times of a cron expression of five fields. Each time a new run "
        "starts, which knows nothing of this one: put everything that it needs into the task."
    )

    class Params(BaseModel):
        model_config = ConfigDict(extra="forbid")

        task: Task = Field(description="What is to be done each time, with everything that has to be known for it")
        cron: str = Field(
            description="minute hour day-of-month month day-of-week, e.g. 0 9 * * MON-FRI; at least "
            f"{SMALLEST_MINUTES} minutes apart",
            examples=[EXAMPLE],
            max_length=LONGEST_CRON,
        )
        time_zone: str = Field("UTC", description="Time zone of the cron expression, e.g. Europe/Berlin", max_length=64)

    def validate(self, params: Params) -> None:
        times_of(params.cron, params.time_zone)

    def preview(self, params: Params, context: ToolContext) -> Preview:
        wanted = _wanted(params, context)
        check_new(context.organization_id, wanted)
        after = {
            "task": params.task,
            "employee": context.employee_name,
            "when": in_words(wanted.times),
            "cron": wanted.times.cron,
            "time_zone": wanted.times.time_zone,
            "on_behalf_of": context.user.name,
        }
        return Preview("start", (Target("", _label(params.task, wanted.times), after=after),))

    def sentence(self, params: Params, preview: Preview) -> str:
        """With the next times as they are now; they are not sealed, because they pass."""
        times = times_of(params.cron, params.time_zone)
        by = [f" by {bold(str(target.after['employee']))}" for target in preview.targets if "employee" in target.after]
        upcoming = [moment_in_words(time) for time in times.upcoming(datetime.now(UTC), NEXT_TIMES)]
        return f"Start {shown(params.task)} {in_words(times)}{''.join(by)}. Next times: {'; '.join(upcoming)}"

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        schedule = create(context.organization_id, _wanted(params, context))
        upcoming = schedule.times.upcoming(datetime.now(UTC), NEXT_TIMES)
        data = {"schedule": _row_of(schedule), "next_times": [time.isoformat() for time in upcoming]}
        first = f", first on {moment_in_words(upcoming[0])}" if upcoming else ""
        return ToolResult.ok(data, f"Schedule {schedule.pk}: {in_words(schedule.times)}{first}")


class CancelSchedule(ScheduleWrite):
    """data: {schedule}, a row of schedule.list."""

    name = "schedule.cancel"
    display_name = "Cancel a schedule"
    description = "End a schedule for good. A run that it has started goes on."

    class Params(BaseModel):
        model_config = ConfigDict(extra="forbid")

        schedule_id: ScheduleId = Field(description="Id of the schedule, from schedule.list")

    def preview(self, params: Params, context: ToolContext) -> Preview:
        schedule = _open_schedule(params, context)
        label = _label(schedule.task, schedule.times)
        target = Target(str(schedule.pk), label, None, {"state": schedule.state}, {"state": "cancelled"})
        return Preview("cancel", (target,), reversible=False)

    def sentence(self, params: Params, preview: Preview) -> str:
        if not preview.targets:
            return f"Cancel schedule {params.schedule_id}"
        return f"Cancel schedule {bold(params.schedule_id)}: {preview.targets[0].label}"

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        with transaction.atomic():
            schedule = _open_schedule(params, context)
            cancel(schedule, context.employee_name)
        schedule.refresh_from_db()
        return ToolResult.ok({"schedule": _row_of(schedule)}, f"Cancelled schedule {schedule.pk}")


def _wanted(params: CreateSchedule.Params, context: ToolContext) -> Wanted:
    """For the employee itself, on behalf of the person for whom its run works."""
    if not context.user.id or not context.employee_id:
        raise ToolError(
            ErrorCode.OPERATION_NOT_ALLOWED,
            "Nobody in particular has started this run, so there is nobody on whose behalf a schedule could work.",
            attempted=False,
        )
    times = times_of(params.cron, params.time_zone)
    return Wanted(int(context.employee_id), params.task, times, int(context.user.id), context.run_id)


def _open_schedule(params: CancelSchedule.Params, context: ToolContext) -> Schedule:
    schedule = one_schedule(context.organization_id, int(params.schedule_id))
    if schedule.cancelled_at is not None:
        raise nothing_to_do(f"Schedule {schedule.pk} is cancelled already.")
    return schedule


def _label(task: str, times: Times) -> str:
    return f"{shown(task)} {in_words(times)}"


def _row_of(schedule: Schedule) -> dict[str, Any]:
    task = schedule.task
    return {
        "id": str(schedule.pk),
        "employee": schedule.employee.name if schedule.employee else "",
        "task": task if len(task) <= SHOWN_OF_TASK else f"{task[: SHOWN_OF_TASK - 1]}…",
        "when": in_words(schedule.times),
        "cron": schedule.cron,
        "time_zone": schedule.time_zone,
        "state": schedule.state,
        "next_at": when(schedule.next_at),
        "last_at": when(schedule.last_at),
        "problem": schedule.problem,
    }
