"""Changes to triggers: permissions, checks and audit entries."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from agents.accounts.models import AuditEntry
from agents.employees.models import Employee
from agents.platform.refusals import Conflict, Forbidden, Invalid, NotFound
from agents.triggers import changes
from agents.triggers.changes import TriggerTerms
from agents.triggers.models import Trigger
from agents.triggers.receiving import Unproved
from tests.triggers.conftest import SECRET, add_trigger, send
from tests.workshop import Workshop, build_workshop


def terms(workshop: Workshop, **more: Any) -> TriggerTerms:
    fields = {"name": "Issues", "scheme": "github", "task": "Triage.", **more}
    return TriggerTerms(employee_id=workshop.employee.pk, **fields)


class TestCreatingATrigger:
    def test_stores_its_secret_encrypted_and_never_records_the_secret(
        self, workshop: Workshop
    ) -> None:
        trigger, secret = changes.make_trigger(workshop.operator, terms(workshop))
        with connection.cursor() as cursor:
            cursor.execute("SELECT secret FROM triggers_trigger")
            (stored,) = cursor.fetchone()
        assert secret not in stored
        assert Trigger.objects.get().secret == secret
        (entry,) = AuditEntry.objects.filter(action="trigger_created")
        assert secret not in str(entry.payload)
        assert len(trigger.public_id) >= 24

    def test_creates_a_whsec_secret_for_the_standard_scheme(self, workshop: Workshop) -> None:
        assert changes.make_trigger(workshop.operator, terms(workshop, scheme="standard"))[
            1
        ].startswith("whsec_")

    @pytest.mark.parametrize(
        "wrong",
        [
            {"name": ""},
            {"name": "x" * 81},
            {"name": "\u200b"},
            {"scheme": "none"},
            {"task": ""},
            {"task": "{{ payload }}"},
            {"secret": "short"},
            {"repeat_hours": 0},
            {"repeat_hours": 169},
            {"max_queued": 0},
            {"max_queued": 1_001},
            {"scheme": "hmac"},
            {"scheme": "hmac", "header": "X Signature"},
            {"scheme": "hmac", "header": "X-Signatur\u00e9"},
            {"scheme": "hmac", "header": "x" * 81},
            {"filters": [{"param": "a", "rule": "equals", "value": "x"}] * 11},
            {"filters": [{"param": "a", "rule": "not_from_outside", "value": True}]},
        ],
    )
    def test_is_refused_if_a_field_is_invalid(
        self, workshop: Workshop, wrong: dict[str, Any]
    ) -> None:
        with pytest.raises(Invalid):
            changes.make_trigger(workshop.operator, terms(workshop, **wrong))
        assert not Trigger.objects.exists()

    def test_accepts_the_smallest_and_the_largest_values(self, workshop: Workshop) -> None:
        rule = {"param": "a", "rule": "equals", "value": "x"}
        longest = {"name": "x" * 80, "header": "x" * 80, "filters": [rule] * changes.MAX_FILTERS}
        for numbers in (
            {"repeat_hours": 1, "max_queued": 1},
            {"repeat_hours": 168, "max_queued": 1_000},
        ):
            trigger = add_trigger(workshop, scheme="hmac", **longest, **numbers)
            assert (trigger.name, trigger.header, len(trigger.filters)) == ("x" * 80, "x" * 80, 10)

    def test_binds_it_to_its_organization_and_employee(self, workshop: Workshop) -> None:
        provider = workshop.employee.provider
        # One name sorts before the workshop's employee, and one after it.
        for name in (
            "Aaron",
            "Zoe",
        ):
            Employee.objects.create(
                organization=workshop.organization, name=name, provider=provider
            )
        trigger, other = add_trigger(workshop), add_trigger(workshop, name="Other")
        add_trigger(others := build_workshop("globex"))
        assert trigger.employee == workshop.employee
        assert list(changes.list_triggers(workshop.operator)) == [other, trigger]
        assert changes.find_trigger(workshop.operator, trigger.pk) == trigger
        with pytest.raises(NotFound):
            changes.find_trigger(others.operator, trigger.pk)

    def test_is_refused_as_not_found_for_an_employee_of_another_organization(
        self, workshop: Workshop
    ) -> None:
        with pytest.raises(NotFound):
            changes.make_trigger(workshop.operator, terms(build_workshop("globex")))

    def test_is_refused_if_there_are_too_many_triggers(
        self, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(changes, "MAX_TRIGGERS", 1)
        add_trigger(workshop)
        with pytest.raises(Conflict):
            add_trigger(workshop)


class TestChangingATrigger:
    def test_makes_it_act_on_behalf_of_the_person_who_changed_it(self, workshop: Workshop) -> None:
        trigger = add_trigger(workshop)
        changed = changes.edit_trigger(workshop.admin, trigger.pk, terms(workshop, task="Other."))
        assert (changed.created_by, changed.made_by) == (
            workshop.admin.user,
            workshop.operator.user,
        )
        run = send(changed, {})
        assert run is not None
        assert (run.created_by, run.task) == (workshop.admin.user, "Other.")
        assert changed.secret == SECRET, "an empty field keeps the current secret"

    def test_makes_it_act_on_behalf_of_the_person_who_switched_it_on(
        self, workshop: Workshop
    ) -> None:
        trigger = add_trigger(workshop)
        changes.switch_trigger(workshop.admin, trigger.pk, is_active=False)
        assert Trigger.objects.get().created_by == workshop.operator.user
        changes.switch_trigger(workshop.admin, trigger.pk, is_active=True)
        assert Trigger.objects.get().created_by == workshop.admin.user

    def test_replaces_the_old_secret_with_a_typed_secret(self, workshop: Workshop) -> None:
        trigger, new = add_trigger(workshop), "another secret of 16 or more"
        changed = changes.edit_trigger(workshop.admin, trigger.pk, terms(workshop, secret=new))
        assert (changed.secret, changed.secret_by) == (new, workshop.admin.user)

    def test_invalidates_the_old_secret_immediately_when_a_new_secret_is_created(
        self, workshop: Workshop
    ) -> None:
        trigger = add_trigger(workshop)
        changes.renew_secret(workshop.operator, trigger.pk)
        with pytest.raises(Unproved):
            send(trigger, {})

    @pytest.mark.parametrize("act", ["make", "edit", "switch", "renew", "remove"])
    def test_is_refused_to_viewers_and_people_outside_the_organization(
        self, workshop: Workshop, act: str
    ) -> None:
        trigger = add_trigger(workshop)
        acts: dict[str, Any] = {
            "make": lambda member: changes.make_trigger(member, terms(workshop)),
            "edit": lambda member: changes.edit_trigger(member, trigger.pk, terms(workshop)),
            "switch": lambda member: changes.switch_trigger(member, trigger.pk, is_active=False),
            "renew": lambda member: changes.renew_secret(member, trigger.pk),
            "remove": lambda member: changes.remove_trigger(member, trigger.pk),
        }
        before = Trigger.objects.values().get()
        with pytest.raises(Forbidden):
            acts[act](workshop.members["viewer"])
        with pytest.raises(NotFound):
            acts[act](build_workshop("globex").operator)
        assert Trigger.objects.values().get() == before

    def test_is_impossible_once_the_trigger_was_removed_and_is_no_longer_listed(
        self, workshop: Workshop
    ) -> None:
        trigger, other = add_trigger(workshop), add_trigger(workshop, name="Other")
        changes.remove_trigger(workshop.operator, trigger.pk)
        assert list(changes.list_triggers(workshop.operator)) == [other]
        for act in (
            lambda: changes.edit_trigger(workshop.operator, trigger.pk, terms(workshop)),
            lambda: changes.switch_trigger(workshop.operator, trigger.pk, is_active=True),
            lambda: changes.renew_secret(workshop.operator, trigger.pk),
            lambda: changes.remove_trigger(workshop.operator, trigger.pk),
        ):
            with pytest.raises(NotFound):
                act()

    def test_is_audited_each_time(self, workshop: Workshop) -> None:
        trigger = add_trigger(workshop)
        changes.edit_trigger(workshop.operator, trigger.pk, terms(workshop))
        changes.switch_trigger(workshop.operator, trigger.pk, is_active=False)
        changes.switch_trigger(workshop.operator, trigger.pk, is_active=True)
        changes.renew_secret(workshop.operator, trigger.pk)
        changes.remove_trigger(workshop.operator, trigger.pk)
        recorded = AuditEntry.objects.filter(subject=f"trigger:{trigger.pk}").order_by("pk")
        assert [one.action for one in recorded] == [
            "trigger_created",
            "trigger_changed",
            "trigger_switched_off",
            "trigger_switched_on",
            "trigger_secret_changed",
            "trigger_removed",
        ]

    def test_keeps_the_runs_of_a_removed_trigger(self, workshop: Workshop) -> None:
        trigger = add_trigger(workshop)
        run = send(trigger, {"title": "x"})
        changes.remove_trigger(workshop.operator, trigger.pk)
        assert run is not None
        run.refresh_from_db()
        assert run.task == "Triage x."
