"""Database settings for SQLite and PostgreSQL, under which every commit survives a power cut."""

from __future__ import annotations

from typing import Any

from gadget_site.addresses import DatabaseAddress
from gadget_site.response_timeout import STATEMENT_TIMEOUT_S, TimeoutConnection

SQLITE_START = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA busy_timeout=20000;"
SQLITE_PATIENCE_S = 20
POOL_PATIENCE_S = 10
RECONNECT_S = 5
"""The number of seconds for which reconnecting is tried. It is small, because the pauses between
attempts grow: after a long pause, the return of the database would be noticed late."""
CONNECT_S = 5
SILENT_LINK_S = 10
KEEPALIVES = {
    "keepalives": 1,
    "keepalives_idle": SILENT_LINK_S,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    "tcp_user_timeout": SILENT_LINK_S * 1000,
}
"""Connection options that detect a silently cut link after 10 s if something was sent, and after 20
s otherwise. They apply to TCP; libpq ignores them for Unix sockets and on systems that lack them.
"""
POSTGRESQL_START = {
    "synchronous_commit": "on",
    "jit": "off",  # compiling a statement takes longer than running any of ours
    "statement_timeout": f"{STATEMENT_TIMEOUT_S}s",
    "lock_timeout": "2s",
    "idle_in_transaction_session_timeout": "15s",
    "tcp_keepalives_idle": str(SILENT_LINK_S),
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "2",
    "tcp_user_timeout": f"{SILENT_LINK_S}s",
}
"""Settings of each session that let the server, too, detect a cut link quickly. With its default
limits, it would keep each lost connection, and the connection's slot, for two hours."""


def build_database_settings(address: DatabaseAddress, pool_size: int) -> dict[str, Any]:
    """Return the entry of DATABASES for this address; `pool_size` limits the PostgreSQL connections
    of one process."""
    if address.is_sqlite:
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": address.name,
            "OPTIONS": {
                "timeout": SQLITE_PATIENCE_S,
                "transaction_mode": "IMMEDIATE",
                "init_command": SQLITE_START,
            },
        }
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": address.name,
        "USER": address.user,
        "PASSWORD": address.password,
        "HOST": address.host,
        "PORT": address.port,
        "CONN_MAX_AGE": 0,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "pool": {
                "min_size": 1,
                "max_size": pool_size,
                "timeout": POOL_PATIENCE_S,
                "reconnect_timeout": RECONNECT_S,
                "max_idle": 60,
                "connection_class": TimeoutConnection,
            },
            "options": " ".join(f"-c {name}={value}" for name, value in POSTGRESQL_START.items()),
            "application_name": "gadget",
            "connect_timeout": CONNECT_S,
            **KEEPALIVES,
            "server_side_binding": True,
            "prepare_threshold": 3,  # planning a pass's statements takes as long as running them
            **dict(address.ssl),
        },
    }
