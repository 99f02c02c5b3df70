"""The rows of runs, calls, cards, events and the audit log are read-only in the admin, even for
superusers; changing a record there adds to its history."""

import pytest
from django.contrib.auth.models import User

from agents.accounts.models import AuditEntry
from agents.runs.models import Approval, Event, Message, Pass, Run, ToolCall
from tests.admin.rows import address, faults, filled_form, make_admin_world, one_of_each
from tests.world import SEARCH, World
from tools.office.records.models import Record, RecordChange

pytestmark = pytest.mark.django_db

HISTORY = (Run, Message, Pass, ToolCall, Approval, Event, AuditEntry)


@pytest.fixture
def world() -> World:
    made = make_admin_world()
    made.users["root"] = User.objects.create_superuser("root")
    return made


@pytest.mark.parametrize("username", ["admin", "root"])
def test_history_rows_cannot_be_added_changed_or_deleted(world: World, username: str) -> None:
    rows = [row for row in one_of_each(world) if isinstance(row, HISTORY)]
    assert {type(row) for row in rows} == set(HISTORY)
    client = world.client(username)
    for row in rows:
        assert client.get(address(row, "add")).status_code == 403, row
        assert client.post(address(row, "add"), {}).status_code == 403, row
        assert client.post(address(row, "change"), {"status": "succeeded"}).status_code == 403, row
        assert client.post(address(row, "delete"), {"post": "yes"}).status_code == 403, row
        many = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
        client.post(address(row, "list"), many)
        assert type(row)._default_manager.filter(pk=row.pk).exists(), row


def test_changing_a_record_increases_its_version_and_extends_its_history(world: World) -> None:
    client, record = world.client("admin"), world.records[0]
    path = address(record, "change")
    response = client.post(path, filled_form(client, path, status="inactive", score="7"))
    assert response.status_code == 302, faults(response)
    record.refresh_from_db()
    assert (record.status, record.score, record.version) == ("inactive", 7, 2)
    step = RecordChange.objects.get(record=record)
    assert (step.actor, step.version) == ("admin", 2)
    assert (step.before, step.after) == (
        {"status": "active", "score": None},
        {"status": "inactive", "score": 7},
    )
    assert AuditEntry.objects.get(organization=world.acme).action == "record_changed"


def test_the_history_page_lists_changed_tools_and_counts_entries(world: World) -> None:
    client, path = world.client("admin"), address(world.employee, "change")
    before = set(world.employee.grants.values_list("tool", flat=True))
    tools = sorted(before - {SEARCH} | {"utility.now"})
    assert client.post(path, filled_form(client, path, allowed_tools=tools)).status_code == 302
    told = client.get(address(world.employee, "history")).content.decode()
    changed = told[told.index("Changed ") :][:90].strip()
    assert changed == f"Changed Allowed tools (added utility.now; removed {SEARCH})."
    assert "1 entry" in " ".join(told.split())


def test_changing_a_password_in_the_admin_redirects_to_the_account_page(world: World) -> None:
    client = world.client("admin")
    for page in ("password_change/", "password_change/done/"):
        response = client.post(
            f"/admin/{page}", {"old_password": "x", "new_password1": "y", "new_password2": "y"}
        )
        assert (response.status_code, response["Location"]) == (302, "/account/password/")


def test_a_concurrent_change_is_not_overwritten(world: World) -> None:
    client, record = world.client("admin"), world.records[0]
    path = address(record, "change")
    sent = filled_form(client, path, status="inactive")
    Record.objects.filter(pk=record.pk).update(version=2, phone="+1 555 0100")
    assert "__all__" in faults(client.post(path, sent))
    record.refresh_from_db()
    assert (record.status, record.phone) == ("active", "+1 555 0100")


def test_a_new_record_must_satisfy_the_record_rules(world: World) -> None:
    client = world.client("admin")
    sent = {
        "organization": world.acme.pk,
        "name": "Initrode",
        "status": "active",
        "email": "nonsense",
    }
    assert "email" in faults(client.post(address(Record, "add"), sent))
    assert (
        client.post(address(Record, "add"), {**sent, "email": "a@initrode.example"}).status_code
        == 302
    )
    made = Record.objects.get(name="Initrode")
    assert (made.organization, made.version, made.changes.count()) == (world.acme, 1, 1)
    foreign = {**sent, "email": "", "organization": world.globex.pk, "name": "Elsewhere"}
    assert "organization" in faults(client.post(address(Record, "add"), foreign))
