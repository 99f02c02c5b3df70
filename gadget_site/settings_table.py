"""The table of all settings: one row for each environment variable that Gadget reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from gadget_site.addresses import (
    DatabaseAddress,
    parse_database_url,
    parse_origins,
    parse_redis_url,
    parse_web_address,
)
from gadget_site.faults import SettingError, WrongValueError
from gadget_site.keys import (
    KEY_EXAMPLE,
    load_audit_key,
    load_encryption_key,
    load_secret_key,
    parse_keys,
)
from gadget_site.mail_server import MailServer, parse_mail_url, parse_sender
from gadget_site.parsers import (
    decimal_number,
    one_of,
    parse_flag,
    parse_host,
    parse_host_names,
    parse_name,
    parse_networks,
    secret,
    token,
    whole_number,
)
from gadget_site.private_hosts import LOOPBACK, list_named_hosts, parse_private_hosts
from gadget_site.redis_server import get_socket_path
from gadget_site.setting import Setting, SettingsReader
from gadget_site.setting_files import create_data_dir, read_config_text
from tools.config import Config, ConfigError, read_config
from tools.contract import PrivateHosts

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
LOOPBACK_ADDRESSES = frozenset({"localhost", "127.0.0.1", "::1"})
SECRET_EXAMPLE = "$(python -c 'import secrets; print(secrets.token_urlsafe(50))')"  # noqa: S105
OWN_KEY = "created and kept in the data folder while DEBUG is on"
THIS_MACHINE = "this machine while DEBUG is on, else none"


def _use_own_key(load: Callable[[Path], str], example: str) -> Callable[[SiteSettings], str]:
    """Build a setting's default. While DEBUG is on, it loads the key from the data folder, and
    creates the key at its first use. While DEBUG is off, it raises WrongValueError."""

    def load_own_key(site: SiteSettings) -> str:
        if not site.debug:
            raise WrongValueError("is not set; it is required while DEBUG is off", example)
        try:
            return load(site.data_dir)
        except OSError as error:
            fault = f"no key can be stored in {str(site.data_dir)!r}: {error.strerror}"
            raise SettingError("GADGET_DATA_DIR", fault, "var") from error

    return load_own_key


def _use_own_keys(load: Callable[[Path], str]) -> Callable[[SiteSettings], tuple[str, ...]]:
    load_own_key = _use_own_key(load, KEY_EXAMPLE)
    return lambda site: (load_own_key(site),)


def _use_this_machine(site: SiteSettings) -> PrivateHosts:
    return LOOPBACK if site.debug else PrivateHosts()


def _use_debug_on_this_machine(site: SiteSettings) -> bool:
    return not site.is_given(SiteSettings.allowed_hosts) and site.host in LOOPBACK_ADDRESSES


def _use_no_mail(site: SiteSettings) -> MailServer:
    if site.is_given(SiteSettings.mail_sender):
        raise WrongValueError("is not set, but MAIL_FROM is")
    return MailServer()


def _use_no_sender(site: SiteSettings) -> str:
    if site.mail.host:
        raise WrongValueError("is not set; it is required with MAIL_URL")
    return "gadget@localhost"


class SiteSettings(SettingsReader):
    """All settings of one installation, in the order of docs/settings.md; times are in seconds."""

    database = Setting(
        "DATABASE_URL",
        parse_database_url,
        default=lambda site: DatabaseAddress.sqlite(site.data_dir / "gadget.sqlite3"),
        shown_default="SQLite in the data folder",
        example="postgresql://gadget:password@localhost:5432/gadget",
        help="PostgreSQL, or `sqlite:////absolute/path`",
    )
    redis_url = Setting(
        "REDIS_URL",
        parse_redis_url,
        default=lambda site: f"unix://{get_socket_path(site.data_dir)}",
        shown_default="an embedded server",
        example="redis://localhost:6379/0",
        help="`redis://`, `rediss://` or `unix://`",
    )
    data_dir_name = Setting(
        "GADGET_DATA_DIR",
        str,
        default="var",
        example="var",
        help="the organizations' files; on a single machine also database, keys and Redis. Created if its parent "
        "exists",
    )
    secret_key = Setting(
        "SECRET_KEY",
        secret(32, SECRET_EXAMPLE),
        default=_use_own_key(load_secret_key, SECRET_EXAMPLE),
        shown_default=OWN_KEY,
        example="at-least-32-random-characters",
        help="signs sessions",
    )
    encryption_keys = Setting(
        "GADGET_ENCRYPTION_KEYS",
        parse_keys,
        default=_use_own_keys(load_encryption_key),
        shown_default="as above",
        example="new-key,old-key",
        help="the first [encrypts](#changing-the-encryption-key), all decrypt",
    )
    audit_keys = Setting(
        "GADGET_AUDIT_KEYS",
        parse_keys,
        default=_use_own_keys(load_audit_key),
        shown_default="as above",
        example="new-key,old-key",
        help="the first signs [the audit](audit.md), all verify. Generated like encryption keys, but different ones",
    )
    host = Setting(
        "HOST",
        parse_host,
        default="127.0.0.1",
        example="127.0.0.1",
        help="where the web part listens",
    )
    port = Setting("PORT", whole_number(1, 65535), default="8000", example="8000", help="its port")
    allowed_hosts = Setting(
        "ALLOWED_HOSTS",
        parse_host_names,
        default=",".join(LOCAL_NAMES),
        example="gadget.example.com",
        help="the names by which people reach Gadget; turns DEBUG off",
        is_distinctive=True,
    )
    debug = Setting(
        "DEBUG",
        parse_flag,
        default=_use_debug_on_this_machine,
        shown_default="on while only this machine can reach Gadget",
        example="off",
        help="`on` or `off`",
    )
    allowed_origins = Setting(
        "ALLOWED_ORIGINS",
        parse_origins,
        example="https://gadget.example.com",
        help="whole origins that may open sockets and send forms; [all https](front-door.md) means secure cookies and "
        "HSTS",
        is_distinctive=True,
    )
    trusted_proxies = Setting(
        "TRUSTED_PROXIES",
        parse_networks,
        example="127.0.0.1,10.0.0.0/24",
        help="addresses and networks of [your proxies](front-door.md)",
        is_distinctive=True,
    )
    allowed_private_hosts = Setting(
        "ALLOWED_PRIVATE_HOSTS",
        parse_private_hosts,
        default=_use_this_machine,
        shown_default=THIS_MACHINE,
        example="ollama.internal:11434,10.0.0.5,192.168.1.0/24",
        help="private servers for model providers and [webhooks](webhooks.md), and for tools where an admin ticks the "
        "host: names, addresses or networks, with or without a port",
        is_distinctive=True,
    )
    chat_hosts = Setting(
        "GADGET_CHAT_HOSTS",
        parse_private_hosts,
        default=_use_this_machine,
        shown_default="as above",
        example="ntfy.example.com",
        help="servers of your own that members may name as [chat services](notices.md#chat-services)",
    )
    private_push_hosts = Setting(
        "GADGET_PRIVATE_PUSH_HOSTS",
        parse_private_hosts,
        default=_use_this_machine,
        shown_default="as above",
        example="push.internal",
        help="private servers that may receive [browser push](notices.md)",
    )
    mail = Setting(
        "MAIL_URL",
        parse_mail_url,
        default=_use_no_mail,
        example="smtp://gadget:password@mail.example.com:587",
        help="server of [notices](notices.md). `smtp://` requires STARTTLS, `smtps://` is TLS from the start, "
        "`smtp+plain://` is not encrypted",
    )
    mail_sender = Setting(
        "MAIL_FROM",
        parse_sender,
        default=_use_no_sender,
        example="gadget@example.com",
        help="their sender",
    )
    openai_api_key = Setting(
        "OPENAI_API_KEY", str, example="sk-…", help="the demo's employee on a real model"
    )
    openai_base_url = Setting(
        "OPENAI_BASE_URL",
        parse_web_address,
        example="https://api.openai.com/v1",
        help="its server",
    )
    openai_model = Setting("OPENAI_MODEL", str, example="gpt-5-mini", help="its model")
    ollama_host = Setting(
        "OLLAMA_HOST",
        parse_web_address,
        example="http://localhost:11434",
        help="the address for Ollama providers without one. Also the demo's employee on Ollama, unless "
        "`OPENAI_API_KEY` or `OPENAI_BASE_URL` is set",
    )
    ollama_model = Setting(
        "OLLAMA_MODEL", str, example="qwen3", help="its model; if unset, `qwen3`"
    )
    workers = Setting(
        "WORKERS",
        whole_number(1, 64),
        default=lambda site: 1 if site.database.is_sqlite else 2,
        shown_default="1 on SQLite, else 2",
        example="2",
        help="workers that `up` starts",
    )
    worker_threads = Setting(
        "WORKER_THREADS",
        whole_number(1, 2048),
        default="512",
        example="512",
        help="[runs that one worker drives at once](deploy.md#threads-and-memory-of-a-worker)",
        is_distinctive=True,
    )
    database_pool = Setting(
        "DATABASE_POOL",
        whole_number(2, 256),
        default="24",
        example="24",
        help="[maximum PostgreSQL connections](deploy.md#connections-to-postgresql) per process",
        is_distinctive=True,
    )
    queue = Setting(
        "GADGET_QUEUE",
        parse_name,
        default="gadget",
        example="gadget",
        help="name of the queue, where several installations share one Redis",
    )
    log_level = Setting(
        "LOG_LEVEL",
        one_of("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
        default="INFO",
        example="INFO",
        help="the least severe lines that are logged",
    )
    log_format = Setting(
        "LOG_FORMAT",
        one_of("text", "json"),
        default="text",
        example="text",
        help="`json` for machines. Lines about an organization name it and hide its credentials",
    )
    metrics_token = Setting(
        "GADGET_METRICS_TOKEN",
        token(20, SECRET_EXAMPLE),
        example="at-least-20-characters",
        help="opens [`/metrics`](metrics.md) to Prometheus",
    )
    heartbeat_file = Setting(
        "HEARTBEAT_FILE",
        str,
        example="heartbeat",
        help="a process touches it while its threads run, for [your own supervisor](deploy.md#when-a-part-is-lost)",
    )
    demo_pace = Setting(
        "GADGET_DEMO_PACE",
        decimal_number(0, 10, " of seconds"),
        default="0.7",
        example="0.7",
        help="seconds that the demo's simulated register takes for each company, from 0 to 10",
    )
    config_name = Setting(
        "GADGET_CONFIG",
        str,
        shown_default="`gadget.yaml`, if it exists",
        example="gadget.yaml",
        help="the [file](#gadgetyaml) with the settings and credentials of tools",
    )
    timing_scale = Setting(
        "GADGET_TIMING_SCALE", decimal_number(0.01, 100), default="1.0", example="1.0"
    )

    def __init__(self, environ: Mapping[str, str], base_dir: Path) -> None:
        super().__init__(environ)
        self._base_dir = base_dir

    @cached_property
    def data_dir(self) -> Path:
        """The data folder, created if its parent exists."""
        return create_data_dir((self._base_dir / Path(self.data_dir_name).expanduser()).resolve())

    @property
    def config_file(self) -> Path:
        return self._base_dir / Path(self.config_name or "gadget.yaml").expanduser()

    @cached_property
    def config_text(self) -> str:
        """The text of the tools' configuration file; empty if GADGET_CONFIG is unset and there is
        no `gadget.yaml`."""
        is_absent = not self.config_name and not self.config_file.exists()
        return "" if is_absent else read_config_text(self.config_file)

    @cached_property
    def config(self) -> Config:
        try:
            return read_config(self.config_text, self.environ)
        except ConfigError as error:
            raise SettingError(
                "GADGET_CONFIG", f"{self.config_file.name}, {error}", "gadget.yaml"
            ) from error

    @property
    def redis_is_embedded(self) -> bool:
        return not self.is_given(SiteSettings.redis_url)

    @property
    def environment_name(self) -> Literal["development", "production"]:
        """The environment's name for tools. It is kept apart from DEBUG, which workers switch
        off."""
        return "development" if self.debug else "production"

    @property
    def is_only_local(self) -> bool:
        """True if only this machine can reach Gadget, even through a proxy."""
        is_open = self.allowed_hosts != LOCAL_NAMES or self.allowed_origins or self.trusted_proxies
        return self.host in LOOPBACK_ADDRESSES and not is_open

    @property
    def private_providers(self) -> PrivateHosts:
        """The private servers that model providers may use: the servers that tools may use, plus
        the servers that the environment names."""
        named = list_named_hosts((self.openai_base_url, self.ollama_host))
        return PrivateHosts((*self.allowed_private_hosts.entries, *named))

    @property
    def link_base(self) -> str:
        """The start of links in notifications, which are built without a request."""
        if self.allowed_origins:
            return self.allowed_origins[0]
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def served_over_https(self) -> bool:
        """True if every address that people use is https; cookies are then sent over https only."""
        return bool(self.allowed_origins) and all(
            origin.startswith("https://") for origin in self.allowed_origins
        )

    @property
    def origin(self) -> str:
        """The origin of absolute links while Gadget is served over HTTPS; empty if links use the
        request's own origin."""
        return self.allowed_origins[0] if self.served_over_https else ""


SETTINGS: tuple[Setting[Any], ...] = tuple(
    row for row in vars(SiteSettings).values() if isinstance(row, Setting)
)
