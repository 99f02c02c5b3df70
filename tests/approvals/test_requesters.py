"""The two-person rule: nobody decides the card of a call that they requested, on any interface."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.approvals import resolutions
from agents.approvals.decisions import Decision
from agents.approvals.dismissals import dismiss
from agents.approvals.requesters import describe_requesters, find_requesters
from agents.approvals.warnings.marks import MUST_BE_SEEN
from agents.employees.models import Grant
from agents.platform.refusals import Forbidden
from agents.runs import actions, schedules
from agents.runs.models import Approval, ApprovalStatus, CallStatus, Run
from tests.workshop import Workshop, asking, call, calls
from tests.workshop.colleagues import (
    DELEGATE,
    answer,
    ask,
    child_of,
    delegate,
    drive_all,
    hire,
    may_ask,
    may_delegate,
    question_of,
)
from tools.contract import Level
from tools.schedules.models import Schedule

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("conversation_cache_is_checked"),
]

EFFECT = call("probe.effect", name="a")
EVERY_DAY = ("0 9 * * *", "Europe/Berlin")


@pytest.fixture(autouse=True)
def _two_people(workshop: Workshop) -> None:
    workshop.organization.four_eyes = True
    workshop.organization.save()


def after_starting(workshop: Workshop) -> Approval:
    workshop.play(asking(EFFECT))
    run, _ = actions.submit(
        workshop.approver, actions.Submission(workshop.employee.pk, "My own work")
    )
    return workshop.card(workshop.drive(run))


def after_a_message(workshop: Workshop) -> Approval:
    workshop.play(asking(EFFECT))
    run = workshop.work()
    actions.add_message(workshop.approver, run.pk, "Use my account.")
    return workshop.card(run)


def after_continuing(workshop: Workshop) -> Approval:
    workshop.play()
    run = workshop.work()
    workshop.play(asking(EFFECT))
    actions.continue_run(workshop.approver, run.pk)
    return workshop.card(workshop.drive(run))


def after_an_answer(workshop: Workshop) -> Approval:
    may_ask(workshop.employee)
    workshop.play(asking(ask("Which?")), asking(EFFECT))
    run = workshop.work()
    answer(workshop, question_of(run), "Mine.", by=workshop.approver)
    return workshop.card(workshop.drive(run))


def after_a_denial_with_a_reason(workshop: Workshop) -> Approval:
    workshop.play(asking(EFFECT), asking(call("probe.effect", name="theirs")))
    run = workshop.work()
    workshop.deny(workshop.card(run), "Rather write theirs.")
    return workshop.card(workshop.drive(run))


def after_saying_what_happened(workshop: Workshop) -> Approval:
    workshop.play(asking(call("probe.failingEffect", code="NETWORK_ERROR")), asking(EFFECT))
    run = workshop.work()
    workshop.approve(workshop.card(run), by=workshop.admin)
    lost = workshop.drive(run).tool_calls.get()
    resolutions.resolve(workshop.approver, lost.pk, "not_done", "Try another name.")
    return workshop.card(workshop.drive(run))


def after_an_edit(workshop: Workshop) -> Approval:
    workshop.play(asking(EFFECT))
    return workshop.edit(workshop.card(workshop.work()), {"name": "mine"})


def after_an_edit_that_somebody_else_approved_and_undid(workshop: Workshop) -> Approval:
    card = after_an_edit(workshop)
    workshop.approve(card, by=workshop.admin, grace_s=60)
    return workshop.undo(card, by=workshop.admin)


def after_creating_its_schedule(workshop: Workshop) -> Approval:
    """Start a run of the creator's schedule after another person has resumed it, and return the
    run's card."""
    workshop.play(asking(EFFECT))
    schedule = schedules.create(workshop.approver, workshop.employee.pk, "My work", EVERY_DAY)
    schedules.pause(workshop.approver, schedule.pk)
    schedules.resume(workshop.operator, schedule.pk)
    return fire_schedule(workshop, schedule)


