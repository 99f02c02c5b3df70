"""Every list in the admin sends the same number of queries for one row as for many rows, and none
of these queries counts the rows of a table."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.employees.models import Employee, ModelProvider
from agents.runs.models import Event, EventType, Message, Pass, Run
from tests.admin.rows import address, one_of_each
from tests.world import World
from tools.office.records.models import Draft, ListEntry, Record

pytestmark = pytest.mark.django_db


def queries(client: Client, row: Model) -> list[str]:
    with CaptureQueriesContext(
        connection,
    ) as caught:
        assert client.get(address(row, "list")).status_code == 200
    return [query["sql"] for query in caught.captured_queries]


def add_more(world: World) -> None:
    """Add eight more rows to every growing model."""
    for number in range(8):
        employee = make_worker(world, f"Worker {number}")
        card = world.card()
        Run.objects.filter(pk=card.run_id).update(employee=employee)
        Message.objects.create(run=card.run, number=2, author=world.users["operator"], text="More.")
        Pass.objects.create(run=card.run, number=1, response={}, messages_upto=1)
        Event.objects.create(run=card.run, seq=1, type=EventType.RUN_STARTED, payload={})
        record = Record.objects.create(organization=world.acme, name=f"Record {number}")
        ListEntry.objects.create(list=world.acme.record_lists.get(), record=record)
        Draft.objects.create(
            organization=world.acme, kind="report", title=f"Draft {number}", body="Text"
        )
        user = User.objects.create_user(f"person-{number}")
        world.acme.memberships.create(user=user).api_tokens.create(name="Key", hash=f"{number:064}")


def make_worker(world: World, name: str) -> Employee:
    provider = ModelProvider.objects.create(organization=world.acme, name=name)
    return Employee.objects.create(organization=world.acme, name=name, provider=provider)


def test_every_list_needs_a_constant_number_of_queries(world: World) -> None:
    rows = one_of_each(world)
    client = world.client("admin")
    client.get("/admin/")
    few = {type(row): queries(client, row) for row in rows}
    add_more(world)
    for row in rows:
        many = queries(client, row)
        assert len(many) == len(few[type(row)]), (type(row), many)
        assert len(many) <= 12, (type(row), many)


def test_no_list_counts_a_whole_table(world: World) -> None:
    rows = one_of_each(world)
    client = world.client("admin")
    for row in rows:
        counting = [sql for sql in queries(client, row) if sql.startswith("SELECT COUNT(")]
        assert not counting, (type(row), counting)
