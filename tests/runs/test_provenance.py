"""Provenance of values in real runs: origins shown on cards, outside values that pass through
tasks, records and files, and limits on origins."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from agents.accounts.audit import NewEntry, append
from agents.employees.models import Grant
from agents.runs.models import CallStatus, Origin, OutsideValue, Run, ToolCall
from tests.features import feature
from tests.outside_probes import PAGES, ReadPage
from tests.recorder import Recorder
from tests.runs.outside_page import EVIL, READ, offer_page
from tests.workshop import (
    Workshop,
    again,
    asking,
    build_workshop,
    call,
    calls,
    error_code,
    eventually,
    last_call,
    statuses,
)
from tests.workshop.colleagues import (
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
from tools.office.files.changes import write_file
from tools.office.records.models import Record
from tools.schedules.models import Schedule
from tools.toolbox.provenance import Provenance, SeenIn, Sighting
from tools.toolbox.provenance.sightings import MAX_KEPT
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def page(workshop: Workshop) -> Iterator[None]:
    with offer_page(workshop):
        yield


def limit(
    workshop: Workshop,
    otherwise: str,
    param: str = "changes.email",
    tool: str = "data.updateRecord",
) -> None:
    condition = {"param": param, "rule": "not_from_outside", "value": True, "otherwise": otherwise}
    Grant.objects.update_or_create(
        employee=workshop.employee, tool=tool, defaults={"conditions": [condition]}
    )


def update(record_id: int, email: str = EVIL) -> dict[str, object]:
    return call("data.updateRecord", record_id=record_id, changes={"email": email})


def sightings(one: ToolCall) -> dict[str, Sighting]:
    return {each.path: each for each in Provenance.from_json(one.provenance).sightings}


def email_of(run: Run) -> Sighting:
    """Return the origin of the email address in the run's last call."""
    return sightings(last_call(run))["changes.email"]


def settle(workshop: Workshop, run: Run) -> None:
    """Approve the run's card, and drive the run until it ends."""
    workshop.approve(workshop.card(run))
    workshop.drive(run)


def find_origin_after_reading(workshop: Workshop, record: Record) -> SeenIn:
    """Return the origin of the e-mail address on the card of a later run that has read only this
    record."""
    Grant.objects.create(employee=workshop.employee, tool="data.getRecordDetail")
    second = workshop.record(name="Globex")
    workshop.play(
        asking(call("data.getRecordDetail", record_id=record.pk)), asking(update(second.pk))
    )
    return email_of(workshop.work()).origin


def give_up(workshop: Workshop, recorder: Recorder) -> Run:
    """Return a run whose write, with a value from outside, timed out and has an unknown outcome."""
    recorder.hold(EVIL)
    workshop.play(asking(READ), asking(call("probe.shortEffect", name=EVIL)))
    run = workshop.work()
    settle(workshop, run)
    assert last_call(run).status == CallStatus.OUTCOME_UNKNOWN
    return run