def after_a_message_to_the_run_that_created_its_schedule(workshop: Workshop) -> Approval:
    workshop.play(asking(EFFECT))
    run = workshop.submit()
    actions.add_message(workshop.approver, run.pk, "Do this daily.")
    return fire_schedule_created_in(workshop, run)


def after_editing_the_call_that_created_its_schedule(workshop: Workshop) -> Approval:
    run = workshop.submit()
    workshop.play(asking(EFFECT))
    card = workshop.card(workshop.drive(run))
    workshop.edit(card, {"name": "mine"})
    run.tool_calls.update(tool="schedule.create")
    return fire_schedule_created_in(workshop, run)


def fire_schedule_created_in(workshop: Workshop, run: Run) -> Approval:
    schedule = schedules.create(workshop.operator, workshop.employee.pk, "Work", EVERY_DAY)
    Schedule.objects.filter(pk=schedule.pk).update(made_in_run=str(run.pk))
    return fire_schedule(workshop, schedule)


def fire_schedule(workshop: Workshop, schedule: Schedule) -> Approval:
    Schedule.objects.filter(pk=schedule.pk).update(next_at=Now())
    assert schedules.fire(schedule.pk)
    return workshop.card(workshop.drive(Run.objects.latest("pk")))


def with_a_colleague(workshop: Workshop) -> Run:
    """Start a run that delegates its task to a colleague, who requests a write."""
    may_delegate(workshop.employee, hire(workshop, "Kim", asking(EFFECT)))
    workshop.play(asking(delegate("Kim", "Do it")))
    return workshop.submit()


def after_a_message_to_the_run_above(workshop: Workshop) -> Approval:
    run = with_a_colleague(workshop)
    actions.add_message(workshop.approver, run.pk, "Use my account.")
    drive_all(workshop, run)
    return workshop.card(child_of(run))


def after_an_answer_in_the_run_above(workshop: Workshop) -> Approval:
    may_ask(workshop.employee)
    run = with_a_colleague(workshop)
    workshop.play(asking(ask("Which?")), asking(delegate("Kim", "Do it")))
    workshop.drive(run)
    answer(workshop, question_of(run), "Mine.", by=workshop.approver)
    drive_all(workshop, run)
    return workshop.card(child_of(run))


def after_starting_the_run_above(workshop: Workshop) -> Approval:
    run = with_a_colleague(workshop)
    Run.objects.filter(pk=run.pk).update(created_by=workshop.approver.user)
    drive_all(workshop, run)
    child = child_of(run)
    Run.objects.filter(pk=child.pk).update(created_by=workshop.operator.user)
    return workshop.card(child)


def after_editing_the_call_that_delegated_it(workshop: Workshop) -> Approval:
    workshop.raise_for_all(DELEGATE, Level.WRITE)
    run = workshop.drive(with_a_colleague(workshop))
    card = workshop.edit(workshop.card(run), {"employee": "Kim", "task": "Do it for me"})
    workshop.approve(card, by=workshop.admin)
    drive_all(workshop, run)
    return workshop.card(child_of(run))


def after_editing_the_recipe(workshop: Workshop) -> Approval:
    for tool in ("probe.recipe", "data.getRecordDetail"):
        Grant.objects.get_or_create(employee=workshop.employee, tool=tool)
    workshop.raise_for_all("probe.recipe", Level.WRITE)
    record = workshop.record()
    workshop.play(asking(call("probe.recipe", record_id=record.pk, to="Asked")))
    run = workshop.work()
    card = workshop.edit(workshop.card(run), {"record_id": record.pk, "to": "Mine"})
    workshop.approve(card, by=workshop.admin)
    return workshop.card(workshop.drive(run))


