"""The tests' own triggers enforce invariant I5 on both databases: ended rows do not change."""

from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import QuerySet

from agents.runs.models import Approval, CallStatus, Event, ToolCall
from tests.workshop import Workshop, asking, call, calls

pytestmark = pytest.mark.django_db(transaction=True)


def test_ended_rows_cannot_change(workshop: Workshop) -> None:
    workshop.play(asking(call("probe.sleep", ms=0), call("probe.effect", name="a")))
    run = workshop.work()
    card = workshop.deny(workshop.card(run))
    assert calls(run)[0].status == CallStatus.SUCCEEDED
    changes: tuple[tuple[QuerySet[Any, Any], dict[str, Any]], ...] = (
        (ToolCall.objects.filter(pk=calls(run)[0].pk), {"content": "Something else"}),
        (Approval.objects.filter(pk=card.pk), {"status": "pending"}),
        (Event.objects.filter(run=run), {"payload": {}}),
    )
    for rows, change in changes:
        with pytest.raises(DatabaseError, match="I5"), transaction.atomic():
            rows.update(**change)


def test_a_late_effect_can_be_added_once_and_not_changed(workshop: Workshop) -> None:
    workshop.play(asking(call("probe.fail", code="NOT_FOUND")))
    rows = ToolCall.objects.filter(run=workshop.work())
    with transaction.atomic():
        rows.update(late_effect={"summary": "It happened."})
        for other in ({"summary": "Something else"}, None):
            with pytest.raises(DatabaseError, match="I5"), transaction.atomic():
                rows.update(late_effect=other)
        transaction.set_rollback(True)


def test_only_a_failed_call_can_have_a_late_effect(workshop: Workshop) -> None:
    workshop.play(asking(call("probe.sleep", ms=0)))
    with pytest.raises(IntegrityError, match="late_effect_of_a_failed_call"):
        ToolCall.objects.filter(run=workshop.work()).update(late_effect={})
