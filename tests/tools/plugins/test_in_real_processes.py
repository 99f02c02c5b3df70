"""Plugins in the real web, worker and doctor: the catalog lists them, runs call them, and faults
are reported."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from agents.accounts.membership import issue_token
from agents.employees.models import Grant
from agents.runs.models import ENDED, Run
from gadget_site.management.processes import (
    build_sweeper_process,
    build_web_process,
    build_worker_process,
)
from tests.awaiting import await_that
from tests.features import feature
from tests.journeys.api_client import ApiClient
from tests.processes import Installation
from tests.workshop import TASK, again, asking, build_workshop, call, calls
from tools.office.tools import OFFICE_TOOLS

NAMED = [
    "iban",
    "raises",
    "exits",
    "empty",
    "three",
    "shipped",
    "newer",
    "absent",
    "versions",
    "lazy",
]
GADGET_YAML = f"tools:\n  plugins: [{', '.join(NAMED)}]\n"
LARGEST_PAGE = 100


@pytest.fixture
def installation(site: Path, tmp_path: Path, transactional_db: None) -> Iterator[Installation]:
    """A Gadget whose settings name good and broken plugins, all installed for its processes."""
    file = tmp_path / "gadget.yaml"
    file.write_text(GADGET_YAML, encoding="utf-8")
    with Installation(variables={"PYTHONPATH": str(site), "GADGET_CONFIG": str(file)}) as running:
        yield running


def catalog(outside: ApiClient) -> dict[str, dict[str, Any]]:
    """Return every tool of the catalog, by its name and version."""
    page = outside.get(f"/tools?limit={LARGEST_PAGE}")
    found = list(page["items"])
    while page["next_cursor"]:
        page = outside.get(f"/tools?limit={LARGEST_PAGE}&cursor={page['next_cursor']}")
        found += page["items"]
    return {f"{tool['name']}@{tool['version']}": tool for tool in found}


@feature(
    "Plugins",
    "Packages add tools by an entry point; they appear in the catalog with their plugin's name, and runs call them",
    "tools/sources/plugins.py",
)
def test_working_plugins_are_in_the_catalog_and_can_be_called_despite_broken_plugins(
    installation: Installation,
) -> None:
    workshop = build_workshop()
    for name in ("iban.check", "iban.findCountry", "versions.hello"):
        Grant.objects.create(employee=workshop.employee, tool=name)
    for process in [
        installation.spawn(part)
        for part in (build_web_process(), build_worker_process(1), build_sweeper_process())
    ]:
        process.await_line(" ready")
    outside = ApiClient(installation.url, issue_token(workshop.operator, "plugins")[1])

    tools = catalog(outside)
    ours = ("built in", "tests", "the demo")
    assert {(key, tool["source"]) for key, tool in tools.items() if tool["source"] not in ours} == {
        ("iban.check@1.0", "iban"),
        ("iban.findCountry@1.0", "iban"),
        ("versions.hello@1.0", "versions"),
        ("versions.hello@2.0", "versions"),
        ("lazy.hello@1.0", "lazy"),
    }
    assert not tools["lazy.hello@1.0"]["is_enabled"]
    assert tools["data.searchRecords@1.0"]["source"] == "built in"
    assert tools["iban.check@1.0"]["parameters"]["required"] == ["number"]

    workshop.play(
        asking(
            call("iban.check", number="GB82 WEST 1234 5698 7654 32"),
            call("iban.findCountry", number="GB82"),
            call("versions.hello"),
            call("data.searchRecords"),
        )
    )
    run = Run.objects.get(pk=outside.start(workshop.employee.pk, TASK))
    await_that(lambda: again(run).status in ENDED, "the run has ended")
    results = [(each.tool, each.result and each.result["data"]) for each in calls(run)]
    assert results[:3] == [
        ("iban.check", {"number": "GB82WEST12345698765432", "fits": True}),
        ("iban.findCountry", {"country": "United Kingdom", "length": 22}),
        ("versions.hello", {}),
    ]
    assert {each.status for each in calls(run)} == {"succeeded"}


@feature(
    "Plugins", "`doctor` names broken plugins", "gadget_site/management/installation_checks.py"
)
def test_the_doctor_reports_each_broken_plugin_with_its_reason(installation: Installation) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "doctor", "--json"],
        cwd=settings.BASE_DIR,
        env=installation.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 1, done.stderr
    findings = [each for each in json.loads(done.stdout) if each["subject"] == "plugins"]
    assert [each["text"] for each in findings if each["is_well"]] == [
        f"office: {len(OFFICE_TOOLS)} tools",
        "office-demo: 1 tool",
        "iban: 2 tools",
        "versions: 2 tools",
        "lazy: 1 tool",
    ]
    reasons = {
        each["text"].split(" is not loaded: ")[0]: each["text"]
        for each in findings
        if not each["is_well"]
    }
    assert set(reasons) == set(NAMED) - {"iban", "versions", "lazy"}
    for name, reason in {
        "raises": "RuntimeError: the license is missing",
        "exits": "SystemExit: goodbye",
        "empty": "it has no tools",
        "three": "3 is not a tool",
        "shipped": "these names are already taken: data.searchRecords",
        "newer": "these names are already taken: data.searchRecords",
        "absent": "no installed package has an entry point of this name",
    }.items():
        assert reason in reasons[name]
    loaded, unstarted = [each for each in json.loads(done.stdout) if each["subject"] == "tools"]
    assert loaded["is_well"]
    assert not unstarted["is_well"]
    assert unstarted["text"].startswith("lazy.hello@1.0 is off, because it did not start: ")
