"""Which database the tests run on, and the private servers that they may ask for."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from django.conf import settings
from pytest_django import DjangoDbBlocker
from xdist.scheduler import LoadScopeScheduling

from agents.accounts.models import organization_versions
from agents.employees import toolboxes
from agents.platform.writability import DATABASE, FILES
from gadget_site.garbage_collection import freeze_loaded_objects
from tests import services
from tests.emptying import empty_tables_after_tests
from tests.frozen_rows import freeze_ended_rows
from tests.processes import Installation

JOURNEYS = sorted(f"tests/journeys/{path.name}" for path in (Path(__file__).parent / "journeys").glob("test_*.py"))
GROUPS_OF_JOURNEYS = 2
LONGEST = ("tests/journeys/", "tests/faults/", "tests/hostile", "tests/tools/sources")
"""What begins with these runs first and in this order, or at the end all processes but one would have nothing to do."""
DATABASE_FIXTURES = frozenset({"db", "transactional_db", "django_db_setup", "live_server"})


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--database-tests-only",
        action="store_true",
        help="leave out what was run on the other database already: tests without a database, or marked `once`",
    )


class _Together(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """What runs in one process one after the other: a file's tests; and the journeys, in few groups, because each group
    starts a Gadget and a browser of its own.
    """

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return f"journeys {JOURNEYS.index(path) % GROUPS_OF_JOURNEYS}" if path in JOURNEYS else path


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> _Together:
    config.option.loadscopereorder = False  # files with many tests first: those are quick
    return _Together(config, log)


def pytest_report_header() -> str:
    return f"database: {settings.SITE.database.engine}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: [not item.nodeid.startswith(path) for path in LONGEST])
    if not config.getoption("--database-tests-only"):
        return
    kept = [item for item in items if _depends_on_the_database(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept


def pytest_collection_finish() -> None:
    """What was loaded and collected stays; looking through it again and again takes a fifth of the processor time."""
    freeze_loaded_objects()


def _depends_on_the_database(item: pytest.Item) -> bool:
    if item.get_closest_marker("once"):
        return False
    fixtures = set(getattr(item, "fixturenames", ()))
    return item.get_closest_marker("django_db") is not None or bool(fixtures & DATABASE_FIXTURES)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    """In the tests' database, rows that have ended cannot be changed, and none is left from test to test."""
    with django_db_blocker.unblock():
        freeze_ended_rows()
    empty_tables_after_tests()


@pytest.fixture(autouse=True)
def nothing_is_remembered_of_organizations() -> None:
    """The next test's organizations may have the ids of the last one's."""
    organization_versions.clear_versions()
    toolboxes.clear_toolbox_cache()
    toolboxes.clear_credentials_cache()
    DATABASE.forget()
    FILES.forget()


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The address of this session's own Redis, which settings.REDIS_URL names."""
    server = services.start_redis(Path(settings.GADGET_DATA_DIR))
    assert server.url == settings.REDIS_URL
    yield server.url
    server.stop()


@pytest.fixture
def installation(transactional_db: None) -> Iterator[Installation]:
    """A Gadget of real processes on the test database: start the parts that the test needs; all end with it."""
    with Installation() as running:
        yield running


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds to a failure what the test's real processes wrote."""
    report = yield
    running = getattr(item, "funcargs", {}).get("installation")
    if report.failed and isinstance(running, Installation):
        report.sections += [(f"{process.name} ({process.pid})", process.output) for process in running.processes]
    return report
