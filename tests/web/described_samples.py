"""Events of every type, in every form that pages and webhooks treat differently, with fixed ids and
times."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models.functions import Now

from agents.accounts.notice_facts import NoticeKind
from agents.runs.models import (
    Approval,
    CallStatus,
    Event,
    EventType,
    ExitReason,
    Pass,
    Run,
    RunStatus,
)
from tests.world import World, success

RUN_ID = 900_001
CALLS: dict[str, tuple[int, dict[str, Any]]] = {
    "succeeded": (900_011, {}),
    "executing": (
        900_012,
        {"finished_at": None, "content": "", "exec_epoch": 1, "deadline_at": Now()},
    ),
    "awaiting_approval": (
        900_013,
        {"finished_at": None, "content": "", "level": "write", "duration_ms": None},
    ),
    "failed": (900_014, {"level": "destructive", "duration_ms": 65_000}),
    "outcome_unknown": (900_015, {"finished_at": None, "content": "", "level": "write"}),
    "suspended": (900_016, {"finished_at": None, "content": "", "duration_ms": None}),
    "rejected": (900_017, {"tool": "web.gone", "duration_ms": None}),
    "duplicate": (900_018, {"duplicate_of_id": 900_011, "duration_ms": None}),
    "denied": (900_019, {"level": "write", "duration_ms": None, "model_params": {"limit": 3}}),
    "expired": (
        900_020,
        {"level": "draft", "duration_ms": None, "parent_call_id": 900_011, "why": "A limit asks."},
    ),
}
"""The id and the other columns of a call, by its status."""
BEGIN = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
HOSTILE = "a <b>\u202e`` ```\n# x"
LATER = "2030-01-01T00:00:00+00:00"
PAST = "2026-01-03T00:00:00+00:00"

USED = {"input_tokens": 1_200, "output_tokens": 80}
UNUSABLE = {"pass_number": 1, **USED, "usage_estimated": True, "cost": None, "duration_ms": 5}
ERROR = {"code": "NOT_FOUND", "message": "No record 7.", "details": {}}
UNKNOWN = {"code": "OUTCOME_UNKNOWN", "message": "Nobody knows.", "details": {}}
END = {
    **USED,
    "pass_number": 1,
    "usage_estimated": False,
    "cost": 0.0042,
    "currency": "USD",
    "outcome": "done",
}


def about(call: str, **more: Any) -> dict[str, Any]:
    """Return the payload's fields about the call that has this status."""
    return {"call_id": str(CALLS[call][0]), **more}


def start(call: str, **more: Any) -> dict[str, Any]:
    whole = {
        "tool": "data.searchRecords",
        "display_name": "Search records",
        "level": "read",
        "params": {"limit": 2},
    }
    return about(call, **whole, summary=HOSTILE, pass_number=1, **more)


def end(call: str, **result: Any) -> dict[str, Any]:
    return about(
        call,
        tool="data.searchRecords",
        result=success(**{"data": None, **result}),
        duration_ms=1_234,
    )


def card(call: str, **more: Any) -> dict[str, Any]:
    return about(call, approval_id="31", **more)


def decided(call: str, status: str, **more: Any) -> dict[str, Any]:
    fields = {"status": status, "decided_by": "ada", "reason": HOSTILE, "next_approval_id": None}
    return card(call, **(fields | more))


def waits(**more: Any) -> dict[str, Any]:
    return {
        "approval_ids": [],
        "decisions": 0,
        "answers": 0,
        "colleagues": [],
        "pass_number": 1,
        **more,
    }


def finished(status: str, exit_reason: str, **more: Any) -> dict[str, Any]:
    return {
        "status": status,
        "exit_reason": exit_reason,
        "answer": f"Well. {HOSTILE}",
        **END,
        **more,
    }


