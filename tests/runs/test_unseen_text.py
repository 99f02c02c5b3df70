"""Reads that can carry private data out through an allowed host: after the run has read private
data, a person must approve text that was not seen before, once for each host in a run."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator

import pytest

from agents.employees.models import Employee
from agents.policy.policy_drafts import ChangeKind, PolicyChange
from agents.policy.simulation import simulate
from agents.runs.models import CallStatus
from tests.features import feature
from tests.outside_probes import PAGE_HOST, PAGES, ReadPage
from tests.policy.test_replay import replay_all
from tests.recorder import Recorder
from tests.runs.outside_page import READ, allow_host, offer_page
from tests.standing_grants.granting import answered, grant
from tests.workshop import Workshop, asking, call, eventually, last_call, statuses
from tools.toolbox.conditions import Condition, Rule

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "Globex Corporation"
SEARCH = call("data.searchRecords")


def visit(path: str, host: str = PAGE_HOST) -> dict[str, object]:
    return call(ReadPage.name, url=f"https://{host}{path}")


FIRST, SECOND = visit("/collect?part=aGVsbG8"), visit("/collect?part=d29ybGQ")


@pytest.fixture(autouse=True)
def page(workshop: Workshop) -> Iterator[None]:
    workshop.record(name=SECRET)
    with offer_page(workshop):
        yield


@feature(
    "The gate",
    "After private data was read, a read to an allowed host asks once per run if its text was not seen before",
    "tools/toolbox/provenance/unseen_text.py, tools/toolbox/permissions.py",
)
@pytest.mark.parametrize(
    "hidden", [base64.b64encode(SECRET.encode()).decode(), SECRET.encode().hex(), SECRET[::-1]]
)
def test_an_encoded_secret_needs_approval_even_for_an_allowed_host(
    workshop: Workshop, hidden: str
) -> None:
    """The control sends the same address before anything private was read."""
    carrying = visit(f"/collect?d={hidden}")
    workshop.play(asking(SEARCH), asking(carrying))
    run = workshop.work()
    assert workshop.card(run).why == (
        f"may carry private data to {PAGE_HOST}: this run has read some, and the address or text is new"
    )
    workshop.play(asking(carrying), asking(SEARCH))
    assert statuses(workshop.work()) == ["succeeded", "succeeded"]


def test_one_approval_covers_later_reads_of_the_same_host_in_this_run(workshop: Workshop) -> None:
    """The controls are another host, and another run."""
    allow_host(workshop, "other.example")
    elsewhere = visit("/collect?part=d29ybGQ", "other.example")
    workshop.play(asking(SEARCH), asking(FIRST), asking(SECOND), asking(elsewhere))
    run = workshop.work()
    workshop.approve(workshop.card(run))
    run = workshop.drive(run)
    assert statuses(run) == ["succeeded", "succeeded", "succeeded", "awaiting_approval"]
    assert "other.example" in workshop.card(run).why
    assert statuses(workshop.work()) == ["succeeded", "awaiting_approval"]


def test_a_denial_does_not_cover_later_reads(workshop: Workshop) -> None:
    workshop.play(asking(SEARCH), asking(FIRST), asking(SECOND))
    run = workshop.work()
    workshop.deny(workshop.card(run))
    assert statuses(workshop.drive(run)) == ["succeeded", "denied", "awaiting_approval"]


def test_an_approval_by_a_standing_grant_does_not_cover_later_reads(workshop: Workshop) -> None:
    grant(workshop, ReadPage.name, Condition("url", Rule.HOST, PAGE_HOST), max_uses=1)
    workshop.play(asking(SEARCH), asking(FIRST), asking(SECOND))
    run = workshop.work()
    assert len(answered(run)) == 1
    assert statuses(run) == ["succeeded", "succeeded", "awaiting_approval"]


def test_an_address_that_a_person_or_a_page_wrote_does_not_need_approval(
    workshop: Workshop,
) -> None:
    """The control changes one letter of the page's link."""
    PAGES["/invoice"] = "Details: [here](/details?id=77-b)"
    workshop.play(asking(SEARCH), asking(READ), asking(visit("/details?id=77-b")))
    assert statuses(workshop.work(f"Read https://{PAGE_HOST}/invoice")) == ["succeeded"] * 3
    workshop.play(asking(SEARCH), asking(READ), asking(visit("/details?id=77-c")))
    assert last_call(workshop.work(f"Read https://{PAGE_HOST}/invoice")).status == (
        CallStatus.AWAITING_APPROVAL
    )


