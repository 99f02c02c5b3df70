"""Start, message, cancel and continue runs, on behalf of people."""

from dataclasses import dataclass, replace
from datetime import timedelta

from django.db import IntegrityError
from django.db.models.functions import Now

from agents.accounts.models import Membership, Role
from agents.employees.models import Employee
from agents.employees.toolboxes import load_toolbox
from agents.platform.refusals import Conflict, Invalid, NotFound
from agents.providers.base import CONTINUE_REQUEST
from agents.runs import budgets, stops
from agents.runs.engine.ending import Ending, end_run
from agents.runs.engine.transaction import Transaction, new_run_transaction, run_transaction
from agents.runs.events import CancelRequested, MessageAdded, RunResumed, RunStarted
from agents.runs.models import ExitReason, Message, Origin, Run, RunStatus
from agents.runs.models.run import (
    ASK_REQUEST_PREFIX,
    MAX_CLIENT_ID,
    SCHEDULE_REQUEST_PREFIX,
    TRIGGER_REQUEST_PREFIX,
    make_title,
)
from agents.runs.queries.runs import TASK_EMPLOYEE
from tools.toolbox.toolbox import MODES

MAX_TEXT = 20_000
MAX_PASSES = 100
_LONGEST_SHOWN = 80
_RESERVED_PREFIXES = {
    SCHEDULE_REQUEST_PREFIX: Origin.SCHEDULE,
    TRIGGER_REQUEST_PREFIX: Origin.TRIGGER,
    ASK_REQUEST_PREFIX: Origin.ASK,
}
"""Prefixes of client request ids, each reserved for one origin. Otherwise, somebody could use such
an id and so prevent a schedule's run from starting."""


@dataclass(frozen=True)
class SentMessage:
    """A message that a person sends to an employee.

    Attributes:
        client_id: the sender's own id for the message, unique within the run; empty if there is
            none.
        is_typed: True if a person typed the text on a page.
    """

    sender: Membership
    text: str
    client_id: str = ""
    is_typed: bool = False


@dataclass(frozen=True)
class Submission:
    """A task for an employee.

    Attributes:
        mode: the mode of the run; the employee's own if empty.
        client_request_id: a repeated id does not start a second run; see _RESERVED_PREFIXES.
        schedule_id, scheduled_for, missed: the schedule that starts the run, for the run's first
            event.
        trigger: the name of the trigger that starts the run, also for the run's first event.
        attachment: text from outside that follows the task. If there is one, no part of the message
            is treated as typed by a person.
        is_typed: True if a person typed the task on a page; any other task may come from a program.
    """

    employee_id: int
    task: str
    mode: str = ""
    client_request_id: str = ""
    origin: Origin = Origin.TASK
    schedule_id: str | None = None
    scheduled_for: str | None = None
    missed: int | None = None
    trigger: str | None = None
    attachment: str = ""
    is_typed: bool = False


def submit(member: Membership, submission: Submission) -> tuple[Run, bool]:
    """Start a run; return it, and False if an earlier request with the same id has started it.

    Raises:
        Forbidden, NotFound, Invalid, Conflict
        BudgetExhausted: the budget of the month is used up.
    """
    member.require(Role.OPERATOR, "start a run")
    task = check_text("task", submission.task)
    _check_request_id(submission)
    _check_mode(member, submission.mode)
    row = TASK_EMPLOYEE.fetch_one(member.organization_id, submission.employee_id)
    if row is None:
        raise NotFound(f"there is no employee {submission.employee_id}")
    employee, employee.organization = row.employee, row.organization
    if not employee.is_active:
        raise Conflict(f"{employee.name} is not active")
    stops.refuse_stopped(employee)
    _refuse_lost_mode(employee, submission.mode)
    run = Run(
        organization_id=member.organization_id,
        employee=employee,
        created_by=member.user,
        origin=submission.origin,
        client_request_id=submission.client_request_id,
        task=task,
        title=make_title(task),
        mode=submission.mode or employee.mode,
        max_passes=employee.max_passes,
        deadline_at=Now() + timedelta(minutes=employee.run_minutes)
        if employee.run_minutes
        else None,
    )
    if earlier := _find_same_request(run):
        return earlier, False
    budgets.check_new_run(employee)
    try:
        with new_run_transaction(run) as tx:
            author = None if submission.origin == Origin.TRIGGER else member.user
            Message.objects.create(
                run=run, number=1, author=author, text=task + submission.attachment
            )
            tx.publish(_describe_start(member, submission))
    except IntegrityError:
        earlier = _find_same_request(run)
        if earlier is None:
            raise
        return earlier, False
    return Run.objects.get(pk=run.pk), True


