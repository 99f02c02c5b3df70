"""The usual world with text written by others in every place: all hostile strings, or harmless
ones.

Many strings are packed into one field, and each place gets as many rows as needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from agents.accounts import audit
from agents.accounts.models import ApiToken, Invitation, Membership
from agents.employees.models import Employee, Grant, ModelProvider, ProviderKind
from agents.policy.models import PolicyDraft
from agents.runs.models import Approval, Event, EventType, Message, Run, RunStatus, ToolCall
from tests.hostile import HOSTILE, LONG, packed
from tests.world import SEARCH, UPDATE, World, make_world, success
from tools.office.records.models import Draft, ListEntry, Record, RecordChange, RecordList
from tools.schedules.models import Schedule

OF_LINES = 200
"""The maximum number of characters of a text in a line of a run."""
IN_ALL = 2_000
OPTIONS_AT_MOST = 40
"""The maximum number of rows in the filters of every list; every further row still has a page."""


@dataclass
class Words:
    """The source of the texts: `of(80)` returns texts of at most 80 characters that together
    contain all strings."""

    is_hostile: bool

    def of(self, limit: int, between: str = " ") -> list[str]:
        packs = packed(limit, between, longest=IN_ALL)
        return (
            list(packs)
            if self.is_hostile
            else [self._masked(number, text) for number, text in enumerate(packs)]
        )

    def longest(self) -> list[str]:
        """Return the texts of 100 KB."""
        found = [text for text in HOSTILE if len(text) > LONG // 2]
        return (
            found
            if self.is_hostile
            else [self._masked(number, text) for number, text in enumerate(found)]
        )

    def _masked(self, number: int, text: str) -> str:
        """Return a harmless text of the same length with the same blanks, so that it wraps at the
        same places."""
        plain = "".join(char if char in " \n" else "x" for char in text)
        return f"{number:03}{plain[3:]}"


@dataclass
class HostileWorld:
    """The world, and the rows whose pages are read."""

    world: World
    words: Words
    employees: list[Employee] = field(default_factory=list)
    users: list[User] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    cards: list[Approval] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)
    schedules: list[Schedule] = field(default_factory=list)
    children: list[Run] = field(default_factory=list)
    policy_drafts: list[PolicyDraft] = field(default_factory=list)


def make_hostile_world(*, is_hostile: bool = True) -> HostileWorld:
    """Fill every place with rows created directly, because most forms would refuse some of these
    texts."""
    made = HostileWorld(make_world(), Words(is_hostile))
    fill(made)
    return made


def fill(made: HostileWorld) -> None:
    """Add rows of every kind to the world's organization Acme."""
    for step in (_people, _employees, _runs, _records, _drafts, _audit):
        with transaction.atomic():
            step(made)


def at(texts: list[str], number: int) -> str:
    """Return the text with this number, starting again after the last one."""
    return texts[number % len(texts)]


def once(texts: list[str], number: int) -> str:
    """Return the text with this number, which may be very long; empty after the last one."""
    return texts[number] if number < len(texts) else ""


def _people(made: HostileWorld) -> None:
    world, names = made.world, made.words.of(150)
    users = [
        User(username=name, first_name=name[::-1][:150], last_name=at(names, number + 1))
        for number, name in enumerate(names)
    ]
    made.users = User.objects.bulk_create(users)
    Membership.objects.bulk_create(
        Membership(organization=world.acme, user=user, role="approver") for user in made.users
    )
    notes, ends = made.words.of(120), timezone.now() + timedelta(days=3)
    Invitation.objects.bulk_create(
        Invitation(
            organization=world.acme,
            role="viewer",
            note=note,
            hash=f"i{number}",
            made_by=world.users["admin"],
            expires_at=ends,
        )
        for number, note in enumerate(notes)
    )
    member = world.member("operator")
    tokens = enumerate(made.words.of(80))
    ApiToken.objects.bulk_create(
        ApiToken(membership=member, name=name, hash=f"t{number}") for number, name in tokens
    )


def _employees(made: HostileWorld) -> None:
    acme, jobs, models, modes = (
        made.world.acme,
        made.words.of(120),
        made.words.of(120),
        made.words.of(40),
    )
    texts = [*made.words.longest(), *made.words.of(IN_ALL, "\n")]
    names = made.words.of(80)
    providers = ModelProvider.objects.bulk_create(
        ModelProvider(organization=acme, name=name, kind=ProviderKind.OPENAI) for name in names
    )
    made.employees = Employee.objects.bulk_create(
        Employee(
            organization=acme,
            name=name,
            job_title=at(jobs, number),
            instructions=once(texts, number),
            provider=providers[number],
            model=at(models, number),
            mode=at(modes, number),
            capabilities=[at(modes, number + 1)],
            example_tasks=[at(jobs, number), once(texts, number)[:1_000] or name],
            is_active=number < OPTIONS_AT_MOST,
        )
        for number, name in enumerate(names)
    )
    tools = made.words.of(120)
    Grant.objects.bulk_create(
        Grant(employee=employee, tool=at(tools, number))
        for number, employee in enumerate(made.employees)
    )


