"""A migration never changes, because databases in use were built with it."""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
from pathlib import Path

from django.db.migrations.loader import MigrationLoader

from tests.source_tree import PRODUCT

HASHES = Path(__file__).parent / "migrations.txt"
"""One line per migration, with its hash; the line is added with the migration and never changes."""


def hash_source(source: str) -> str:
    """Hash the code of a migration; comments and format do not count."""
    return hashlib.sha256(ast.unparse(ast.parse(source)).encode()).hexdigest()


def list_lines() -> list[str]:
    """List the lines that today's migrations have."""
    modules = {
        key: sys.modules[each.__module__]
        for key, each in MigrationLoader(None).disk_migrations.items()
        if each.__module__.partition(".")[0] in PRODUCT
    }
    return [
        f"{app}.{name} {hash_source(inspect.getsource(module))}"
        for (app, name), module in sorted(modules.items())
    ]


def test_every_migration_is_listed_and_unchanged() -> None:
    today, listed = list_lines(), HASHES.read_text().splitlines()
    added = sorted(set(today) - set(listed))
    lost = sorted(set(listed) - set(today))
    assert not lost, f"changed or removed; restore it and add a migration instead: {lost}"
    assert not added, "\n".join((f"add to {HASHES.name}:", *added))


def test_the_hash_of_a_migration_ignores_format_and_comments_but_not_values() -> None:
    source = 'operations = [AddField(name="told", db_default=False)]\n'
    formatted = 'operations = [  # later\n    AddField(name="told", db_default=False),\n]\n'
    assert hash_source(formatted) == hash_source(source)
    assert hash_source(source.replace("False", "True")) != hash_source(source)
