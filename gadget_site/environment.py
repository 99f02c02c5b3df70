"""Read and check every setting of the installation. A wrong one prevents the start."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Literal

from gadget_site.addresses import (
    DatabaseAddress,
    hide_password,
    is_web_address,
    parse_database_url,
    parse_redis_url,
)
from gadget_site.faults import Faults, SettingError
from gadget_site.keys import describe_key_fault, load_audit_key, load_encryption_key, load_secret_key
from gadget_site.mail_server import MailServer, read_mail_server
from gadget_site.private_hosts import LOOPBACK, list_named_hosts, read_private_hosts
from gadget_site.redis_server import get_socket_path
from gadget_site.variables import Variables, is_host, refuse_unknown_name
from tools.config import Config, ConfigError, read_config
from tools.contract import PrivateHosts

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
LOOPBACK_ADDRESSES = frozenset({"localhost", "127.0.0.1", "::1"})
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LOG_FORMATS = ("text", "json")
SMALLEST_SECRET = 32
SMALLEST_TOKEN = 20
VARIABLE_OF_CONFIG = re.compile(r"\$\{([^}]*)\}")
KEY_EXAMPLE = "$(python -c 'from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())')"
SECRET_EXAMPLE = "$(python -c 'import secrets; print(secrets.token_urlsafe(50))')"  # noqa: S105


@dataclass(frozen=True)
class SiteSettings:
    """All settings of one installation, checked; times are seconds."""

    data_dir: Path
    config_file: Path
    config: Config
    debug: bool
    secret_key: str
    encryption_keys: tuple[str, ...]
    audit_keys: tuple[str, ...]
    database: DatabaseAddress
    redis_url: str
    redis_is_embedded: bool
    allowed_hosts: tuple[str, ...]
    allowed_origins: tuple[str, ...]
    allowed_private_hosts: PrivateHosts
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...]
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
    demo_pace: float
    metrics_token: str
    mail: MailServer
    private_push_hosts: PrivateHosts
    chat_hosts: PrivateHosts

    @property
    def environment_name(self) -> Literal["development", "production"]:
        """The name that tools see; a setting of its own, because workers switch DEBUG off."""
        return "development" if self.debug else "production"

    @property
    def is_only_local(self) -> bool:
        """True if only this machine can reach Gadget, even through a proxy."""
        is_open = self.allowed_hosts != LOCAL_NAMES or self.allowed_origins or self.trusted_proxies
        return self.host in LOOPBACK_ADDRESSES and not is_open

    @property
    def private_providers(self) -> PrivateHosts:
        """The private servers that model providers may use: those of tools, plus those in the environment."""
        named = list_named_hosts((self.openai_base_url, self.ollama_host))
        return PrivateHosts((*self.allowed_private_hosts.entries, *named))

    @property
    def link_base(self) -> str:
        """The beginning of links in messages, which no request can tell."""
        if self.allowed_origins:
            return self.allowed_origins[0]
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def served_over_https(self) -> bool:
        """True if every address that people use is https; cookies are then sent over https only."""
        return bool(self.allowed_origins) and all(origin.startswith("https://") for origin in self.allowed_origins)

    @property
    def origin(self) -> str:
        """The origin of absolute links while Gadget is served over HTTPS; empty if the request's own is used."""
        return self.allowed_origins[0] if self.served_over_https else ""


