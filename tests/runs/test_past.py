"""A driver reads what its model has been told once, and only when all of it has ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.db import connection, transaction

from agents.runs.engine.history import ConversationCache, OpenCalls
from agents.runs.models import Pass, Run, ToolCall
from tests.workshop import Workshop, asking, call, calls

pytestmark = pytest.mark.django_db(transaction=True)


def read(run: Run) -> ConversationCache:
    past = ConversationCache()
    past.load_new_passes(run.pk)
    return past


def told(past: ConversationCache) -> list[list[str]]:
    """The results, pass for pass."""
    return [[result["content"] for result in one.results] for one in past.passes]


def test_what_is_known_is_not_read_again(workshop: Workshop) -> None:
    first, second = call("probe.sleep", ms=0), call("probe.sleep", ms=1)
    workshop.play(asking(first, second), asking(call("probe.sleep", ms=2)))
    run = workshop.work()
    whole = read(run)
    assert [len(results) for results in told(whole)] == [2, 1, 0]
    assert whole.signatures == {each.signature for each in calls(run)}

    with transaction.atomic():
        ToolCall.objects.filter(run=run, pass_number=2).delete()
        Pass.objects.filter(run=run, number__gte=2).delete()
        past = read(run)
        transaction.set_rollback(True)
    assert past.passes == whole.passes[:1]

    with transaction.atomic():
        ToolCall.objects.filter(run=run, pass_number=1).delete()
        past.load_new_passes(run.pk)
        past.load_new_passes(run.pk)
        transaction.set_rollback(True)
    assert past == whole


def test_each_pass_reads_only_what_is_new(workshop: Workshop) -> None:
    known = []

    def watching(execute: Callable[..., Any], sql: str, params: Sequence[int], many: bool, context: Any) -> Any:
        if '"runs_pass"."response"' in sql:
            known.append(tuple(params))
        return execute(sql, params, many, context)

    workshop.play(*(asking(call("probe.sleep", ms=number)) for number in range(3)))
    with connection.execute_wrapper(watching):
        run = workshop.work()
    assert [sorted(params) for params in known] == [sorted((run.pk, number)) for number in (0, 0, 1, 2)]


def test_a_call_that_has_not_ended_is_no_past(workshop: Workshop) -> None:
    workshop.play(asking(call("probe.sleep", ms=0), call("probe.effect", name="a")))
    run = workshop.work()
    past = ConversationCache()
    with pytest.raises(OpenCalls, match="a call of pass 1 has no result"):
        past.load_new_passes(run.pk)
    assert past == ConversationCache()
    workshop.deny(workshop.card(run))
    past.load_new_passes(run.pk)
    assert told(past) == [[each.content for each in calls(run)]]
