"""A person sends a message again: another run starts on that person's behalf, and all people behind
the message are its requesters."""

from __future__ import annotations

import pytest

from agents.accounts.models import Membership
from agents.approvals.requesters import find_requesters
from agents.platform.refusals import Conflict, Forbidden, NotFound
from agents.runs.models import Origin
from agents.triggers import changes
from agents.triggers.models import ReceivedMessage, Trigger
from agents.triggers.receiving import Unproved, receive, start_again
from tests.features import feature
from tests.triggers.conftest import DOWN, add_trigger, send, sign
from tests.triggers.test_receiving import last_received
from tests.workshop import Workshop, asking, build_workshop, call


class TestSendingAgain:
    @feature(
        "Agents elsewhere",
        "A message that came before is sent again on behalf of the person who wants it",
        "agents/triggers/receiving.py",
    )
    def test_starts_another_run_with_the_person_as_a_requester(
        self, workshop: Workshop, trigger: Trigger
    ) -> None:
        workshop.play(
            asking(
                call(
                    "data.updateRecord", record_id=str(workshop.record().pk), changes={"phone": "1"}
                )
            )
        )
        first = send(trigger, DOWN, "d1")
        second = start_again(workshop.admin, last_received().pk)
        assert first is not None
        assert (second.task, second.created_by) == (first.task, workshop.admin.user)
        assert second != first
        card = workshop.card(workshop.drive(second))
        acts = {(one.name, one.act) for one in find_requesters([card])[card.pk]}
        assert acts == {
            ("acme-admin", "started this run"),
            ("acme-operator", "created the trigger"),
        }

    def test_is_possible_after_the_person_behind_the_trigger_has_left(
        self, workshop: Workshop, trigger: Trigger
    ) -> None:
        send(trigger, DOWN, "d1")
        Membership.objects.filter(pk=workshop.operator.pk).delete()
        assert (
            start_again(workshop.approver, last_received().pk).created_by == workshop.approver.user
        )

    def test_makes_the_creator_of_the_trigger_a_requester(
        self, workshop: Workshop, trigger: Trigger
    ) -> None:
        workshop.play(
            asking(
                call(
                    "data.updateRecord", record_id=str(workshop.record().pk), changes={"phone": "1"}
                )
            )
        )
        changes.switch_trigger(workshop.admin, trigger.pk, is_active=True)
        run = send(trigger, DOWN)
        assert run is not None
        card = workshop.card(workshop.drive(run))
        acts = {(one.name, one.act) for one in find_requesters([card])[card.pk]}
        assert acts == {
            ("acme-admin", "started this run"),
            ("acme-operator", "created the trigger"),
        }

    @feature(
        "Agents elsewhere",
        "Everybody who made a trigger, wrote its task or knew its secret counts as a "
        "requester, whatever happens to it later",
        "agents/triggers/receiving.py",
    )
    def test_makes_everyone_who_knew_the_secret_or_wrote_the_task_a_requester(
        self, workshop: Workshop, trigger: Trigger
    ) -> None:
        workshop.play(
            asking(
                call(
                    "data.updateRecord", record_id=str(workshop.record().pk), changes={"phone": "1"}
                )
            )
        )
        changes.edit_trigger(
            workshop.admin,
            trigger.pk,
            changes.TriggerTerms("Issues", workshop.employee.pk, "github", "Other."),
        )
        _, secret = changes.renew_secret(workshop.approver, trigger.pk)
        changes.switch_trigger(workshop.operator, trigger.pk, is_active=True)
        body = b"{}"
        run = receive(trigger.public_id, sign(body, secret=secret), body).run
        assert run is not None
        card = workshop.card(workshop.drive(run))
        for change in (changes.renew_secret, changes.remove_trigger):
            change(workshop.operator, trigger.pk)
            names = {one.name for one in find_requesters([card])[card.pk]}
            assert names == {"acme-operator", "acme-admin", "acme-approver"}

    def test_starts_a_new_run_each_time_and_does_not_affect_repeats(
        self, workshop: Workshop, trigger: Trigger
    ) -> None:
        first = send(trigger, DOWN, "d1")
        message = last_received()
        send(trigger, {"title": "Bar is down"}, "d2")
        repeats = [start_again(workshop.operator, message.pk) for _ in range(3)]
        assert len({run.pk for run in repeats}) == 3
        assert {run.task for run in repeats} == {"Triage Shop is down."}
        keys = (
            ReceivedMessage.objects.filter(run__in=repeats)
            .order_by("pk")
            .values_list("key", flat=True)
        )
        assert list(keys) == [f"r{message.pk}:{number}" for number in (1, 2, 3)]
        assert send(trigger, DOWN, "d1") == first

    def test_is_possible_for_a_filtered_message(self, workshop: Workshop) -> None:
        trigger = add_trigger(
            workshop, filters=[{"param": "action", "rule": "equals", "value": "closed"}]
        )
        assert send(trigger, DOWN) is None
        assert start_again(workshop.operator, last_received().pk).origin == Origin.TRIGGER

    def test_is_refused_to_viewers_and_people_outside_the_organization(
        self, workshop: Workshop, trigger: Trigger
    ) -> None:
        send(trigger, DOWN)
        message = last_received()
        with pytest.raises(Forbidden, match="send a message again"):
            start_again(workshop.members["viewer"], message.pk)
        with pytest.raises(NotFound, match="there is no message"):
            start_again(build_workshop("globex").operator, message.pk)

    def test_is_refused_for_an_unproved_message(self, workshop: Workshop, trigger: Trigger) -> None:
        with pytest.raises(Unproved):
            receive(trigger.public_id, {}, b"{}")
        with pytest.raises(NotFound):
            start_again(workshop.operator, last_received().pk)

    def test_is_refused_for_a_message_of_a_removed_trigger(
        self, workshop: Workshop, trigger: Trigger
    ) -> None:
        send(trigger, DOWN)
        changes.remove_trigger(workshop.operator, trigger.pk)
        with pytest.raises(NotFound):
            start_again(workshop.operator, last_received().pk)

    def test_is_refused_for_an_inactive_trigger(self, workshop: Workshop, trigger: Trigger) -> None:
        send(trigger, DOWN)
        changes.switch_trigger(workshop.operator, trigger.pk, is_active=False)
        with pytest.raises(Conflict, match="switched off"):
            start_again(workshop.operator, last_received().pk)
