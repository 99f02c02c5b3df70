"""The guide to webhooks works as written: its receiver accepts exactly what Gadget sends."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from pytest_django import Settings

from agents.runs.models import RunStatus
from agents.webhooks.changes import WebhookTerms, make_webhook
from agents.webhooks.models import WebhookDelivery, WebhookDeliveryStatus, WebhookKind
from gadget_site.private_hosts import LOOPBACK
from tests.awaiting import await_that
from tests.faults.site import Site
from tests.processes import find_free_port

GUIDE = (settings.BASE_DIR / "docs" / "webhooks.md").read_text(encoding="utf-8")


def read_block(language: str, number: int = 0) -> str:
    blocks: list[str] = re.findall(
        rf"^```{language}\n(.*?)^```$", GUIDE, flags=re.MULTILINE | re.DOTALL
    )
    return blocks[number]


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.skipif(
    not all(map(shutil.which, ("curl", "sh"))), reason="the guide's commands need curl"
)
def test_the_guides_receiver_works_as_printed(
    site: Site, tmp_path: Path, settings: Settings
) -> None:
    settings.ALLOWED_PRIVATE_HOSTS = LOOPBACK
    port = find_free_port()
    (tmp_path / "receiver.py").write_text(read_block("python"), encoding="utf-8")
    (tmp_path / "python3").symlink_to(sys.executable)
    terms = WebhookTerms("Other system", f"http://127.0.0.1:{port}/", WebhookKind.values)
    _, secret = make_webhook(site.workshop.admin, terms)
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "WEBHOOK_SECRET": secret,
        "PORT": str(port),
    }
    start, wrong = read_block("sh"), read_block("sh", 1)
    place = {"cwd": tmp_path, "env": environment, "text": True}
    with subprocess.Popen(
        ["sh", "-c", f"exec {_after_variables(start)}"], stdout=subprocess.PIPE, **place
    ) as receiver:  # type: ignore[call-overload]
        try:
            await_that(lambda: is_open(port), "the receiver listens")
            run = site.submit("Say hello")
            site.await_status(run, RunStatus.SUCCEEDED)
            sent = WebhookDelivery.objects.filter(status=WebhookDeliveryStatus.SENT)
            await_that(lambda: sent.count() == 2, "everything is delivered")
            refused = subprocess.run(["sh", "-c", wrong], capture_output=True, check=True, **place)  # type: ignore[call-overload]
        finally:
            receiver.terminate()
        printed = receiver.stdout.read()
    deliveries = WebhookDelivery.objects.order_by("pk")
    assert printed.splitlines() == [f"{one.message_id} {one.kind}" for one in deliveries]
    assert [one.answer_status for one in deliveries] == [204, 204]
    assert refused.stdout == "401\n"


def _after_variables(command: str) -> str:
    """Return the command without the variable at its beginning, which the test sets in the
    environment."""
    return command.strip().partition(" ")[2]


def test_the_guides_table_lists_every_event() -> None:
    assert re.findall(r"^\| `([a-z.]+)` \|", GUIDE, flags=re.MULTILINE) == WebhookKind.values
