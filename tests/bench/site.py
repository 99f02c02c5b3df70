"""The data of most benchmarks: an organization with an employee, and a fake model that is reached
over real HTTP."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User

from agents.accounts.membership import issue_token
from agents.accounts.models import Membership, Organization, Role
from agents.employees.models import Employee, Grant, ModelProvider, ProviderKind
from agents.runs import actions
from agents.runs.models import Run, RunStatus
from tests.probes import PROBES

TOOLS = ("utility.calculate", "data.searchRecords", "data.updateRecord")
MAX_PASSES = 100

_numbers = count(1)


@dataclass(frozen=True)
class Worksite:
    """An employee, the approver who works with it, that person's API token, and the employee's
    model."""

    employee: Employee
    member: Membership
    token: str
    model_url: str

    def submit(self) -> Run:
        """Start a run in this process, as the web part does for a request."""
        submission = actions.Submission(
            employee_id=self.employee.pk, task="Do the work of the benchmark"
        )
        return actions.submit(self.member, submission)[0]

    def enqueue(self, *answers: dict[str, Any]) -> None:
        """Give the model responses for its next requests, whichever run sends them."""
        control = f"{self.model_url.removesuffix('/v1')}/control/enqueue"
        with urllib.request.urlopen(
            urllib.request.Request(control, json.dumps(answers).encode())
        ) as answer:
            answer.read()


@contextmanager
def worksite(answers: list[dict[str, Any]]) -> Iterator[Worksite]:
    """Create an organization with an employee and a model, and yield them. The model picks one of
    the responses by the number of earlier passes."""
    with _model_process(answers) as url:
        yield _employ(url, f"bench-{next(_numbers)}")


@contextmanager
def _model_process(answers: list[dict[str, Any]]) -> Iterator[str]:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as script:
        json.dump(answers, script)
        script.flush()
        command = [sys.executable, "-m", "tests.model_server", "--fast", "--script", script.name]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
        )
        try:
            assert process.stdout is not None
            ready = process.stdout.readline()
            yield next(word for word in ready.split() if word.startswith("http"))
        finally:
            process.terminate()
            process.wait()


def _employ(url: str, slug: str) -> Worksite:
    organization = Organization.objects.create(name=slug.title(), slug=slug)
    provider = ModelProvider.objects.create(
        organization=organization,
        name="Fake",
        kind=ProviderKind.OPENAI,
        base_url=url,
        api_key="sk-bench",
    )
    employee = Employee.objects.create(
        organization=organization,
        name="Dana",
        provider=provider,
        model="fake",
        max_passes=MAX_PASSES,
    )
    names = [probe.name for probe in PROBES] + list(TOOLS)
    Grant.objects.bulk_create([Grant(employee=employee, tool=name) for name in names])
    user = User.objects.create_user(f"{slug}-approver", password="secret-enough")
    member = Membership.objects.create(organization=organization, user=user, role=Role.APPROVER)
    return Worksite(employee, member, issue_token(member, "bench")[1], url)


def passes_of_calls(passes: int, calls: int) -> list[dict[str, Any]]:
    """Build responses with this number of cheap calls each, no two calls the same, and a final
    answer without calls."""
    answers: list[dict[str, Any]] = []
    for number in range(passes):
        params = [{"operation": "add", "a": number, "b": index} for index in range(calls)]
        answers.append(
            {"calls": [{"tool": "utility.calculate", "params": each} for each in params]}
        )
    return [*answers, {"text": "Done."}]


def succeeded(run_id: int) -> Run:
    """Return the ended run; raise AssertionError if it did not succeed."""
    run = Run.objects.get(pk=run_id)
    assert run.status == RunStatus.SUCCEEDED, (
        f"run {run_id} is {run.status} ({run.exit_reason}): {run.problem}"
    )
    return run


def seconds_of(run: Run) -> float:
    """Return the seconds from the lease to the end, by the database's clock."""
    assert run.started_at is not None
    assert run.finished_at is not None
    return (run.finished_at - run.started_at).total_seconds()
