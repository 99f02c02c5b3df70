"""An organisation with an employee that follows a script, and the engine driven in this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml
from django.contrib.auth.models import User

from agents import approvals, runs
from agents.engine.loop import advance
from agents.models import (
    Approval,
    ApprovalStatus,
    Employee,
    Event,
    Grant,
    Membership,
    ModelProvider,
    Organization,
    Pass,
    ProviderKind,
    Role,
    Run,
    ToolCall,
)
from tests.probes import PROBES
from tools.records.models import Record

DATA_TOOLS = ("data.searchRecords", "data.updateRecord", "data.bulkDelete", "utility.calculate")


@dataclass
class Workshop:
    """One organisation, its employee, and a member for each role."""

    organization: Organization
    employee: Employee
    members: dict[str, Membership]

    @property
    def approver(self) -> Membership:
        return self.members["approver"]

    @property
    def operator(self) -> Membership:
        return self.members["operator"]

    def play(self, *passes: dict[str, Any], answer: str = "Done.") -> None:
        """The employee's script from now on: `{"calls": [{"tool": …, "params": …}], "text": …}` for each pass."""
        script = {"scripts": [{"title": "anything", "task": ".*", "passes": list(passes), "answer": answer}]}
        provider = self.employee.provider
        provider.kind, provider.script = ProviderKind.SCRIPTED, yaml.safe_dump(script)
        provider.save()

    def submit(self, task: str = "Do the work", **more: Any) -> Run:
        """Start a run; nothing drives it yet."""
        return runs.submit(self.operator, runs.Submission(employee_id=self.employee.pk, task=task, **more))[0]

    def work(self, task: str = "Do the work", **more: Any) -> Run:
        """Start a run and drive it as far as it goes."""
        return self.drive(self.submit(task, **more))

    def drive(self, run: Run) -> Run:
        """One job for the run, in this thread; returns it as it is then."""
        advance(run.pk)
        return Run.objects.get(pk=run.pk)

    def record(self, **more: Any) -> Record:
        values = {"name": "Acme Corp", "region": "EU", "category": "Software", "status": "active", **more}
        return Record.objects.create(organization=self.organization, **values)

    def card(self, run: Run) -> Approval:
        """The run's oldest waiting card."""
        return self.cards(run)[0]

    def cards(self, run: Run) -> list[Approval]:
        waiting = Approval.objects.filter(run=run, status=ApprovalStatus.PENDING)
        return list(waiting.select_related("tool_call").order_by("pk"))

    def approve(self, card: Approval, **more: Any) -> Approval:
        decision = approvals.Decision(digest=card.digest, confirm=approvals.confirm_phrase(card), **more)
        return approvals.approve(self.approver, card.pk, decision)

    def deny(self, card: Approval, reason: str = "not now") -> Approval:
        return approvals.deny(self.approver, card.pk, approvals.Decision(digest=card.digest, reason=reason))


def build_workshop(slug: str = "acme") -> Workshop:
    """Rows of one organisation; the employee may use every probe and some tools on records."""
    organization = Organization.objects.create(name=slug.title(), slug=slug)
    provider = ModelProvider.objects.create(organization=organization, name="Script", kind=ProviderKind.SCRIPTED)
    employee = Employee.objects.create(organization=organization, name="Dana", job_title="Clerk", provider=provider)
    names = [probe.name for probe in PROBES] + list(DATA_TOOLS)
    Grant.objects.bulk_create([Grant(employee=employee, tool=name) for name in names])
    members = {}
    for role in Role:
        user = User.objects.create_user(f"{slug}-{role}", password="secret-enough")
        members[role.value] = Membership.objects.create(organization=organization, user=user, role=role)
    return Workshop(organization, employee, members)


def calls(run: Run) -> list[ToolCall]:
    """The run's calls in the order of their requests."""
    return list(ToolCall.objects.filter(run=run).order_by("pass_number", "index"))


def statuses(run: Run) -> list[str]:
    return [call.status for call in calls(run)]


def event_types(run: Run) -> list[str]:
    return list(Event.objects.filter(run=run).order_by("seq").values_list("type", flat=True))


def passes(run: Run) -> list[Pass]:
    return list(Pass.objects.filter(run=run).order_by("number"))