def _describe_start(member: Membership, submission: Submission) -> RunStarted:
    return RunStarted(
        by=member.user.get_username(),
        schedule_id=submission.schedule_id,
        scheduled_for=submission.scheduled_for,
        missed=submission.missed,
        trigger=submission.trigger,
        is_typed=submission.is_typed or None,
    )


def _check_mode(member: Membership, mode: str) -> None:
    """Refuse a mode that is neither built in nor named by a tool of the organization."""
    if not mode or mode in MODES:
        return
    known = load_toolbox(member.organization_id).known_modes
    if mode not in known:
        raise Invalid(
            "mode", f"mode is {mode[:_LONGEST_SHOWN]!r}, but must be one of {', '.join(known)}"
        )


def _refuse_lost_mode(employee: Employee, mode: str) -> None:
    """Refuse the employee's own mode if no tool names it, for example after a plugin was
    removed."""
    if (
        mode
        or employee.mode in MODES
        or employee.mode in load_toolbox(employee.organization_id).known_modes
    ):
        return
    name = employee.name
    raise Conflict(
        f"{name}'s mode {employee.mode!r} is no longer available. Choose another mode for {name}."
    )


def _check_request_id(submission: Submission) -> None:
    sent = submission.client_request_id
    if len(sent) > 200 or "\0" in sent:
        raise Invalid(
            "client_request_id", "client_request_id may have at most 200 characters, and no NUL"
        )
    for prefix, origin in _RESERVED_PREFIXES.items():
        if sent.startswith(prefix) and submission.origin != origin:
            reserved = f"ids that begin with {prefix!r} are reserved for {origin}s"
            raise Invalid(
                "client_request_id",
                f"client_request_id is {sent!r}, but {reserved}; choose another one",
            )


def _find_same_request(run: Run) -> Run | None:
    if not run.client_request_id:
        return None
    same = Run.objects.filter(
        organization_id=run.organization_id, client_request_id=run.client_request_id
    )
    return same.first()


def cancel(member: Membership, run_id: int) -> Run:
    """Cancel the run immediately, or after its executing calls have ended.

    Raises:
        Forbidden, NotFound
        Conflict: the run has already ended.
    """
    member.require(Role.OPERATOR, "cancel a run")
    with run_transaction(_find_own_run_id(member, run_id)) as tx:
        run = tx.run
        if run.has_ended:
            raise Conflict(
                f"the run has already ended: {run.get_status_display()}", run_status=run.status
            )
        if run.cancel_requested_at is None:
            run.cancel_requested_at = tx.now
            tx.publish(CancelRequested(member.user.get_username()))
            tx.audit(member.actor, "run_cancelled", f"run:{run.pk}")
        if run.status != RunStatus.RUNNING:
            end_run(tx, Ending(ExitReason.CANCELLED))
    return Run.objects.get(pk=run_id)


def add_message(member: Membership, run_id: int, text: str, client_message_id: str = "") -> Run:
    """Send the employee a message: it resumes an ended run; otherwise the employee reads it before
    the next pass.

    Args:
        client_message_id: a repeated id with the same text does not add the message again.

    Raises:
        Forbidden, NotFound, Invalid
        Conflict: the run was cancelled, or has no model, or the id belongs to another message.
    """
    return _add_message(run_id, _check_message(member, text, client_message_id))


def add_typed_message(member: Membership, run_id: int, text: str) -> Run:
    """Send a message that a person typed on a page; one sent by `add_message` may come from a
    program."""
    return _add_message(run_id, replace(_check_message(member, text), is_typed=True))


def _check_message(member: Membership, text: str, client_message_id: str = "") -> SentMessage:
    member.require(Role.OPERATOR, "send a message")
    return SentMessage(member, check_text("text", text), _clean_client_id(client_message_id))


