"""A wrong setting stops the start with its name, the fault and an example; what is absent has a safe default."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from gadget_site.addresses import celery_broker
from gadget_site.environment import SiteSettings, read_settings
from gadget_site.faults import SettingError

KEY = "dGVzdHMtb25seS10ZXN0cy1vbmx5LXRlc3RzLW9ubHk="
PRODUCTION = {"DEBUG": "off", "SECRET_KEY": "s" * 50, "GADGET_ENCRYPTION_KEYS": KEY}

WRONG = [
    ("DEBUG", "maybe", "'maybe' is neither on nor off"),
    ("PORT", "http", "'http' is not a whole number from 1 to 65535"),
    ("PORT", "0", "'0' is not a whole number"),
    ("PORT", "70000", "'70000' is not a whole number"),
    ("WORKERS", "-1", "'-1' is not a whole number"),
    ("WORKER_THREADS", "1000", "is not a whole number from 1 to 256"),
    ("DATABASE_POOL", "1", "is not a whole number from 2 to 256"),
    ("LOG_LEVEL", "LOUD", "'LOUD' is none of DEBUG, INFO"),
    ("LOG_FORMAT", "xml", "'xml' is none of text, json"),
    ("DATABASE_URL", "mysql://localhost/gadget", "begins with neither postgresql:// nor sqlite:///"),
    ("DATABASE_URL", "postgresql://localhost", "names no database"),
    ("DATABASE_URL", "postgresql://localhost:port/gadget", "is not an address"),
    ("DATABASE_URL", "postgresql://localhost/gadget?poolsize=3", "the option 'poolsize' is none of host, port"),
    ("DATABASE_URL", "sqlite://", "names no file"),
    ("DATABASE_URL", "sqlite:///:memory:", "names no file"),
    ("REDIS_URL", "localhost:6379", "begins with none of redis://"),
    ("REDIS_URL", "redis://localhost/gadget", "is not redis://host:port/number"),
    ("REDIS_URL", "unix://redis.sock", "names no absolute path"),
    ("ALLOWED_HOSTS", "https://gadget.example.com", "is not a host name"),
    ("ALLOWED_ORIGINS", "gadget.example.com", "is not scheme://host[:port]"),
    ("ALLOWED_ORIGINS", "https://gadget.example.com/path", "is not scheme://host[:port]"),
    ("OPENAI_BASE_URL", "api.openai.com", "is not an http:// or https:// address"),
    ("OLLAMA_HOST", "localhost:11434", "is not an http:// or https:// address"),
    ("GADGET_QUEUE", "two words", "is not 1 to 64 letters"),
    ("GADGET_TIMING_SCALE", "fast", "is not a number from 0.01 to 100"),
    ("GADGET_METRICS_TOKEN", "short", "is not 20 or more letters"),
    ("GADGET_METRICS_TOKEN", "with a blank in the middle", "is not 20 or more letters"),
    ("GADGET_CONFIG", "nowhere.yaml", "there is no file"),
    ("SECRET_KEY", "short", "is 5 characters long; at least 32 are needed"),
    ("GADGET_ENCRYPTION_KEYS", "not-a-key", "key 1 of 1"),
    ("GADGET_ENCRYPTION_KEYS", f"{KEY},c2hvcnQ=", "key 2 of 2 holds 5 bytes instead of 32"),
]


@pytest.mark.parametrize(("name", "value", "fault"), WRONG)
def test_a_wrong_value_names_the_setting_its_fault_and_an_example(
    tmp_path: Path, name: str, value: str, fault: str
) -> None:
    with pytest.raises(SettingError) as caught:
        read({**PRODUCTION, name: value}, tmp_path)
    message = str(caught.value)
    assert message.startswith(f"{name}: ")
    assert fault in message
    assert f"Example: {name}=" in message


@pytest.mark.parametrize("name", ["SECRET_KEY", "GADGET_ENCRYPTION_KEYS"])
def test_keys_are_required_while_debug_is_off(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingError, match=f"^{name}: is not set; it is required while DEBUG is off"):
        read({key: value for key, value in PRODUCTION.items() if key != name}, tmp_path)


@pytest.mark.parametrize("name", ["DATABASE_URL", "REDIS_URL"])
def test_an_error_never_shows_a_password(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingError) as caught:
        read({**PRODUCTION, name: "oracle://me:my-password@localhost/gadget"}, tmp_path)
    assert "my-password" not in str(caught.value)
    assert "me:***@localhost" in str(caught.value)


def test_secret_values_are_not_shown_in_errors(tmp_path: Path) -> None:
    with pytest.raises(SettingError) as caught:
        read({**PRODUCTION, "GADGET_ENCRYPTION_KEYS": "my-broken-key"}, tmp_path)
    assert "my-broken-key" not in str(caught.value)


def test_with_nothing_set_it_is_a_development_site_on_this_machine(tmp_path: Path) -> None:
    site = read({}, tmp_path)
    assert site.debug
    assert site.host == "127.0.0.1"
    assert site.port == 8000
    assert site.allowed_hosts == ("localhost", "127.0.0.1", "[::1]")
    assert site.database.is_sqlite
    assert site.database.name == str(tmp_path / "var" / "gadget.sqlite3")
    assert site.redis_is_embedded
    assert site.workers == 1


def test_an_empty_value_counts_as_none(tmp_path: Path) -> None:
    assert read({"PORT": "", "DATABASE_URL": " ", "DEBUG": ""}, tmp_path).port == 8000


@pytest.mark.parametrize("variables", [{"ALLOWED_HOSTS": "gadget.example.com"}, {"HOST": "0.0.0.0"}])
def test_debug_is_off_by_itself_once_others_may_come_in(tmp_path: Path, variables: dict[str, str]) -> None:
    with pytest.raises(SettingError, match="required while DEBUG is off"):
        read(variables, tmp_path)


def test_keys_are_made_once_and_kept_for_their_owner_alone(tmp_path: Path) -> None:
    first, second = read({}, tmp_path), read({}, tmp_path)
    assert first.secret_key == second.secret_key
    assert first.encryption_keys == second.encryption_keys
    for name in ("secret_key", "encryption_key"):
        assert stat.S_IMODE((tmp_path / "var" / name).stat().st_mode) == 0o600


def test_many_processes_that_start_at_once_agree_on_the_keys(tmp_path: Path) -> None:
    start, found = threading.Barrier(16), set()

    def read_at_once() -> None:
        start.wait()
        site = read({}, tmp_path)
        found.add((site.secret_key, site.encryption_keys))

    threads = [threading.Thread(target=read_at_once) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 1


def test_postgresql_addresses_are_understood(tmp_path: Path) -> None:
    site = read({"DATABASE_URL": "postgresql://me:p%40ss@db.example.com:5433/gadget?sslmode=require"}, tmp_path)
    address = site.database
    assert (address.user, address.password, address.host, address.port, address.name) == (
        "me", "p@ss", "db.example.com", "5433", "gadget",
    )  # fmt: skip
    assert address.ssl == (("sslmode", "require"),)
    assert site.workers == 2


def test_postgresql_may_be_reached_over_a_socket(tmp_path: Path) -> None:
    address = read({"DATABASE_URL": "postgresql://me@/gadget?host=/run/postgresql"}, tmp_path).database
    assert (address.host, address.port, address.name) == ("/run/postgresql", "", "gadget")


def test_a_unix_socket_of_redis_is_named_as_celery_wants_it() -> None:
    assert celery_broker("unix:///run/redis.sock?db=3") == "redis+socket:///run/redis.sock?virtual_host=3"
    assert celery_broker("redis://:pw@host:1/2") == "redis://:pw@host:1/2"


def test_a_socket_never_has_a_path_that_is_too_long(tmp_path: Path) -> None:
    deep = tmp_path / ("a" * 60) / ("b" * 60)
    url = read({"GADGET_DATA_DIR": str(deep)}, tmp_path).redis_url
    assert len(url.removeprefix("unix://")) <= 100
    assert url == read({"GADGET_DATA_DIR": str(deep)}, tmp_path).redis_url


def test_cookies_are_for_https_alone_where_every_origin_is(tmp_path: Path) -> None:
    assert not read({}, tmp_path).served_over_https
    assert read({"ALLOWED_ORIGINS": "https://a.example.com"}, tmp_path).served_over_https
    assert not read({"ALLOWED_ORIGINS": "https://a.example.com,http://b.example.com"}, tmp_path).served_over_https


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
    ],
)
def test_only_this_machine_reaches_it_until_a_setting_says_otherwise(
    tmp_path: Path, environ: dict[str, str], is_only_local: bool
) -> None:
    site = read_settings({**PRODUCTION, "GADGET_DATA_DIR": str(tmp_path), **environ}, tmp_path)
    assert site.is_only_local is is_only_local
    assert site.metrics_token == ""