SAMPLES: list[tuple[EventType, str, dict[str, Any]]] = [
    (EventType.RUN_STARTED, "by a person", {"by": HOSTILE}),
    (EventType.RUN_STARTED, "by a schedule", {"by": "ada", "schedule_id": "4", "scheduled_for": LATER, "missed": 3}),
    (EventType.RUN_STARTED, "by a schedule of nobody", {"by": "", "schedule_id": "4", "missed": 100}),
    (EventType.RUN_STARTED, "by a schedule that missed one", {"by": "ada", "schedule_id": "4", "missed": 1}),
    (EventType.RUN_STARTED, "by a trigger", {"by": "ada", "trigger": HOSTILE}),
    (EventType.RUN_STARTED, "by an agent", {"by": "ada", "agent_key": HOSTILE}),
    (EventType.RUN_STARTED, "by a colleague", {"by": "ada", "parent_run_id": "7"}),
    (EventType.RUN_TITLED, "with a title", {**USED, "cost": None, "title": HOSTILE}),
    (EventType.RUN_TITLED, "without usage", {"input_tokens": 0, "output_tokens": 0, "cost": None, "title": "T"}),
    (EventType.RUN_TITLED, "without a title", {**USED, "cost": 0.1}),
    (EventType.PASS_STARTED, "", {"pass_number": 1}),
    (EventType.ASSISTANT_MESSAGE, "", {"pass_number": 1, "text": f"Hello **you**, {HOSTILE}"}),
    (EventType.ASSISTANT_THOUGHT, "", {"pass_number": 1, "text": HOSTILE}),
    (EventType.ASSISTANT_THOUGHT, "cut", {"pass_number": 1, "text": "Hm", "truncated": True}),
    (EventType.ANSWER_CUT, "length", {"pass_number": 1, "cut_off": "length"}),
    (EventType.ANSWER_CUT, "filter", {"pass_number": 1, "cut_off": "content_filter"}),
    (EventType.ANSWER_CUT, "unknown", {"pass_number": 1, "cut_off": "more"}),
    (EventType.ANSWER_UNUSABLE, "with text", {**UNUSABLE, "code": "timeout", "reason": HOSTILE, "text": HOSTILE}),
    (EventType.ANSWER_UNUSABLE, "stopped", {**UNUSABLE, "code": "stopped", "reason": "Ada stopped it."}),
    (EventType.ANSWER_UNUSABLE, "counted", {**UNUSABLE, "code": "x", "reason": "", "usage_estimated": False}),
    (EventType.REQUEST_ADAPTED, "one", {"pass_number": 1, "changes": [HOSTILE]}),
    (EventType.REQUEST_ADAPTED, "three", {"pass_number": 1, "changes": ["without a", "without b", "with c"]}),
    (EventType.USAGE_REPORTED, "", {"pass_number": 2, **USED, "cost": None}),
    (EventType.HISTORY_SHORTENED, "both", {
        "pass_number": 2, "results": 2, "texts": 1, "tokens_before": 21_000, "tokens_after": 14_500,
    }),
    (EventType.HISTORY_SHORTENED, "texts", {
        "pass_number": 2, "results": 0, "texts": 3, "tokens_before": 9, "tokens_after": 5,
    }),
    (EventType.PROVIDER_DELAYED, "busy", {
        "code": "rate_limited", "reason": "http://a.example: Later", "tries": 2, "retry_at": PAST,
    }),
    (EventType.PROVIDER_DELAYED, "unusable", {
        "code": "empty_answer", "reason": HOSTILE, "tries": 1, "retry_at": PAST,
    }),
    (EventType.TOOL_START, "executing", start("executing")),
    (EventType.TOOL_START, "succeeded", start("succeeded", parent_call_id="900011")),
    (EventType.TOOL_START, "too large", start("succeeded", truncated=True) | {"params": {}, "level": "write"}),
    (EventType.TOOL_PROGRESS, "executing", about("executing", fraction=0.5, text=HOSTILE)),
    (EventType.TOOL_PROGRESS, "of a colleague", about("suspended", fraction=0.25, text="half", run_id="9")),
    (EventType.TOOL_PROGRESS, "succeeded", about("succeeded", fraction=1, text="all")),
    (EventType.TOOL_RESULT, "success", end("succeeded", data={"rows": [1, 2]}, summary=HOSTILE)),
    (EventType.TOOL_RESULT, "formatted", end("succeeded", markdown=f"**All** {HOSTILE}", summary="")),
    (EventType.TOOL_RESULT, "shortened", end("succeeded", truncated=True)),
    (EventType.TOOL_RESULT, "failure", end("failed", success=False, summary="No record 7.", error=ERROR)),
    (EventType.TOOL_RESULT, "silent failure", end("failed", success=False, summary="", error=ERROR)),
    (EventType.TOOL_RESULT, "unknown", end("outcome_unknown", success=False, summary=HOSTILE, error=UNKNOWN)),
    (EventType.TOOL_SKIPPED, "", about("duplicate", tool="data.searchRecords", duplicate_of="900011")),
    (EventType.TOOL_REJECTED, "", about("rejected", tool="web.gone", code="NOT_PERMITTED", reason=HOSTILE)),
    (EventType.TOOL_REJECTED, "without a reason", about("rejected", tool="", code="", reason="")),
    (EventType.APPROVAL_REQUESTED, "waiting", card(
        "awaiting_approval", tool="data.updateRecord", level="write", sentence=f"Set **{HOSTILE}**",
        params={"limit": HOSTILE}, digest="0123", expires_at=LATER,
    )),
    (EventType.APPROVAL_REQUESTED, "decided", card(
        "denied", tool="data.updateRecord", level="write", sentence="Set", params={}, digest="4567",
        expires_at=LATER, truncated=True,
    )),
    (EventType.APPROVAL_REQUESTED, "unknown", card(
        "outcome_unknown", tool="data.updateRecord", level="write", sentence="Set", params={}, digest="89",
        expires_at=LATER,
    )),
    (EventType.APPROVAL_VOTED, "approved", card("awaiting_approval", by=HOSTILE, still_needed=f"1 of 2: {HOSTILE}")),
    (EventType.APPROVAL_VOTED, "withdrawn", card("awaiting_approval", by="ada", still_needed="", withdrawn=True)),
    (EventType.APPROVAL_VOTED, "of nobody", card("awaiting_approval", by="", still_needed="")),
    (EventType.APPROVAL_DECIDED, "denied", decided("denied", "denied", decided_by=HOSTILE)),
    (EventType.APPROVAL_DECIDED, "approved", decided("awaiting_approval", "approved")),
    (EventType.APPROVAL_DECIDED, "expired", decided("expired", "expired", decided_by="", reason="")),
    (EventType.APPROVAL_DECIDED, "dismissed", decided("rejected", "answered", dismissed=True)),
    (EventType.APPROVAL_DECIDED, "cancelled", decided("failed", "cancelled", decided_by="")),
    (EventType.APPROVAL_DECIDED, "superseded", decided("awaiting_approval", "superseded")),
    (EventType.APPROVAL_DECIDED, "replaced", decided("awaiting_approval", "superseded", next_approval_id="32")),
    (EventType.QUESTION_ASKED, "waiting", card("suspended", text=HOSTILE, choices=["a", "b"], expires_at=LATER)),
    (EventType.QUESTION_ASKED, "ended", card("expired", text="Which?", choices=[], expires_at=LATER)),
    (EventType.QUESTION_ANSWERED, "by a person", card("succeeded", text=HOSTILE * 30, by=HOSTILE)),
    (EventType.QUESTION_ANSWERED, "by nobody", card("succeeded", text="That.", by="")),
    *[
        (EventType.CALL_RESOLVED, outcome, about("failed", outcome=outcome, by=by, reason=HOSTILE))
        for outcome, by in (
            ("succeeded", HOSTILE), ("not_done", "ada"), ("failed", "gadget"), ("acknowledged", ""),
            ("late_report", "gadget"), ("other", "ada"),
        )
    ],
    (EventType.CALL_RESOLVED, "without a reason", about("outcome_unknown", outcome="succeeded", by="ada", reason="")),
    (EventType.LATE_EFFECT, "", card("outcome_unknown", summary=HOSTILE, reason="Look.", done_again_by=[])),
    (EventType.LATE_EFFECT, "done again", card("failed", summary="", reason="", done_again_by=["900011", "900012"])),
    (EventType.MESSAGE_ADDED, "", {"text": HOSTILE, "by": HOSTILE}),
    (EventType.MESSAGE_ADDED, "of nobody", {"text": "More", "by": ""}),
    (EventType.RUN_WAITING, "stopped", {"approval_ids": [], "reason": HOSTILE}),
    (EventType.RUN_WAITING, "one decision", waits(decisions=1)),
    (EventType.RUN_WAITING, "much", waits(decisions=1_234, answers=1, colleagues=["Kim", HOSTILE])),
    (EventType.RUN_WAITING, "answers", waits(answers=2)),
    (EventType.RUN_WAITING, "undoable", waits()),
    (EventType.RUN_WAITING, "in an old form", {"approval_ids": ["1", "2"]}),
    (EventType.RUN_RESUMED, "with a reason", {"by": "gadget", "reason": HOSTILE}),
    (EventType.RUN_RESUMED, "by a person", {"by": HOSTILE, "pass_number": 1}),
    (EventType.RUN_RESUMED, "by Gadget", {"by": "gadget", "pass_number": 1}),
    (EventType.RUN_RESUMED, "with a reason of a person", {"by": "ada", "reason": "The stop was lifted."}),
    (EventType.RUN_NEEDS_ATTENTION, "", waits(decisions=1, approval_ids=["31"])),
    (EventType.CANCEL_REQUESTED, "by a person", {"by": HOSTILE}),
    (EventType.CANCEL_REQUESTED, "by nobody", {"by": ""}),
    (EventType.RUN_FINISHED, "answered", finished("succeeded", "final_answer")),
    (EventType.RUN_FINISHED, "failed", finished("failed", "provider_error", cost=None, usage_estimated=True)),
    (EventType.RUN_FINISHED, "cancelled", finished("cancelled", "cancelled", answer="", outcome="unchanged")),
    (EventType.RUN_FINISHED, "out of passes", finished("succeeded", "max_passes", pass_number=5)),
    (EventType.RUN_FINISHED, "denied", finished("succeeded", "final_answer", outcome="denied")),
    (EventType.APPROVAL_DECIDED, "dismissed, in an old form", decided("rejected", "answered")),
    (EventType.APPROVAL_DECIDED, "answered", decided("succeeded", "answered", reason="")),
    (EventType.RUN_FINISHED, "with a problem", finished("failed", "provider_error", problem=HOSTILE)),
    (EventType.APPROVAL_DECIDED, "of a question", decided("expired", "expired", decided_by="", kind="question")),
    (EventType.APPROVAL_REQUESTED, "of a standing grant", card(
        "succeeded", tool="data.updateRecord", level="write", sentence="Set", params={}, digest="01",
        expires_at=LATER, preapproved=True,
    )),
]  # fmt: skip
"""The type, form and payload of each sample. The first sample of a type contains every text that
events of this type can have."""


