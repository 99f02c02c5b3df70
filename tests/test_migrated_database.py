"""A copy of the migrated database is used only for the same migrations."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from agents.platform import schema_version
from tests.migrated_database import get_source


def test_another_schema_version_needs_another_copy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = get_source()
    assert get_source() == before, "control"
    changed = tmp_path / "schema_version.py"
    changed.write_text(Path(schema_version.__file__).read_text() + "# changed")
    monkeypatch.setattr(schema_version, "__file__", str(changed))
    assert get_source() != before


@pytest.mark.django_db
def test_the_test_database_has_run_every_migration() -> None:
    executor = MigrationExecutor(connection)
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []
