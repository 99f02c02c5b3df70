"""The guide to connecting an agent, followed as printed: its commands run in one shell, from the
ask to the report of the outcome."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.conf import settings

from agents.approvals import decisions
from agents.gateway.models import Ask
from agents.gateway.receipts import rotate_signing_key
from agents.runs.models import Run
from tests.awaiting import await_that
from tests.faults.site import Site

GUIDE = settings.BASE_DIR / "docs" / "connect-an-agent.md"
PROGRAMS = ("curl", "openssl", "sh")


def read_commands() -> list[str]:
    """Return the blocks of shell commands in the guide."""
    return re.findall(
        r"^```sh\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )


def run_commands(site: Site, secret: str, folder: Path, blocks: list[str]) -> str:
    """Run the blocks in one shell, and return what they print."""
    done = try_commands(site, secret, folder, blocks)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def try_commands(
    site: Site, secret: str, folder: Path, blocks: list[str]
) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "AGENT_GATE": site.installation.url,
        "AGENT_KEY": secret,
    }
    script = "\n".join(["set -eu", *blocks])
    return subprocess.run(
        ["sh", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(
    not all(map(shutil.which, PROGRAMS)), reason="the guide's commands need curl and openssl"
)
def test_the_guides_commands_work_as_printed(site: Site, secret: str, tmp_path: Path) -> None:
    listing, ask, wait, redeem, outcome, verify = read_commands()
    data = run_commands(site, secret, tmp_path, [listing]).partition("data: ")[2]
    tools = json.loads(data)["result"]["tools"]
    assert "gadget__ticket" in {tool["name"] for tool in tools}
    rotate_signing_key()
    with ThreadPoolExecutor(1) as beside:
        keep = "printf '%s' \"$RECEIPT\" > receipt"
        shell = beside.submit(
            run_commands, site, secret, tmp_path, [ask, wait, keep, verify, redeem, outcome]
        )
        await_that(Ask.objects.exists, "the ask is there")
        await_that(lambda: bool(site.workshop.cards(Run.objects.get())), "its card is there")
        card = site.workshop.card(Run.objects.get())
        decisions.approve(
            site.workshop.approver,
            card.pk,
            decisions.Decision(card.digest, confirm="deploy.production", grace_s=3),
        )
        printed = shell.result(60)
    assert "Signature Verified Successfully" in printed
    assert '"params_digest"' in printed, "the claims are printed"
    # Insert a letter into the claims.
    forge = "RECEIPT=$(sed 's/[.]ey/.eyA/' receipt)"
    forged = try_commands(site, secret, tmp_path, [forge, verify])
    assert forged.returncode != 0
    assert "Signature Verification Failure" in forged.stdout + forged.stderr
    assert '"status": "redeemed"' in printed
    assert '"status": "succeeded"' in printed