def _add_message(run_id: int, message: SentMessage) -> Run:
    with run_transaction(_find_own_run_id(message.sender, run_id)) as tx:
        if _was_sent(tx.run, message):
            return tx.run
        _check_takes_messages(tx.run)
        _append_message(tx, message)
        if tx.run.has_ended:
            _resume(tx, message.sender, tx.run.employee.max_passes)
    return Run.objects.get(pk=run_id)


def continue_run(
    member: Membership, run_id: int, max_passes: int | None = None, client_message_id: str = ""
) -> Run:
    """Continue an ended run with 1 to 100 more passes; by default, with the employee's limit.

    Args:
        client_message_id: a repeated id does not continue the run again.

    Raises:
        Forbidden, NotFound, Invalid
        Conflict: the run has not ended, was cancelled, or has no model, or the id belongs to
            another message.
    """
    member.require(Role.OPERATOR, "continue a run")
    if max_passes is not None and not 1 <= max_passes <= MAX_PASSES:
        raise Invalid("max_passes", f"max_passes is {max_passes}, but must be 1 to {MAX_PASSES}")
    message = SentMessage(member, CONTINUE_REQUEST, _clean_client_id(client_message_id))
    with run_transaction(_find_own_run_id(member, run_id)) as tx:
        if _was_sent(tx.run, message):
            return tx.run
        _check_takes_messages(tx.run)
        if not tx.run.has_ended:
            raise Conflict("the run has not ended", run_status=tx.run.status)
        _append_message(tx, message)
        _resume(tx, member, max_passes or tx.run.employee.max_passes)
    return Run.objects.get(pk=run_id)


def _clean_client_id(sent: str) -> str:
    if len(sent) > MAX_CLIENT_ID or "\0" in sent:
        raise Invalid(
            "client_message_id",
            f"client_message_id may have at most {MAX_CLIENT_ID} characters, and no NUL",
        )
    return sent


def _was_sent(run: Run, message: SentMessage) -> bool:
    """Return True if an earlier request has added this message; call it under the run's lock. Raise
    Conflict if the id belongs to another message."""
    if not message.client_id:
        return False
    found = Message.objects.filter(run=run, client_message_id=message.client_id).first()
    if found is not None and (found.author_id, found.text) != (
        message.sender.user_id,
        message.text,
    ):
        raise Conflict("this client_message_id belongs to another message of the run")
    return found is not None


def _append_message(tx: Transaction, message: SentMessage) -> None:
    run, sender = tx.run, message.sender.user
    run.message_count += 1
    Message.objects.create(
        run=run,
        number=run.message_count,
        author=sender,
        text=message.text,
        client_message_id=message.client_id,
    )
    typed_number = run.message_count if message.is_typed else None
    tx.publish(MessageAdded(message.text, sender.get_username(), typed_number))


def _resume(tx: Transaction, member: Membership, passes: int) -> None:
    run = tx.run
    stops.refuse_stopped(run.employee)
    budgets.check_budgets(run)
    run.exit_reason, run.problem, run.finished_at = "", "", None
    run.crash_count = run.patience_tries = 0
    run.patience_since = None
    run.max_passes = run.pass_number + passes
    minutes = run.employee.run_minutes
    run.deadline_at = tx.now + timedelta(minutes=minutes) if minutes else None
    tx.requeue()
    tx.publish(RunResumed(member.user.get_username()))


def _check_takes_messages(run: Run) -> None:
    if not run.has_model:
        raise Conflict("no model reads messages in this run: start a run with a task instead")
    if run.status == RunStatus.CANCELLED or run.cancel_requested_at is not None:
        raise Conflict("the run was cancelled", run_status=run.status)


def _find_own_run_id(member: Membership, run_id: int) -> int:
    """Return the id if the member's organization has this run; raise NotFound otherwise."""
    if not Run.objects.filter(organization_id=member.organization_id, pk=run_id).exists():
        raise NotFound(f"there is no run {run_id}")
    return run_id


def check_text(field: str, text: str) -> str:
    """Return a person's text without surrounding whitespace.

    Raises:
        Invalid: the text is empty, too long, or contains a NUL character.
    """
    stripped = text.strip()
    if not stripped:
        raise Invalid(field, f"{field} is empty")
    if len(text) > MAX_TEXT:
        raise Invalid(
            field, f"{field} has {len(text):,} characters; at most {MAX_TEXT:,} are allowed"
        )
    if "\0" in text:
        raise Invalid(field, f"{field} contains a NUL character")
    return stripped