def with_a_busy_colleague(workshop: Workshop, *script: dict[str, object]) -> Run:
    """Create and drive a run that first delegates a task to a colleague with this script, and then
    requests a write itself."""
    may_delegate(workshop.employee, hire(workshop, "Kim", *script))
    workshop.play(asking(delegate("Kim", "Look it up")), asking(EFFECT))
    return workshop.drive(workshop.submit())


def after_an_answer_in_a_run_below(workshop: Workshop) -> Approval:
    run = with_a_busy_colleague(workshop, asking(ask("To whom?")))
    child = workshop.drive(child_of(run))
    answer(workshop, question_of(child), "To me.", by=workshop.approver)
    drive_all(workshop, run)
    return workshop.card(run)


def after_a_message_to_a_run_below(workshop: Workshop) -> Approval:
    run = with_a_busy_colleague(workshop)
    actions.add_message(workshop.approver, child_of(run).pk, "Pay me.")
    drive_all(workshop, run)
    return workshop.card(run)


def after_a_reason_in_a_run_below(workshop: Workshop) -> Approval:
    run = with_a_busy_colleague(workshop, asking(call("probe.effect", name="b")))
    workshop.deny(workshop.card(workshop.drive(child_of(run))), "Rather pay me.")
    drive_all(workshop, run)
    return workshop.card(run)


def after_saying_what_happened_in_a_run_below(workshop: Workshop) -> Approval:
    failing = call("probe.failingEffect", code="NETWORK_ERROR")
    run = with_a_busy_colleague(workshop, asking(failing))
    child = workshop.drive(child_of(run))
    workshop.approve(workshop.card(child), by=workshop.admin)
    lost = workshop.drive(child).tool_calls.get()
    resolutions.resolve(workshop.approver, lost.pk, "not_done", "Pay me.")
    drive_all(workshop, run)
    return workshop.card(run)


def after_dismissing_in_a_run_below(workshop: Workshop) -> Approval:
    record = workshop.record(status="active")
    changed = {"record_id": str(record.pk), "changes": {"status": "inactive"}}
    run = with_a_busy_colleague(workshop, asking(call("data.updateRecord", **changed)))
    card = workshop.card(workshop.drive(child_of(run)))
    type(record).objects.filter(pk=record.pk).update(status="inactive")
    dismiss(workshop.approver, card.pk, Decision(digest=card.digest, reason="Pay me."))
    drive_all(workshop, run)
    return workshop.card(run)


def after_continuing_a_run_below(workshop: Workshop) -> Approval:
    run = with_a_busy_colleague(workshop)
    child = workshop.drive(child_of(run))
    actions.continue_run(workshop.approver, child.pk)
    drive_all(workshop, run)
    return workshop.card(run)


def after_an_edit_two_runs_below(workshop: Workshop) -> Approval:
    lee = hire(workshop, "Lee", asking(call("probe.effect", name="b")))
    run = with_a_busy_colleague(workshop, asking(delegate("Lee", "Look it up")))
    child = child_of(run)
    may_delegate(child.employee, lee)
    grandchild = workshop.drive(child_of(workshop.drive(child)))
    card = workshop.edit(workshop.card(grandchild), {"name": "mine"})
    workshop.deny(card, "", by=workshop.admin)
    drive_all(workshop, run)
    return workshop.card(run)


def after_an_edit_in_a_run_below(workshop: Workshop) -> Approval:
    run = with_a_busy_colleague(workshop, asking(call("probe.effect", name="b")))
    card = workshop.edit(workshop.card(workshop.drive(child_of(run))), {"name": "mine"})
    workshop.deny(card, "", by=workshop.admin)
    drive_all(workshop, run)
    return workshop.card(run)


def after_editing_the_call_that_delegated_a_run_below(workshop: Workshop) -> Approval:
    workshop.raise_for_all(DELEGATE, Level.WRITE)
    run = with_a_busy_colleague(workshop)
    card = workshop.edit(workshop.card(run), {"employee": "Kim", "task": "Look me up"})
    workshop.approve(card, by=workshop.admin)
    drive_all(workshop, run)
    return workshop.card(run)


