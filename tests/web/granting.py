"""Helpers for tests of the pages about standing grants: waiting cards, decisions on them, and the
pages' forms."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F
from django.db.models.functions import Now
from django.test import Client

from agents.runs.models import Approval, ApprovalStatus, ToolCall
from agents.standing_grants.models import StandingGrant
from tests.world import World, change


def waiting_card(world: World, **params: Any) -> Approval:
    """Return a card whose call has a verdict and the origins of its values, in the form that the
    engine stores."""
    card = world.card(params=params or None)
    judgment = {"verdict": "ask", "causes": [["level", "this changes data", ""]], "facts": {}}
    nowhere = {"sightings": [], "unlisted": 0, "unsearched": 0, "is_partial": False}
    ToolCall.objects.filter(pk=card.tool_call_id).update(judgment=judgment, provenance=nowhere)
    return card


def decide(world: World, card: Approval, status: ApprovalStatus, seconds: int = 5) -> None:
    """Decide the card as the approver, this many seconds after the approver's previous decision."""
    earlier = Approval.objects.filter(decided_by=world.users["approver"]).count()
    Approval.objects.filter(pk=card.pk).update(
        status=status,
        decided_by=world.users["approver"],
        decided_at=F("requested_at") + timedelta(seconds=seconds * (earlier + 1)),
        consumed_at=Now() if status == ApprovalStatus.CONSUMED else None,
    )


def answer(world: World, grant: StandingGrant, at: datetime | None = None) -> Approval:
    """Create a card that the grant approved at this time, by default now, and whose call has
    started."""
    card = waiting_card(world, **change(world.records[1], "+1 555 0199"))
    Approval.objects.filter(pk=card.pk).update(
        status=ApprovalStatus.CONSUMED,
        standing_grant=grant,
        decided_by=grant.made_by,
        decided_at=at or Now(),
        consumed_at=Now(),
    )
    return card


def read_page(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200, response.content[:500]
    return " ".join(response.content.decode().split())


def read_inputs(page: str) -> dict[str, str | list[str]]:
    """Return the form's values as a browser would send them."""
    form = page.partition('class="surface grant-form"')[2]
    values: dict[str, str | list[str]] = dict(
        re.findall(r'<input[^>]*name="([^"]+)"[^>]*value="([^"]*)"', form)
    )
    values["path"] = re.findall(r'name="path" value="([^"]+)"', form)
    for name, options in re.findall(r'<select name="([^"]+)">(.*?)</select>', form):
        chosen = re.search(r'value="([^"]*)" selected', options)
        values[name] = chosen[1] if chosen else ""
    values |= dict(re.findall(r'<textarea name="([^"]+)"[^>]*> ?([^<]*)</textarea>', form))
    return values