def _runs(made: HostileWorld) -> None:
    texts, tasks = made.words.of(OF_LINES), [*made.words.longest(), *made.words.of(IN_ALL, "\n")]
    for number, text in enumerate(texts):
        run = Run.objects.create(
            organization=made.world.acme,
            employee=at_employee(made, number),
            created_by=at_user(made, number),
            title=text,
            task=once(tasks, number) or text,
            status=RunStatus.FAILED,
            exit_reason="provider_error",
            problem=text,
            answer=text,
            pass_number=1,
            finished_at=Now(),
        )
        Message.objects.create(run=run, number=1, author=at_user(made, number), text=text)
        made.runs.append(run)
        _fill_run(made, run, text, number)


def at_employee(made: HostileWorld, number: int) -> Employee:
    return made.employees[number % len(made.employees)]


def at_user(made: HostileWorld, number: int) -> User:
    return made.users[number % len(made.users)]


def _fill_run(made: HostileWorld, run: Run, text: str, number: int) -> None:
    """Add a line of every kind with the text in every place, and the cards of its calls."""
    by = at_user(made, number).username
    called = _calls(made, run, text, number)
    end = {
        "status": "failed",
        "exit_reason": "provider_error",
        "answer": text,
        "pass_number": 1,
        "output_tokens": 1,
        "input_tokens": 1,
        "usage_estimated": False,
        "cost": None,
        "currency": "USD",
    }
    told: list[tuple[EventType, dict[str, Any]]] = [
        (EventType.RUN_STARTED, {"by": by}),
        (
            EventType.RUN_TITLED,
            {"title": text, "input_tokens": 1, "output_tokens": 1, "cost": None},
        ),
        (EventType.PASS_STARTED, {"pass_number": 1}),
        (EventType.ASSISTANT_MESSAGE, {"pass_number": 1, "text": f"{text} and more"}),
        (EventType.MESSAGE_ADDED, {"by": by, "text": text}),
        (
            EventType.PROVIDER_DELAYED,
            {"reason": text, "code": text[:40], "tries": 2, "retry_at": "2030-01-01T00:00:00Z"},
        ),
        (EventType.RUN_RESUMED, {"by": by, "reason": text}),
        (EventType.RUN_WAITING, {"approval_ids": [1], "colleagues": [by, text]}),
        (EventType.RUN_NEEDS_ATTENTION, {"call_ids": [1]}),
        (EventType.CANCEL_REQUESTED, {"by": by}),
        *called,
        (EventType.RUN_FINISHED, end),
    ]
    Event.objects.bulk_create(
        Event(run=run, seq=seq, type=type_, payload=payload)
        for seq, (type_, payload) in enumerate(told, start=1)
    )
    Run.objects.filter(pk=run.pk).update(next_event_seq=len(told) + 1)


def _calls(
    made: HostileWorld, run: Run, text: str, number: int
) -> list[tuple[EventType, dict[str, Any]]]:
    params: dict[str, Any] = {text: text, "list": [text, {text: [{text: 1}]}]}
    told: list[tuple[EventType, dict[str, Any]]] = []

    def call(
        type_: EventType, level: str = "read", became: str = "succeeded", **payload: Any
    ) -> ToolCall:
        index = len(told)
        asked = params if index < 2 else {"q": text}
        tool = text[:120] if index % 2 else UPDATE if level == "write" else SEARCH
        row = ToolCall.objects.create(
            organization=run.organization,
            run=run,
            pass_number=1,
            index=index,
            provider_call_id=f"c{index}",
            tool=tool,
            version=text[:40],
            level=level,
            params=asked,
            model_params=asked,
            params_hash="0",
            signature=f"{index}",
            why=text,
            status=became,
            finished_at=Now(),
            content=text,
            result=payload.get("result"),
            duration_ms=1,
        )
        told.append((type_, {"call_id": row.pk, **payload}))
        return row

    error = {"code": text[:40], "message": text}
    wrong = {"success": False, "summary": text, "error": error, "markdown": f"# {text}"}
    failure = success({text: [{text: text}], "text": text}, **wrong)
    call(EventType.TOOL_START)
    call(EventType.TOOL_PROGRESS, text=text, fraction=0.5)
    call(EventType.TOOL_RESULT, result=success([{text: text}, {text: [text]}], summary=text))
    call(EventType.TOOL_RESULT, result=success({text: {text: text}}, summary=text))
    made.calls.append(call(EventType.TOOL_RESULT, result=failure))
    call(EventType.TOOL_RESULT, "draft", result=success({}, summary=text, markdown=text))
    call(EventType.TOOL_REJECTED, reason=text, code=text[:40])
    call(EventType.TOOL_SKIPPED)
    call(
        EventType.CALL_RESOLVED, outcome="succeeded", by=at_user(made, number).username, reason=text
    )
    call(EventType.CALL_RESOLVED, outcome="late_report", by="gadget", reason=text)
    _calls_with_cards(made, call, text, number)
    return told


