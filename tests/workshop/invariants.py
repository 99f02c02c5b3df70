"""The engine's invariants I1 to I10, which are checked with SQL after each test of the engine."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta

from django.db import connection
from django.db.models import Max, Q
from django.db.models.functions import Now

from agents.runs.engine.cards import compute_digest
from agents.runs.models import (
    PARKED,
    TERMINAL_CALLS,
    Approval,
    ApprovalStatus,
    CallStatus,
    Origin,
    Pass,
    Run,
    RunStatus,
    ToolCall,
)
from tests.audit_chain import verify_audits

_DEADLINE_TOLERANCE = timedelta(seconds=45)
_CLAIM_TOLERANCE = timedelta(seconds=30)

_TERMINAL = ", ".join(f"'{status}'" for status in TERMINAL_CALLS)

_FAULTS: Mapping[str, str] = {
    "I1: a write was attempted more than once": """
        SELECT id FROM runs_toolcall WHERE level IN ('write', 'destructive') AND attempts > 1""",
    "I2: an executed write without exactly one consumed approval": """
        SELECT c.id FROM runs_toolcall c
        WHERE c.level IN ('write', 'destructive') AND c.attempts = 1
          AND (SELECT count(*) FROM approvals_approval a WHERE a.tool_call_id = c.id AND a.status = 'consumed') <> 1""",
    "I2: a consumed approval of a person who was not allowed to decide": """
        SELECT a.id FROM approvals_approval a
        LEFT JOIN accounts_membership m ON m.user_id = a.decided_by_id AND m.organization_id = a.organization_id
        WHERE a.status = 'consumed' AND (m.role IS NULL OR m.role NOT IN ('approver', 'admin'))""",
    "I2: a preapproved call that started before an earlier write of its pass had succeeded": """
        SELECT c.id FROM runs_toolcall c
        JOIN approvals_approval a ON a.tool_call_id = c.id AND a.status = 'consumed' AND a.standing_grant_id IS NOT NULL
        JOIN runs_toolcall e ON e.run_id = c.run_id AND e.pass_number = c.pass_number AND e."index" < c."index"
        WHERE c.parent_call_id IS NULL AND e.parent_call_id IS NULL AND e.level IN ('write', 'destructive')
          AND e.status NOT IN ('duplicate', 'rejected')
          AND (e.status <> 'succeeded' OR e.finished_at > c.started_at)""",
    "I3: events of a run that are not numbered 1..n": """
        SELECT r.id FROM runs_run r
        LEFT JOIN (SELECT run_id, min(seq) AS low, max(seq) AS high, count(*) AS n FROM runs_event GROUP BY run_id) e
          ON e.run_id = r.id
        WHERE coalesce(e.n, 0) <> r.next_event_seq - 1
           OR (e.n > 0 AND (e.low <> 1 OR e.high <> e.n))""",
    "I4: a parked run with a lease, or with nothing open, or with something that could start": f"""
        SELECT r.id FROM runs_run r
        WHERE r.status IN ('waiting', 'needs_attention')
          AND (r.lease_owner <> ''
            OR NOT EXISTS (SELECT 1 FROM runs_toolcall c WHERE c.run_id = r.id AND c.status NOT IN ({_TERMINAL}))
              AND (r.origin <> 'mcp' OR r.next_wake_at IS NULL)
            OR EXISTS (SELECT 1 FROM runs_toolcall c WHERE c.run_id = r.id AND (
              c.status = 'ready' OR c.status = 'executing' AND r.origin <> 'ask')))""",
    "I4: a suspended call that waits for nothing": f"""
        SELECT c.id FROM runs_toolcall c WHERE c.status = 'suspended'
          AND NOT EXISTS (
            SELECT 1 FROM approvals_approval a
            WHERE a.tool_call_id = c.id AND a.kind = 'question' AND a.status = 'pending')
          AND NOT EXISTS (SELECT 1 FROM runs_run r WHERE r.parent_call_id = c.id)
          AND NOT EXISTS (
            SELECT 1 FROM runs_toolcall s WHERE s.parent_call_id = c.id AND s.status NOT IN ({_TERMINAL}))""",
    "I4: a question that waits though its call does not": """
        SELECT a.id FROM approvals_approval a JOIN runs_toolcall c ON c.id = a.tool_call_id
        WHERE a.kind = 'question' AND a.status = 'pending' AND c.status <> 'suspended'""",
    "I5: an ended call without an end, or an open one with an end": f"""
        SELECT id FROM runs_toolcall WHERE (status IN ({_TERMINAL})) <> (finished_at IS NOT NULL)""",
    "I5: a late effect without a card": """
        SELECT c.id FROM runs_toolcall c WHERE c.late_effect IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM approvals_approval a
            WHERE a.tool_call_id = c.id AND a.kind = 'unknown' AND a.status IN ('pending', 'answered'))""",
    "I5: a card of kind unknown that waits for nothing": """
        SELECT a.id FROM approvals_approval a JOIN runs_toolcall c ON c.id = a.tool_call_id
        WHERE a.kind = 'unknown' AND a.status = 'pending'
          AND c.status <> 'outcome_unknown' AND c.late_effect IS NULL""",
    "I6: another organization along the chain": """
        SELECT c.id FROM runs_toolcall c JOIN runs_run r ON r.id = c.run_id
          JOIN employees_employee e ON e.id = r.employee_id
        WHERE c.organization_id <> r.organization_id OR e.organization_id <> r.organization_id
        UNION SELECT a.id FROM approvals_approval a JOIN runs_toolcall c ON c.id = a.tool_call_id
        WHERE a.organization_id <> c.organization_id OR a.run_id <> c.run_id
        UNION SELECT r.id FROM runs_run r JOIN runs_run p ON p.id = r.parent_id
          LEFT JOIN runs_toolcall c ON c.id = r.parent_call_id
        WHERE r.organization_id <> p.organization_id OR c.run_id <> p.id OR r.depth <> p.depth + 1""",
    "I7: an ended call without a tool message": f"""
        SELECT c.id FROM runs_toolcall c LEFT JOIN runs_toolcall d ON d.id = c.duplicate_of_id
        WHERE c.status IN ({_TERMINAL}) AND c.content = ''
          AND (d.id IS NULL OR d.content = '' AND d.finished_at IS NOT NULL)""",
}


def assert_invariants() -> None:
    """Raise AssertionError if an invariant is broken, with the invariant's name and the ids of the
    rows."""
    broken = [f"{name}: {rows}" for name, sql in _FAULTS.items() if (rows := _rows(sql))]
    broken += _find_calls_without_a_row()
    broken += _find_wrong_digests()
    broken += [
        f"I4: run {pk} is parked, though an approved call could start"
        for pk in _find_startable_parked_runs()
    ]
    broken += [f"I8: {pk} executes beyond its deadline" for pk in _find_overlong_calls()]
    broken += [f"I10: run {pk} is due and nobody claims it" for pk in _find_undriven_runs()]
    broken += [
        f"I9: {slug}: {fault}" for slug, faults in verify_audits().items() for fault in faults
    ]
    assert not broken, "\n".join(broken)


def _rows(sql: str) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return [row[0] for row in cursor.fetchall()]


def _find_calls_without_a_row() -> list[str]:
    """Find passes in which one of the model's call ids has no row, or more than one (I7)."""
    stored: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    rows = ToolCall.objects.filter(parent_call=None).values_list(
        "run_id", "pass_number", "provider_call_id"
    )
    for run_id, number, call_id in rows.order_by():
        stored[run_id, number].append(call_id)
    faults = []
    for run_id, number, response in Pass.objects.order_by().values_list(
        "run_id", "number", "response"
    ):
        asked = sorted(call["id"] for call in response.get("tool_calls") or ())
        if asked != sorted(stored[run_id, number]):
            faults.append(
                f"I7: run {run_id} pass {number}: asked {asked}, stored {stored[run_id, number]}"
            )
    return faults


