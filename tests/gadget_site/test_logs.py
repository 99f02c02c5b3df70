"""A line of the log is text or JSON, and never contains a secret of the installation."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.features import feature

ROOT = Path(__file__).resolve().parents[2]
AUDIT_KEY = "YXVkaXQtdGVzdHMtb25seS1hdWRpdC10ZXN0cy1vbmw="
SECRET_KEY = "a-secret-key-that-is-long-enough-to-be-taken"
KEY = "dGVzdHMtb25seS10ZXN0cy1vbmx5LXRlc3RzLW9ubHk="
CANARY = "canary-4f7a19-of-acme"
SPEAK_OF_TENANTS = """
import os
os.environ["DJANGO_SETTINGS_MODULE"] = "gadget_site.settings"
import logging, django, structlog
django.setup()
from agents.platform.known_secrets import KNOWN_SECRETS
from agents.platform.log_context import log_for_nobody, log_for_organization
KNOWN_SECRETS.learn(["127.0.0.1", "failed", "request", "timestamp", "gadget_site.web", "hunter22", %(canary)r], owner=7)
ours, structured = logging.getLogger("gadget_site.web"), structlog.get_logger("gadget_site.web")
theirs = logging.getLogger("a.library")
def speak():
    structured.warning("login failed", address="127.0.0.1", password="hunter22", nested={"key": [%(canary)r]})
    ours.warning("request to %%s failed: %%r", "127.0.0.1", ValueError("hunter22 %(canary)s"))
    ours.warning("request %%(host)s failed %%(times)d times", {"host": "127.0.0.1", "times": 3})
    try:
        raise ConnectionError("http://127.0.0.1/?key=%(canary)s")
    except ConnectionError:
        theirs.exception("request to 127.0.0.1 failed with %(canary)s")
for organization in (None, 7, 8):
    log_for_nobody() if organization is None else log_for_organization(organization)
    speak()
"""
SPEAK = """
import os
os.environ["DJANGO_SETTINGS_MODULE"] = "gadget_site.settings"
import logging, django, structlog
django.setup()
from django.conf import settings
log = structlog.get_logger("tests")
log.info("a tool asked", token=settings.GADGET_CONFIG.services["github"]["token"])
log.info("asked the model", key=settings.OPENAI_API_KEY, header="Bearer abcdefghijklmnop")
logging.getLogger("old").warning("connected to %s", "redis://:hunter22@host:6379/0")
try:
    raise ValueError(f"no {settings.SECRET_KEY} {settings.DATABASES['default']['PASSWORD']}")
except ValueError:
    log.exception("failed", keys=settings.GADGET_ENCRYPTION_KEYS, others=settings.GADGET_AUDIT_KEYS)
"""


@pytest.fixture(scope="module", params=["text", "json"])
def lines(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, str]:
    """Return the format, and the lines that a process with known secrets wrote in this format."""
    config = tmp_path_factory.mktemp("config") / "gadget.yaml"
    config.write_text(
        "tools: {orchestrator_id: north}\nservices: {github: {token: token-of-a-service}}"
    )
    environment = {
        "DEBUG": "off",
        "SECRET_KEY": SECRET_KEY,
        "GADGET_ENCRYPTION_KEYS": KEY,
        "GADGET_AUDIT_KEYS": AUDIT_KEY,
        "OPENAI_API_KEY": "model-key-of-ours",
        "DATABASE_URL": "postgresql://me:database-password@localhost/gadget",
        "GADGET_DATA_DIR": str(tmp_path_factory.mktemp("data")),
        "LOG_FORMAT": request.param,
        "GADGET_CONFIG": str(config),
    }
    return request.param, speak(SPEAK, environment)


def speak(script: str, environment: dict[str, str]) -> str:
    """Run the script and return its log."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[int | None, list[dict[str, Any]]]:
    """Return the log lines by organization: the same lines are logged without an organization, for
    one whose credentials are common values, and for another one."""
    environment = {
        "DEBUG": "off",
        "SECRET_KEY": SECRET_KEY,
        "GADGET_ENCRYPTION_KEYS": KEY,
        "GADGET_AUDIT_KEYS": AUDIT_KEY,
        "GADGET_DATA_DIR": str(tmp_path_factory.mktemp("data")),
        "LOG_FORMAT": "json",
    }
    written = [
        json.loads(line)
        for line in speak(SPEAK_OF_TENANTS % {"canary": CANARY}, environment).splitlines()
    ]
    return {
        organization: [row for row in written if row.get("organization") == organization]
        for organization in (None, 7, 8)
    }


@feature(
    "The toolbox and its settings",
    "One organization's credential hides nothing in the log lines of others",
    "gadget_site/logs.py",
)
@pytest.mark.parametrize("organization", [None, 8])
def test_a_credential_with_a_common_value_does_not_hide_text_in_other_organizations_lines(
    rows: dict[int | None, list[dict[str, Any]]], organization: int | None
) -> None:
    login, failed, counted, library = rows[organization]
    assert (login["event"], login["address"]) == ("login failed", "127.0.0.1")
    assert failed["event"].startswith("request to 127.0.0.1 failed: ValueError(")
    assert counted["event"] == "request 127.0.0.1 failed 3 times"
    assert library["event"].startswith("request to 127.0.0.1 failed")


def test_a_credential_never_hides_text_of_our_own_code(
    rows: dict[int | None, list[dict[str, Any]]],
) -> None:
    login, failed, _, _ = rows[7]
    assert (login["event"], login["logger"], login["address"]) == (
        "login failed",
        "gadget_site.web",
        "[hidden]",
    )
    assert login["timestamp"].endswith("Z")
    assert failed["event"] == "request to [hidden] failed: ValueError('[hidden] [hidden]')"


def test_a_canary_credential_does_not_appear_in_any_line(
    rows: dict[int | None, list[dict[str, Any]]],
) -> None:
    for_nobody, own = json.dumps(rows[None]), json.dumps(rows[7])
    assert CANARY not in for_nobody + own
    assert "hunter22" not in own
    assert "hunter22" in for_nobody, (
        "control: a short value of an unknown organization is no secret there"
    )
    assert "Traceback" in rows[None][3]["exception"]


@feature(
    "The toolbox and its settings",
    "Lines of the log hide the secrets of the installation, and those of the organization that they are about",
    "gadget_site/logs.py",
)
def test_the_log_does_not_contain_secrets(lines: tuple[str, str]) -> None:
    _, written = lines
    for secret in (
        SECRET_KEY,
        KEY,
        AUDIT_KEY,
        "model-key-of-ours",
        "database-password",
        "abcdefghijklmnop",
        "hunter22",
        "token-of-a",
    ):
        assert secret not in written
    assert written.count("[hidden]") == 8


def test_every_event_is_logged_with_its_level_and_hidden_secrets(lines: tuple[str, str]) -> None:
    form, written = lines
    assert "north" in written
    for fact in (
        "asked the model",
        "connected to redis://:[hidden]@host:6379/0",
        "failed",
        "ValueError",
    ):
        assert fact in written
    if form == "json":
        rows = [json.loads(line) for line in written.splitlines()]
        assert [(row["event"], row["level"]) for row in rows] == [
            ("a tool asked", "info"),
            ("asked the model", "info"),
            ("connected to redis://:[hidden]@host:6379/0", "warning"),
            ("failed", "error"),
        ]
        assert rows[0]["timestamp"].endswith("Z")
        assert "ValueError" in rows[3]["exception"]
