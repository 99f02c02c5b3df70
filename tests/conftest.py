"""The database of the tests, and fixtures for their private servers."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.conf import settings
from django.core.signals import setting_changed
from django.dispatch import receiver
from pytest_django import DjangoDbBlocker
from xdist.scheduler import LoadScopeScheduling

from agents.employees.toolboxes import forget_installed_tools
from gadget_site.garbage_collection import freeze_loaded_objects
from tests import sampling, services
from tests.emptying import empty_tables_after_tests
from tests.frozen_rows import freeze_ended_rows
from tests.migrated_database import copy_migrated_databases
from tests.processes import Installation
from tools import caches

LONGEST = ("tests/journeys/", "tests/faults/", "tests/hostile", "tests/tools/sources")
"""Tests at these paths run first, in this order; otherwise, one process would still run them at the
end while the other processes are idle."""
TOGETHER = ("tests/deployment/", "tests/journeys/")
"""Folders whose tests all run in one process, because they share slow fixtures.

Two browsers that run at the same time, each with its own installation, would only slow each other
down.
"""
DATABASE_FIXTURES = frozenset({"db", "transactional_db", "django_db_setup", "live_server"})


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--database-tests-only",
        action="store_true",
        help="leave out tests that need no second database: those without a database, and those marked `once`",
    )


class _GroupedScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Keeps the tests of a file in one process, and the tests of each folder in
    TOGETHER as well."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return next((folder for folder in TOGETHER if path.startswith(folder)), path)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> _GroupedScheduling:
    config.option.loadscopereorder = (
        False  # the order of xdist starts with files that have many quick tests
    )
    return _GroupedScheduling(config, log)


class _FailuresNamedAtOnce:
    """Prints the name of each failed test immediately, because the whole sets run for more than an
    hour."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and reporter is not None:
            reporter.write_line(f"\nFailed: {report.nodeid}")


def pytest_configure(config: pytest.Config) -> None:
    """Print failures immediately. Make hypothesis use the same examples in every run, except in
    runs of the whole sets, and keep it from failing a test because the machine is slow."""
    config.pluginmanager.register(_FailuresNamedAtOnce(config))
    hypothesis.settings.register_profile(
        "gadget",
        deadline=None,
        database=None,
        derandomize=not sampling.is_whole(),
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.load_profile("gadget")


def pytest_sessionstart() -> None:
    copy_migrated_databases()


def pytest_report_header() -> list[str]:
    return [f"database: {settings.SITE.database.engine}", sampling.describe()]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the files that this database does not need: importing all of them takes 8 s."""
    path = collection_path.relative_to(config.rootpath).as_posix()
    is_needed = collection_path.is_dir() or sampling.has_file(path, settings.SITE.database.engine)
    return None if is_needed else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: [not item.nodeid.startswith(path) for path in LONGEST])
    kept = items
    if config.getoption("--database-tests-only"):
        kept = [item for item in kept if _needs_database(item)]
    if sampling.is_fixed_set():
        kept = [item for item in kept if _is_in_fixed_set(item)]
        if not settings.SITE.database.is_sqlite:
            cases = sampling.choose_cases(item.nodeid for item in kept)
            kept = [item for item in kept if item.nodeid in cases]
    names = {item.nodeid for item in kept}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in names])
    items[:] = kept


def _is_in_fixed_set(item: pytest.Item) -> bool:
    is_always = item.get_closest_marker("every_commit") is not None
    return is_always or sampling.is_in_share(item.nodeid, settings.SITE.database.engine)


def pytest_collection_finish() -> None:
    """Exclude modules and tests from garbage collection: scanning them repeatedly takes a fifth of
    the CPU time."""
    freeze_loaded_objects()


def _needs_database(item: pytest.Item) -> bool:
    if item.get_closest_marker("once"):
        return False
    fixtures = set(getattr(item, "fixturenames", ()))
    return item.get_closest_marker("django_db") is not None or bool(fixtures & DATABASE_FIXTURES)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    """Make ended rows of the test database immutable, and empty its tables after each test."""
    with django_db_blocker.unblock():
        freeze_ended_rows()
    empty_tables_after_tests()


@pytest.fixture(autouse=True)
def clear_caches() -> None:
    """Clear the caches, because organizations of the next test may have the same ids."""
    caches.clear_caches()


@receiver(setting_changed)
def _reload_tools(setting: str, **_: Any) -> None:
    """Load the tools again if a test has changed the settings that name them."""
    if setting in {"GADGET_CONFIG", "GADGET_OFFICE_PLUGINS", "GADGET_TOOLS"}:
        forget_installed_tools()
        caches.clear_caches()


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """Yield the address of this session's own Redis, which is settings.REDIS_URL."""
    server = services.start_redis(Path(settings.GADGET_DATA_DIR))
    assert server.url == settings.REDIS_URL
    yield server.url
    server.stop()


@pytest.fixture
def installation(transactional_db: None) -> Iterator[Installation]:
    """Yield a Gadget of real processes on the test database: the test starts the parts that it
    needs, and all of them end with the test."""
    with Installation() as running:
        yield running


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the output of the test's real processes to the report of its failure."""
    report = yield
    running = getattr(item, "funcargs", {}).get("installation")
    if report.failed and isinstance(running, Installation):
        report.sections += [
            (f"{process.name} ({process.pid})", process.output) for process in running.processes
        ]
    return report