def fact(detail: str, reason: str = "", **ids: str) -> dict[str, Any]:
    """Return the payload of an organization event that does not concern a person."""
    return {"key": "1", "detail": detail, "user_id": None, "reason": reason, "ids": ids}


ORGANIZATION_SAMPLES: list[tuple[NoticeKind, str, dict[str, Any]]] = [
    (NoticeKind.STOPPED, "an employee", fact("Dana, by ada", stopped="employee", employee_id="3")),
    (NoticeKind.STOPPED, "by an older version", {"key": "1", "detail": HOSTILE, "user_id": None}),
    (NoticeKind.QUARANTINE, "two tools", fact("2 tools of CRM", source_id="4")),
    (NoticeKind.SCHEDULE, "paused", fact("schedule 5", "No employee.", schedule_id="5", scheduled_for=LATER)),
    (NoticeKind.GRANT_ENDED, "changed", fact("grant 6 for a.b", "The tool has changed.", standing_grant_id="6")),
    (NoticeKind.TRIGGER_REFUSED, "a stop", fact(HOSTILE, HOSTILE, trigger_id="7")),
    (NoticeKind.WEBHOOK_OFF, "gone", fact("Warehouse", "the receiver answered 410: it is gone", webhook_id="8")),
    (NoticeKind.CHANNEL_LOST, "of a person", fact("Chrome on Linux")),
]  # fmt: skip
"""The type, form and payload of organization events."""