class TestOriginOnACard:
    def test_records_where_an_outside_value_was_first_seen(self, workshop: Workshop) -> None:
        record = workshop.record()
        workshop.play(asking(READ), asking(update(record.pk)))
        run = workshop.work()
        read, write = calls(run)
        found = email_of(run)
        assert (found.origin, found.value, found.stands_out) == (SeenIn.OUTSIDE, EVIL, True)
        assert (found.tool, found.title, found.call_id, found.run_id) == (
            read.tool,
            "Read a test page",
            read.pk,
            run.pk,
        )
        assert (read.provenance, write.status) == (None, CallStatus.AWAITING_APPROVAL)

    @pytest.mark.parametrize("destinations", [frozenset[str](), frozenset({"name"})])
    def test_highlights_an_outside_value_only_in_destination_params(
        self,
        workshop: Workshop,
        toolbox: Toolbox,
        monkeypatch: pytest.MonkeyPatch,
        destinations: frozenset[str],
    ) -> None:
        monkeypatch.setattr(toolbox.get_tool("probe.effect"), "destination_params", destinations)
        workshop.play(asking(READ), asking(call("probe.effect", name=EVIL)))
        found = sightings(last_call(workshop.work()))["name"]
        assert (found.origin, found.stands_out) == (SeenIn.OUTSIDE, bool(destinations))

    def test_trusts_text_typed_by_a_person_in_the_task_or_later(self, workshop: Workshop) -> None:
        record = workshop.record()
        workshop.play(asking(READ), asking(update(record.pk)))
        assert email_of(workshop.work(f"Set the address to {EVIL}")).origin is SeenIn.PERSON
        workshop.play(asking(READ))
        run = workshop.work()
        workshop.play(asking(update(record.pk)), task="It is .*")
        workshop.drive(workshop.say(run, f"It is {EVIL.upper()}"))
        assert email_of(run).origin is SeenIn.PERSON

    def test_distinguishes_the_organizations_data_from_new_values(self, workshop: Workshop) -> None:
        record = workshop.record(email="office@acme.example")
        search = call("data.searchRecords")
        workshop.play(asking(search), asking(update(record.pk, "office@acme.example")))
        assert email_of(workshop.work()).origin is SeenIn.OWN
        workshop.play(asking(search), asking(update(record.pk, "new@nowhere.example")))
        assert email_of(workshop.work()).origin is SeenIn.NOWHERE

    def test_trusts_an_answer_typed_by_a_person_but_not_an_offered_choice(
        self, workshop: Workshop
    ) -> None:
        record = workshop.record()
        may_ask(workshop.employee)
        for choices, expected in (([], SeenIn.PERSON), ([EVIL, "none"], SeenIn.OUTSIDE)):
            workshop.play(
                asking(READ), asking(ask("Which one?", choices=choices)), asking(update(record.pk))
            )
            run = workshop.work()
            answer(workshop, question_of(run), EVIL)
            workshop.drive(run)
            assert email_of(run).origin is expected

    def test_trusts_values_edited_by_a_person(self, workshop: Workshop) -> None:
        record = workshop.record()
        workshop.play(asking(READ), asking(update(record.pk)))
        run = workshop.work()
        card = workshop.edit(
            workshop.card(run),
            {"record_id": record.pk, "changes": {"email": "Typed.By@Ann.example"}},
        )
        assert email_of(run).origin is SeenIn.PERSON
        assert card.tool_call_id == last_call(run).pk

    def test_ignores_what_other_organizations_have_seen(self, workshop: Workshop) -> None:
        record = workshop.record()
        workshop.play(asking(READ), asking(update(record.pk)))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        workshop.drive(run)
        other = build_workshop("other")
        theirs = other.record(email=EVIL)
        other.play(asking(call("data.searchRecords")), asking(update(theirs.pk)))
        assert email_of(other.work()).origin is SeenIn.OWN


class ReadLetter(ReadPage):
    """A closed-world read whose results are treated as text from outside, because it declares that
    others wrote them."""

    name = "probe.letter"
    open_world = False
    returns_outside_text = True


def find_origin_after_letter(workshop: Workshop) -> SeenIn:
    """Let the employee read the letter and use its address; return the origin on the card."""
    workshop.play(
        asking(call(ReadLetter.name, url="/invoice")), asking(update(workshop.record().pk))
    )
    return email_of(workshop.work()).origin


