"""Fixtures for tests of the engine: a workshop on the real database, with a recorder and a model's server outside."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache

import pytest
from django.apps import apps
from django.db import IntegrityError, OperationalError, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.postgresql.base import DatabaseWrapper as PostgreSQL
from django.db.backends.signals import connection_created
from pytest_django import DjangoDbBlocker

from agents.employees.toolboxes import get_installed_toolbox
from agents.runs.engine.history import ConversationCache
from tests.model_server import ModelServer
from tests.probes import RECORDER_VARIABLE
from tests.recorder import Recorder
from tests.workshop import Workshop, build_workshop
from tests.workshop.invariants import assert_invariants
from tools.toolbox.toolbox import Toolbox

_MAX_TRIES = 5
_KEPT_TABLES = ("auth_permission", "auth_group", "auth_group_permissions")
_IMPATIENT = {"sqlite": "PRAGMA synchronous=OFF", "postgresql": "SET synchronous_commit=off"}


@pytest.fixture(scope="package", autouse=True)
def commits_do_not_wait_for_the_disk() -> Iterator[None]:
    """No power is cut in these tests, so their commits need not wait until they are on the disk."""
    connection_created.connect(_hasten)
    yield
    connection_created.disconnect(_hasten)
    default = connections["default"]
    default.close()
    if isinstance(default, PostgreSQL):
        default.close_pool()


def _hasten(connection: BaseDatabaseWrapper, **_: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_IMPATIENT[connection.vendor])


@pytest.fixture
def _django_db_helper(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """In the place of pytest-django's: real transactions, and rows deleted in one afterwards.

    Truncating all tables, as a TransactionTestCase does, takes PostgreSQL a second.
    """
    with django_db_blocker.unblock():
        try:
            yield
        finally:
            _clear()


@pytest.fixture
def workshop(transactional_db: None) -> Iterator[Workshop]:
    """An organization at work; when the test has ended, the invariants must hold."""
    yield build_workshop()
    assert_invariants()


@pytest.fixture
def nothing_kept_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a driver has kept of its run is, at each pass, what somebody new would read."""
    load_new_passes = ConversationCache.load_new_passes

    def read_and_compared(past: ConversationCache, run_id: int) -> None:
        fresh = ConversationCache()
        load_new_passes(past, run_id)
        load_new_passes(fresh, run_id)
        assert past == fresh

    monkeypatch.setattr(ConversationCache, "load_new_passes", read_and_compared)


def _clear() -> None:
    """Delete all rows; a thread that a test has left behind may be writing its last ones."""
    for _ in range(_MAX_TRIES - 1):
        with suppress(OperationalError, IntegrityError):
            return _delete_all()
    return _delete_all()


def _delete_all() -> None:
    statements = [f'DELETE FROM "{table}"' for table in _tables() if table not in _KEPT_TABLES]
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in [";".join(statements)] if connection.vendor == "postgresql" else statements:
            cursor.execute(statement)


@cache
def _tables() -> list[str]:
    """Of all models, those that are pointed at last."""
    cleared = ("django.contrib.auth.", "agents.", "tools.")
    models = [model for model in apps.get_models(include_auto_created=True) if model.__module__.startswith(cleared)]
    return [model._meta.db_table for model in reversed(models)]


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """The outside world, for the tests' own tools."""
    with Recorder() as outside:
        monkeypatch.setenv(RECORDER_VARIABLE, outside.url)
        yield outside


@pytest.fixture
def model(workshop: Workshop) -> Iterator[ModelServer]:
    """A model behind real HTTP, on which the workshop's employee works."""
    with ModelServer() as server:
        workshop.connect(server.url)
        yield server


@pytest.fixture
def toolbox() -> Iterator[Toolbox]:
    """The installed toolbox; what a test changes in it is put back."""
    installed = get_installed_toolbox()
    policy, before = installed.policy, {tool.id: tool for tool in installed.tools()}
    yield installed
    installed.policy = replace(policy)
    for tool in installed.tools():
        if before.get(tool.id) is not tool:
            installed.unregister(tool.id)
    for tool_id, tool in before.items():
        if installed.get_tool(tool_id) is None:
            installed.register(tool)
