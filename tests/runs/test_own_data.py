"""Reads that send data out: before the organization's own data is sent to an allowed host, a person
must approve."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agents.employees.models import Grant
from agents.runs.models import CallStatus
from tests.features import feature
from tests.outside_probes import PAGE_HOST, PAGES, ReadPage
from tests.runs.outside_page import READ, allow_host, offer_page
from tests.workshop import Workshop, asking, call, last_call, statuses
from tests.workshop.colleagues import delegate, drive_all, hire, may_delegate
from tools.contract.excerpts import format_handle

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def page(workshop: Workshop) -> Iterator[None]:
    with offer_page(workshop):
        yield


class TestAReadThatSendsDataOutside:
    def test_needs_approval_if_there_is_too_much_to_search(
        self, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("agents.runs.provenance.MAX_SEARCHED", 10)
        workshop.play(asking(call("data.searchRecords")), asking(READ))
        run = workshop.work()
        assert "may send your own data outside" in workshop.card(run).why

    @feature(
        "The gate",
        "A read to an allowed host asks if it carries own data",
        "tools/toolbox/permissions.py",
    )
    def test_needs_approval_before_it_sends_the_organizations_data_to_an_allowed_host(
        self, workshop: Workshop
    ) -> None:
        workshop.record(name="Globex Corporation")
        carrying = call(ReadPage.name, url=f"https://{PAGE_HOST}/find?q=globex%20corporation")
        workshop.play(asking(call("data.searchRecords")), asking(carrying))
        run = workshop.work()
        assert last_call(run).status == CallStatus.AWAITING_APPROVAL
        assert 'sends your own data outside: "globex corporation"' in workshop.card(run).why

    @feature(
        "The gate",
        "Own data may be sent unasked only to those who told it",
        "agents/runs/provenance.py",
    )
    def test_can_send_data_without_approval_only_to_the_host_from_which_it_came(
        self, workshop: Workshop
    ) -> None:
        allow_host(workshop, "other.example")
        workshop.record(name="Globex Corporation")
        PAGES["/invoice"] = "Our customer is Globex Corporation."
        search = call("data.searchRecords")
        for host, expected in (
            (PAGE_HOST, CallStatus.SUCCEEDED),
            ("other.example", CallStatus.AWAITING_APPROVAL),
        ):
            first = call(ReadPage.name, url=f"https://{host}/find?q=weather")
            carrying = call(ReadPage.name, url=f"https://{host}/find?q=globex%20corporation")
            workshop.play(asking(READ, search), asking(first), asking(carrying))
            run = workshop.work()
            workshop.approve(workshop.card(run))
            assert last_call(workshop.drive(run)).status == expected, host

    def test_runs_without_approval_with_a_value_that_a_colleague_found_outside(
        self, workshop: Workshop
    ) -> None:
        allow_host(workshop, "other.example")
        PAGES["/invoice"] = "Our customer is Globex Corporation."
        kim = hire(workshop, "Kim", asking(READ), answer="It is Globex Corporation.")
        Grant.objects.get_or_create(employee=kim, tool=ReadPage.name)
        may_delegate(workshop.employee, kim)
        carrying = call(ReadPage.name, url="https://other.example/find?q=globex%20corporation")
        workshop.play(asking(delegate("Kim", "Look it up")), asking(carrying))
        assert last_call(drive_all(workshop, workshop.submit())).status == CallStatus.SUCCEEDED

    def test_runs_without_approval_with_the_rest_of_a_shortened_outside_result(
        self, workshop: Workshop
    ) -> None:
        allow_host(workshop, "other.example")
        Grant.objects.create(employee=workshop.employee, tool="results.read")
        PAGES["/invoice"] = "Our customer is Globex Corporation."
        workshop.play(asking(READ))
        run = workshop.work()
        rest = call("results.read", handle=format_handle(last_call(run).pk))
        carrying = call(ReadPage.name, url="https://other.example/find?q=globex%20corporation")
        workshop.play(asking(rest), asking(carrying), task="More")
        workshop.drive(workshop.say(run, "More"))
        assert statuses(run) == ["succeeded"] * 3

    def test_needs_approval_if_its_address_has_too_many_parts_to_search(
        self, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The control requests the same address in a run that has not read the organization's own
        data."""
        monkeypatch.setattr("tools.toolbox.provenance.parts.MAX_PARTS", 3)
        workshop.record(name="Globex Corporation")
        long = call(
            ReadPage.name,
            url=f"https://{PAGE_HOST}/a-long/b-long/c-long/d-long/globex%20corporation",
        )
        workshop.play(asking(call("data.searchRecords")), asking(long))
        assert "may send your own data outside" in workshop.card(workshop.work()).why
        workshop.play(asking(long))
        assert statuses(workshop.work()) == ["succeeded"]

    def test_runs_without_approval_if_it_does_not_contain_the_organizations_data(
        self, workshop: Workshop
    ) -> None:
        workshop.record(name="Globex Corporation")
        workshop.play(asking(call("data.searchRecords")), asking(READ))
        run = workshop.work(f"Read https://{PAGE_HOST}/invoice")
        assert statuses(run) == ["succeeded", "succeeded"]

    def test_runs_without_approval_with_text_typed_by_a_person(self, workshop: Workshop) -> None:
        workshop.record(name="Globex Corporation")
        carrying = call(ReadPage.name, url=f"https://{PAGE_HOST}/find?q=globex%20corporation")
        workshop.play(asking(call("data.searchRecords")), asking(carrying))
        run = workshop.work(f"Read https://{PAGE_HOST}/find?q=globex%20corporation")
        assert statuses(run) == ["succeeded", "succeeded"]
