"""A driver loads each recorded pass of its run once, and only when all of its calls have ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.db import connection, transaction

from agents.runs.engine.history import ConversationCache, OpenCalls
from agents.runs.models import Pass, Run, ToolCall
from tests.workshop import Workshop, asking, call, calls

pytestmark = pytest.mark.django_db(transaction=True)


def load_cache(run: Run) -> ConversationCache:
    cache = ConversationCache()
    cache.load_new_passes(run.pk)
    return cache


def list_results(cache: ConversationCache) -> list[list[str]]:
    """List the results of each pass."""
    return [[result["content"] for result in each.results] for each in cache.passes]


def test_a_recorded_pass_is_loaded_once(workshop: Workshop) -> None:
    first, second = call("probe.sleep", ms=0), call("probe.sleep", ms=1)
    workshop.play(asking(first, second), asking(call("probe.sleep", ms=2)))
    run = workshop.work()
    whole = load_cache(run)
    assert [len(results) for results in list_results(whole)] == [2, 1, 0]
    assert whole.signatures == {each.signature for each in calls(run)}

    with transaction.atomic():
        ToolCall.objects.filter(run=run, pass_number=2).delete()
        Pass.objects.filter(run=run, number__gte=2).delete()
        cache = load_cache(run)
        transaction.set_rollback(True)
    assert cache.passes == whole.passes[:1]

    with transaction.atomic():
        ToolCall.objects.filter(run=run, pass_number=1).delete()
        cache.load_new_passes(run.pk)
        cache.load_new_passes(run.pk)
        transaction.set_rollback(True)
    assert cache == whole


def test_only_new_passes_are_loaded(workshop: Workshop) -> None:
    known = []

    def record_params(
        execute: Callable[..., Any], sql: str, params: Sequence[int], many: bool, context: Any
    ) -> Any:
        if '"runs_pass"."response"' in sql:
            known.append(tuple(params))
        return execute(sql, params, many, context)

    workshop.play(*(asking(call("probe.sleep", ms=number)) for number in range(3)))
    with connection.execute_wrapper(record_params):
        run = workshop.work()
    assert [sorted(params) for params in known] == [
        sorted((run.pk, number)) for number in (0, 0, 1, 2)
    ]


def test_a_pass_with_an_open_call_is_not_loaded(workshop: Workshop) -> None:
    workshop.play(asking(call("probe.sleep", ms=0), call("probe.effect", name="a")))
    run = workshop.work()
    cache = ConversationCache()
    with pytest.raises(OpenCalls, match="a call of pass 1 has no result"):
        cache.load_new_passes(run.pk)
    assert cache == ConversationCache()
    workshop.deny(workshop.card(run))
    cache.load_new_passes(run.pk)
    assert list_results(cache) == [[each.content for each in calls(run)]]