def after_an_answer_two_runs_below(workshop: Workshop) -> Approval:
    lee = hire(workshop, "Lee", asking(ask("To whom?")))
    run = with_a_busy_colleague(workshop, asking(delegate("Lee", "Look it up")))
    child = child_of(run)
    may_delegate(child.employee, lee)
    grandchild = workshop.drive(child_of(workshop.drive(child)))
    answer(workshop, question_of(grandchild), "To me.", by=workshop.approver)
    drive_all(workshop, run)
    return workshop.card(run)


def after_an_answer_in_a_run_beside(workshop: Workshop) -> Approval:
    """Start a run that delegates a question to one colleague, reads the person's answer in the
    result, and then delegates a write to another colleague; return the card of the write."""
    kim, lee = hire(workshop, "Kim", asking(ask("To whom?"))), hire(workshop, "Lee", asking(EFFECT))
    may_delegate(workshop.employee, kim, lee)
    workshop.play(asking(delegate("Kim", "Look it up")), asking(delegate("Lee", "Pay")))
    run = workshop.drive(workshop.submit())
    answer(workshop, question_of(workshop.drive(child_of(run))), "To me.", by=workshop.approver)
    drive_all(workshop, run)
    return workshop.card(workshop.drive(Run.objects.get(parent=run, employee=lee)))


WAYS: list[tuple[Callable[[Workshop], Approval], str]] = [
    (after_starting, "started this run"),
    (after_a_message, "sent a message to this run"),
    (after_continuing, "sent a message to this run"),
    (after_an_answer, "answered a question in this run"),
    (after_a_denial_with_a_reason, "gave a reason in this run"),
    (after_saying_what_happened, "gave a reason in this run"),
    (after_an_edit, "edited this call"),
    (after_an_edit_that_somebody_else_approved_and_undid, "edited this call"),
    (after_creating_its_schedule, "created the schedule"),
    (
        after_a_message_to_the_run_that_created_its_schedule,
        "sent a message to a run that led to this one",
    ),
    (after_editing_the_call_that_created_its_schedule, "edited a call that led to this one"),
    (after_a_message_to_the_run_above, "sent a message to a run that led to this one"),
    (after_an_answer_in_the_run_above, "answered a question in a run that led to this one"),
    (after_starting_the_run_above, "started a run that led to this one"),
    (after_editing_the_call_that_delegated_it, "edited a call that led to this one"),
    (after_editing_the_recipe, "edited this call"),
    (after_an_answer_in_a_run_below, "answered a question in a delegated run"),
    (after_a_message_to_a_run_below, "sent a message to a delegated run"),
    (after_a_reason_in_a_run_below, "gave a reason in a delegated run"),
    (after_saying_what_happened_in_a_run_below, "gave a reason in a delegated run"),
    (after_dismissing_in_a_run_below, "gave a reason in a delegated run"),
    (after_continuing_a_run_below, "sent a message to a delegated run"),
    (after_an_edit_two_runs_below, "edited a call of a delegated run"),
    (after_an_edit_in_a_run_below, "edited a call of a delegated run"),
    (after_editing_the_call_that_delegated_a_run_below, "edited a call of a delegated run"),
    (after_an_answer_two_runs_below, "answered a question in a delegated run"),
    (after_an_answer_in_a_run_beside, "answered a question in a delegated run"),
]


