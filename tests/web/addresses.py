"""The addresses of pages, with the ids of Acme's rows in place of the placeholders."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from uuid import uuid4

from django.utils import timezone

from agents.accounts import invitations
from agents.accounts.notice_facts import NoticeKind
from agents.approval_rules.deputies import name_deputy
from agents.approval_rules.models import Deputy
from agents.approvals.saved_views import save_view
from agents.gateway.keys import issue_key
from agents.notices.models import Channel, Delivery, Notice
from agents.policy import shadow
from agents.policy.models import PolicyDraft
from agents.policy.policy_drafts import ChangeKind, PolicyChange
from agents.runs import schedules
from agents.runs.models import Approval
from agents.urls import urlpatterns
from tests.world import World
from tools.office.files.changes import write_file
from tools.office.records.models import Draft

PLACEHOLDER = re.compile("<[^>]+>")
DAILY = ("0 9 * * *", "UTC")


def make_deputy(world: World) -> Deputy:
    now, day = timezone.now(), timedelta(days=1)
    return name_deputy(world.member("admin"), world.member("approver").pk, now, now + day)


def make_delivery(world: World, card: Approval) -> Delivery:
    channel = Channel.objects.create(
        membership=world.member("viewer"), kind="email", label="viewer@example.com"
    )
    notice = Notice.objects.create(
        organization=world.acme, kind=NoticeKind.CARD, approval=card, key="card:1"
    )
    return Delivery.objects.create(notice=notice, channel=channel, due_at=timezone.now())


def make_policy_draft(world: World) -> PolicyDraft:
    return shadow.save_policy_draft(
        world.member("admin"), "No search", (PolicyChange(ChangeKind.STOP, "data.searchRecords"),)
    )


def write_notes(world: World) -> str:
    write_file(world.acme.pk, ("notes.txt",), [b"Acme"], lambda _: None)
    return "notes.txt"


def build_address(world: World, name: str) -> str:
    """Return the page's address with each placeholder replaced by the id of a row in Acme."""
    route = next(str(pattern.pattern) for pattern in urlpatterns if pattern.name == name)
    fillers = make_fillers(world)
    return "/" + PLACEHOLDER.sub(lambda found: str(fillers[found[0]]()), route)


def make_fillers(world: World) -> dict[str, Callable[[], object]]:
    """Make a card; for each placeholder, return a function that provides a row and returns the
    row's id."""
    card = world.card()
    delivery = cache(lambda: make_delivery(world, card))
    message = cache(lambda: world.received(world.trigger()))
    sent = cache(world.webhook_delivery)
    return {
        "<int:delivery_id>": lambda: delivery().pk,
        "<int:channel_id>": lambda: delivery().channel_id,
        "<int:run_id>": lambda: card.run_id,
        "<int:approval_id>": lambda: card.pk,
        "<int:call_id>": lambda: card.tool_call_id,
        "<int:employee_id>": lambda: world.employee.pk,
        "<int:membership_id>": lambda: world.member("viewer").pk,
        "<int:invitation_id>": lambda: (
            invitations.invite(world.member("admin"), invitations.Offer(role="viewer"))[0].pk
        ),
        "<int:record_id>": lambda: world.records[0].pk,
        "<int:draft_id>": lambda: (
            Draft.objects.create(
                organization=world.acme, kind="report", title="Draft", body="Text"
            ).pk
        ),
        "<int:schedule_id>": lambda: (
            schedules.create(world.member("operator"), world.employee.pk, "Acme", DAILY).pk
        ),
        "<int:grant_id>": lambda: world.standing_grant().pk,
        "<int:view_id>": lambda: (
            save_view(world.member("viewer"), "Writes", "level=write", ("level",)).pk
        ),
        "<int:deputy_id>": lambda: make_deputy(world).pk,
        "<int:key_id>": lambda: (
            issue_key(world.member("operator"), world.employee.pk, "Laptop", 30)[0].pk
        ),
        "<int:trigger_id>": lambda: message().trigger_id,
        "<int:message_id>": lambda: message().pk,
        "<int:webhook_id>": lambda: sent().webhook_id,
        "<int:webhook_delivery_id>": lambda: sent().pk,
        "<int:policy_draft_id>": lambda: make_policy_draft(world).pk,
        "<uuid:bulk_id>": uuid4,
        "<path:rest>": lambda: "no/such/page",
        "<path:path>": lambda: write_notes(world),
        "<str:name>": lambda: "data.searchRecords",
        "<str:secret>": lambda: "unknown",
        "<path:public_id>": lambda: "unknown",
    }
