"""Calls that wait for a person's answer or for another employee: how they begin to, and how they end."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now

from agents.engine import turns
from agents.engine.digests import digest_of
from agents.engine.gate import colleagues_of, grants_of
from agents.engine.outcomes import (
    NotExecuting,
    end_unexecuted,
    ended,
    next_sequence,
    publish_rejection,
    publish_result,
)
from agents.engine.timing import OPEN_CARDS
from agents.events import Recording, recording, starting
from agents.models import (
    ENDED,
    PARKED,
    TERMINAL_CALLS,
    Approval,
    ApprovalKind,
    ApprovalStatus,
    CallStatus,
    Employee,
    Event,
    EventType,
    Message,
    Origin,
    Run,
    RunStatus,
    ToolCall,
)
from agents.models.run import title_of
from tools.contract import Delegation, ErrorCode, Preview, Question, Suspend, ToolError, ToolResult
from tools.contract.canonical import made_storable

MOST_DEPTH = 3
"""A task of a person has depth 0; what it leads to is handed on at most so often."""
OPEN_CHILDREN = 5
LONGEST_QUESTION = 4_000
LONGEST_TASK = 20_000
LONGEST_SUMMARY = 300
MOST_MS = 2**31 - 1
"""What a call's duration can hold: somewhat more than 24 days."""
_MS = timedelta(milliseconds=1)
_SENTENCE_LENGTH = 1_000


@dataclass(frozen=True)
class Waiting:
    """An executing call that returned a `Suspend`, in the epoch in which it was started."""

    epoch: int
    suspend: Suspend
    duration_ms: int


def suspend(record: Recording, call: ToolCall, waiting: Waiting) -> None:
    """Let the call wait, and ask its question or start its run, all in this transaction; a refusal is its result.

    Raises:
        NotExecuting: the call is not executing in that epoch; nothing may be written then.
    """
    mine = ToolCall.objects.filter(pk=call.pk, status=CallStatus.EXECUTING, exec_epoch=waiting.epoch)
    if not mine.update(status=CallStatus.SUSPENDED):
        raise NotExecuting(f"run {record.run.pk}: {call.pk}")
    call.status = CallStatus.SUSPENDED
    record.run.crash_count = 0
    try:
        if record.run.cancel_requested_at is not None:
            _cancel(record, call)
        elif isinstance(waiting.suspend, Question):
            _ask(record, call, waiting.suspend)
        elif isinstance(waiting.suspend, Delegation):
            _hand_over(record, call, waiting.suspend)
    except ToolError as refusal:
        _end(record, call, ToolResult.failed(refusal), waiting.duration_ms)


def end(record: Recording, call: ToolCall, result: ToolResult) -> bool:
    """Give a suspended call its result, and the time from its start until now; False if it does not wait any more."""
    waited = (record.now - call.started_at) / _MS if call.started_at is not None else 0
    return _end(record, call, result, min(round(waited), MOST_MS))


def _end(record: Recording, call: ToolCall, result: ToolResult, duration_ms: int) -> bool:
    waiting = ToolCall.objects.filter(pk=call.pk, status=CallStatus.SUSPENDED)
    if not waiting.update(**ended(record, call, result, duration_ms)):
        return False
    publish_result(record, call, result, duration_ms)
    return True


def _cancel(record: Recording, call: ToolCall) -> None:
    error = ToolError(ErrorCode.OPERATION_NOT_ALLOWED, "The run was cancelled.", attempted=False)
    if end_unexecuted(record, call, CallStatus.CANCELLED, error):
        publish_rejection(record, call, error)


