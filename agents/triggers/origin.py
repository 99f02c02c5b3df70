"""Load the people and the message behind a run that a trigger started."""

from __future__ import annotations

from collections.abc import Collection

from agents.runs.models import Run
from agents.runs.origins import Act
from agents.triggers.models import ReceivedMessage


def load_acts(run_ids: Collection[int]) -> dict[int, list[Act]]:
    """Load, by run id, the people behind the run's trigger, and the people who sent its message
    again."""
    rows = ReceivedMessage.objects.filter(run_id__in=run_ids).values_list("run_id", "requesters")
    return {
        run_id: [(user_id, name, act) for user_id, name, act in people] for run_id, people in rows
    }


def load_texts(run: Run) -> tuple[str, str] | None:
    """Load the template and the payload of the message that started the run; None if the message
    was deleted."""
    return ReceivedMessage.objects.filter(run_id=run.pk).values_list("template", "payload").first()