@pytest.mark.parametrize(("way", "act"), WAYS, ids=[way.__name__ for way, _ in WAYS])
def test_a_requester_cannot_approve_on_any_interface(
    workshop: Workshop, way: Callable[[Workshop], Approval], act: str
) -> None:
    card = way(workshop)
    name, client = workshop.approver.user.get_username(), Client()
    client.force_login(workshop.approver.user)
    decided = {"digest": card.digest}
    answered = client.post(
        f"/api/approvals/{card.pk}/approve", decided, content_type="application/json"
    )
    assert (answered.status_code, "two-person rule" in answered.json()["detail"]) == (403, True)
    assert client.post(f"/approvals/{card.pk}/approve/", decided).status_code == 403
    seen_marks = sorted(MUST_BE_SEEN)
    one = {"approval_id": str(card.pk), "action": "approve", "seen_marks": seen_marks, **decided}
    many = client.post(
        "/api/approvals/decide", {"decisions": [one]}, content_type="application/json"
    )
    assert many.json()["outcomes"][0]["status"] == 403
    html = client.get(f"/approvals/{card.pk}/").content.decode()
    assert f"{name} {act}" in html
    assert "data-is-barred" in html
    assert "you asked for this" in client.get("/").content.decode()
    card.refresh_from_db()
    assert (card.status, card.tool_call.status) == (
        ApprovalStatus.PENDING,
        CallStatus.AWAITING_APPROVAL,
    )
    client.force_login(workshop.admin.user)
    assert "data-is-barred" not in client.get(f"/approvals/{card.pk}/").content.decode()
    seen = {**decided, "seen_marks": sorted(MUST_BE_SEEN)}
    answered = client.post(
        f"/api/approvals/{card.pk}/approve", seen, content_type="application/json"
    )
    assert answered.json()["status"] == "approved"


def test_a_person_who_denied_without_a_reason_is_not_a_requester(workshop: Workshop) -> None:
    workshop.play(asking(EFFECT), asking(call("probe.effect", name="other")))
    run = workshop.work()
    workshop.deny(workshop.card(run), "")
    assert workshop.approve(workshop.card(workshop.drive(run))).status == ApprovalStatus.APPROVED


def test_a_person_who_denied_without_a_reason_in_a_delegated_run_is_not_a_requester(
    workshop: Workshop,
) -> None:
    run = with_a_busy_colleague(workshop, asking(call("probe.effect", name="b")))
    workshop.deny(workshop.card(workshop.drive(child_of(run))), "")
    drive_all(workshop, run)
    assert workshop.approve(workshop.card(run)).status == ApprovalStatus.APPROVED


def test_requests_about_other_runs_or_other_calls_do_not_prevent_an_approval(
    workshop: Workshop,
) -> None:
    """A message makes its author a requester only in its own run, and an edit only for its own
    call."""
    workshop.play(asking(EFFECT, call("probe.effect", name="b")))
    actions.add_message(workshop.approver, workshop.work().pk, "Use my account.")
    run = workshop.work()
    first, second = workshop.cards(run)
    workshop.edit(first, {"name": "mine"})
    assert workshop.approve(second).status == ApprovalStatus.APPROVED
    with pytest.raises(Forbidden):
        workshop.approve(workshop.card(run))


def test_each_person_is_listed_once_with_their_first_act(workshop: Workshop) -> None:
    card = after_a_message(workshop)
    actions.add_message(workshop.approver, card.run_id, "And again.")
    actions.add_message(workshop.admin, card.run_id, "And I.")
    assert describe_requesters(find_requesters([card])[card.pk]) == (
        "acme-operator started this run, acme-approver sent a message to this run, "
        "and acme-admin sent a message to this run"
    )


def test_the_number_of_queries_is_independent_of_the_number_of_cards(workshop: Workshop) -> None:
    workshop.play(asking(*(call("probe.effect", name=f"{number}") for number in range(9))))
    cards = workshop.cards(workshop.work()) + workshop.cards(workshop.work())

    def cost(some: list[Approval]) -> int:
        with CaptureQueriesContext(
            connection,
        ) as asked:
            find_requesters(some)
        return len(asked)

    assert cost(cards[:1]) == cost(cards) == 5
    assert cost([]) == 0
    assert len(calls(cards[0].run)) == 9
