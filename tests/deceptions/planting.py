"""Ways to plant a deception on a card."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from django.db.models.functions import Now

from agents.employees.models import Grant
from agents.runs.models import Approval, ApprovalStatus, Pass
from tests.world import World, make_world
from tools.office.records.models import Record

OTHERS = 60
WARNINGS, NEW, SIMILAR, STALE, SAME = (
    ".warnings > .warning",
    ".new-here",
    ".similar",
    ".stale",
    ".same-target",
)
EFFECT, SENTENCE, BUTTON = ".effect", ".sentence", ".approve-button"

Make = Callable[[World], Approval]


@dataclass(frozen=True)
class Plant:
    """A planted deception: it creates a card, and names the sign that must be visible there.

    Attributes:
        kind: the kind of deception.
        name: the thing that is planted.
        make: creates the card.
        place: a selector that finds the sign on the page.
        sees: a text that the sign contains.
        is_folded: True if the deception is in a folded part. Approve must then be disabled, and the
            sign is not checked.
    """

    kind: str
    name: str
    make: Make = field(repr=False)
    place: str = WARNINGS
    sees: str = ""
    is_folded: bool = False


def make_office() -> World:
    """Create a world with records that have addresses, and an employee with the tools that the
    plants need."""
    world = make_world()
    for record, domain in zip(
        world.records, ("acme.com", "initech.com", "umbrella.org"), strict=True
    ):
        record.domain, record.email, record.phone = domain, f"office@{domain}", "+1 555 0107"
        record.notes = "First line.\nSecond line.\nThird line."
        record.save()
    world.records += [
        Record.objects.create(
            organization=world.acme, name=f"Company {number}", region="EU", status="inactive"
        )
        for number in range(OTHERS)
    ]
    for tool in ("data.bulkUpdate", "data.createRecord", "data.addToList", "files.write"):
        Grant.objects.create(employee=world.employee, tool=tool)
    return world


def update(**changes: Any) -> Make:
    """Plant these changes to the record Acme Corp."""
    return lambda world: world.card(
        params={"record_id": str(world.records[0].pk), "changes": changes}
    )


def create(**values: Any) -> Make:
    return lambda world: world.card(tool="data.createRecord", params=values)


def update_after(used: str, **changes: Any) -> Make:
    """Plant these changes to the record Acme Corp, after an approved call with the text `used` has
    started."""

    def make(world: World) -> Approval:
        approver, earlier = world.users["approver"], update(notes=used)(world)
        started = {
            "status": ApprovalStatus.CONSUMED,
            "decided_by": approver,
            "decided_at": Now(),
            "consumed_at": Now(),
        }
        Approval.objects.filter(pk=earlier.pk).update(**started)
        return update(**changes)(world)

    return make


def rename(name: str, **changes: Any) -> Make:
    """Plant a record of this name; the card changes its phone."""

    def make(world: World) -> Approval:
        record = Record.objects.create(organization=world.acme, name=name, domain="planted.org")
        return world.card(
            params={"record_id": str(record.pk), "changes": changes or {"phone": "+1 555 0123"}}
        )

    return make


def write_file(text: str, path: str = "notes/today.md") -> Make:
    return lambda world: world.card(tool="files.write", params={"path": path, "text": text})


def say(words: str) -> Make:
    """Plant the employee's own words beside an ordinary change."""

    def make(world: World) -> Approval:
        card = world.card()
        Pass.objects.create(run=card.run, number=1, response={}, text=words, messages_upto=1)
        return card

    return make


def call(level: str = "write", **params: Any) -> Make:
    """Plant these params in a call of a third-party tool that has no preview."""

    def make(world: World) -> Approval:
        preview = {
            "effect": "unknown",
            "targets": [],
            "total": 0,
            "reversible": False,
            "problem": "No preview.",
        }
        return replace_content(
            world.card(), params=params, preview=preview, level=level, sentence="Use **Mailer**"
        )

    return make


def list_targets(
    count: int,
    odd: dict[str, Any] | None = None,
    *,
    verb: str = "update",
    level: str = "write",
) -> Make:
    """Plant a list of similar targets; if `odd` is given, the middle target has these values."""

    def make(world: World) -> Approval:
        targets = [
            {
                "id": "",
                "label": f"Company {number}",
                "version": None,
                "before": {"status": "inactive", "region": "EU"},
                "after": {} if verb == "delete" else {"status": "pending", "region": "US"},
            }
            for number in range(count)
        ]
        if odd is not None:
            targets[count // 2] |= odd
        preview = {
            "effect": verb,
            "targets": targets,
            "total": count,
            "reversible": True,
            "problem": "",
        }
        sentence = f"{verb.capitalize()} {count} records"
        return replace_content(
            world.card(), preview=preview, level=level, sentence=sentence, params={}
        )

    return make


def replace_content(card: Approval, **values: Any) -> Approval:
    """Replace what a card shows, as if a third-party tool had computed it."""
    digest = sha256(repr((card.pk, values)).encode()).hexdigest()
    Approval.objects.filter(pk=card.pk).update(**values, digest=digest)
    card.tool_call.level = values.get("level", card.level)
    card.tool_call.save()
    return Approval.objects.get(pk=card.pk)


def share_target(world: World) -> Approval:
    """Plant a second open card on the same record."""
    first = world.card()
    world.card(params={"record_id": str(world.records[0].pk), "changes": {"status": "inactive"}})
    return first


def outdate(**changes: Any) -> Make:
    """Plant a change to the record after the card was created; without changes, delete the
    record."""

    def make(world: World) -> Approval:
        record = Record.objects.create(organization=world.acme, name="Harbor Cloud", phone="1")
        card = world.card(params={"record_id": str(record.pk), "changes": {"phone": "2"}})
        own = Record.objects.filter(pk=record.pk)
        if changes:
            own.update(version=record.version + 1, **changes)
        else:
            own.delete()
        return card

    return make


def delete_many(count: int) -> Make:
    return lambda world: world.card(
        tool="data.bulkDelete",
        params={"record_ids": [str(record.pk) for record in world.records[:count]]},
    )


def update_many(count: int) -> Make:
    return lambda world: world.card(
        tool="data.bulkUpdate",
        params={
            "record_ids": [str(record.pk) for record in world.records[:count]],
            "changes": {"region": "US"},
        },
    )
