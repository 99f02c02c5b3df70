"""The engine's tests: a workshop each, on the real database, with the recorder and a model's server outside."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.apps import apps
from django.db import connection, transaction
from pytest_django import DjangoDbBlocker

from agents.engine.toolbox import installed_toolbox
from tests.engine.invariants import assert_invariants
from tests.engine.workshop import Workshop, build_workshop
from tests.model_server import ModelServer
from tests.probes import RECORDER_VARIABLE
from tests.recorder import Recorder
from tools.toolbox.toolbox import Toolbox

_CLEARED_APPS = ("auth", "agents", "records")
_KEPT_TABLES = ("auth_permission", "auth_group", "auth_group_permissions")


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
    """An organisation at work; when the test has ended, the invariants must hold."""
    yield build_workshop()
    assert_invariants()


def _clear() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        for app in _CLEARED_APPS:
            for model in apps.get_app_config(app).get_models(include_auto_created=True):
                if model._meta.db_table not in _KEPT_TABLES:
                    cursor.execute(f'DELETE FROM "{model._meta.db_table}"')
    connection.close()


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
    installed = installed_toolbox()
    policy, before = installed.policy, {tool.id: tool for tool in installed.tools()}
    yield installed
    installed.policy = replace(policy)
    for tool in installed.tools():
        if before.get(tool.id) is not tool:
            installed.unregister(tool.id)
    for tool_id, tool in before.items():
        if installed.get_tool(tool_id) is None:
            installed.register(tool)
