"""Tools in the `schedule` category: tasks that start automatically, by a cron expression."""

from datetime import UTC, datetime
from typing import Annotated, Any

from django.db import transaction
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from tools.contract import (
    ErrorCode,
    Level,
    NothingToDo,
    Preview,
    Target,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
)
from tools.contract.sentences import format_name, format_value
from tools.office.records.fields import convert_to_text
from tools.office.records.queries import format_time
from tools.office.records.tables import build_markdown_table
from tools.office.tools.outputs import CancelledSchedule, CreatedSchedule, Schedules
from tools.schedules.changes import (
    LONGEST_TASK,
    NewSchedule,
    cancel_schedule,
    check_new_schedule,
    create_schedule,
    get_schedules,
    load_schedule,
)
from tools.schedules.cron_times import (
    EXAMPLE,
    LONGEST_CRON,
    SMALLEST_MINUTES,
    CronTimes,
    parse_cron,
)
from tools.schedules.descriptions import describe_times, format_moment
from tools.schedules.models import Schedule

SHOWN_OF_TASK = 500
NEXT_TIMES = 5


def _clean_task(text: str) -> str:
    if "\x00" in text:
        raise ValueError("it contains a null character")
    if not text.strip():
        raise ValueError("it is empty")
    return text.strip()


Task = Annotated[str, Field(max_length=LONGEST_TASK), AfterValidator(_clean_task)]
ScheduleId = Annotated[
    str, BeforeValidator(convert_to_text), Field(pattern=r"^[0-9]{1,18}$", examples=["7"])
]


class ListSchedules(Tool):
    """Result data: {schedules: [{id, employee, task, when, cron, time_zone, state, next_at,
    last_at, problem}]}."""

    name = "schedule.list"
    display_name = "List the schedules"
    description = "List this organization's scheduled tasks, each with its employee, its times and the next time."
    level = Level.READ
    Output = Schedules
    idempotent = True

    class Params(BaseModel):
        model_config = ConfigDict(extra="forbid")

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        schedules = (
            get_schedules(context.organization_id)
            .filter(cancelled_at=None)
            .select_related("employee")
        )
        rows = [_build_row(schedule) for schedule in schedules.order_by("pk")]
        columns = ("id", "employee", "task", "when", "state", "next_at")
        table = build_markdown_table(columns, [[row[column] for column in columns] for row in rows])
        summary = "1 schedule" if len(rows) == 1 else f"{len(rows)} schedules"
        return ToolResult.ok(
            {"schedules": rows}, summary, table if rows else "There are no schedules."
        )


class ScheduleWrite(Tool):
    """Base class of both write tools. A change commits together with the engine's record of the
    call."""

    level = Level.WRITE
    transactional = True


class CreateSchedule(ScheduleWrite):
    """Result data: {schedule, next_times}: a row of schedule.list, and its next five times."""

    name = "schedule.create"
    display_name = "Create a schedule"
    description = (
        "Schedule a recurring task for yourself, at the times of a cron expression of five fields. Each time, a new "
        "run starts that knows nothing about this one: put everything that it needs into the task."
    )
    Output = CreatedSchedule

    class Params(BaseModel):
        model_config = ConfigDict(extra="forbid")

        task: Task = Field(
            description="The work to do each time, with everything that you need to know for it"
        )
        cron: str = Field(
            description="minute hour day-of-month month day-of-week, e.g. 0 9 * * MON-FRI; at least "
            f"{SMALLEST_MINUTES} minutes apart",
            examples=[EXAMPLE],
            max_length=LONGEST_CRON,
        )
        time_zone: str = Field(
            "",
            description="Time zone of the cron expression, e.g. Europe/Berlin; empty for that of the "
            "person, else UTC",
            max_length=64,
        )

    def validate(self, params: Params) -> None:
        parse_cron(params.cron, params.time_zone or "UTC")

    def preview(self, params: Params, context: ToolContext) -> Preview:
        new_schedule = _build_new_schedule(params, context)
        check_new_schedule(context.organization_id, new_schedule)
        after = {
            "task": params.task,
            "employee": context.employee_name,
            "when": describe_times(new_schedule.times),
            "cron": new_schedule.times.cron,
            "time_zone": new_schedule.times.time_zone,
            "on_behalf_of": context.user.name,
        }
        return Preview(
            "start", (Target("", _build_label(params.task, new_schedule.times), after=after),)
        )

    def sentence(self, params: Params, preview: Preview) -> str:
        """Write the sentence with the next times, which are not sealed because they change."""
        after = preview.targets[0].after if preview.targets else {}
        by = f" by {format_name(str(after['employee']))}" if "employee" in after else ""
        zone = params.time_zone or str(after.get("time_zone", ""))
        if not zone:
            return (
                f"Start {format_value(params.task)} at {params.cron} in the time zone of the person"
            )
        times = parse_cron(params.cron, zone)
        upcoming = [format_moment(time) for time in times.upcoming(datetime.now(UTC), NEXT_TIMES)]
        start = f"Start {format_value(params.task)} {describe_times(times)}{by}"
        return f"{start}. Next times: {'; '.join(upcoming)}"

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        schedule = create_schedule(context.organization_id, _build_new_schedule(params, context))
        upcoming = schedule.times.upcoming(datetime.now(UTC), NEXT_TIMES)
        data = {
            "schedule": _build_row(schedule),
            "next_times": [time.isoformat() for time in upcoming],
        }
        first = f", first on {format_moment(upcoming[0])}" if upcoming else ""
        return ToolResult.ok(
            data, f"Schedule {schedule.pk}: {describe_times(schedule.times)}{first}"
        )


