"""If a source changes between the last check of a call and its start, the call runs as it was
judged."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, connections, transaction

from agents.accounts.models import Organization
from agents.employees.toolboxes import load_toolbox
from agents.runs.models import CallStatus, RunStatus
from tests.tools.connections.api import Api
from tests.tools.connections.connecting import connect_api, offer
from tests.workshop import Workshop, asking, call, statuses
from tools.connections.changes import bump_tools_version
from tools.connections.models import Source

pytestmark = pytest.mark.django_db(transaction=True)

ADD, LIST = "crm.addContact", "crm.listContacts"


@pytest.fixture
def source(workshop: Workshop, api: Api) -> Source:
    source = connect_api(workshop, api)
    offer(workshop, source, ADD, LIST)
    return source


@contextmanager
def after_the_commit_of(statement: str, change: Callable[[], None]) -> Iterator[list[str]]:
    """Make a change in a separate thread, right after this connection commits the first statement
    that contains the given text.

    Yields a list to which "seen" is added when the statement runs, and "changed" after the change.
    """
    happened: list[str] = []

    def change_and_close() -> None:
        change()
        connections.close_all()

    def act() -> None:
        other = threading.Thread(target=change_and_close)
        other.start()
        other.join()
        happened.append("changed")

    def watch(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if statement in sql and not happened:
            happened.append("seen")
            transaction.on_commit(act)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(watch):
        yield happened


def move(source: Source, **columns: Any) -> None:
    """Change the source as an admin in another process would, and load the changed tools into this
    process."""
    Source.objects.filter(pk=source.pk).update(**columns)
    bump_tools_version(source.organization_id)
    load_toolbox(Organization.objects.get(pk=source.organization_id).pk)


CHANGES: dict[str, dict[str, Any]] = {
    "moved": {"base_url": "/never-shown"},
    "switched off": {"is_active": False},
}


def columns_of(change: str, api: Api) -> dict[str, Any]:
    return {
        name: f"{api.url}{value}" if name == "base_url" else value
        for name, value in CHANGES[change].items()
    }


@pytest.mark.parametrize("change", CHANGES)
def test_a_write_is_sent_to_the_address_on_its_card_even_if_the_source_changes_at_its_start(
    workshop: Workshop, api: Api, source: Source, change: str
) -> None:
    workshop.play(asking(call(ADD, name="Ada")))
    run = workshop.work()
    workshop.approve(workshop.card(run))
    with after_the_commit_of(
        '"exec_epoch" = ', lambda: move(source, **columns_of(change, api))
    ) as happened:
        run = workshop.drive(run)
    assert happened == ["seen", "changed"]
    assert [(request.method, request.path) for request in api.received] == [("POST", "/contacts")]
    assert (run.status, statuses(run)) == (RunStatus.SUCCEEDED, [CallStatus.SUCCEEDED])


@pytest.mark.parametrize("change", CHANGES)
def test_a_started_read_finishes_even_if_its_source_changes(
    workshop: Workshop, api: Api, source: Source, change: str
) -> None:
    workshop.play(asking(call(LIST)))
    columns = columns_of(change, api)
    with after_the_commit_of(
        "INSERT INTO runs_toolcall", lambda: move(source, **columns)
    ) as happened:
        run = workshop.work()
    assert happened == ["seen", "changed"]
    assert [(request.method, request.path) for request in api.received] == [("GET", "/contacts")]
    assert (run.status, statuses(run)) == (RunStatus.SUCCEEDED, [CallStatus.SUCCEEDED])
