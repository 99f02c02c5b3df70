"""Sessions of remote agents, and the start and end of the runs that their calls belong to."""

from contextlib import suppress

from django.db import transaction
from django.db.models.functions import Now

from agents.gateway.keys import lock_key
from agents.gateway.models import AgentKey, AgentRun, AgentSession
from agents.gateway.queries import MAX_CALLS_OF_A_RUN, RUNS_OF_SESSION, RUNS_WITHOUT_SESSION
from agents.platform.refusals import Conflict
from agents.runs import budgets, stops
from agents.runs.engine.ending import Ending, end_run
from agents.runs.engine.timing import timing
from agents.runs.engine.transaction import new_run_transaction, run_transaction
from agents.runs.events import RunStarted
from agents.runs.models import (
    ENDED,
    TERMINAL_CALLS,
    ExitReason,
    Message,
    Origin,
    Run,
    RunStatus,
    ToolCall,
)


def find_or_create_session(key: AgentKey, session_id: str) -> AgentSession:
    """Return the key's session with this id. The session's row is created at its first call."""
    return AgentSession.objects.get_or_create(key=key, session_id=session_id)[0]


def has_ended(key: AgentKey, session_id: str) -> bool:
    """Return True if the client has ended this session."""
    return AgentSession.objects.filter(
        key=key, session_id=session_id, ended_at__isnull=False
    ).exists()


def end_session(session: AgentSession) -> None:
    """End the session for its client. A run that has open calls continues without the session."""
    AgentSession.objects.filter(pk=session.pk, ended_at=None).update(ended_at=Now())
    runs = AgentRun.objects.filter(session=session).exclude(run__status__in=ENDED)
    for run_id in runs.values_list("run_id", flat=True):
        with suppress(Run.DoesNotExist):
            end_resting_run(run_id, is_idle=False)


def find_or_start_run(key: AgentKey, session: AgentSession | None) -> int:
    """Return the id of the run that takes the next call of this key and session; start one if there
    is none.

    A run that is executing an approved write does not take calls, because it does nothing else
    during that time.

    Raises:
        Conflict: the employee is inactive or stopped, a budget is used up, or the key no longer
            works.
    """
    employee = key.employee
    if not employee.is_active:
        raise Conflict(f"{employee.name} is not active")
    stops.refuse_stopped(employee)
    budgets.check_new_run(employee)
    found = _find_run(key, session)
    if found is not None:
        return found
    with transaction.atomic():
        lock_key(key)  # so that two calls that arrive first at the same time share one run
        found = _find_run(key, session)
        return found if found is not None else _start_run(key, session)


def _find_run(key: AgentKey, session: AgentSession | None) -> int | None:
    row = (
        RUNS_WITHOUT_SESSION.fetch_one(key.pk)
        if session is None
        else RUNS_OF_SESSION.fetch_one(key.pk, session.pk)
    )
    return row.run_id if row is not None else None


def _start_run(key: AgentKey, session: AgentSession | None) -> int:
    assert key.membership is not None
    employee, user = key.employee, key.membership.user
    # Leave out the client's text, because it would be treated as if a person had typed it.
    title = f"Agent with the key {key.name}"
    run = Run(
        organization=employee.organization,
        employee=employee,
        created_by=user,
        origin=Origin.MCP,
        task=title,
        title=title[:200],
        mode=employee.mode,
        status=RunStatus.WAITING,
        next_wake_at=Now() + timing().session_idle,
        max_passes=MAX_CALLS_OF_A_RUN,
        messages_heard=1,
    )
    with new_run_transaction(run) as tx:
        Message.objects.create(run=run, number=1, text=title)
        AgentRun.objects.create(run=run, key=key, session=session)
        tx.publish(RunStarted(user.get_username(), agent_key=key.name))
    return run.pk


def end_resting_run(run_id: int, is_idle: bool = True) -> bool:
    """End a session's run if it rests and does not have open calls; return False if it was not
    ended.

    Raises:
        Run.DoesNotExist: the run is locked.
    """
    with run_transaction(run_id, wait=False) as tx:
        run = tx.run
        is_due = run.next_wake_at is not None and (not is_idle or run.next_wake_at <= tx.now)
        if run.origin != Origin.MCP or run.status != RunStatus.WAITING or not is_due:
            return False
        calls = ToolCall.objects.filter(run_id=run_id)
        if calls.exclude(status__in=TERMINAL_CALLS).exists():
            return False
        count = calls.count()
        made = "1 call" if count == 1 else f"{count:,} calls"
        end_run(tx, Ending(ExitReason.SESSION_ENDED, f"The session ended. It made {made}."))
        return True