class CancelSchedule(ScheduleWrite):
    """Result data: {schedule}, a row of schedule.list."""

    name = "schedule.cancel"
    display_name = "Cancel a schedule"
    description = "Permanently cancel a schedule. A run that it has already started continues."
    Output = CancelledSchedule

    class Params(BaseModel):
        model_config = ConfigDict(extra="forbid")

        schedule_id: ScheduleId = Field(description="Id of the schedule, from schedule.list")

    def preview(self, params: Params, context: ToolContext) -> Preview:
        schedule = _load_open_schedule(params, context)
        label = _build_label(schedule.task, schedule.times)
        target = Target(
            str(schedule.pk), label, None, {"state": schedule.state}, {"state": "cancelled"}
        )
        return Preview("cancel", (target,), reversible=False)

    def sentence(self, params: Params, preview: Preview) -> str:
        if not preview.targets:
            return f"Cancel schedule {params.schedule_id}"
        return f"Cancel schedule {format_name(params.schedule_id)}: {preview.targets[0].label}"

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        with transaction.atomic():
            schedule = _load_open_schedule(params, context)
            cancel_schedule(schedule, context.employee_name)
        schedule.refresh_from_db()
        return ToolResult.ok(
            {"schedule": _build_row(schedule)}, f"Cancelled schedule {schedule.pk}"
        )


def _build_new_schedule(params: CreateSchedule.Params, context: ToolContext) -> NewSchedule:
    """Build a schedule for the employee itself, on behalf of the person for whom its run works."""
    if not context.user.id or not context.employee_id:
        raise ToolError(
            ErrorCode.OPERATION_NOT_ALLOWED,
            "This run was not started by a person, so its schedule would have no owner.",
            attempted=False,
        )
    zone = params.time_zone or context.user.preferences.get("time_zone", "UTC")
    times = parse_cron(params.cron, zone)
    return NewSchedule(
        int(context.employee_id), params.task, times, int(context.user.id), context.run_id
    )


def _load_open_schedule(params: CancelSchedule.Params, context: ToolContext) -> Schedule:
    schedule = load_schedule(context.organization_id, int(params.schedule_id))
    if schedule.cancelled_at is not None:
        state = {"state": schedule.state}
        done = Target(
            str(schedule.pk), _build_label(schedule.task, schedule.times), before=state, after=state
        )
        raise NothingToDo(
            f"Schedule {schedule.pk} is already cancelled.", Preview("cancel", (done,))
        )
    return schedule


def _build_label(task: str, times: CronTimes) -> str:
    return f"{format_value(task)} {describe_times(times)}"


def _build_row(schedule: Schedule) -> dict[str, Any]:
    task = schedule.task
    return {
        "id": str(schedule.pk),
        "employee": schedule.employee.name if schedule.employee else "",
        "task": task if len(task) <= SHOWN_OF_TASK else f"{task[: SHOWN_OF_TASK - 1]}…",
        "when": describe_times(schedule.times),
        "cron": schedule.cron,
        "time_zone": schedule.time_zone,
        "state": schedule.state,
        "next_at": format_time(schedule.next_at),
        "last_at": format_time(schedule.last_at),
        "problem": schedule.problem,
    }
