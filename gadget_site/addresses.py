"""Parse database and Redis URLs strictly: unknown parts are errors and are never ignored."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from gadget_site.faults import WrongValueError
from gadget_site.parsers import is_host, is_port, split_words

SQLITE_EXAMPLE = "sqlite:////srv/gadget/gadget.sqlite3"
POSTGRESQL_SCHEMES = frozenset({"postgresql", "postgres"})
SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
SSL_FILES = ("sslrootcert", "sslcert", "sslkey")
SSL_OPTIONS = frozenset({"sslmode", *SSL_FILES})
SYSTEM_CERTIFICATES = "system"
"""The value of `sslrootcert` for the certificate authorities that this machine trusts."""


@dataclass(frozen=True)
class DatabaseAddress:
    """The address of a database. SQLite uses only `engine` and `name`, the file's absolute path."""

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


def hide_password(url: str) -> str:
    """Return the address with its password replaced, for messages."""
    return re.sub(r"(://[^:/@]*:)[^@]*@", r"\1***@", url)


def parse_database_url(url: str) -> DatabaseAddress:
    """Parse `sqlite:///relative`, `sqlite:////absolute` or
    `postgresql://user:password@host:port/name?host=/socket/folder`."""
    parts = _split_url(url)
    if parts.scheme == "sqlite":
        return _parse_sqlite(parts, url)
    if parts.scheme in POSTGRESQL_SCHEMES:
        return _parse_postgresql(parts, url)
    fault = f"{hide_password(url)!r} begins with neither postgresql:// nor sqlite:///"
    raise WrongValueError(fault)


def parse_redis_url(url: str) -> str:
    """Check a `redis://`, `rediss://` or `unix://` URL and return it unchanged; an empty text is
    allowed."""
    if not url:
        return ""
    parts = _split_url(url)
    if parts.scheme not in {"redis", "rediss", "unix"}:
        fault = f"{hide_password(url)!r} does not begin with redis://, rediss:// or unix://"
        raise WrongValueError(fault)
    if parts.scheme == "unix" and not parts.path.startswith("/"):
        raise WrongValueError(
            f"{url!r} has no absolute socket path", "unix:///run/redis/redis.sock"
        )
    if parts.scheme != "unix" and not (
        is_host(parts.hostname or "") and re.fullmatch(r"/?|/[0-9]+", parts.path)
    ):
        raise WrongValueError(f"{hide_password(url)!r} is not redis://host:port/number")
    return url


def is_web_address(text: str) -> bool:
    """Return True for an `http://` or `https://` URL with a valid host and, if given, a valid
    port."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and is_host(parts.hostname or "") and port != 0


def parse_web_address(text: str) -> str:
    """Check an `http://` or `https://` URL and return it unchanged; an empty text is allowed."""
    if text and not is_web_address(text):
        raise WrongValueError(f"{hide_password(text)!r} is not an http:// or https:// address")
    return text


def parse_origins(text: str) -> tuple[str, ...]:
    origins = split_words(text)
    for origin in origins:
        if not (re.fullmatch(r"https?://[A-Za-z0-9_.\-\[\]:]+", origin) and is_web_address(origin)):
            raise WrongValueError(f"{origin!r} is not scheme://host[:port] without a path")
    return origins


def build_broker_url(redis_url: str) -> str:
    """Return the Redis URL in Celery's form, in which a Unix socket is `redis+socket://` and its
    database `virtual_host`."""
    parts = urlsplit(redis_url)
    if parts.scheme != "unix":
        return redis_url
    database = dict(parse_qsl(parts.query)).get("db", "0")
    return f"redis+socket://{parts.path}?virtual_host={database}"


def _split_url(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise WrongValueError(f"{hide_password(url)!r} is not an address: {error}") from error
    if port == 0:
        raise WrongValueError(f"{hide_password(url)!r} is not an address: 0 is not a port")
    return parts


def _parse_sqlite(parts: SplitResult, url: str) -> DatabaseAddress:
    path = unquote(parts.path.removeprefix("/"))
    if parts.netloc or parts.query or not path or path == ":memory:":
        fault = (
            f"{url!r} names no file (all processes share the database, so it cannot be in memory)"
        )
        raise WrongValueError(fault, SQLITE_EXAMPLE)
    file = Path(path).expanduser().absolute()
    if not file.parent.is_dir():
        raise WrongValueError(f"there is no folder {str(file.parent)!r}", SQLITE_EXAMPLE)
    if file.is_dir():
        raise WrongValueError(f"{str(file)!r} is a folder, not a file", SQLITE_EXAMPLE)
    return DatabaseAddress.sqlite(file)


def _parse_postgresql(parts: SplitResult, url: str) -> DatabaseAddress:
    options = _parse_options(parts)
    host = options.pop("host", "") or parts.hostname or ""
    port = options.pop("port", "") or str(parts.port or "")
    name = unquote(parts.path.removeprefix("/"))
    if not name or "/" in name:
        raise WrongValueError(f"{hide_password(url)!r} names no database")
    if not all(one.startswith(("/", "@")) or is_host(one) for one in host.split(",") if host):
        fault = f"{host!r} is neither a host nor a socket folder"
        raise WrongValueError(fault)
    return DatabaseAddress(
        engine="postgresql",
        name=name,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        host=host,
        port=port,
        ssl=tuple(sorted(options.items())),
    )


def _parse_options(parts: SplitResult) -> dict[str, str]:
    """Read the options after the `?`: each must be known, given once, and have a valid value."""
    given = parse_qsl(parts.query, keep_blank_values=True)
    options = dict(given)
    known = ["host", "port", *sorted(SSL_OPTIONS)]
    for name, value in given:
        fault = ""
        if name not in known:
            fault = f"the option {name!r} is not one of {', '.join(known)}"
        elif [other for other, _ in given].count(name) > 1:
            fault = f"the option {name!r} is given twice"
        elif not value:
            fault = f"the option {name!r} has no value"
        elif name == "sslmode" and value not in SSL_MODES:
            fault = f"sslmode {value!r} is not one of {', '.join(SSL_MODES)}"
        elif name == "port" and not all(map(is_port, value.split(","))):
            fault = f"{value!r} is not a port from 1 to 65535"
        elif name in SSL_FILES and not _file_exists(name, value):
            fault = f"{name}: there is no file {value!r}"
        if fault:
            raise WrongValueError(fault)
    return options


def _file_exists(option: str, value: str) -> bool:
    return (option == "sslrootcert" and value == SYSTEM_CERTIFICATES) or Path(value).is_file()
