"""Reads and writes the frozen tables and rows of the first release, as SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from django.apps import apps
from django.core.management.color import no_style
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

FOLDER = Path(__file__).parent / "frozen"
_TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY 1",
    "postgresql": "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1",
}
_QUOTE = {"sqlite": "quote({})", "postgresql": "quote_nullable({}::text)"}
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


def render_tables() -> Iterator[str]:
    """Yield the statements of every migration, and those for the table that lists them."""
    loader = MigrationLoader(connection)
    with connection.schema_editor(collect_sql=True, atomic=False) as editor:
        editor.create_model(MigrationRecorder.Migration)
    yield "\n".join(editor.collected_sql) + "\n"
    for app, name in loader.graph._generate_plan(loader.graph.leaf_nodes(), at_end=True):
        yield f"-- migration {app}.{name}\n{render_migration(loader, app, name)}"


def list_tables() -> list[str]:
    """List all tables of the database."""
    with connection.cursor() as cursor:
        cursor.execute(_TABLES[connection.vendor])
        return [table for (table,) in cursor.fetchall()]


def render_rows() -> Iterator[str]:
    """Yield a statement for each row of the database, and those that let new rows have the next
    ids."""
    with connection.cursor() as cursor:
        for table in list_tables():
            columns = [
                f'"{column.name}"'
                for column in connection.introspection.get_table_description(cursor, table)
            ]
            quoted = ", ".join(_QUOTE[connection.vendor].format(column) for column in columns)
            cursor.execute(f'SELECT {quoted} FROM "{table}" ORDER BY 1')
            for row in cursor.fetchall():
                yield f'INSERT INTO "{table}" ({", ".join(columns)}) VALUES ({", ".join(row)});\n'
    models = apps.get_models(include_auto_created=True)
    yield from (
        f"{statement}\n" for statement in connection.ops.sequence_reset_sql(no_style(), models)
    )