def _calls_with_cards(
    made: HostileWorld, call: Callable[..., ToolCall], text: str, number: int
) -> None:
    late = {"summary": text, "reason": text, "done_again_by": []}
    _late_effect(made, call(EventType.LATE_EFFECT, "write", "failed", **late), text, number)
    for decided in (False, True):
        card = _card(
            made,
            call(EventType.APPROVAL_DECIDED, "write", status="denied", decided_by=text),
            text,
            number,
        )
        if decided:
            card.status, card.reason, card.decided_by, card.decided_at = (
                "denied",
                text,
                at_user(made, number),
                Now(),
            )
        card.save()
        made.cards.append(card)
    for type_ in (EventType.QUESTION_ASKED, EventType.QUESTION_ANSWERED):
        row = call(type_, "read", approval_id=1, text=text, by=at_user(made, number).username)
        _question(
            made, row, text, at_user(made, number) if type_ == EventType.QUESTION_ANSWERED else None
        )
    unknown = _card(made, call(EventType.APPROVAL_REQUESTED, "destructive"), text, number)
    unknown.kind = "unknown"
    unknown.save()
    made.cards.append(unknown)


def _late_effect(made: HostileWorld, call: ToolCall, text: str, number: int) -> None:
    card, result = _card(made, call, text, number), success({text: text}, summary=text)
    late = {"reported_at": "2030-01-01T00:00:00Z", "result": result, "done_again_by": []}
    ToolCall.objects.filter(pk=call.pk).update(late_effect=late)
    card.kind = "unknown"
    card.save()
    made.calls.append(call)
    made.cards.append(card)


def _question(made: HostileWorld, call: ToolCall, text: str, answered_by: User | None) -> None:
    ToolCall.objects.filter(pk=call.pk).update(tool="employee.askHuman")
    card = _card(made, call, text, 0)
    card.kind, card.preview = "question", {"question": text, "choices": [text, text], "targets": []}
    if answered_by is not None:
        card.status, card.reason, card.decided_by, card.decided_at = (
            "answered",
            text,
            answered_by,
            Now(),
        )
    card.save()
    made.cards.append(card)


def _card(made: HostileWorld, call: ToolCall, text: str, number: int) -> Approval:
    targets = [
        {
            "id": text,
            "label": text,
            "before": {text: text},
            "after": {text: text[::-1], "notes": text},
        }
    ] * 2
    preview: dict[str, Any] = {"effect": text, "targets": targets, "total": 2, "reversible": True}
    if number % 3 == 0:
        preview = {"problem": text}
    return Approval(
        organization=made.world.acme,
        run=call.run,
        tool_call=call,
        level=call.level,
        digest="0" * 64,
        preview=preview,
        params={"record_id": text, "changes": {"notes": text, "phone": text}, text: text},
        why=text,
        sentence=f"Update **{text}** and {text}",
        expires_at=timezone.now() + timedelta(days=1),
    )


def _records(made: HostileWorld) -> None:
    acme, texts = made.world.acme, made.words.of(OF_LINES)
    names, short = made.words.of(200), {limit: made.words.of(limit) for limit in (40, 50, 80, 250)}
    notes = [*made.words.longest(), *made.words.of(IN_ALL, "\n")]
    rows = [
        Record(
            organization=acme,
            name=at(names, number),
            region=at(short[50], number),
            category=at(short[80], number),
            email=at(short[250], number),
            domain=at(short[250], number),
            phone=phone,
            notes=once(notes, number),
            attributes={at(texts, number): at(texts, number)},
            qualification="qualified",
            qualification_reason=at(texts, number),
        )
        for number, phone in enumerate(short[40])
    ]
    made.records = Record.objects.bulk_create(rows)
    lists = RecordList.objects.bulk_create(
        RecordList(organization=acme, name=name) for name in made.words.of(100)
    )
    for number, one in enumerate(lists):
        ListEntry.objects.create(list=one, record=made.records[number // 90])
    RecordChange.objects.bulk_create(
        RecordChange(
            record=made.records[number // 45],
            version=2,
            actor=text,
            before={text: text[::-1]},
            after={text: text, "notes": text},
            run_id=text[:64],
            call_id=text[:64],
        )
        for number, text in enumerate(texts)
    )


def _drafts(made: HostileWorld) -> None:
    titles, runs = made.words.of(200), made.words.of(64)
    bodies = [*made.words.longest(), *made.words.of(IN_ALL, "\n\n")]
    for number, title in enumerate(titles):
        draft = Draft.objects.create(
            organization=made.world.acme,
            kind="report",
            title=title,
            body=once(bodies, number),
            employee=at(titles, number + 1),
            run_id=at(runs, number) if number % 2 else str(at_run(made, number).pk),
        )
        draft.records.add(made.records[number])
        made.drafts.append(draft)


def at_run(made: HostileWorld, number: int) -> Run:
    return made.runs[number % len(made.runs)]


def _audit(made: HostileWorld) -> None:
    texts = made.words.of(200)
    actions = made.words.of(60)
    entries = [
        audit.NewEntry(
            f"user:{at(texts, number)}",
            action,
            f"{at(texts, number)}",
            {at(texts, number): at(texts, number), "row": action},
        )
        for number, action in enumerate(actions)
    ]
    audit.append(made.world.acme.pk, entries)
