"""Hostile texts written by external agents and systems: names of keys, texts of asks, and messages
to triggers."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from agents.gateway.models import AgentKey, Ask, AskedEffect, RefusedAsk
from agents.runs.models import Approval, Origin, RunStatus
from agents.triggers.models import ReceivedMessage, ReceivedStatus, Trigger
from agents.webhooks.models import Webhook, WebhookDelivery
from tests.world import World


def add_agents(world: World, names: list[str], effects: list[str]) -> None:
    """Add a key with each of these names, and two asks and a refused ask for each of these effects.

    Each effect has two asks, so that the card of the second ask shows the first ask.
    """
    member, ends = world.member("operator"), timezone.now() + timedelta(days=3)
    keys = AgentKey.objects.bulk_create(
        AgentKey(
            membership=member,
            employee=world.employee,
            name=name,
            hash=f"a{number}",
            ending="abcd",
            expires_at=ends,
            revoked_by=name,
            revoked_at=ends if number % 2 else None,
        )
        for number, name in enumerate(names)
    )
    for number, text in enumerate(effects):
        key = keys[number % len(keys)]
        effect = AskedEffect.objects.create(organization=world.acme, action="refund", key=text)
        for _ in range(2):
            card = add_ask_card(world, text)
            ask = Ask.objects.create(
                run=card.run, key=key, action="refund", audience=text, effect=effect
            )
            RefusedAsk.objects.create(ask=ask, key=key, params={text: text})


def add_ask_card(world: World, text: str) -> Approval:
    """Add the card of an ask whose params are this text."""
    run = world.run(RunStatus.WAITING, origin=Origin.ASK, task=text, title=text)
    return world.card(run, tool="ask/refund", params={"reason": text})


def add_triggers(world: World, names: list[str], texts: list[str]) -> None:
    """Add a trigger with each of these names, and a refused and a filtered message for each of
    these texts."""
    member = world.member("operator")
    for number, name in enumerate(names):
        text = texts[number % len(texts)]
        trigger = Trigger.objects.create(
            organization=world.acme,
            employee=world.employee,
            name=name,
            public_id=f"{world.acme.pk}-{number}",
            scheme="hmac",
            header="X-Signature",
            secret="a secret of the sender",
            task=text,
            filters=[{"param": text, "rule": "equals", "value": text, "otherwise": "forbid"}],
            created_by=member.user,
            made_by=member.user,
        )
        for status in (ReceivedStatus.REFUSED, ReceivedStatus.FILTERED):
            ReceivedMessage.objects.create(
                trigger=trigger, status=status, reason=text[:300], payload=text, by=member.user
            )


def add_webhooks(world: World, names: list[str], texts: list[str]) -> None:
    """Add a webhook with each of these names; each text is used as its address, its problem, and
    the problem of a failed delivery."""
    for number, name in enumerate(names):
        text = texts[number % len(texts)]
        webhook = Webhook.objects.create(
            organization=world.acme,
            name=name,
            address=text,
            kinds=["run.started"],
            is_active=number % 2 == 0,
            problem=text[:300],
            failing_since=timezone.now(),
            off_reason=text[:300] if number % 2 else "",
        )
        columns = {"status": "failed", "ended_at": timezone.now(), "problem": text[:300]}
        WebhookDelivery.objects.create(
            webhook=webhook, kind="run.started", run_id=1, seq=1, **columns
        )
