"""An empty database for the benchmark, whose commits survive a power cut."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from tests import services

POSTGRESQL = "postgresql"
SQLITE = "sqlite"
DURABLE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}


@contextmanager
def fresh_database(kind: str, folder: Path) -> Iterator[str]:
    """Yield the address of an empty database, which is removed afterwards. A PostgreSQL database is
    created on the server at TEST_DATABASE_URL, or else on one that is started from the wheel."""
    if kind == SQLITE:
        yield f"sqlite:///{folder}/bench.sqlite3"
        return
    given = os.environ.get("TEST_DATABASE_URL")
    server = None if given else services.start_postgresql(DURABLE)
    address = given or (server.url if server else "")
    name = f"gadget_bench_{secrets.token_hex(4)}"
    _execute(address, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield urlsplit(address)._replace(path=f"/{name}").geturl()
    finally:
        _execute(address, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
        if server:
            server.stop()


def _execute(address: str, statement: sql.Composed) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(statement)
