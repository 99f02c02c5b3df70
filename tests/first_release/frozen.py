"""Read the frozen tables and rows of the first release, as SQL."""

from __future__ import annotations

import re
from pathlib import Path

from django.db import connection
from django.db.migrations.loader import MigrationLoader

FOLDER = Path(__file__).parent / "frozen"
_BLOCK = re.compile(r"^-- migration (\S+)\n", re.MULTILINE)


def get_file(kind: str) -> Path:
    """Return the file of this kind, `tables` or `rows`, for the database in use."""
    return FOLDER / f"{kind}-{connection.vendor}.sql"


def read_tables() -> dict[str, str]:
    """Read the statements of each migration of the release, by `app.name`, in the order in which
    they run."""
    _, *parts = _BLOCK.split(get_file("tables").read_text())
    return dict(zip(parts[::2], parts[1::2], strict=True))


def render_migration(loader: MigrationLoader, app: str, name: str) -> str:
    """Render the statements of a migration for the database in use."""
    plan = [(loader.graph.nodes[app, name], False)]
    return "\n".join(loader.collect_sql(plan)) + "\n"