def _ask(record: Recording, call: ToolCall, question: Question) -> None:
    """The question's card, which stands in the inbox like any other."""
    text = made_storable(question.text)
    if not text.strip() or len(text) > LONGEST_QUESTION:
        raise _refused(ErrorCode.INVALID_PARAMETER, f"A question has 1 to {LONGEST_QUESTION:,} characters.")
    if Approval.objects.filter(run_id=call.run_id, status=ApprovalStatus.PENDING).count() >= OPEN_CARDS:
        raise _refused(ErrorCode.LIMIT_EXCEEDED, f"At most {OPEN_CARDS} cards may wait at a time; ask again later.")
    days = record.run.organization.card_days
    choices = [made_storable(choice) for choice in question.choices]
    preview = Preview("answer").as_json() | {"question": text, "choices": choices}
    asks = f"{record.run.employee.name} asks: “{text}”"
    card = Approval.objects.create(
        organization_id=call.organization_id,
        run_id=call.run_id,
        tool_call=call,
        sequence=next_sequence(call),
        kind=ApprovalKind.QUESTION,
        level=call.level,
        params=call.params,
        sentence=asks if len(asks) <= _SENTENCE_LENGTH else f"{asks[:_SENTENCE_LENGTH]}…",
        preview=preview,
        why="The employee cannot go on with this without an answer.",
        digest=digest_of(call, preview),
        expires_at=Now() + timedelta(days=days),
    )
    record.publish(
        EventType.QUESTION_ASKED,
        approval_id=str(card.pk),
        call_id=str(call.pk),
        text=text,
        choices=choices,
        expires_at=(record.now + timedelta(days=days)).isoformat(),
    )
    record.inbox_changed = True


def _hand_over(record: Recording, call: ToolCall, delegation: Delegation) -> None:
    """The run of another employee, who gets nothing of this one but the task."""
    parent, colleague = record.run, _colleague(record, delegation.employee)
    task = made_storable(delegation.task).strip()
    if not task or len(task) > LONGEST_TASK:
        raise _refused(ErrorCode.INVALID_PARAMETER, f"A task has 1 to {LONGEST_TASK:,} characters.")
    if _waiting_for_others(parent.pk).count() >= OPEN_CHILDREN:
        raise _refused(ErrorCode.LIMIT_EXCEEDED, f"At most {OPEN_CHILDREN} tasks may be handed over at a time.")
    child = Run(
        organization_id=parent.organization_id,
        employee=colleague,
        created_by_id=parent.created_by_id,
        origin=Origin.DELEGATE,
        parent_id=parent.pk,
        parent_call=call,
        depth=parent.depth + 1,
        client_request_id=f"delegate-{call.idempotency_key}",
        task=task,
        title=title_of(task),
        mode=colleague.mode,
        max_passes=colleague.max_passes,
        deadline_at=_earliest(parent.deadline_at, record.now, colleague.run_minutes),
    )
    with starting(child) as begun:
        Message.objects.create(run=child, number=1, text=task)
        begun.publish(EventType.RUN_STARTED, by=parent.employee.name, parent_run_id=str(parent.pk))
    record.publish(
        EventType.TOOL_PROGRESS,
        call_id=str(call.pk),
        fraction=0.0,
        text=f"{colleague.name} works on it.",
        run_id=str(child.pk),
    )


def _waiting_for_others(run_id: int) -> QuerySet[ToolCall]:
    """The run's calls that wait for another employee."""
    return ToolCall.objects.filter(run_id=run_id, status=CallStatus.SUSPENDED, child_run__isnull=False)


def _colleague(record: Recording, name: str) -> Employee:
    """The employee of that name, to whom this run may hand a task now.

    Raises:
        ToolError: it may not, and why.
    """
    run = record.run
    allowed = colleagues_of(run.employee, grants_of(run.employee_id, run.mode).delegates)
    found = next((each for each in allowed if each.name.casefold() == name.strip().casefold()), None)
    if found is None:
        names = ", ".join(each.name for each in allowed if each.is_active) or "nobody"
        raise _refused(ErrorCode.NOT_PERMITTED, f"You may not hand a task to {name!r}, only to: {names}.")
    if not found.is_active or found.stopped_at is not None:
        raise _refused(ErrorCode.OPERATION_NOT_ALLOWED, f"{found.name} does not work at the moment.")
    if run.depth >= MOST_DEPTH:
        raise _refused(ErrorCode.OPERATION_NOT_ALLOWED, f"A task is handed on at most {MOST_DEPTH} times.")
    if found.pk in _employees_above(run):
        raise _refused(
            ErrorCode.OPERATION_NOT_ALLOWED, f"{found.name} is waiting for this very task, and cannot work on it."
        )
    return found


def _employees_above(run: Run) -> set[int]:
    """The employees of the run and of those that wait for it."""
    found, parent_id = {run.employee_id}, run.parent_id
    while parent_id is not None:
        employee_id, parent_id = Run.objects.values_list("employee_id", "parent_id").get(pk=parent_id)
        found.add(employee_id)
    return found


def _earliest(of_parent: datetime | None, now: datetime, minutes: int | None) -> datetime | None:
    """A child's deadline: its employee's own, but not later than its parent's."""
    own = now + timedelta(minutes=minutes) if minutes else None
    return min((at for at in (of_parent, own) if at is not None), default=None)


def _refused(code: ErrorCode, message: str) -> ToolError:
    return ToolError(code, message, attempted=False)


def collect(run_id: int, wait: bool = True) -> bool:
    """Give the run's calls that wait for another employee the ends of their runs; False if none has ended.

    Raises:
        Run.DoesNotExist: without `wait`, the run is not free.
    """
    answered = _waiting_for_others(run_id).filter(child_run__status__in=ENDED)
    if not answered.exists():
        return False
    with recording(run_id, wait=wait) as record:
        calls = list(answered.select_related("child_run__employee").order_by("pk"))
        for call in calls:
            end(record, call, result_of(call.child_run))
        turns.wake_if_possible(record)
    return bool(calls)


def result_of(child: Run) -> ToolResult:
    """What an ended run is for the call that asked for it."""
    name = child.employee.name
    told: dict[str, Any] = {"run_id": str(child.pk), "employee": name}
    if child.status == RunStatus.SUCCEEDED:
        told |= {"answer": child.answer, "exit_reason": child.exit_reason}
        return ToolResult.ok(told, f"{name} answered: {brief_words(child.answer)}", **_where(child))
    if child.status == RunStatus.CANCELLED:
        message = f"The task was cancelled before {name} had answered."
    else:
        because = f" {child.problem}" if child.problem else ""
        message = f"{name} did not get it done: {child.get_exit_reason_display().lower()}.{because}"
    return ToolResult.failed(ToolError(ErrorCode.SUBAGENT_FAILED, message), **_where(child))


def brief_words(answer: str) -> str:
    """An answer in one line of at most 300 characters, for the summary of the call that waited for it."""
    words = " ".join(answer.split())
    return words if len(words) <= LONGEST_SUMMARY else f"{words[: LONGEST_SUMMARY - 1]}…"


def _where(child: Run) -> dict[str, str]:
    return {"run_id": str(child.pk), "employee": child.employee.name}


def with_ended_children() -> QuerySet[ToolCall, Any]:
    """Calls whose wait is over and nobody has said so, by run, for the sweeper."""
    open_ = ToolCall.objects.exclude(status__in=TERMINAL_CALLS).filter(status=CallStatus.SUSPENDED)
    return open_.filter(child_run__status__in=ENDED).order_by("run_id").values_list("run_id").distinct()


def orphans(of_status: RunStatus) -> QuerySet[Run, Any]:
    """Runs that live, though the call that asked for them was cancelled, for the sweeper; an index leads to each.

    One that had ended before, and was taken up again by a person, answers nobody and lives on.
    """
    had_ended = Event.objects.filter(run_id=OuterRef("pk"), type=EventType.RUN_FINISHED)
    rows = Run.objects.filter(~Exists(had_ended), parent_call__status=CallStatus.CANCELLED, cancel_requested_at=None)
    if of_status in PARKED:  # each has an open call
        open_calls = ToolCall.objects.exclude(status__in=TERMINAL_CALLS)
        rows = rows.filter(pk__in=open_calls.values("run_id"))
    return rows.filter(status=of_status).order_by("pk").values_list("pk")