def test_an_address_that_a_result_only_repeats_needs_approval(workshop: Workshop) -> None:
    echo = call("data.searchRecords", text=f"https://{PAGE_HOST}/collect?part=aGVsbG8")
    workshop.play(asking(SEARCH), asking(echo), asking(FIRST))
    assert statuses(workshop.work()) == ["succeeded", "succeeded", "awaiting_approval"]


def test_an_address_in_the_employees_instructions_does_not_need_approval(
    workshop: Workshop,
) -> None:
    workshop.play(asking(SEARCH), asking(READ))
    assert statuses(workshop.work())[-1] == "awaiting_approval"
    Employee.objects.update(instructions=f"Invoices are at https://{PAGE_HOST}/invoice.")
    assert statuses(workshop.work())[-1] == "succeeded"


@pytest.mark.parametrize(
    "read",
    [
        call("data.searchRecords", query="nothing has this name"),
        call("data.searchRecords", limit=0),
        call("utility.calculate", operation="add", a=2, b=2),
    ],
)
def test_a_search_without_results_or_a_calculation_does_not_read_private_data(
    workshop: Workshop, read: dict[str, object]
) -> None:
    workshop.play(asking(read), asking(FIRST))
    assert statuses(workshop.work())[-1] == "succeeded"


def test_a_read_that_waited_for_a_slot_starts_even_if_private_data_was_read_meanwhile(
    workshop: Workshop, recorder: Recorder
) -> None:
    """Its params were written before the data was read. The control requests a read afterwards."""
    gates = [f"gate {number}" for number in range(9)]
    for gate in gates:
        recorder.hold(gate)
    busy = [call("probe.gate", name=gate) for gate in gates]
    workshop.play(asking(*busy, SEARCH, FIRST), asking(SECOND))
    run = workshop.submit()
    with workshop.driving(run):
        for gate in gates:
            recorder.await_arrival(gate)
        eventually(lambda: statuses(run)[9:] == [CallStatus.SUCCEEDED] * 2)
        for gate in gates:
            recorder.release(gate)
    assert statuses(run)[9:] == ["succeeded", "succeeded", "awaiting_approval"]


def test_simulating_an_allowed_host_still_asks_about_text_that_can_carry_private_data(
    workshop: Workshop,
) -> None:
    """The control is a read before anything private was read."""
    early, late = visit("/a?b=c", "new.example"), visit("/d?e=f", "new.example")
    workshop.play(asking(early), asking(SEARCH), asking(late))
    run = workshop.work()
    workshop.approve(workshop.card(run))
    workshop.drive(run)
    allowed = PolicyChange(ChangeKind.ALLOW_HOST, host="new.example")
    report = simulate(workshop.organization.pk, [allowed], 1_000)
    assert report.verdicts == Counter([("ask", "auto"), ("auto", "auto"), ("ask", "ask")])


def test_an_approved_read_is_replayed_with_its_recorded_facts(workshop: Workshop) -> None:
    """The control removes the recorded fact that another read was approved earlier."""
    workshop.play(asking(SEARCH), asking(FIRST), asking(SECOND))
    run = workshop.work()
    workshop.approve(workshop.card(run))
    workshop.drive(run)
    assert replay_all().counts == Counter(equal=3)
    second = last_call(run)
    assert second.judgment is not None
    second.judgment["facts"]["is_approved_before"] = False
    second.save(update_fields=["judgment"])
    assert replay_all().counts == Counter(equal=2, different=1)