def build_samples(card: Approval) -> dict[EventType, dict[str, Any]]:
    """Return the first payload of each event type, changed to be about this card and its call."""
    ids = {"call_id": str(card.tool_call_id), "approval_id": str(card.pk)}
    samples: dict[EventType, dict[str, Any]] = {}
    for type_, _, payload in SAMPLES:
        samples.setdefault(type_, payload)
    return {
        type_: payload | {name: ids[name] for name in ids if name in payload}
        for type_, payload in samples.items()
    }


def build_described_events(world: World) -> tuple[Run, list[Event]]:
    """Store a run with all samples. The keys of payloads are sorted, so that both databases return
    them in the same order."""
    usage = {"input_tokens": 1_200, "output_tokens": 80, "duration_ms": 2_100}
    ended = {
        "exit_reason": ExitReason.PROVIDER_ERROR,
        "problem": "The server is away.",
        "title": "Find it",
    }
    run = world.run(
        RunStatus.FAILED, id=RUN_ID, task=HOSTILE, next_event_seq=len(SAMPLES) + 1, **ended
    )
    Pass.objects.create(run=run, number=1, response={}, messages_upto=1, **usage)
    for status, (pk, columns) in CALLS.items():
        world.call(run, id=pk, version="1", **{"status": CallStatus(status), **columns})
    return run, Event.objects.bulk_create(_list_events(run))


def _list_events(run: Run) -> Iterator[Event]:
    for seq, (type_, _, payload) in enumerate(SAMPLES, 1):
        at = BEGIN + timedelta(seconds=61 * seq)
        yield Event(run=run, seq=seq, type=type_, payload=_sort(payload), created_at=at)


def _sort(value: Any) -> Any:
    """Sort keys in the order in which PostgreSQL stores them."""
    if isinstance(value, list):
        return [_sort(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: _sort(value[key]) for key in sorted(value, key=lambda key: (len(key), key))}


def name_sample(number: int) -> str:
    type_, form, _ = SAMPLES[number]
    return f"{type_.value}, {form}" if form else type_.value