def _find_wrong_digests() -> list[str]:
    """Find executed calls that differ from what was approved: their current digest is not the
    digest of their approval (I2)."""
    consumed = Approval.objects.filter(status=ApprovalStatus.CONSUMED).select_related("tool_call")
    wrong = [
        card for card in consumed if compute_digest(card.tool_call, card.preview) != card.digest
    ]
    return [
        f"I2: call {card.tool_call_id} is not what its approval {card.pk} shows" for card in wrong
    ]


def _find_startable_parked_runs() -> list[int]:
    """Find parked runs with an approved call that could have started long ago: the sweeper should
    have woken these runs."""
    seen = Now() - _CLAIM_TOLERANCE
    approved = Q(
        Q(approvals__after=None) | Q(approvals__after__finished_at__lt=seen),
        approvals__status=ApprovalStatus.APPROVED,
        approvals__start_after__lt=seen,
    )
    # Asks are left out: the agent carries out the action itself, so the sweeper need not wake the
    # run.
    parked = Run.objects.filter(approved, status__in=PARKED).exclude(origin=Origin.ASK)
    return list(parked.values_list("pk", flat=True).distinct())


def _find_overlong_calls() -> list[int]:
    late = ToolCall.objects.filter(
        status=CallStatus.EXECUTING, deadline_at__lt=Now() - _DEADLINE_TOLERANCE
    )
    return list(late.values_list("pk", flat=True))


def _find_undriven_runs() -> list[int]:
    """Find queued runs that have been due for too long. This is a fault only if a worker has a free
    slot."""
    due = Q(next_wake_at=None, newest__lt=Now() - _CLAIM_TOLERANCE) | Q(
        next_wake_at__lt=Now() - _CLAIM_TOLERANCE
    )
    queued = (
        Run.objects.filter(status=RunStatus.QUEUED)
        .annotate(newest=Max("events__created_at"))
        .filter(due)
    )
    return list(queued.values_list("pk", flat=True))
