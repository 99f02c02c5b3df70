"""Schedules, stops and delegated tasks with text written by others in every place."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from agents.employees.models import Employee, ToolRule
from agents.policy.models import PolicyDraft, ShadowCard, ShadowVerdict
from agents.runs.engine.context import DELEGATE
from agents.runs.models import CallStatus, Run, RunStatus, ToolCall
from agents.standing_grants.models import StandingGrant
from tests.hostile.agents import add_agents, add_triggers, add_webhooks
from tests.hostile.world import IN_ALL, OF_LINES, HostileWorld, at, at_employee, at_run, at_user
from tests.world import SEARCH, success
from tools.schedules.models import Schedule

OF_HEADINGS = 80
"""The length of a task in the heading of its schedule."""
OF_PEOPLE = 150
OF_TOOLS = 120
EACH_DAY = ("0 9 * * *", "UTC")


def add_work(made: HostileWorld) -> None:
    """Add all rows directly, because most forms would refuse some of these texts."""
    with transaction.atomic():
        _stops(made)
        made.schedules = _schedules(made)
        made.children = _children(made)
        _grants(made)
        _policy_drafts(made)
        add_agents(made.world, made.words.of(80), made.words.of(200))
        add_triggers(made.world, made.words.of(80), made.words.of(200))
        add_webhooks(made.world, made.words.of(80), made.words.of(200))


def _stops(made: HostileWorld) -> None:
    """Stop all employees, and uninstalled tools."""
    now, people = timezone.now(), made.words.of(OF_PEOPLE)
    for number, employee in enumerate(made.employees):
        employee.stopped_at, employee.stopped_by = now, at(people, number)
    Employee.objects.bulk_update(made.employees, ["stopped_at", "stopped_by"])
    ToolRule.objects.bulk_create(
        ToolRule(
            organization=made.world.acme, tool=tool, stopped_by=at(people, number), stopped_at=now
        )
        for number, tool in enumerate(made.words.of(OF_TOOLS))
    )


def _schedules(made: HostileWorld) -> list[Schedule]:
    """Add an active and a cancelled schedule for each heading and each long task."""
    now, lines, people = timezone.now(), made.words.of(OF_LINES), made.words.of(OF_PEOPLE)
    tasks = [*made.words.longest(), *made.words.of(IN_ALL, "\n"), *made.words.of(OF_HEADINGS)]
    cron, time_zone = EACH_DAY
    rows = [
        Schedule(
            organization=made.world.acme,
            employee=at_employee(made, number),
            created_by=at_user(made, number),
            task=task,
            cron=cron,
            time_zone=time_zone,
            problem=at(lines, number),
            made_in_run=task[:64],
            is_active=not is_cancelled,
            next_at=None if is_cancelled else now + timedelta(days=1),
            cancelled_at=now if is_cancelled else None,
            cancelled_by=at(people, number) if is_cancelled else "",
        )
        for is_cancelled in (False, True)
        for number, task in enumerate(tasks)
    ]
    return Schedule.objects.bulk_create(rows)


def _children(made: HostileWorld) -> list[Run]:
    """Add a delegated run of each employee, whose calls have hostile names and outcomes."""
    texts, children = made.words.of(OF_LINES), []
    for number, employee in enumerate(made.employees):
        asking, text = at_run(made, number), at(texts, number)
        call = _call(asking, 1_000 + number, DELEGATE, text)
        child = Run.objects.create(
            organization=asking.organization,
            employee=employee,
            created_by=at_user(made, number),
            parent=asking,
            parent_call=call,
            title=text,
            task=text,
            answer=text,
            status=RunStatus.FAILED,
            exit_reason="provider_error",
            pass_number=1,
            finished_at=timezone.now(),
        )
        for index, tool in enumerate((text[:OF_TOOLS], SEARCH)):
            _call(child, index, tool, text)
        children.append(child)
    return children


def _call(run: Run, index: int, tool: str, told: str) -> ToolCall:
    return ToolCall.objects.create(
        organization=run.organization,
        run=run,
        pass_number=1,
        index=index,
        provider_call_id=f"{index}",
        tool=tool,
        level="read",
        params={},
        params_hash="0",
        signature=f"{index}",
        status=CallStatus.SUCCEEDED,
        result=success({}, summary=told),
        content=told,
        finished_at=timezone.now(),
    )


def _grants(made: HostileWorld) -> None:
    """Add standing grants with these texts as params, values and reasons for ending: 40 active and
    40 ended ones, which fill a page."""
    texts, ends = made.words.of(OF_LINES)[:40], timezone.now() + timedelta(days=1)
    for ended_at in (None, timezone.now()):
        StandingGrant.objects.bulk_create(
            StandingGrant(
                organization=made.world.acme,
                tool=f"data.updateRecord{number}",
                definition_hash="d",
                level="write",
                employee=at_employee(made, number),
                params=[text[:80], "other"],
                conditions=[
                    {"param": "other", "rule": "equals", "value": text, "otherwise": "ask"}
                ],
                max_uses=1,
                expires_at=ends,
                made_by=at_user(made, number),
                ended_at=ended_at,
                ended_because=text[:300] if ended_at else "",
            )
            for number, text in enumerate(texts)
        )


def _policy_drafts(made: HostileWorld) -> None:
    """Add policy drafts with texts as names, approval rules and reasons."""
    for number, name in enumerate(made.words.of(80)):
        draft = PolicyDraft.objects.create(
            organization=made.world.acme,
            name=name,
            changes=[{"kind": "approval_rule", "rule": {"id": 0, "name": name, "needed": 2}}],
            created_by=at_user(made, number),
            counts={"auto ask": 1},
        )
        call = at_call(made, number)
        ShadowVerdict.objects.create(
            draft=draft, call=call, before="auto", after="ask", reason=name
        )
        card = made.cards[number % len(made.cards)]
        ShadowCard.objects.create(draft=draft, card=card, outcome="more", needs=name)
        made.policy_drafts.append(draft)


def at_call(made: HostileWorld, number: int) -> ToolCall:
    return made.calls[number % len(made.calls)]
