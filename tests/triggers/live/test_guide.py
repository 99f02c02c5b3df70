"""The guide to triggers works as written when its commands are run in one shell."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess

import pytest
from django.conf import settings

from agents.runs.models import Run
from agents.triggers.changes import TriggerTerms, make_trigger
from agents.triggers.models import ReceivedMessage, ReceivedStatus, Scheme
from agents.triggers.schemes import TRAITS
from tests.awaiting import await_that
from tests.faults.site import Site
from tests.processes import Installation

GUIDE = (settings.BASE_DIR / "docs" / "triggers.md").read_text(encoding="utf-8")
PROGRAMS = ("curl", "openssl", "sh")


def read_example(field: str) -> str:
    """Return the example of a field in the guide's table."""
    found = re.search(rf"^\| {field} \| `?(.*?)`? \|", GUIDE, flags=re.MULTILINE)
    assert found is not None, field
    return found[1]


@pytest.mark.skipif(
    not all(map(shutil.which, PROGRAMS)), reason="the guide's commands need curl and openssl"
)
def test_the_guides_commands_start_a_run_and_filter_a_message_as_printed(
    running: Installation, site: Site
) -> None:
    site.workshop.play(answer="Triaged.")
    filters = [{"param": "action", "rule": "equals", "value": "opened"}]
    assert read_example("Only if") == "action` is `opened"
    terms = TriggerTerms(
        name=read_example("Name"),
        employee_id=site.workshop.employee.pk,
        scheme=next(value for value, label in Scheme.choices if label == read_example("Sender")),
        header=read_example("Signature header"),
        task=read_example("Task"),
        filters=filters,
    )
    trigger, secret = make_trigger(site.workshop.operator, terms)
    first, second = re.findall(r"^```sh\n(.*?)^```$", GUIDE, flags=re.MULTILINE | re.DOTALL)
    address = f"{running.url}/hooks/{trigger.public_id}"
    environment = {"PATH": os.environ["PATH"], "TRIGGER_URL": address, "TRIGGER_SECRET": secret}
    script = f"set -eu\n{first}\necho\n{first}\necho\n{second}"
    done = subprocess.run(
        ["sh", "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    started, repeated, filtered = map(json.loads, done.stdout.splitlines())
    run = Run.objects.get()
    assert started == {
        "status": "started",
        "run_id": str(run.pk),
        "url": f"{running.url}/runs/{run.pk}/",
    }
    assert repeated == started
    assert filtered == {"status": "filtered"}
    assert run.task == "Triage this issue: The shop is down"
    statuses = ReceivedMessage.objects.order_by("pk").values_list("status", flat=True)
    assert list(statuses) == [ReceivedStatus.STARTED, ReceivedStatus.FILTERED]
    await_that(lambda: Run.objects.get().has_ended, "the run ends")


def test_the_table_of_senders_matches_the_page() -> None:
    table = GUIDE.partition("## Senders")[2]
    _, *rows = re.findall(r"^\| (.*?) \| .*? \| (.*?) \| (.*?) \| (.*?) \|$", table, re.MULTILINE)
    proofs = {name: tuple(texts) for name, *texts in rows}
    assert proofs == {
        Scheme(scheme).label: (one.body, one.age, one.id) for scheme, one in TRAITS.items()
    }
