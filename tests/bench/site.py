"""What every benchmark works on: an organisation whose employee is answered by a fake model on real HTTP."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User

from agents.models import Employee, Grant, Membership, ModelProvider, Organization, ProviderKind, Role
from tests.probes import PROBES

TOOLS = ("utility.calculate", "data.searchRecords", "data.updateRecord")


@contextmanager
def model_process(answers: list[dict[str, Any]]) -> Iterator[str]:
    """The fake model as a process of its own, playing these answers by the number of earlier passes; yields its URL."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as script:
        json.dump(answers, script)
        script.flush()
        command = [sys.executable, "-m", "tests.model_server", "--fast", "--script", script.name]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
        try:
            assert process.stdout is not None
            ready = process.stdout.readline()
            yield next(word for word in ready.split() if word.startswith("http"))
        finally:
            process.terminate()
            process.wait()


def employee_on(url: str, slug: str, max_passes: int = 100) -> tuple[Employee, Membership]:
    """An employee whose model is at the URL, and the approver who works with it."""
    organization = Organization.objects.create(name=slug.title(), slug=slug)
    provider = ModelProvider.objects.create(
        organization=organization, name="Fake", kind=ProviderKind.OPENAI, base_url=url, api_key="sk-bench"
    )
    employee = Employee.objects.create(
        organization=organization, name="Dana", provider=provider, model="fake", max_passes=max_passes
    )
    names = [probe.name for probe in PROBES] + list(TOOLS)
    Grant.objects.bulk_create([Grant(employee=employee, tool=name) for name in names])
    user = User.objects.create_user(f"{slug}-approver", password="secret-enough")
    return employee, Membership.objects.create(organization=organization, user=user, role=Role.APPROVER)


def passes_of_calls(passes: int, calls: int, tool: str = "utility.calculate") -> list[dict[str, Any]]:
    """Answers with so many calls each, no two alike, and a last one without."""
    answers: list[dict[str, Any]] = []
    for number in range(passes):
        asked = [
            {"tool": tool, "params": {"operation": "add", "a": number, "b": index}} for index in range(calls)
        ]
        answers.append({"calls": asked})
    return [*answers, {"text": "Done."}]