class TestOutsideValuesStayOutside:
    def test_a_value_in_a_task_that_an_employee_wrote_stays_outside(
        self, workshop: Workshop
    ) -> None:
        record = workshop.record()
        kim = hire(workshop, "Kim", asking(update(record.pk)))
        may_delegate(workshop.employee, kim)
        workshop.play(asking(READ), asking(delegate("Kim", f"Set the address to {EVIL}")))
        run = workshop.work()
        workshop.drive(child_of(run))
        found = email_of(child_of(run))
        assert (found.origin, found.run_id) == (SeenIn.OUTSIDE, run.pk)

    def test_a_value_in_the_answer_of_a_colleague_stays_outside(self, workshop: Workshop) -> None:
        record = workshop.record()
        kim = hire(workshop, "Kim", asking(READ), answer=f"The address is {EVIL}.")
        Grant.objects.get_or_create(employee=kim, tool=ReadPage.name)
        may_delegate(workshop.employee, kim)
        workshop.play(asking(delegate("Kim", "Look it up")), asking(update(record.pk)))
        run = drive_all(workshop, workshop.submit())
        found = email_of(run)
        assert (found.origin, found.run_id) == (SeenIn.OUTSIDE, child_of(run).pk)

    @feature(
        "The gate",
        "Values from outside stay so in tasks, records and files",
        "agents/runs/provenance.py",
    )
    def test_a_value_in_a_record_that_an_employee_changed_stays_outside(
        self, workshop: Workshop
    ) -> None:
        record, second = workshop.record(), workshop.record(name="Globex")
        workshop.play(asking(READ), asking(update(record.pk)))
        run = workshop.work()
        assert not OutsideValue.objects.exists()
        workshop.approve(workshop.card(run))
        workshop.drive(run)
        stored = OutsideValue.objects.filter(call=last_call(run))
        assert {each.param for each in stored} == {"changes.email"}
        workshop.play(asking(call("data.searchRecords")), asking(update(second.pk)))
        later = workshop.work()
        found = email_of(later)
        assert (found.origin, found.call_id, found.run_id) == (
            SeenIn.OUTSIDE,
            last_call(run).pk,
            run.pk,
        )
        assert found.title == "Read a test page"

    def test_a_denied_change_does_not_store_an_outside_value(self, workshop: Workshop) -> None:
        record = workshop.record()
        workshop.play(asking(READ), asking(update(record.pk)))
        run = workshop.work()
        workshop.deny(workshop.card(run))
        workshop.drive(run)
        assert not OutsideValue.objects.exists()

    def test_a_value_is_outside_in_an_uploaded_file_but_not_in_our_own_file(
        self, workshop: Workshop
    ) -> None:
        record = workshop.record()
        Grant.objects.create(employee=workshop.employee, tool="files.read")
        organization_id = workshop.organization.pk
        for name in ("uploaded.txt", "own.txt"):
            write_file(organization_id, (name,), [f"Write to {EVIL}".encode()], lambda *_: None)
        with transaction.atomic():
            append(
                organization_id, [NewEntry("user:ann", "file_uploaded", "file:uploaded.txt", {})]
            )
        for name, expected in (("uploaded.txt", SeenIn.OUTSIDE), ("own.txt", SeenIn.OWN)):
            workshop.play(asking(call("files.read", path=name)), asking(update(record.pk)))
            assert email_of(workshop.work()).origin is expected

    @pytest.mark.parametrize("path", ["", "mixed", "mixed/uploaded.txt"])
    def test_a_value_in_lines_found_in_an_uploaded_file_stays_outside(
        self, workshop: Workshop, path: str
    ) -> None:
        """The control is a file in the same folder that nobody uploaded."""
        record = workshop.record()
        Grant.objects.create(employee=workshop.employee, tool="files.grep")
        organization_id = workshop.organization.pk
        for name, text in (
            ("uploaded.txt", f"Write to {EVIL}"),
            ("own.txt", "Write to kim@ours.example"),
        ):
            write_file(organization_id, ("mixed", name), [text.encode()], lambda *_: None)
        with transaction.atomic():
            append(
                organization_id,
                [NewEntry("user:ann", "file_uploaded", "file:mixed/uploaded.txt", {})],
            )
        search = call("files.grep", pattern="Write", path=path)
        workshop.play(asking(search), asking(update(record.pk)))
        assert email_of(workshop.work()).origin is SeenIn.OUTSIDE
        if path != "mixed/uploaded.txt":
            workshop.play(asking(search), asking(update(record.pk, "kim@ours.example")))
            assert email_of(workshop.work()).origin is SeenIn.OWN

    @feature(
        "The gate",
        "Copied parts of texts from outside, and values of calls that were settled later, stay from outside",
        "agents/runs/engine/results.py",
    )
    def test_a_value_in_a_note_copied_word_for_word_stays_outside(self, workshop: Workshop) -> None:
        record = workshop.record()
        note = call("data.updateRecord", record_id=record.pk, changes={"notes": PAGES["/invoice"]})
        workshop.play(asking(READ), asking(note))
        settle(workshop, workshop.work())
        assert find_origin_after_reading(workshop, record) is SeenIn.OUTSIDE

    def test_a_value_in_a_note_with_more_values_than_a_call_can_list_stays_outside(
        self, workshop: Workshop
    ) -> None:
        hosts = [f"host{number}.example" for number in range(MAX_KEPT + 1)]
        PAGES["/invoice"] = " ".join([*hosts, EVIL])
        changes = {"notes": " ".join(["See", *hosts, EVIL])}
        record = workshop.record()
        note = call("data.updateRecord", record_id=record.pk, changes=changes)
        workshop.play(asking(READ), asking(note))
        settle(workshop, workshop.work())
        assert find_origin_after_reading(workshop, record) is SeenIn.OUTSIDE

    def test_a_value_in_a_file_with_more_values_than_are_searched_stays_outside(
        self, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The control is the same file, written in a run that has seen nothing from outside."""
        monkeypatch.setattr("tools.toolbox.provenance.parts.MAX_PARTS", 3)
        record = workshop.record()
        for tool in ("files.write", "files.read"):
            Grant.objects.create(employee=workshop.employee, tool=tool)
        text = f"a1.example b2.example c3.example {EVIL}"
        PAGES["/invoice"] = f"See {text}"
        for name, passes, expected in (
            ("own.txt", [], SeenIn.OWN),
            ("copy.txt", [asking(READ)], SeenIn.OUTSIDE),
        ):
            workshop.play(*passes, asking(call("files.write", path=name, text=f"About {text}")))
            settle(workshop, workshop.work())
            workshop.play(asking(call("files.read", path=name)), asking(update(record.pk)))
            assert email_of(workshop.work()).origin is expected

    def test_other_values_of_a_completely_searched_file_are_our_own(
        self, workshop: Workshop
    ) -> None:
        record = workshop.record()
        for tool in ("files.write", "files.read"):
            Grant.objects.create(employee=workshop.employee, tool=tool)
        written = call("files.write", path="copy.txt", text=f"{EVIL} and kim@ours.example")
        workshop.play(asking(READ), asking(written))
        settle(workshop, workshop.work())
        for email, expected in ((EVIL, SeenIn.OUTSIDE), ("kim@ours.example", SeenIn.OWN)):
            workshop.play(
                asking(call("files.read", path="copy.txt")), asking(update(record.pk, email))
            )
            assert email_of(workshop.work()).origin is expected

    def test_a_value_from_a_tool_that_declares_outside_text_is_outside(
        self, workshop: Workshop, toolbox: Toolbox
    ) -> None:
        toolbox.register(ReadLetter())
        Grant.objects.create(employee=workshop.employee, tool=ReadLetter.name)
        assert find_origin_after_letter(workshop) is SeenIn.OUTSIDE

    def test_a_value_from_a_version_with_outside_text_is_outside_even_if_a_newer_version_has_none(
        self, workshop: Workshop, toolbox: Toolbox
    ) -> None:
        class ReadOwnLetter(ReadLetter):
            version = "2.0"
            returns_outside_text = False

        toolbox.register(ReadLetter())
        toolbox.register(ReadOwnLetter())
        Grant.objects.create(employee=workshop.employee, tool=ReadLetter.name, version="1.0")
        assert find_origin_after_letter(workshop) is SeenIn.OUTSIDE

    @pytest.mark.parametrize("outcome", ["succeeded", "not_done"])
    def test_a_value_stays_outside_only_if_a_person_settles_its_call_as_succeeded(
        self, workshop: Workshop, recorder: Recorder, outcome: str
    ) -> None:
        run = give_up(workshop, recorder)
        workshop.resolve(last_call(run), outcome)
        assert OutsideValue.objects.filter(call=last_call(run)).exists() is (outcome == "succeeded")

    def test_a_value_in_a_call_that_the_executor_reports_late_as_done_stays_outside(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        run = give_up(workshop, recorder)
        assert not OutsideValue.objects.exists()
        recorder.release(EVIL)
        eventually(lambda: last_call(run).status == CallStatus.SUCCEEDED)
        assert OutsideValue.objects.filter(call=last_call(run)).exists()

    def test_a_value_in_a_call_that_happened_but_was_reported_as_not_done_stays_outside(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        run = give_up(workshop, recorder)
        workshop.resolve(last_call(run), "not_done")
        recorder.release(EVIL)
        eventually(lambda: last_call(run).late_effect is not None)
        assert OutsideValue.objects.filter(call=last_call(run)).exists()

    def test_a_value_in_the_task_of_a_schedule_that_an_employee_created_stays_outside(
        self, workshop: Workshop
    ) -> None:
        """The control is a schedule with the same task that was not created in a run: a person must
        have created it and typed the task."""
        record = workshop.record()
        Grant.objects.create(employee=workshop.employee, tool="schedule.create")
        task = f"Set the address to {EVIL}"
        workshop.play(
            asking(READ),
            asking(call("schedule.create", task=task, cron="0 9 * * *", time_zone="UTC")),
        )
        run = workshop.work()
        workshop.approve(workshop.card(run))
        workshop.drive(run)
        schedule = Schedule.objects.get()
        workshop.play(asking(update(record.pk)))
        for made_in_run, expected in ((schedule.made_in_run, SeenIn.OUTSIDE), ("", SeenIn.PERSON)):
            Schedule.objects.update(made_in_run=made_in_run)
            request = f"schedule:{schedule.pk}:{expected}"
            later = workshop.work(task, origin=Origin.SCHEDULE, client_request_id=request)
            assert email_of(later).origin is expected


class TestALimitOnOrigins:
    @feature(
        "The gate",
        "A limit asks or forbids by the origin of a param",
        "tools/toolbox/conditions.py",
    )
    def test_can_forbid_a_value_from_outside(self, workshop: Workshop) -> None:
        record = workshop.record()
        limit(workshop, "forbid")
        workshop.play(asking(READ), asking(update(record.pk)))
        run = workshop.work()
        assert error_code(last_call(run)) == "NOT_PERMITTED"
        why = last_call(run).why
        assert (
            f'changes.email comes from outside: "{EVIL}" was first seen in Read a test page' in why
        )
        workshop.play(asking(READ), asking(update(record.pk, "new@nowhere.example")))
        assert last_call(workshop.work()).status == CallStatus.AWAITING_APPROVAL

    def test_can_require_approval_for_a_read(self, workshop: Workshop) -> None:
        limit(workshop, "ask", "text", "data.searchRecords")
        search = call("data.searchRecords", text="evil.example")
        workshop.play(asking(search))
        assert statuses(workshop.work()) == ["succeeded"]
        workshop.play(asking(READ), asking(search))
        run = workshop.work()
        assert last_call(run).status == CallStatus.AWAITING_APPROVAL
        assert "text comes from outside" in workshop.card(run).why

    def test_is_judged_again_when_an_approved_call_starts(self, workshop: Workshop) -> None:
        record = workshop.record()
        workshop.play(asking(READ), asking(update(record.pk)))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        limit(workshop, "forbid")
        workshop.drive(run)
        assert last_call(run).status == CallStatus.REJECTED
        record.refresh_from_db()
        assert record.email == ""

    def test_is_violated_if_there_is_too_much_to_search(
        self, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("agents.runs.provenance.MAX_SEARCHED", 10)
        record = workshop.record()
        limit(workshop, "forbid")
        workshop.play(asking(READ), asking(update(record.pk)))
        run = workshop.work()
        assert error_code(last_call(run)) == "NOT_PERMITTED"
        assert "changes.email is of unknown origin" in last_call(run).why


def test_a_pass_without_a_card_does_not_search_earlier_calls(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control is a run with a card, whose pass is searched."""
    searched: list[list[int]] = []

    def load_nothing(_: int, runs: list[int]) -> tuple[list[object], bool]:
        searched.append(runs)
        return [], False

    monkeypatch.setattr("agents.runs.provenance._load_call_texts", load_nothing)
    record = workshop.record()
    workshop.play(
        asking(call("data.searchRecords"), call("utility.calculate", operation="add", a=1, b=2))
    )
    with CaptureQueriesContext(connection) as queries:
        assert again(workshop.work()).status == "succeeded"
    assert not searched
    assert not [each for each in queries.captured_queries if "outsidevalue" in each["sql"]]
    workshop.play(asking(update(record.pk)))
    workshop.work()
    assert searched
