"""Triggers in the test database that enforce invariant I5: ended rows never change, no matter which
test or process tries to change them.

The only exception: a late effect may be added once to an ended call.
"""

from __future__ import annotations

from django.db import connection

from agents.runs.models import TERMINAL_CALLS, ApprovalStatus

OPEN_CARDS = (ApprovalStatus.PENDING, ApprovalStatus.APPROVED)
ENDED_CARDS = tuple(status for status in ApprovalStatus if status not in OPEN_CARDS)
FROZEN = {
    "runs_toolcall": (
        TERMINAL_CALLS,
        (
            *("status", "params", "level", "signature", "exec_epoch", "attempts"),
            *("finished_at", "finished_seq", "duration_ms", "content", "result"),
        ),
    ),
    "approvals_approval": (
        ENDED_CARDS,
        (
            "status",
            "digest",
            "sentence",
            "preview",
            "params",
            "level",
            "decided_by_id",
            "decided_at",
            "decision_id",
            "consumed_at",
            "shown_marks",
        ),
    ),
    "runs_event": ((), ("run_id", "seq", "type", "payload")),
}
ADDED_ONCE = {"runs_toolcall": "late_effect"}
"""Columns that may be set once after the end."""


def freeze_ended_rows() -> None:
    """Make the database refuse changes to ended rows."""
    with connection.cursor() as cursor:
        for table, (statuses, columns) in FROZEN.items():
            has_ended = (
                f"OLD.status IN ({', '.join(repr(str(one)) for one in statuses)})"
                if statuses
                else "true"
            )
            old, new = (
                ", ".join(f"{row}.{column}" for column in columns) for row in ("OLD", "NEW")
            )
            is_not = "IS NOT" if connection.vendor == "sqlite" else "IS DISTINCT FROM"
            changes = f"({old}) {is_not} ({new})"
            if (added := ADDED_ONCE.get(table)) is not None:
                changes = (
                    f"({changes} OR OLD.{added} IS NOT NULL AND OLD.{added} {is_not} NEW.{added})"
                )
            if connection.vendor == "sqlite":
                cursor.execute(
                    f"CREATE TRIGGER frozen_{table} BEFORE UPDATE ON {table}"
                    f" WHEN {has_ended} AND {changes}"
                    f" BEGIN SELECT RAISE(ABORT, 'I5: an ended row of {table} was changed'); END"
                )
            else:
                cursor.execute(
                    f"CREATE OR REPLACE FUNCTION frozen_{table}() RETURNS trigger LANGUAGE plpgsql AS"
                    f" $$ BEGIN RAISE EXCEPTION 'I5: an ended row of {table} was changed'; END $$"
                )
                cursor.execute(
                    f"CREATE TRIGGER frozen_{table} BEFORE UPDATE ON {table} FOR EACH ROW"
                    f" WHEN ({has_ended} AND {changes}) EXECUTE FUNCTION frozen_{table}()"
                )


def thaw_ended_rows() -> None:
    """Allow changes to ended rows again, for tests of other constraints; call `freeze_ended_rows`
    afterwards."""
    with connection.cursor() as cursor:
        for table in FROZEN:
            of_table = f" ON {table}" if connection.vendor == "postgresql" else ""
            cursor.execute(f"DROP TRIGGER IF EXISTS frozen_{table}{of_table}")
