"""An invalid setting stops the start and is reported with its name, the fault and an example;
missing settings have safe defaults."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from ipaddress import ip_address
from pathlib import Path

import pytest

from gadget_site.addresses import build_broker_url
from gadget_site.environment import read_settings
from gadget_site.faults import SettingError
from gadget_site.keys import KEY_EXAMPLE
from gadget_site.settings_table import SECRET_EXAMPLE, SiteSettings
from tools.contract import HostPort, PrivateHosts

ROOT = Path(__file__).resolve().parents[2]

KEY = "dGVzdHMtb25seS10ZXN0cy1vbmx5LXRlc3RzLW9ubHk="
AUDIT_KEY = "YXVkaXQtdGVzdHMtb25seS1hdWRpdC10ZXN0cy1vbmw="
PRODUCTION = {
    "DEBUG": "off", "SECRET_KEY": "s" * 50, "GADGET_ENCRYPTION_KEYS": KEY, "GADGET_AUDIT_KEYS": AUDIT_KEY,
}  # fmt: skip

WRONG = [
    ("DEBUG", "maybe", "'maybe' is neither on nor off"),
    ("PORT", "http", "'http' is not a whole number from 1 to 65535"),
    ("PORT", "0", "'0' is not a whole number"),
    ("PORT", "70000", "'70000' is not a whole number"),
    ("WORKERS", "-1", "'-1' is not a whole number"),
    ("WORKER_THREADS", "5000", "is not a whole number from 1 to 2048"),
    ("DATABASE_POOL", "1", "is not a whole number from 2 to 256"),
    ("LOG_LEVEL", "LOUD", "'LOUD' is not one of DEBUG, INFO"),
    ("LOG_FORMAT", "xml", "'xml' is not one of text, json"),
    (
        "DATABASE_URL",
        "mysql://localhost/gadget",
        "begins with neither postgresql:// nor sqlite:///",
    ),
    ("DATABASE_URL", "postgresql://localhost", "names no database"),
    ("DATABASE_URL", "postgresql://localhost:port/gadget", "is not an address"),
    (
        "DATABASE_URL",
        "postgresql://localhost/gadget?poolsize=3",
        "the option 'poolsize' is not one of host, port",
    ),
    ("DATABASE_URL", "sqlite://", "names no file"),
    ("DATABASE_URL", "sqlite:///:memory:", "names no file"),
    ("REDIS_URL", "localhost:6379", "does not begin with redis://"),
    ("REDIS_URL", "redis://localhost/gadget", "is not redis://host:port/number"),
    ("REDIS_URL", "unix://redis.sock", "has no absolute socket path"),
    ("ALLOWED_HOSTS", "https://gadget.example.com", "is not a host name"),
    ("ALLOWED_ORIGINS", "gadget.example.com", "is not scheme://host[:port]"),
    ("ALLOWED_ORIGINS", "https://gadget.example.com/path", "is not scheme://host[:port]"),
    ("TRUSTED_PROXIES", "proxy.internal", "is not an IP address or network"),
    ("TRUSTED_PROXIES", "10.0.0.1/8", "has host bits set"),
    ("TRUSTED_PROXIES", "127.0.0.1,0.0.0.0/0", "'0.0.0.0/0' trusts everybody"),
    ("OPENAI_BASE_URL", "api.openai.com", "is not an http:// or https:// address"),
    ("OLLAMA_HOST", "localhost:11434", "is not an http:// or https:// address"),
    (
        "ALLOWED_PRIVATE_HOSTS",
        "http://ollama.internal",
        "'http://ollama.internal' is not a host name",
    ),
    (
        "GADGET_PRIVATE_PUSH_HOSTS",
        "http://push.internal",
        "'http://push.internal' is not a host name",
    ),
    ("ALLOWED_PRIVATE_HOSTS", "10.0.0.5,10.0.0.5/8", "'10.0.0.5/8' is not a host name"),
    ("ALLOWED_PRIVATE_HOSTS", "127.1", "'127.1' is not a host name"),
    ("ALLOWED_PRIVATE_HOSTS", "*.internal", "'*.internal' is not a host name"),
    (
        "ALLOWED_PRIVATE_HOSTS",
        "ollama.internal:99999",
        "'ollama.internal:99999' is not a host name",
    ),
    ("GADGET_QUEUE", "two words", "is not 1 to 64 letters"),
    ("GADGET_TIMING_SCALE", "fast", "is not a number from 0.01 to 100"),
    ("GADGET_DEMO_PACE", "11", "is not a number of seconds from 0 to 10"),
    ("MAIL_URL", "mail.example.com", "does not begin with any of smtp://"),
    ("MAIL_URL", "smtp://mail.example.com/inbox", "is not smtp://user:password@host:port"),
    ("MAIL_URL", "smtp://mail.example.com:99999", "is not an address"),
    ("GADGET_METRICS_TOKEN", "short", "must have at least 20 letters"),
    ("GADGET_METRICS_TOKEN", "with a blank in the middle", "must have at least 20 letters"),
    ("GADGET_CONFIG", "nowhere.yaml", "there is no file"),
    ("GADGET_CONFIG", "/", "cannot be read"),
    ("GADGET_DATA_DIR", "/nowhere/gadget", "there is no folder '/nowhere' to hold 'gadget'"),
    ("HOST", "300.1.1.1", "'300.1.1.1' is neither an IP address nor a host name"),
    ("HOST", "1.2.3", "is neither an IP address nor a host name"),
    ("HOST", "[::1]", "is neither an IP address nor a host name"),
    ("HOST", "localhost:8000", "is neither an IP address nor a host name"),
    ("HOST", "two words", "is neither an IP address nor a host name"),
    ("HOST", "-gadget", "is neither an IP address nor a host name"),
    (
        "DATABASE_URL",
        "postgresql://localhost/gadget?sslmode=banana",
        "sslmode 'banana' is not one of disable, allow",
    ),
    ("DATABASE_URL", "postgresql://localhost/gadget?sslmode=", "the option 'sslmode' has no value"),
    (
        "DATABASE_URL",
        "postgresql://localhost/gadget?sslmode=require&sslmode=disable",
        "'sslmode' is given twice",
    ),
    (
        "DATABASE_URL",
        "postgresql://localhost/gadget?sslrootcert=/nowhere/ca.pem",
        "there is no file '/nowhere/ca.pem'",
    ),
    (
        "DATABASE_URL",
        "postgresql://localhost/gadget?sslkey=/nowhere/key.pem",
        "there is no file '/nowhere/key.pem'",
    ),
    ("DATABASE_URL", "postgresql:///gadget?host=localhost&port=banana", "'banana' is not a port"),
    ("DATABASE_URL", "postgresql://localhost:99999/gadget", "is not an address"),
    ("DATABASE_URL", "postgresql://localhost:0/gadget", "0 is not a port"),
    ("DATABASE_URL", "postgresql://300.1.1.1/gadget", "'300.1.1.1' is neither a host"),
    ("DATABASE_URL", "sqlite:////nowhere/gadget.sqlite3", "there is no folder '/nowhere'"),
    ("DATABASE_URL", "sqlite:////", "is a folder, not a file"),
    ("REDIS_URL", "redis://300.1.1.1/0", "is not redis://host:port/number"),
    ("REDIS_URL", "redis://localhost:99999/0", "is not an address"),
    ("OPENAI_BASE_URL", "http://localhost:port/v1", "is not an http:// or https:// address"),
    ("OPENAI_BASE_URL", "http://[::1/v1", "is not an http:// or https:// address"),
    ("OLLAMA_HOST", "http://300.1.1.1:11434", "is not an http:// or https:// address"),
    ("ALLOWED_HOSTS", "300.1.1.1", "is not a host name"),
    ("ALLOWED_ORIGINS", "https://gadget.example.com:99999", "is not scheme://host[:port]"),
    ("ALLOWED_ORIGINS", "https://300.1.1.1", "is not scheme://host[:port]"),
    ("GADGET_ENCRYPTION_KEYS", f"{KEY[:20]}!{KEY[20:]}", "is not URL-safe base64"),
    ("SECRET_KEY", "short", "is 5 characters long; at least 32 are needed"),
    ("SECRET_KEY", SECRET_EXAMPLE, "its value contains '$('"),
    ("SECRET_KEY", "`openssl rand -hex 32` and thirty more", "its value contains '`'"),
    ("GADGET_ENCRYPTION_KEYS", KEY_EXAMPLE, "its value contains '$('"),
    ("GADGET_METRICS_TOKEN", "${GADGET_METRICS_TOKEN_OF_OURS}", "its value contains '${'"),
    ("DATABASE_URL", "postgresql://me:${PASSWORD}@localhost/gadget", "its value contains '${'"),
    ("OPENAI_API_KEY", "$(cat /run/secrets/openai)", "its value contains '$('"),
    ("GADGET_ENCRYPTION_KEYS", "not-a-key", "key 1 of 1"),
    ("GADGET_ENCRYPTION_KEYS", f"{KEY},c2hvcnQ=", "key 2 of 2 holds 5 bytes instead of 32"),
    ("GADGET_AUDIT_KEYS", "not-a-key", "key 1 of 1"),
    ("GADGET_AUDIT_KEYS", f"{AUDIT_KEY},{KEY}", "contains a key of GADGET_ENCRYPTION_KEYS"),
]


@pytest.mark.parametrize(("name", "value", "fault"), WRONG)
def test_an_invalid_value_is_reported_with_its_setting_the_fault_and_an_example(
    tmp_path: Path, name: str, value: str, fault: str
) -> None:
    with pytest.raises(SettingError) as caught:
        read({**PRODUCTION, name: value}, tmp_path)
    message = str(caught.value)
    assert message.startswith(f"{name}: ")
    assert fault in message
    assert f"Example: {name}=" in message


@pytest.mark.parametrize(
    "name", ["SECRET_KEY", "GADGET_ENCRYPTION_KEYS", "DATABASE_URL", "HOST", "OPENAI_API_KEY"]
)
@pytest.mark.parametrize("hidden", ["\n", "\r", "\t", "\x00", "\x1b", "\u200b", "\udcff"])
def test_a_hidden_character_in_a_value_is_refused_without_showing_the_value(
    tmp_path: Path, name: str, hidden: str
) -> None:
    with pytest.raises(SettingError) as caught:
        read({**PRODUCTION, name: f"first{hidden}second"}, tmp_path)
    assert str(caught.value).startswith(f"{name}: its value contains ")
    assert "second" not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_trailing_newline_in_a_value_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"^SECRET_KEY: its value contains a newline"):
        read({**PRODUCTION, "SECRET_KEY": "s" * 50 + "\n"}, tmp_path)


def test_all_errors_are_reported_together(tmp_path: Path) -> None:
    with pytest.raises(SettingError) as caught:
        read({"DEBUG": "off", "PORT": "http", "TRUSTED_PROXIES": "0.0.0.0/0"}, tmp_path)
    names = [line.partition(":")[0] for line in str(caught.value).splitlines()]
    assert names == [
        "SECRET_KEY",
        "GADGET_ENCRYPTION_KEYS",
        "GADGET_AUDIT_KEYS",
        "PORT",
        "TRUSTED_PROXIES",
    ]
    with pytest.raises(SettingError) as caught:
        read(
            {"GADGET_TYPO": "1", "TRUSTED_PROXY": "1", "HOST": "two words", "PORT": "http"},
            tmp_path,
        )
    assert [line.split()[0].strip(":") for line in str(caught.value).splitlines()] == [
        "GADGET_TYPO", "TRUSTED_PROXY", "HOST",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "host", ["::1", "0.0.0.0", "gadget", "gadget.example.com", "web_1", "localhost"]
)
def test_host_can_be_an_address_or_a_host_name(tmp_path: Path, host: str) -> None:
    assert read({**PRODUCTION, "HOST": host}, tmp_path).host == host


@pytest.mark.parametrize(
    "host", ["/run/postgresql", "db.example.com", "10.0.0.5", "db1,db2", "::1"]
)
def test_every_kind_of_database_host_is_accepted(tmp_path: Path, host: str) -> None:
    url = f"postgresql:///gadget?host={host}&sslmode=verify-full&sslrootcert=system"
    assert read({**PRODUCTION, "DATABASE_URL": url}, tmp_path).database.host == host


@pytest.mark.parametrize("name", ["SECRET_KEY", "GADGET_ENCRYPTION_KEYS", "GADGET_AUDIT_KEYS"])
def test_keys_are_required_while_debug_is_off(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        SettingError, match=f"^{name}: is not set; it is required while DEBUG is off"
    ):
        read({key: value for key, value in PRODUCTION.items() if key != name}, tmp_path)


@pytest.mark.parametrize("name", ["DATABASE_URL", "REDIS_URL"])
def test_an_error_about_a_url_hides_its_password(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingError) as caught:
        read({**PRODUCTION, name: "oracle://me:my-password@localhost/gadget"}, tmp_path)
    assert "my-password" not in str(caught.value)
    assert "me:***@localhost" in str(caught.value)


def test_an_error_about_an_encryption_key_does_not_contain_the_key(tmp_path: Path) -> None:
    with pytest.raises(SettingError) as caught:
        read({**PRODUCTION, "GADGET_ENCRYPTION_KEYS": "my-broken-key"}, tmp_path)
    assert "my-broken-key" not in str(caught.value)


def test_without_settings_gadget_is_a_development_site_on_this_machine(tmp_path: Path) -> None:
    site = read({}, tmp_path)
    assert site.debug
    assert site.host == "127.0.0.1"
    assert site.port == 8000
    assert site.allowed_hosts == ("localhost", "127.0.0.1", "[::1]")
    assert site.database.is_sqlite
    assert site.database.name == str(tmp_path / "var" / "gadget.sqlite3")
    assert site.redis_is_embedded
    assert site.workers == 1


def covers(hosts: PrivateHosts, host: str, port: int, address: str) -> bool:
    return hosts.covers(HostPort(host, port), ip_address(address))


def test_by_default_only_private_addresses_of_this_machine_are_allowed_and_only_with_debug(
    tmp_path: Path,
) -> None:
    site = read({}, tmp_path)
    assert covers(site.allowed_private_hosts, "localhost", 11434, "127.0.0.1")
    assert covers(site.allowed_private_hosts, "localhost", 11434, "::1")
    assert not covers(site.allowed_private_hosts, "box", 80, "10.0.0.5")
    assert not read(PRODUCTION, tmp_path).allowed_private_hosts.entries
    own = read({"ALLOWED_PRIVATE_HOSTS": "10.0.0.5"}, tmp_path).allowed_private_hosts
    assert not covers(own, "localhost", 11434, "127.0.0.1")


@pytest.mark.parametrize(
    ("entry", "host", "port", "address", "is_covered"),
    [
        ("ollama.internal", "ollama.internal", 80, "10.0.0.5", True),
        ("Ollama.Internal.:11434", "ollama.internal", 11434, "10.0.0.5", True),
        ("ollama.internal:11434", "ollama.internal", 80, "10.0.0.5", False),
        ("ollama.internal", "other.internal", 80, "10.0.0.5", False),
        ("10.0.0.5", "any.internal", 80, "10.0.0.5", True),
        ("10.0.0.0/8:80", "any.internal", 81, "10.0.0.5", False),
        ("fd00::1", "any.internal", 80, "fd00::1", True),
        ("[fd00::/8]:80", "any.internal", 80, "fd00::7", True),
        ("[fd00::1]:80", "any.internal", 81, "fd00::1", False),
    ],
)
def test_each_entry_of_allowed_private_hosts_allows_only_its_own_hosts_and_ports(
    tmp_path: Path, entry: str, host: str, port: int, address: str, is_covered: bool
) -> None:
    site = read({**PRODUCTION, "ALLOWED_PRIVATE_HOSTS": f"x.example, {entry}"}, tmp_path)
    assert covers(site.allowed_private_hosts, host, port, address) is is_covered


@pytest.mark.parametrize(
    ("variable", "value", "host", "port", "address"),
    [
        ("OPENAI_BASE_URL", "http://localhost:8080/v1", "localhost", 8080, "127.0.0.1"),
        ("OLLAMA_HOST", "http://localhost:11434", "localhost", 11434, "::1"),
        ("OLLAMA_HOST", "http://ollama.internal:11434", "ollama.internal", 11434, "10.0.0.5"),
        ("OPENAI_BASE_URL", "https://10.0.0.5/v1", "10.0.0.5", 443, "10.0.0.5"),
        ("OPENAI_BASE_URL", "http://[::1]/v1", "::1", 80, "::1"),
    ],
)
def test_the_private_address_of_a_model_in_the_environment_is_allowed_only_for_providers(
    tmp_path: Path, variable: str, value: str, host: str, port: int, address: str
) -> None:
    site = read({**PRODUCTION, variable: value}, tmp_path)
    assert covers(site.private_providers, host, port, address)
    assert not covers(site.private_providers, host, port + 1, address)
    assert not covers(site.private_providers, "other.internal", port, "10.0.0.6")
    assert not site.allowed_private_hosts.entries


def test_an_empty_value_is_treated_as_unset(tmp_path: Path) -> None:
    assert read({"PORT": "", "DATABASE_URL": " ", "DEBUG": ""}, tmp_path).port == 8000


@pytest.mark.parametrize(
    "variables", [{"ALLOWED_HOSTS": "gadget.example.com"}, {"HOST": "0.0.0.0"}]
)
def test_debug_is_off_by_default_if_other_machines_can_connect(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    with pytest.raises(SettingError, match="required while DEBUG is off"):
        read(variables, tmp_path)


def test_keys_are_created_once_and_readable_only_by_their_owner(tmp_path: Path) -> None:
    first, second = read({}, tmp_path), read({}, tmp_path)
    assert first.secret_key == second.secret_key
    assert first.encryption_keys == second.encryption_keys
    assert first.audit_keys == second.audit_keys
    for name in ("secret_key", "encryption_key", "audit_key"):
        assert stat.S_IMODE((tmp_path / "var" / name).stat().st_mode) == 0o600


def test_the_created_encryption_key_is_refused_as_an_audit_key(tmp_path: Path) -> None:
    (created,) = read({}, tmp_path).encryption_keys
    with pytest.raises(SettingError, match="GADGET_AUDIT_KEYS: contains a key of"):
        read({"GADGET_AUDIT_KEYS": created}, tmp_path)


def test_a_folder_in_which_keys_cannot_be_stored_is_reported_once(tmp_path: Path) -> None:
    for name in ("secret_key", "encryption_key", "audit_key"):
        (tmp_path / "var" / name).mkdir(parents=True)
    with pytest.raises(SettingError) as caught:
        read({}, tmp_path)
    fault = f"no key can be stored in {str(tmp_path / 'var')!r}: Is a directory"
    assert str(caught.value) == f"GADGET_DATA_DIR: {fault}. Example: GADGET_DATA_DIR=var"


def test_simultaneous_first_starts_agree_on_the_keys(tmp_path: Path) -> None:
    start, found = threading.Barrier(16), set()

    def read_at_once() -> None:
        start.wait()
        site = read({}, tmp_path)
        found.add((site.secret_key, site.encryption_keys, site.audit_keys))

    threads = [threading.Thread(target=read_at_once) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 1


def test_postgresql_addresses_are_parsed(tmp_path: Path) -> None:
    site = read(
        {"DATABASE_URL": "postgresql://me:p%40ss@db.example.com:5433/gadget?sslmode=require"},
        tmp_path,
    )
    address = site.database
    assert (address.user, address.password, address.host, address.port, address.name) == (
        "me", "p@ss", "db.example.com", "5433", "gadget",
    )  # fmt: skip
    assert address.ssl == (("sslmode", "require"),)
    assert site.workers == 2


def test_postgresql_can_be_reached_over_a_socket(tmp_path: Path) -> None:
    address = read(
        {"DATABASE_URL": "postgresql://me@/gadget?host=/run/postgresql"}, tmp_path
    ).database
    assert (address.host, address.port, address.name) == ("/run/postgresql", "", "gadget")


def test_a_redis_unix_socket_is_converted_to_celerys_form() -> None:
    assert (
        build_broker_url("unix:///run/redis.sock?db=3")
        == "redis+socket:///run/redis.sock?virtual_host=3"
    )
    assert build_broker_url("redis://:pw@host:1/2") == "redis://:pw@host:1/2"


def test_a_socket_path_is_never_too_long(tmp_path: Path) -> None:
    deep = tmp_path / ("a" * 60) / ("b" * 60)
    deep.parent.mkdir()
    url = read({"GADGET_DATA_DIR": str(deep)}, tmp_path).redis_url
    assert len(url.removeprefix("unix://")) <= 100
    assert url == read({"GADGET_DATA_DIR": str(deep)}, tmp_path).redis_url


def test_cookies_are_secure_if_every_origin_is_https(tmp_path: Path) -> None:
    assert not read({}, tmp_path).served_over_https
    assert read({"ALLOWED_ORIGINS": "https://a.example.com"}, tmp_path).served_over_https
    assert not read(
        {"ALLOWED_ORIGINS": "https://a.example.com,http://b.example.com"}, tmp_path
    ).served_over_https


def test_links_use_the_first_origin_if_every_origin_is_https(tmp_path: Path) -> None:
    both = "https://a.example.com,https://b.example.com"
    assert read({"ALLOWED_ORIGINS": both}, tmp_path).origin == "https://a.example.com"
    assert (
        read({"ALLOWED_ORIGINS": "https://a.example.com,http://b.example.com"}, tmp_path).origin
        == ""
    )
    assert read({}, tmp_path).origin == ""


def test_trusted_proxies_can_be_addresses_or_networks(tmp_path: Path) -> None:
    proxies = read(
        {"TRUSTED_PROXIES": "127.0.0.1, 10.0.0.0/24,2001:db8::/48"}, tmp_path
    ).trusted_proxies
    assert [str(network) for network in proxies] == ["127.0.0.1/32", "10.0.0.0/24", "2001:db8::/48"]
    assert read({}, tmp_path).trusted_proxies == ()


def read(variables: dict[str, str], folder: Path) -> SiteSettings:
    return read_settings(variables, folder)


@pytest.mark.parametrize(
    ("environ", "is_only_local"),
    [
        ({}, True),
        ({"HOST": "0.0.0.0"}, False),
        ({"ALLOWED_HOSTS": "gadget.example.com"}, False),
        ({"ALLOWED_ORIGINS": "https://gadget.example.com"}, False),
        ({"ALLOWED_HOSTS": "localhost,127.0.0.1"}, False),
        ({"TRUSTED_PROXIES": "127.0.0.1"}, False),
    ],
)
def test_only_this_machine_can_connect_unless_a_setting_allows_other_machines(
    tmp_path: Path, environ: dict[str, str], is_only_local: bool
) -> None:
    site = read_settings({**PRODUCTION, "GADGET_DATA_DIR": str(tmp_path), **environ}, tmp_path)
    assert site.is_only_local is is_only_local
    assert site.metrics_token == ""


@pytest.mark.parametrize("module", ["gadget_site.web", "celery --app gadget_site.celery worker"])
def test_every_part_reports_an_invalid_setting_in_one_sentence(tmp_path: Path, module: str) -> None:
    environment = {"PATH": os.environ["PATH"], "GADGET_DATA_DIR": str(tmp_path), "PORT": "none"}
    command = [sys.executable, "-m", *module.split()]
    ended = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    fault = "PORT: 'none' is not a whole number from 1 to 65535. Example: PORT=8000"
    assert ended.stderr.strip() == f"Gadget cannot start. {fault}"


@pytest.mark.parametrize(
    ("environ", "fault"),
    [
        ({"MAIL_URL": "smtp://mail.example.com"}, "MAIL_FROM: is not set"),
        ({"MAIL_FROM": "gadget@example.com"}, "MAIL_URL: is not set"),
        (
            {"MAIL_URL": "smtp://mail.example.com", "MAIL_FROM": "Gadget"},
            "MAIL_FROM: 'Gadget' is not",
        ),
    ],
)
def test_incomplete_mail_settings_are_refused(
    tmp_path: Path, environ: dict[str, str], fault: str
) -> None:
    with pytest.raises(SettingError, match=fault):
        read_settings(environ, tmp_path)


def test_mail_is_encrypted_unless_the_scheme_asks_for_plain_text(tmp_path: Path) -> None:
    def read(url: str) -> tuple[str, int, str]:
        mail = read_settings({"MAIL_URL": url, "MAIL_FROM": "gadget@example.com"}, tmp_path).mail
        return mail.encryption, mail.port, mail.password

    assert read("smtp://gadget:p%40ss@mail.example.com") == ("starttls", 587, "p@ss")
    assert read("smtps://mail.example.com") == ("ssl", 465, "")
    assert read("smtp+plain://127.0.0.1:2525") == ("none", 2525, "")
