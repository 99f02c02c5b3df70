"""Commands and queries that do more than they seem to, and targets that have changed since the card
was created."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agents.runs.models import Approval
from tests.deceptions.pairing import in_field, in_param, pair_up
from tests.deceptions.planting import Make, create, rename
from tests.world import World
from tools.office.files.changes import write_file
from tools.office.records.models import Record, RecordList

IN_COMMAND, IN_QUERY, IN_CRON = in_param("command"), in_param("query"), in_param("cron")
Change = Callable[[World], Any]


def change_behind(place: int, **changes: Any) -> Change:
    """Return a function that changes one of the world's records and its version."""

    def change(world: World) -> None:
        record = world.records[place]
        Record.objects.filter(pk=record.pk).update(version=record.version + 1, **changes)

    return change


def delete_behind(place: int) -> Change:
    return lambda world: Record.objects.filter(pk=world.records[place].pk).delete()


def keep(world: World) -> None:
    """Do not change anything."""


def bulk_then(change: Change) -> Make:
    """Create a card about four records, then make the change."""

    def make(world: World) -> Approval:
        ids = [str(record.pk) for record in world.records[:4]]
        params = {"record_ids": ids, "changes": {"status": "pending"}}
        card = world.card(tool="data.bulkUpdate", params=params)
        change(world)
        return card

    return make


def list_then(change: Change) -> Make:
    """Create a card that adds a record to a new list, then make the change."""

    def make(world: World) -> Approval:
        params = {"list_name": "Leads", "record_ids": [str(world.records[0].pk)]}
        card = world.card(tool="data.addToList", params=params)
        change(world)
        return card

    return make


def file_then(change: Change) -> Make:
    """Create a card that writes a file, then make the change."""

    def make(world: World) -> Approval:
        params = {"path": "notes/plan.md", "text": "Call Acme."}
        card = world.card(tool="files.write", params=params)
        change(world)
        return card

    return make


def make_list(world: World) -> None:
    RecordList.objects.create(organization=world.acme, name="Leads")


def make_file(world: World) -> None:
    write_file(world.acme.pk, ("notes", "plan.md"), [b"Keep this."], lambda _: None)


ACTIONS = (
    *pair_up(
        "commands in a row",
        ("after a semicolon", IN_COMMAND, "git pull; rm -rf /srv", "git pull"),
        ("after an ampersand", IN_COMMAND, "git pull && rm -rf /srv", "git pull"),
        ("through a pipe", IN_COMMAND, "cat list.txt | sh", "cat list.txt"),
        ("substituted", IN_COMMAND, "echo $(rm -rf /srv)", "echo done"),
        ("in backticks", IN_COMMAND, "echo `rm -rf /srv`", "echo done"),
        ("on a second line", IN_COMMAND, "git pull\nrm -rf /srv", "git pull"),
        ("into a file", IN_COMMAND, "echo x > /etc/passwd", "echo x"),
        ("in Base64", IN_COMMAND, "echo cm0gLXJmIC9zcnY= | base64 -d | sh", "echo done"),
    ),
    *pair_up(
        "queries without a limit",
        ("a deletion", IN_QUERY, "DELETE FROM orders", "DELETE FROM orders WHERE id = 41"),
        (
            "an update",
            IN_QUERY,
            "UPDATE users SET role = 'admin'",
            "UPDATE users SET role = 'admin' WHERE id = 41",
        ),
        (
            "a condition that always holds",
            IN_QUERY,
            "DELETE FROM orders WHERE 1 = 1",
            "DELETE FROM orders WHERE id = 41",
        ),
        (
            "a condition in a comment",
            IN_QUERY,
            "DELETE FROM orders -- WHERE id = 41",
            "DELETE FROM orders WHERE id = 41",
        ),
        ("two statements", IN_QUERY, "SELECT 1; DROP TABLE orders", "SELECT 1"),
        ("a table", IN_QUERY, "TRUNCATE orders", "SELECT 1"),
        ("a quote that closes", in_param("name"), "x'; DROP TABLE orders; --", "Ann O'Neil"),
    ),
    *pair_up(
        "times that repeat too often",
        ("each minute", IN_CRON, "* * * * *", "0 9 * * 1"),
        ("each minute by steps", IN_CRON, "*/1 9 * * 1", "0 9 * * 1"),
        ("an hour of minutes", IN_CRON, "* 9 * * 1", "0 9 * * 1"),
        ("a day that never comes", IN_CRON, "0 9 31 2 *", "0 9 * * 1"),
        ("at each start", IN_CRON, "@reboot", "@weekly"),
        ("a day or a weekday", IN_CRON, "0 9 1 * 1", "0 9 * * 1"),
    ),
    *pair_up(
        "targets that are no longer what they were",
        ("one of four changed", bulk_then, change_behind(2, status="pending", region="CN"), keep),
        ("one of four deleted", bulk_then, delete_behind(1), keep),
        ("one of four renamed", bulk_then, change_behind(3, name="Mallory Bank"), keep),
        (
            "one of four archived",
            bulk_then,
            change_behind(0, archived_at="2026-01-01T00:00:00Z"),
            keep,
        ),
        ("a list that now exists", list_then, make_list, keep),
        ("a file that now exists", file_then, make_file, keep),
        ("the record of a list deleted", list_then, delete_behind(0), keep),
    ),
    *pair_up(
        "similar names",
        ("a letter more", rename, "Umbrellla", "Harbor Cloud"),
        ("a letter less", rename, "Umbrela", "Harbor Cloud"),
        ("two letters swapped", rename, "Umbrlela", "Harbor Cloud"),
        ("another letter", rename, "Umbrelle", "Harbor Cloud"),
        ("a legal form", rename, "Initech GmbH", "Harbor GmbH"),
        ("another ending", rename, "Acme Corporation", "Harbor Corporation"),
        ("an accent", rename, "Initéch", "Hárbor"),
        ("no space", rename, "AcmeCorp", "HarborCloud"),
        ("an article", rename, "The Umbrella", "The Harbor"),
        ("turned around", rename, "Corp Acme", "Cloud Harbor"),
        ("a new record", lambda name: create(name=name), "Initechh", "Harbor Cloud"),
    ),
    *pair_up(
        "similar people and addresses",
        ("a letter less", in_param("recipient"), "offce@acme.com", "office@acme.com"),
        ("two letters swapped", in_param("to"), "bbo@goldenharbor.com", "bob@goldenharbor.com"),
        ("a period", in_param("to"), "b.ob@goldenharbor.com", "bob@goldenharbor.com"),
        ("another ending", in_param("to"), "bob@goldenharbor.co", "bob@goldenharbor.com"),
        ("a tag", in_param("to"), "bob+x@goldenharbor.com", "bob@goldenharbor.com"),
        ("a username", in_param("assignee"), "aprover", "approver"),
        ("a handle", in_field("notes"), "Write to @goldenharb0r", "Write to @goldenharbor"),
        ("a hyphen", in_field("domain"), "golden--harbor.com", "golden-harbor.com"),
    ),
)