def read_settings(environ: Mapping[str, str], base_dir: Path) -> SiteSettings:
    """Return the settings of the installation in `base_dir`.

    Raises:
        SettingError: lists all wrong settings. Those that affect how others are read are checked first.
    """
    variables, faults = Variables(environ), Faults()
    read = faults.read
    config_file = _read_config_file(variables, base_dir)
    used_by_tools = frozenset(VARIABLE_OF_CONFIG.findall(config_file[1]))
    for name in sorted(environ):
        read(refuse_unknown_name, name, environ, used_by_tools)
    data_dir = read(_read_data_dir, variables, base_dir)
    allowed_hosts = read(_read_allowed_hosts, variables)
    host = read(_read_host, variables)
    debug = read(variables.flag, "DEBUG", default=not allowed_hosts and host in LOOPBACK_ADDRESSES)
    faults.raise_all()
    database = read(_read_database, variables, data_dir)
    redis_url = read(_read_redis_url, variables)
    usual_workers = 1 if database is None or database.is_sqlite else 2
    load_key = partial(_load_key, load_encryption_key, data_dir)
    site = SiteSettings(
        data_dir=data_dir,
        config_file=config_file[0],
        config=read(_read_config, config_file, environ),
        debug=debug,
        secret_key=read(_read_secret_key, variables, debug, data_dir),
        encryption_keys=read(_read_keys, variables, "GADGET_ENCRYPTION_KEYS", debug, load_key),
        audit_keys=read(_read_audit_keys, variables, debug, data_dir),
        database=database,
        redis_url=redis_url or f"unix://{get_socket_path(data_dir)}",
        redis_is_embedded=not redis_url,
        allowed_hosts=allowed_hosts or LOCAL_NAMES,
        allowed_origins=read(_read_allowed_origins, variables),
        allowed_private_hosts=read(_read_private_hosts, variables, "ALLOWED_PRIVATE_HOSTS", debug),
        trusted_proxies=read(_read_trusted_proxies, variables),
        host=host,
        port=read(variables.number, "PORT", 8000, (1, 65535)),
        openai_api_key=read(variables.text, "OPENAI_API_KEY"),
        openai_base_url=read(_read_web_address, variables, "OPENAI_BASE_URL", "https://api.openai.com/v1"),
        openai_model=read(variables.text, "OPENAI_MODEL"),
        ollama_host=read(_read_web_address, variables, "OLLAMA_HOST", "http://localhost:11434"),
        ollama_model=read(variables.text, "OLLAMA_MODEL"),
        log_level=read(variables.choice, "LOG_LEVEL", LOG_LEVELS, "INFO"),
        log_format=read(variables.choice, "LOG_FORMAT", LOG_FORMATS, "text"),
        queue=read(_read_queue, variables),
        workers=read(variables.number, "WORKERS", usual_workers, (1, 64)),
        worker_threads=read(variables.number, "WORKER_THREADS", 512, (1, 2048)),
        database_pool=read(variables.number, "DATABASE_POOL", 24, (2, 256)),
        timing_scale=read(_read_timing_scale, variables),
        demo_pace=read(_read_demo_pace, variables),
        metrics_token=read(_read_metrics_token, variables),
        mail=read(read_mail_server, variables),
        private_push_hosts=read(_read_private_hosts, variables, "GADGET_PRIVATE_PUSH_HOSTS", debug),
        chat_hosts=read(_read_private_hosts, variables, "GADGET_CHAT_HOSTS", debug),
    )
    faults.raise_all()
    return site


def _read_data_dir(variables: Variables, base_dir: Path) -> Path:
    """Return the data folder, created if its parent exists: a missing parent means a typo or an unmounted disk."""
    given = variables.text("GADGET_DATA_DIR", "var")
    folder = (base_dir / Path(given).expanduser()).resolve()
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        fault = f"there is no folder {str(folder.parent)!r} to hold {folder.name!r}"
        raise SettingError("GADGET_DATA_DIR", fault, "var") from None
    except OSError as error:
        raise SettingError("GADGET_DATA_DIR", f"{str(folder)!r} cannot be created: {error.strerror}", "var") from error
    return folder


def _read_config_file(variables: Variables, base_dir: Path) -> tuple[Path, str]:
    """Return path and text of the file in GADGET_CONFIG or of `gadget.yaml`; without either, the text is empty."""
    given = variables.text("GADGET_CONFIG")
    path = base_dir / (Path(given).expanduser() if given else Path("gadget.yaml"))
    if not given and not path.exists():
        return path, ""
    try:
        return path, path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SettingError("GADGET_CONFIG", f"there is no file {str(path)!r}", "gadget.yaml") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError("GADGET_CONFIG", f"{path.name} cannot be read: {error}", "gadget.yaml") from error


def _read_config(file: tuple[Path, str], environ: Mapping[str, str]) -> Config:
    path, text = file
    try:
        return read_config(text, environ)
    except ConfigError as error:
        raise SettingError("GADGET_CONFIG", f"{path.name}, {error}", "gadget.yaml") from error


def _read_host(variables: Variables) -> str:
    host = variables.text("HOST", "127.0.0.1")
    if not is_host(host):
        raise SettingError("HOST", f"{host!r} is neither an IP address nor a host name", "127.0.0.1")
    return host


def _read_secret_key(variables: Variables, debug: bool, data_dir: Path) -> str:
    value = variables.text("SECRET_KEY")
    if value and len(value) < SMALLEST_SECRET:
        fault = f"is {len(value)} characters long; at least {SMALLEST_SECRET} are needed"
        raise SettingError("SECRET_KEY", fault, SECRET_EXAMPLE)
    if value:
        return value
    if not debug:
        raise SettingError("SECRET_KEY", "is not set; it is required while DEBUG is off", SECRET_EXAMPLE)
    return _load_key(load_secret_key, data_dir)


def _read_keys(variables: Variables, name: str, debug: bool, load: Callable[[], str]) -> tuple[str, ...]:
    """Return this setting's keys. Without any, use the key in the data folder while DEBUG is on."""
    keys = variables.words(name)
    fault = describe_key_fault(keys)
    if fault:
        raise SettingError(name, fault, KEY_EXAMPLE)
    if keys:
        return keys
    if not debug:
        raise SettingError(name, "is not set; it is required while DEBUG is off", KEY_EXAMPLE)
    return (load(),)


