"""Reads every setting of the installation from the environment and checks it, so that a wrong one stops the start."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from gadget_site.addresses import DatabaseAddress, parse_database_url, parse_redis_url
from gadget_site.faults import SettingError
from gadget_site.keys import encryption_keys_fault, kept_encryption_key, kept_secret_key
from gadget_site.redis_server import socket_path
from tools.config import Config, ConfigError, read_config

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
LOOPBACK_ADDRESSES = frozenset({"localhost", "127.0.0.1", "::1"})
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LOG_FORMATS = ("text", "json")
YES = frozenset({"1", "true", "yes", "on"})
NO = frozenset({"0", "false", "no", "off"})
SMALLEST_SECRET = 32
SMALLEST_TOKEN = 20
KEY_EXAMPLE = "$(python -c 'from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())')"
SECRET_EXAMPLE = "$(python -c 'import secrets; print(secrets.token_urlsafe(50))')"  # noqa: S105


@dataclass(frozen=True)
class SiteSettings:
    """All settings of one installation, checked; times are seconds."""

    data_dir: Path
    config: Config
    debug: bool
    secret_key: str
    encryption_keys: tuple[str, ...]
    database: DatabaseAddress
    redis_url: str
    redis_is_embedded: bool
    allowed_hosts: tuple[str, ...]
    allowed_origins: tuple[str, ...]
    host: str
    port: int
    openai_api_key: str
    openai_base_url: str
    openai_model: str
    ollama_host: str
    ollama_model: str
    log_level: str
    log_format: str
    queue: str
    workers: int
    worker_threads: int
    database_pool: int
    timing_scale: float
    metrics_token: str

    @property
    def is_only_local(self) -> bool:
        """True while nothing says that others than this machine reach Gadget, be it through a proxy."""
        return self.host in LOOPBACK_ADDRESSES and self.allowed_hosts == LOCAL_NAMES and not self.allowed_origins

    @property
    def served_over_https(self) -> bool:
        """True when every address that people use is https: cookies are then sent over nothing else."""
        return bool(self.allowed_origins) and all(origin.startswith("https://") for origin in self.allowed_origins)


class Variables:
    """The environment, read by name and kind; an empty value counts as none."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def text(self, name: str, default: str = "") -> str:
        return self._environ.get(name, "").strip() or default

    def flag(self, name: str, default: bool) -> bool:
        value = self.text(name)
        if not value:
            return default
        if value.lower() in YES | NO:
            return value.lower() in YES
        raise SettingError(name, f"{value!r} is neither on nor off", "off")

    def number(self, name: str, default: int, bounds: tuple[int, int]) -> int:
        low, high = bounds
        value = self.text(name, str(default))
        if not re.fullmatch(r"\d{1,9}", value) or not low <= int(value) <= high:
            raise SettingError(name, f"{value!r} is not a whole number from {low} to {high}", str(default))
        return int(value)

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        value = self.text(name, default)
        for choice in choices:
            if value.lower() == choice.lower():
                return choice
        raise SettingError(name, f"{value!r} is none of {', '.join(choices)}", default)

    def words(self, name: str) -> tuple[str, ...]:
        return tuple(word.strip() for word in self.text(name).split(",") if word.strip())


def read_settings(environ: Mapping[str, str], base_dir: Path) -> SiteSettings:
    """The settings of the installation in `base_dir`; SettingError names the first one that is wrong."""
    variables = Variables(environ)
    data_dir = _data_dir(variables, base_dir)
    allowed_hosts = _allowed_hosts(variables)
    host = variables.text("HOST", "127.0.0.1")
    debug = variables.flag("DEBUG", default=not allowed_hosts and host in LOOPBACK_ADDRESSES)
    redis_url = variables.text("REDIS_URL")
    return SiteSettings(
        data_dir=data_dir,
        config=_config(variables, environ, base_dir),
        debug=debug,
        secret_key=_secret_key(variables, debug, data_dir),
        encryption_keys=_encryption_keys(variables, debug, data_dir),
        database=_database(variables, data_dir),
        redis_url=parse_redis_url(redis_url) if redis_url else f"unix://{socket_path(data_dir)}",
        redis_is_embedded=not redis_url,
        allowed_hosts=allowed_hosts or LOCAL_NAMES,
        allowed_origins=_allowed_origins(variables),
        host=host,
        port=variables.number("PORT", 8000, (1, 65535)),
        openai_api_key=variables.text("OPENAI_API_KEY"),
        openai_base_url=_web_address(variables, "OPENAI_BASE_URL", "https://api.openai.com/v1"),
        openai_model=variables.text("OPENAI_MODEL"),
        ollama_host=_web_address(variables, "OLLAMA_HOST", "http://localhost:11434"),
        ollama_model=variables.text("OLLAMA_MODEL"),
        log_level=variables.choice("LOG_LEVEL", LOG_LEVELS, "INFO"),
        log_format=variables.choice("LOG_FORMAT", LOG_FORMATS, "text"),
        queue=_queue(variables),
        workers=variables.number("WORKERS", 1 if _database(variables, data_dir).is_sqlite else 2, (1, 64)),
        worker_threads=variables.number("WORKER_THREADS", 32, (1, 256)),
        database_pool=variables.number("DATABASE_POOL", 24, (2, 256)),
        timing_scale=_timing_scale(variables),
        metrics_token=_metrics_token(variables),
    )


