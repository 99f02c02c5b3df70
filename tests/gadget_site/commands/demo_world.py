"""The demo as its command builds it, with employees driven in this process and scripts played
without pauses."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agents.accounts.models import Membership, Organization
from agents.approvals import decisions
from agents.employees.models import Employee
from agents.runs import actions
from agents.runs.engine.loop import advance
from agents.runs.models import Approval, ApprovalStatus, Run
from gadget_site.demo import building
from gadget_site.settings import GADGET_SCRIPTS_DIR
from tests.scripts import write_script


@dataclass
class DemoWorld:
    """`acme-demo` after `manage.py demo`."""

    organization: Organization

    def member(self, username: str) -> Membership:
        return Membership.objects.get(organization=self.organization, user__username=username)

    def employee(self, name: str) -> Employee:
        return Employee.objects.get(organization=self.organization, name=name)

    def work(self, name: str, task: str) -> Run:
        """Assign the task to the employee, and drive the run as far as possible."""
        submission = actions.Submission(employee_id=self.employee(name).pk, task=task)
        run, _ = actions.submit(self.member("operator"), submission)
        return self.drive(run)

    def drive(self, run: Run) -> Run:
        advance(run.pk)
        return Run.objects.get(pk=run.pk)

    def cards(self, run: Run) -> list[Approval]:
        return list(Approval.objects.filter(run=run, status=ApprovalStatus.PENDING).order_by("pk"))

    def approve(self, card: Approval) -> None:
        decision = decisions.Decision(
            digest=card.digest, confirm=decisions.make_confirmation_phrase(card) or ""
        )
        decisions.approve(self.member("approver"), card.pk, decision)

    def deny(self, card: Approval, reason: str) -> None:
        decisions.deny(
            self.member("approver"), card.pk, decisions.Decision(digest=card.digest, reason=reason)
        )


def build_demo() -> DemoWorld:
    """Build the demo with scripts that play without pauses."""
    building.build()
    for path in GADGET_SCRIPTS_DIR.glob("*.yaml"):
        write_script(
            re.sub(r"delay_ms: \d+", "delay_ms: 0", path.read_text(encoding="utf-8")), path.stem
        )
    return DemoWorld(Organization.objects.get(slug="acme-demo"))