def _read_audit_keys(variables: Variables, debug: bool, data_dir: Path) -> tuple[str, ...]:
    keys = _read_keys(variables, "GADGET_AUDIT_KEYS", debug, partial(_load_key, load_audit_key, data_dir))
    if not set(keys).isdisjoint(variables.words("GADGET_ENCRYPTION_KEYS")):
        fault = "contains a key of GADGET_ENCRYPTION_KEYS; the audit needs its own keys"
        raise SettingError("GADGET_AUDIT_KEYS", fault, KEY_EXAMPLE)
    return keys


def _load_key(key: Callable[[Path], str], data_dir: Path) -> str:
    """Return the key in the data folder; the first call creates it, and reports a full disk as a wrong setting."""
    try:
        return key(data_dir)
    except OSError as error:
        fault = f"no key can be stored in {str(data_dir)!r}: {error.strerror}"
        raise SettingError("GADGET_DATA_DIR", fault, "var") from error


def _read_database(variables: Variables, data_dir: Path) -> DatabaseAddress:
    value = variables.text("DATABASE_URL")
    if not value:
        return DatabaseAddress.sqlite(data_dir / "gadget.sqlite3")
    return parse_database_url(value)


def _read_redis_url(variables: Variables) -> str:
    """Return the checked address; empty if none is set."""
    value = variables.text("REDIS_URL")
    return parse_redis_url(value) if value else ""


def _read_allowed_hosts(variables: Variables) -> tuple[str, ...]:
    hosts = variables.words("ALLOWED_HOSTS")
    for host in hosts:
        is_ipv6 = host.startswith("[") and host.endswith("]") and ":" in host and is_host(host[1:-1])
        if not (host == "*" or is_ipv6 or (":" not in host and is_host(host.removeprefix(".")))):
            fault = f"{host!r} is not a host name (no scheme, no port)"
            raise SettingError("ALLOWED_HOSTS", fault, "gadget.example.com")
    return hosts


def _read_allowed_origins(variables: Variables) -> tuple[str, ...]:
    origins = variables.words("ALLOWED_ORIGINS")
    for origin in origins:
        if not (re.fullmatch(r"https?://[A-Za-z0-9_.\-\[\]:]+", origin) and is_web_address(origin)):
            fault = f"{origin!r} is not scheme://host[:port] without a path"
            raise SettingError("ALLOWED_ORIGINS", fault, "https://gadget.example.com")
    return origins


def _read_private_hosts(variables: Variables, name: str, debug: bool) -> PrivateHosts:
    """Return the setting, or this machine itself while DEBUG is on."""
    words = variables.words(name)
    return read_private_hosts(words, name) if words or not debug else LOOPBACK


def _read_trusted_proxies(variables: Variables) -> tuple[IPv4Network | IPv6Network, ...]:
    example = "127.0.0.1,10.0.0.0/24"
    networks = []
    for word in variables.words("TRUSTED_PROXIES"):
        try:
            network = ip_network(word)
        except ValueError as error:
            fault = f"{word!r} is not an IP address or network: {error}"
            raise SettingError("TRUSTED_PROXIES", fault, example) from error
        if not network.prefixlen:
            raise SettingError("TRUSTED_PROXIES", f"{word!r} trusts everybody", example)
        networks.append(network)
    return tuple(networks)


def _read_web_address(variables: Variables, name: str, example: str) -> str:
    value = variables.text(name)
    if not value:
        return ""
    if not is_web_address(value):
        raise SettingError(name, f"{hide_password(value)!r} is not an http:// or https:// address", example)
    return value


def _read_queue(variables: Variables) -> str:
    value = variables.text("GADGET_QUEUE", "gadget")
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", value):
        raise SettingError("GADGET_QUEUE", f"{value!r} is not 1 to 64 letters, digits, - or _", "gadget")
    return value


def _read_timing_scale(variables: Variables) -> float:
    value = variables.text("GADGET_TIMING_SCALE", "1.0")
    if not re.fullmatch(r"\d{1,3}(\.\d{1,6})?", value) or not 0.01 <= float(value) <= 100:
        raise SettingError("GADGET_TIMING_SCALE", f"{value!r} is not a number from 0.01 to 100", "1.0")
    return float(value)


def _read_demo_pace(variables: Variables) -> float:
    value = variables.text("GADGET_DEMO_PACE", "0.7")
    if not re.fullmatch(r"\d{1,2}(\.\d{1,6})?", value) or float(value) > 10:
        raise SettingError("GADGET_DEMO_PACE", f"{value!r} is not a number of seconds from 0 to 10", "0.7")
    return float(value)


def _read_metrics_token(variables: Variables) -> str:
    value = variables.text("GADGET_METRICS_TOKEN")
    if value and (len(value) < SMALLEST_TOKEN or not re.fullmatch(r"[!-~]+", value)):
        fault = f"must have at least {SMALLEST_TOKEN} letters, digits or symbols, without spaces"
        raise SettingError("GADGET_METRICS_TOKEN", fault, SECRET_EXAMPLE)
    return value