def _data_dir(variables: Variables, base_dir: Path) -> Path:
    given = variables.text("GADGET_DATA_DIR", "var")
    folder = (base_dir / Path(given).expanduser()).resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError("GADGET_DATA_DIR", f"{str(folder)!r} cannot be made: {error.strerror}", "var") from error
    return folder


def _config(variables: Variables, environ: Mapping[str, str], base_dir: Path) -> Config:
    given = variables.text("GADGET_CONFIG")
    path = base_dir / (Path(given).expanduser() if given else Path("gadget.yaml"))
    if not given and not path.exists():
        return Config()
    try:
        return read_config(path.read_text(encoding="utf-8"), environ)
    except FileNotFoundError:
        raise SettingError("GADGET_CONFIG", f"there is no file {str(path)!r}", "gadget.yaml") from None
    except (OSError, UnicodeDecodeError, ConfigError) as error:
        raise SettingError("GADGET_CONFIG", f"{path.name}, {error}", "gadget.yaml") from error


def _secret_key(variables: Variables, debug: bool, data_dir: Path) -> str:
    value = variables.text("SECRET_KEY")
    if value and len(value) < SMALLEST_SECRET:
        fault = f"is {len(value)} characters long; at least {SMALLEST_SECRET} are needed"
        raise SettingError("SECRET_KEY", fault, SECRET_EXAMPLE)
    if value:
        return value
    if not debug:
        raise SettingError("SECRET_KEY", "is not set; it is required while DEBUG is off", SECRET_EXAMPLE)
    return kept_secret_key(data_dir)


def _encryption_keys(variables: Variables, debug: bool, data_dir: Path) -> tuple[str, ...]:
    keys = variables.words("GADGET_ENCRYPTION_KEYS")
    fault = encryption_keys_fault(keys)
    if fault:
        raise SettingError("GADGET_ENCRYPTION_KEYS", fault, KEY_EXAMPLE)
    if keys:
        return keys
    if not debug:
        fault = "is not set; it is required while DEBUG is off"
        raise SettingError("GADGET_ENCRYPTION_KEYS", fault, KEY_EXAMPLE)
    return (kept_encryption_key(data_dir),)


def _database(variables: Variables, data_dir: Path) -> DatabaseAddress:
    value = variables.text("DATABASE_URL")
    if not value:
        return DatabaseAddress.sqlite(data_dir / "gadget.sqlite3")
    return parse_database_url(value)


def _allowed_hosts(variables: Variables) -> tuple[str, ...]:
    hosts = variables.words("ALLOWED_HOSTS")
    for host in hosts:
        if not re.fullmatch(r"\*|\.?[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]", host):
            raise SettingError(
                "ALLOWED_HOSTS", f"{host!r} is not a host name (no scheme, no port)", "gadget.example.com"
            )
    return hosts


def _allowed_origins(variables: Variables) -> tuple[str, ...]:
    origins = variables.words("ALLOWED_ORIGINS")
    for origin in origins:
        if not re.fullmatch(r"https?://[A-Za-z0-9_.\-\[\]:]+", origin):
            fault = f"{origin!r} is not scheme://host[:port] without a path"
            raise SettingError("ALLOWED_ORIGINS", fault, "https://gadget.example.com")
    return origins


def _web_address(variables: Variables, name: str, example: str) -> str:
    value = variables.text(name)
    if not value:
        return ""
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise SettingError(name, f"{value!r} is not an http:// or https:// address", example)
    return value


def _queue(variables: Variables) -> str:
    value = variables.text("GADGET_QUEUE", "gadget")
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", value):
        raise SettingError("GADGET_QUEUE", f"{value!r} is not 1 to 64 letters, digits, - or _", "gadget")
    return value


def _timing_scale(variables: Variables) -> float:
    value = variables.text("GADGET_TIMING_SCALE", "1.0")
    if not re.fullmatch(r"\d{1,3}(\.\d{1,6})?", value) or not 0.01 <= float(value) <= 100:
        raise SettingError("GADGET_TIMING_SCALE", f"{value!r} is not a number from 0.01 to 100", "1.0")
    return float(value)


def _metrics_token(variables: Variables) -> str:
    value = variables.text("GADGET_METRICS_TOKEN")
    if value and (len(value) < SMALLEST_TOKEN or not re.fullmatch(r"[!-~]+", value)):
        fault = f"is not {SMALLEST_TOKEN} or more letters, digits and signs without a blank"
        raise SettingError("GADGET_METRICS_TOKEN", fault, SECRET_EXAMPLE)
    return value
