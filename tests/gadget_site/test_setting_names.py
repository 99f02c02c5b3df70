"""A misspelled name of a setting prevents the start; similar names with another meaning do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from gadget_site.environment import read_settings
from gadget_site.faults import SettingError


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("GADGET_ENCRYPTION_KEY", "GADGET_ENCRYPTION_KEYS"),
        ("GADGET_DATADIR", "GADGET_DATA_DIR"),
        ("GADGET_TYPO", "GADGET_"),
        ("GADGET_PORT", "GADGET_"),
    ],
)
def test_an_unknown_name_is_refused_and_the_nearest_setting_is_suggested(
    tmp_path: Path, name: str, nearest: str
) -> None:
    with pytest.raises(SettingError) as caught:
        read_settings({"DEBUG": "off", name: "anything"}, tmp_path)
    assert str(caught.value).startswith(
        f"{name}: there is no such setting; the nearest name is {nearest}"
    )


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("TRUSTED_PROXY", "TRUSTED_PROXIES"),
        ("TRUSTED_PROXYS", "TRUSTED_PROXIES"),
        ("TRUSTED_PROXEIS", "TRUSTED_PROXIES"),
        ("TRUSTEDPROXIES", "TRUSTED_PROXIES"),
        ("WORKER_THREAD", "WORKER_THREADS"),
        ("WORKERS_THREADS", "WORKER_THREADS"),
        ("ALLOWED_HOST", "ALLOWED_HOSTS"),
        ("ALOWED_HOSTS", "ALLOWED_HOSTS"),
        ("allowed_hosts", "ALLOWED_HOSTS"),
        ("ALLOWED_ORIGIN", "ALLOWED_ORIGINS"),
        ("ALLOWED_PRIVATE_HOST", "ALLOWED_PRIVATE_HOSTS"),
        ("DATABASE_POOLS", "DATABASE_POOL"),
        ("DATABSAE_POOL", "DATABASE_POOL"),
    ],
)
def test_a_misspelled_setting_is_refused_and_the_correct_name_is_suggested(
    tmp_path: Path, name: str, meant: str
) -> None:
    with pytest.raises(SettingError) as caught:
        read_settings({name: "anything"}, tmp_path)
    assert str(caught.value) == f"{name} is not a setting. Did you mean {meant}?"


INNOCENT = """
HOSTNAME HOST_IP HOSTS PORTS WORKER WORKER_ID WORKER_HOST DEBUG_MODE LOGNAME LOGLEVEL LOG_LEVELS DATABASE DATABASE_HOST
DATABASE_PORT DATABASE_URI DATABASE_POOL_SIZE DB_POOL REDIS_HOST REDIS_URI SECRET_KEYS OLLAMA_HOSTS OLLAMA_MODELS
OPENAI_API_BASE OPENAI_API_KEYS TRUST_PROXY TRUSTED_HOSTS ALLOWED_PORTS ALLOWED_REGIONS ALLOWED_DOMAINS
CORS_ALLOWED_ORIGINS DJANGO_ALLOWED_HOSTS CSRF_TRUSTED_ORIGINS THREADS WEB_CONCURRENCY
"""


def test_common_names_that_resemble_settings_are_accepted(tmp_path: Path) -> None:
    assert read_settings(dict.fromkeys(INNOCENT.split(), "anything"), tmp_path).port == 8000


def test_a_misspelled_setting_without_a_value_is_accepted(tmp_path: Path) -> None:
    """Compose files pass on unset variables with an empty value."""
    assert read_settings({"ALLOWED_HOST": "", "TRUSTED_PROXY": ""}, tmp_path).port == 8000


def test_a_misspelled_setting_is_accepted_next_to_the_correct_one_or_in_gadget_yaml(
    tmp_path: Path,
) -> None:
    given = {"WORKER_THREAD": "1", "WORKER_THREADS": "7"}
    assert read_settings(given, tmp_path).worker_threads == 7
    (tmp_path / "gadget.yaml").write_text("services:\n  post:\n    host: ${ALLOWED_HOST}\n")
    assert read_settings({"ALLOWED_HOST": "a.example"}, tmp_path).config.services == {
        "post": {"host": "a.example"}
    }


def test_names_that_kubernetes_gives_every_container_are_accepted(tmp_path: Path) -> None:
    given = {
        "GADGET_SERVICE_HOST": "10.0.0.1",
        "GADGET_WEB_SERVICE_PORT_HTTP": "8000",
        "GADGET_PORT": "tcp://10.0.0.1:8000",
        "GADGET_PORT_8000_TCP_ADDR": "10.0.0.1",
        "GADGET_SIGNALS_PORT": "sctp://10.0.0.1:3868",
        "GADGET_SIGNALS_PORT_3868_SCTP": "sctp://10.0.0.1:3868",
    }
    assert read_settings(given, tmp_path).port == 8000


def test_names_of_the_tests_and_of_gadget_yaml_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "gadget.yaml").write_text("services:\n  post:\n    token: ${GADGET_POST_TOKEN}\n")
    given = {
        "GADGET_TEST_DATABASE": "sqlite",
        "GADGET_TESTS_GIVEN": "1",
        "GADGET_POST_TOKEN": "a-token",
    }
    assert read_settings(given, tmp_path).config.services == {"post": {"token": "a-token"}}
