"""Fixtures for tests of the engine: a workshop on the real database, a recorder that plays the
outside world, and a model."""

import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache

import pytest
from django.apps import apps
from django.conf import settings as site
from django.db import IntegrityError, OperationalError, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.postgresql.base import DatabaseWrapper as PostgreSQL
from django.db.backends.signals import connection_created
from pytest_django import DjangoDbBlocker

from agents.employees.toolboxes import get_installed_toolbox
from agents.runs.engine.history import ConversationCache
from gadget_site.logs import build_logging_settings
from tests.model_server import ModelServer
from tests.probes import RECORDER_VARIABLE
from tests.recorder import Recorder
from tests.workshop import Workshop, build_workshop
from tests.workshop.invariants import assert_invariants
from tools.toolbox.toolbox import Toolbox

_MAX_TRIES = 5
_KEPT_TABLES = ("auth_permission", "auth_group", "auth_group_permissions")
_NO_SYNC = {"sqlite": "PRAGMA synchronous=OFF", "postgresql": "SET synchronous_commit=off"}


@pytest.fixture(scope="package", autouse=True)
def commits_do_not_wait_for_the_disk() -> Iterator[None]:
    """Speed up commits: no test cuts the power, so commits need not wait for the disk."""
    connection_created.connect(_disable_sync)
    yield
    connection_created.disconnect(_disable_sync)
    default = connections["default"]
    default.close()
    if isinstance(default, PostgreSQL):
        default.close_pool()


def _disable_sync(connection: BaseDatabaseWrapper, **_: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_NO_SYNC[connection.vendor])


@pytest.fixture
def _django_db_helper(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Replace pytest-django's fixture: use real transactions, and delete all rows afterwards in one
    transaction.

    Truncating all tables, as a TransactionTestCase does, takes a second on PostgreSQL.
    """
    with django_db_blocker.unblock():
        try:
            yield
        finally:
            _clear()


@pytest.fixture
def workshop(transactional_db: None) -> Iterator[Workshop]:
    """Build an organization, and check the invariants after the test."""
    yield build_workshop()
    assert_invariants()


@pytest.fixture
def conversation_cache_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check at each pass that the driver's cache of the conversation equals a cache that is loaded
    anew."""
    load_new_passes = ConversationCache.load_new_passes

    def load_and_compare(cache: ConversationCache, run_id: int) -> None:
        new_cache = ConversationCache()
        load_new_passes(cache, run_id)
        load_new_passes(new_cache, run_id)
        assert cache == new_cache

    monkeypatch.setattr(ConversationCache, "load_new_passes", load_and_compare)


def _clear() -> None:
    """Delete all rows; try again if a thread of the test is still writing."""
    for _ in range(_MAX_TRIES - 1):
        with suppress(OperationalError, IntegrityError):
            return _delete_all()
    return _delete_all()


def _delete_all() -> None:
    statements = [f'DELETE FROM "{table}"' for table in _tables() if table not in _KEPT_TABLES]
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in (
            [";".join(statements)] if connection.vendor == "postgresql" else statements
        ):
            cursor.execute(statement)


@cache
def _tables() -> list[str]:
    """List the tables of all models; tables to which other tables refer come last."""
    cleared = ("django.contrib.auth.", "agents.", "tools.")
    models = [
        model
        for model in apps.get_models(include_auto_created=True)
        if model.__module__.startswith(cleared)
    ]
    return [model._meta.db_table for model in reversed(models)]


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """Provide a recorder that plays the outside world for the tests' own tools."""
    with Recorder() as outside:
        monkeypatch.setenv(RECORDER_VARIABLE, outside.url)
        yield outside


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """The lines that this installation would log at DEBUG."""
    written: list[str] = []
    handler = logging.Handler(logging.DEBUG)
    formatter = build_logging_settings(site.SITE)["formatters"]["line"]
    handler.setFormatter(formatter.pop("()")(**formatter))
    handler.emit = lambda record: written.append(handler.format(record))  # type: ignore[method-assign]
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield written
    root.removeHandler(handler)
    root.setLevel(before)


@pytest.fixture
def model(workshop: Workshop) -> Iterator[ModelServer]:
    """Provide a model for the workshop's employee that is reached over real HTTP."""
    with ModelServer() as server:
        workshop.connect(server.url)
        yield server


@pytest.fixture
def toolbox() -> Iterator[Toolbox]:
    """Return the installed toolbox, and undo the test's changes to it afterwards."""
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
