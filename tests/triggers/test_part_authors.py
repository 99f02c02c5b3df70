"""The person who last changed a trigger's employee, filters, sender or limits remains a requester
of its runs, even if someone else later saves it or switches it on."""

from __future__ import annotations

from typing import Any

import pytest

from agents.accounts.models import Membership
from agents.approvals.requesters import find_requesters
from agents.employees.models import Employee
from agents.platform.refusals import Forbidden
from agents.runs.models import ApprovalStatus
from agents.triggers import changes
from agents.triggers.changes import TriggerTerms
from agents.triggers.models import Trigger
from tests.triggers.conftest import send
from tests.workshop import Workshop, asking, call

FILTER = {"param": "action", "rule": "equals", "value": "opened"}
PAYLOAD = {"action": "opened", "title": "Shop is down"}


def edit(trigger: Trigger, by: Membership, **more: Any) -> Trigger:
    """Save the trigger's form with these changes."""
    terms = {
        "name": trigger.name,
        "employee_id": trigger.employee_id,
        "scheme": trigger.scheme,
        "task": trigger.task,
        "header": trigger.header,
        "filters": trigger.filters,
        "repeat_hours": trigger.repeat_hours,
        "max_queued": trigger.max_queued,
    }
    return changes.edit_trigger(by, trigger.pk, TriggerTerms(**{**terms, **more}))


def find_acts(workshop: Workshop, trigger: Trigger) -> set[tuple[str, str]]:
    """Let the trigger start a run; return each requester of its call, with the act that made the
    person a requester."""
    workshop.play(asking(call("probe.effect", name="a")))
    run = send(trigger, PAYLOAD)
    assert run is not None
    card = workshop.card(workshop.drive(run))
    return {(one.name, one.act) for one in find_requesters([card])[card.pk]}


def hire_another(workshop: Workshop) -> Employee:
    """Add another employee with the same tools."""
    return Employee.objects.create(
        organization=workshop.organization,
        name="Kim",
        provider=workshop.employee.provider,
        model=workshop.employee.model,
    )


class TestThePersonWhoChanged:
    @pytest.mark.parametrize(
        ("part", "change"),
        [
            ("filters", {"filters": [FILTER]}),
            ("limits", {"max_queued": 7}),
            ("limits", {"repeat_hours": 7}),
        ],
    )
    def test_a_part_stays_a_requester_when_someone_else_switches_the_trigger_on(
        self, workshop: Workshop, trigger: Trigger, part: str, change: dict[str, Any]
    ) -> None:
        edit(trigger, workshop.approver, **change)
        changes.switch_trigger(workshop.admin, trigger.pk, is_active=False)
        changes.switch_trigger(workshop.admin, trigger.pk, is_active=True)
        assert find_acts(workshop, trigger) == {
            ("acme-admin", "started this run"),
            ("acme-operator", "created the trigger"),
            ("acme-approver", f"last changed the trigger's {part}"),
        }

    def test_only_the_name_is_not_a_requester_after_someone_else_switches_the_trigger_on(
        self, workshop: Workshop, trigger: Trigger
    ) -> None:
        edit(trigger, workshop.approver, name="Tickets")
        changes.switch_trigger(workshop.admin, trigger.pk, is_active=True)
        assert {name for name, _ in find_acts(workshop, trigger)} == {"acme-admin", "acme-operator"}

    @pytest.mark.parametrize(
        ("part", "change"),
        [("employee", {}), ("sender", {"scheme": "hmac", "header": "X-Signature"})],
    )
    def test_a_triggers_employee_or_sender_is_recorded(
        self, workshop: Workshop, trigger: Trigger, part: str, change: dict[str, Any]
    ) -> None:
        change = change or {"employee_id": hire_another(workshop).pk}
        changed = edit(trigger, workshop.approver, **change)
        authors = dict(changed.part_authors or {})
        assert authors.pop(part) == workshop.approver.user_id
        assert set(authors.values()) == {workshop.operator.user_id}

    def test_a_part_stays_a_requester_when_someone_else_changes_another_part(
        self, workshop: Workshop, trigger: Trigger
    ) -> None:
        edit(trigger, workshop.approver, filters=[FILTER])
        trigger.refresh_from_db()
        edit(trigger, workshop.admin, max_queued=7)
        acts = find_acts(workshop, trigger)
        assert ("acme-approver", "last changed the trigger's filters") in acts

    def test_a_part_is_no_longer_a_requester_once_someone_else_has_changed_it(
        self, workshop: Workshop, trigger: Trigger
    ) -> None:
        edit(trigger, workshop.approver, max_queued=7)
        trigger.refresh_from_db()
        edit(trigger, workshop.admin, max_queued=8)
        assert {name for name, _ in find_acts(workshop, trigger)} == {"acme-admin", "acme-operator"}

    def test_a_trigger_in_an_older_version_of_gadget_stays_a_requester(
        self, workshop: Workshop, trigger: Trigger
    ) -> None:
        edit(trigger, workshop.approver, filters=[FILTER])
        Trigger.objects.update(part_authors=None)
        changes.switch_trigger(workshop.admin, trigger.pk, is_active=True)
        assert "acme-approver" in {name for name, _ in find_acts(workshop, trigger)}

    def test_a_part_cannot_approve_under_the_two_person_rule(
        self, workshop: Workshop, trigger: Trigger
    ) -> None:
        workshop.organization.four_eyes = True
        workshop.organization.save()
        edit(trigger, workshop.approver, filters=[FILTER])
        changes.switch_trigger(workshop.operator, trigger.pk, is_active=True)
        workshop.play(asking(call("probe.effect", name="a")))
        run = send(trigger, PAYLOAD)
        assert run is not None
        card = workshop.card(workshop.drive(run))
        with pytest.raises(Forbidden, match="two-person rule"):
            workshop.approve(card)
        approved = workshop.approve(card, by=workshop.admin)
        assert approved.status == ApprovalStatus.APPROVED
