"""A line of the log is text or JSON, and no secret of the installation is ever in it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
AUDIT_KEY = "YXVkaXQtdGVzdHMtb25seS1hdWRpdC10ZXN0cy1vbmw="
SECRET_KEY = "a-secret-key-that-is-long-enough-to-be-taken"
KEY = "dGVzdHMtb25seS10ZXN0cy1vbmx5LXRlc3RzLW9ubHk="
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
def lines(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The format, and what a process with known secrets wrote in it."""
    config = tmp_path_factory.mktemp("config") / "gadget.yaml"
    config.write_text("tools: {orchestrator_id: north}\nservices: {github: {token: token-of-a-service}}")
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
    done = subprocess.run(
        [sys.executable, "-c", SPEAK], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return request.param, done.stderr


def test_no_secret_is_in_the_log(lines: tuple[str, str]) -> None:
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


def test_every_fact_is_told(lines: tuple[str, str]) -> None:
    form, written = lines
    assert "north" in written
    for fact in ("asked the model", "connected to redis://:[hidden]@host:6379/0", "failed", "ValueError"):
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
