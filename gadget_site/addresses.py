"""Parses the addresses of the database and of Redis, strictly: what is not understood is refused, never ignored."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from gadget_site.faults import SettingError

DATABASE_EXAMPLE = "postgresql://gadget:password@localhost:5432/gadget"
REDIS_EXAMPLE = "redis://localhost:6379/0"
POSTGRESQL_SCHEMES = frozenset({"postgresql", "postgres"})
SSL_OPTIONS = frozenset({"sslmode", "sslrootcert", "sslcert", "sslkey"})


@dataclass(frozen=True)
class DatabaseAddress:
    """Where the database is: for SQLite only `name`, the file's absolute path."""

    engine: str
    name: str
    user: str = ""
    password: str = ""
    host: str = ""
    port: str = ""
    ssl: tuple[tuple[str, str], ...] = ()

    @classmethod
    def sqlite(cls, path: Path) -> DatabaseAddress:
        return cls("sqlite", str(path))

    @property
    def is_sqlite(self) -> bool:
        return self.engine == "sqlite"


def without_password(url: str) -> str:
    """The address with its password replaced, to be shown."""
    return re.sub(r"(://[^:/@]*:)[^@]*@", r"\1***@", url)


def parse_database_url(url: str) -> DatabaseAddress:
    """`sqlite:///relative`, `sqlite:////absolute` or `postgresql://user:password@host:port/name?host=/socket/folder`."""
    parts = _split("DATABASE_URL", url, DATABASE_EXAMPLE)
    if parts.scheme == "sqlite":
        return _sqlite(parts, url)
    if parts.scheme in POSTGRESQL_SCHEMES:
        return _postgresql(parts, url)
    fault = f"{without_password(url)!r} begins with neither postgresql:// nor sqlite:///"
    raise SettingError("DATABASE_URL", fault, DATABASE_EXAMPLE)


def parse_redis_url(url: str) -> str:
    """The address itself, once it is known to be a sound `redis://`, `rediss://` or `unix://`."""
    parts = _split("REDIS_URL", url, REDIS_EXAMPLE)
    if parts.scheme not in {"redis", "rediss", "unix"}:
        fault = f"{without_password(url)!r} begins with none of redis://, rediss://, unix://"
        raise SettingError("REDIS_URL", fault, REDIS_EXAMPLE)
    if parts.scheme == "unix" and not parts.path.startswith("/"):
        raise SettingError("REDIS_URL", f"{url!r} names no absolute path of a socket", "unix:///run/redis/redis.sock")
    if parts.scheme != "unix" and not (parts.hostname and re.fullmatch(r"/?|/\d+", parts.path)):
        raise SettingError("REDIS_URL", f"{without_password(url)!r} is not redis://host:port/number", REDIS_EXAMPLE)
    return url


def celery_broker(redis_url: str) -> str:
    """The same server as Celery names it: a Unix socket is `redis+socket://`, its database `virtual_host`."""
    parts = urlsplit(redis_url)
    if parts.scheme != "unix":
        return redis_url
    database = dict(parse_qsl(parts.query)).get("db", "0")
    return f"redis+socket://{parts.path}?virtual_host={database}"


def _split(name: str, url: str, example: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise SettingError(name, f"{without_password(url)!r} is not an address: {error}", example) from error
    return parts


def _sqlite(parts: SplitResult, url: str) -> DatabaseAddress:
    path = unquote(parts.path.removeprefix("/"))
    if parts.netloc or parts.query or not path or path == ":memory:":
        fault = f"{url!r} names no file (all parts of Gadget share one, so it cannot live in memory)"
        raise SettingError("DATABASE_URL", fault, "sqlite:////srv/gadget/gadget.sqlite3")
    return DatabaseAddress.sqlite(Path(path).expanduser().absolute())


def _postgresql(parts: SplitResult, url: str) -> DatabaseAddress:
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    host = options.pop("host", "") or parts.hostname or ""
    port = options.pop("port", "") or str(parts.port or "")
    name = unquote(parts.path.removeprefix("/"))
    unknown = sorted(set(options) - SSL_OPTIONS)
    if unknown:
        known = ", ".join(["host", "port", *sorted(SSL_OPTIONS)])
        raise SettingError("DATABASE_URL", f"the option {unknown[0]!r} is none of {known}", DATABASE_EXAMPLE)
    if not name or "/" in name:
        raise SettingError("DATABASE_URL", f"{without_password(url)!r} names no database", DATABASE_EXAMPLE)
    return DatabaseAddress(
        engine="postgresql",
        name=name,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        host=host,
        port=port,
        ssl=tuple(sorted(options.items())),
    )
