"""A standing grant approves a call whose value was looked up where the grant's condition says; if
the value was invented, or came from elsewhere, a person decides."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from agents.approvals import questions
from agents.employees.models import Grant as AllowedTool
from agents.platform.refusals import Invalid
from agents.policy.policy_drafts import PolicyChange
from agents.policy.recorded_calls import PREAPPROVED, CallFilter
from agents.policy.replay import find_bounds, replay
from agents.policy.simulation import simulate
from agents.runs.actions import add_message, add_typed_message
from agents.runs.models import CallStatus, Run
from agents.standing_grants.models import StandingGrant
from agents.standing_grants.past_calls import find_covered_cards
from agents.standing_grants.proposals import check_proposal
from tests.features import feature
from tests.standing_grants.granting import answered, equals, grant, is_waiting, propose_for, resume
from tests.standing_grants.shop_tools import Shop, comes_from, each, is_approved, typed
from tests.workshop import Workshop, asking, call, calls, die_while_executing
from tests.workshop.colleagues import ask, delegate, hire, may_ask, may_delegate, question_of
from tools.contract import ErrorCode, ToolError, ToolResult
from tools.toolbox.conditions import Condition, Rule
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)

CANCEL = "shop.cancel"
OF_ADA = comes_from("order", "shop.getCustomer", "orders.id", equals("name", "Ada"))


@pytest.fixture
def shop(workshop: Workshop, toolbox: Toolbox) -> Shop:
    return Shop(workshop, toolbox)


def cancel(order: Any = "A-1001", **more: Any) -> dict[str, Any]:
    return call(CANCEL, order=order, **more)


def look_up(shop: Shop, *orders: str, name: str = "Ada") -> dict[str, Any]:
    data = {"id": f"C-{name}", "orders": [{"id": order} for order in orders]}
    return shop.answer("shop.getCustomer", name, data)


@feature(
    "The gate",
    "A standing grant frees an id that was looked up, and stops one that was invented or came in an email",
    "tools/toolbox/grant_conditions.py",
)
def test_only_an_id_that_was_looked_up_can_be_used_without_approval(shop: Shop) -> None:
    grant(shop.workshop, CANCEL, OF_ADA)
    assert is_approved(shop.work(look_up(shop, "A-1001", "A-1002"), cancel("A-1002")))
    assert not is_approved(shop.work(look_up(shop, "A-1001", "A-1002"), cancel("A-1003")))


class TestAPlantedId:
    """Most tests have a control: an id in the place where the grant looks for it."""

    @pytest.fixture(autouse=True)
    def granted(self, shop: Shop) -> None:
        allowed = comes_from("order", "shop.getOrder", "id", equals("id", "A-1001"))
        grant(shop.workshop, CANCEL, allowed)

    def read(self, shop: Shop, order: str = "A-1001", **more: Any) -> dict[str, Any]:
        return shop.answer("shop.getOrder", "A-1001", {"id": order, **more})

    def test_in_a_note_of_the_result_needs_approval(self, shop: Shop) -> None:
        assert not is_approved(shop.work(self.read(shop, note="B-2"), cancel("B-2")))
        assert is_approved(shop.work(self.read(shop, note="B-2"), cancel("A-1001")))

    def test_in_the_result_of_another_tool_needs_approval(self, shop: Shop) -> None:
        mail = shop.answer("shop.readMail", "A-1001", {"id": "A-1001"})
        assert not is_approved(shop.work(mail, cancel()))
        assert is_approved(shop.work(mail, self.read(shop), cancel()))

    def test_in_a_result_of_another_source_needs_approval(self, shop: Shop) -> None:
        other = shop.answer("other.getOrder", "A-1001", {"id": "A-1001"})
        assert not is_approved(shop.work(other, cancel()))
        assert is_approved(shop.work(other, self.read(shop), cancel()))

    def test_in_an_earlier_run_needs_approval(self, shop: Shop) -> None:
        shop.work(self.read(shop))
        assert not is_approved(shop.work(cancel()))
        assert is_approved(shop.work(self.read(shop), cancel()))

    def test_in_a_result_of_the_same_pass_needs_approval(self, shop: Shop) -> None:
        assert not is_approved(shop.work([self.read(shop), cancel()]))
        assert is_approved(shop.work(self.read(shop), cancel()))

    def test_in_a_failed_result_needs_approval(self, shop: Shop) -> None:
        error = ToolError(ErrorCode.NOT_FOUND, "There is no A-1001.", attempted=False)
        failed = shop.answer("shop.getOrder", "A-1001", ToolResult.failed(error))
        assert not is_approved(shop.work(failed, cancel()))
        assert is_approved(shop.work(self.read(shop), cancel()))

    def test_in_the_result_of_a_call_for_something_else_needs_approval(self, shop: Shop) -> None:
        """A mail names an id, and the employee looks it up; the result only repeats the mail's
        id.
        """
        lured = shop.answer("shop.getOrder", "B-2", {"id": "B-2"})
        assert not is_approved(shop.work(lured, cancel("B-2")))
        swapped = shop.answer("shop.getOrder", "B-2", {"id": "A-1001"})
        assert not is_approved(shop.work(swapped, cancel("A-1001")))

    @pytest.mark.parametrize("value", ["", " ", "A-100", "a-1001", "A-1001 "])
    def test_that_is_spelled_differently_needs_approval(self, shop: Shop, value: str) -> None:
        assert not is_approved(shop.work(self.read(shop, mails=["", value]), cancel(value)))

    def test_that_the_run_itself_had_written_before_reading_it_needs_approval(
        self, shop: Shop
    ) -> None:
        write = call("shop.reserve", id="put B-2 there")
        grant(shop.workshop, "shop.reserve", equals("id", "put B-2 there"))
        run = shop.work(write, self.read(shop, order="B-2"), cancel("B-2"))
        assert is_waiting(run)
        run = shop.work(self.read(shop, order="B-2"), write, cancel("B-2"))
        assert not is_waiting(run)

    @pytest.mark.parametrize("written", ["id:EVIL-7", "https://crm.example/o/evil7", "EVIL-8"])
    def test_that_the_run_wrote_in_another_spelling_needs_approval(
        self, shop: Shop, written: str
    ) -> None:
        grant(shop.workshop, "shop.reserve", equals("id", written))
        write = call("shop.reserve", id=written)
        run = shop.work(write, self.read(shop, order="EVIL-7"), cancel("EVIL-7"))
        assert is_waiting(run) is (written != "EVIL-8")

    @pytest.mark.parametrize("saved", ["B-2", "something else"])
    def test_that_the_run_had_saved_in_a_draft_needs_approval(self, shop: Shop, saved: str) -> None:
        draft = call("shop.saveDraft", id=saved)
        run = shop.work(draft, self.read(shop, order="B-2"), cancel("B-2"))
        assert is_approved(run) is (saved != "B-2")

    @pytest.mark.parametrize("writes", [False, True])
    def test_that_a_colleague_had_written_before_the_run_read_it_needs_approval(
        self, shop: Shop, writes: bool
    ) -> None:
        write = asking(call("shop.reserve", id="put B-2 there"))
        kim = hire(shop.workshop, "Kim", *([write] if writes else []))
        AllowedTool.objects.create(employee=kim, tool="shop.reserve")
        may_delegate(shop.workshop.employee, kim)
        fixed = equals("id", "put B-2 there")
        grant(shop.workshop, "shop.reserve", fixed, employee_id=kim.pk)
        run = shop.work(delegate(), self.read(shop, order="B-2"), cancel("B-2"))
        shop.workshop.drive(Run.objects.get(parent=run))
        assert is_approved(shop.workshop.drive(run)) is not writes

    def test_that_is_empty_needs_approval(self, shop: Shop) -> None:
        assert not is_approved(shop.work(self.read(shop, order=""), cancel("")))


class TestAResultThatAPersonEdited:
    def test_does_not_count_if_a_person_reported_it(self, shop: Shop) -> None:
        reserve = comes_from("order", "shop.reserve", "id", equals("id", "A-1001"))
        grant(shop.workshop, CANCEL, reserve)
        grant(shop.workshop, "shop.reserve", equals("id", "A-1001"))
        own = shop.answer("shop.reserve", "A-1001", {"id": "A-1001"})
        assert len(answered(shop.work(own, cancel()))) == 2
        told = ToolResult.ok({"id": "A-1001"}, "ann reported it", confirmed_by="ann")
        shop.answer("shop.reserve", "A-1001", told)
        assert len(answered(shop.work(own, cancel()))) == 1

    def test_does_not_count_if_a_person_changed_the_params(self, shop: Shop) -> None:
        reserve = comes_from("order", "shop.reserve", "id", equals("id", "A-1001"))
        grant(shop.workshop, CANCEL, reserve)
        own = shop.answer("shop.reserve", "A-1001", {"id": "A-1001"})
        for asked, edited, is_counted in (("A-1001", None, True), ("A-9", {"id": "A-1001"}, False)):
            shop.work({**own, "params": {"id": asked}}, cancel())
            run = Run.objects.latest("pk")
            (card,) = shop.workshop.cards(run)
            shop.workshop.approve(shop.workshop.edit(card, edited) if edited else card)
            run = shop.workshop.drive(run)
            assert calls(run)[0].status == CallStatus.SUCCEEDED
            assert bool(answered(run)) is is_counted


class TestTheCallThatBroughtTheValue:
    """Its own params must be fixed, typed by a person, or come from another call's result."""

    OF_CUSTOMER = comes_from("id", "shop.getCustomer", "orders.id", typed("name"))
    CHAIN = comes_from("order", "shop.getOrder", "id", OF_CUSTOMER)

    def test_may_take_its_params_from_an_earlier_result(self, shop: Shop) -> None:
        grant(shop.workshop, CANCEL, self.CHAIN)
        order = shop.answer("shop.getOrder", "A-1001", {"id": "A-1001"})
        steps = (look_up(shop, "A-1001"), order, cancel())
        assert is_approved(shop.work(*steps, task="Cancel the order of Ada"))
        assert not is_approved(shop.work(*steps, task="Cancel the order of Bob"))
        assert not is_approved(shop.work(*steps[1:], task="Cancel the order of Ada"))

    def test_may_not_take_its_params_from_a_later_result(self, shop: Shop) -> None:
        grant(shop.workshop, CANCEL, self.CHAIN)
        order = shop.answer("shop.getOrder", "A-1001", {"id": "A-1001"})
        run = shop.work(order, look_up(shop, "A-1001"), cancel(), task="Cancel the order of Ada")
        assert not is_approved(run)

    def test_cannot_have_a_param_without_a_condition(self, shop: Shop) -> None:
        with pytest.raises(Invalid, match=r"“id” of “shop\.getOrder” needs a condition"):
            grant(shop.workshop, CANCEL, comes_from("order", "shop.getOrder", "id"))

    def test_cannot_have_a_param_with_a_prefix_condition(self, shop: Shop) -> None:
        open_ended = Condition("id", Rule.PREFIX, "A-")
        with pytest.raises(Invalid, match="must be fixed, typed by a person, or come from"):
            grant(shop.workshop, CANCEL, comes_from("order", "shop.getOrder", "id", open_ended))


class TestTwoValuesFromOneTool:
    """They must come from the same result: an order must not be combined with another order's
    amount."""

    TOGETHER = (
        comes_from("order", "shop.getOrder", "id", typed("id")),
        comes_from("amount", "shop.getOrder", "total", typed("id")),
    )

    def test_need_approval_unless_they_come_from_the_same_result(self, shop: Shop) -> None:
        grant(shop.workshop, CANCEL, *self.TOGETHER)
        first = shop.answer("shop.getOrder", "A-1", {"id": "A-1", "total": 10})
        other = shop.answer("shop.getOrder", "A-2", {"id": "A-2", "total": 9000})
        task = "Cancel A-1, then look at A-2"
        assert is_approved(shop.work(first, other, cancel("A-1", amount=10.0), task=task))
        assert not is_approved(shop.work(first, other, cancel("A-1", amount=9000), task=task))

    def test_need_approval_unless_they_come_from_the_same_list_entry(self, shop: Shop) -> None:
        both = (
            comes_from("order", "shop.getOrder", "lines.id", typed("id")),
            comes_from("amount", "shop.getOrder", "lines.total", typed("id")),
        )
        lines = [{"id": "L-1", "total": 5}, {"id": "L-2", "total": 700}]
        read = shop.answer("shop.getOrder", "A-1", {"lines": lines})
        shop.work(read, task="Look at A-1")  # so that the fields are recorded
        grant(shop.workshop, CANCEL, *both)
        assert is_approved(shop.work(read, cancel("L-2", amount=700), task="Cancel in A-1"))
        assert not is_approved(shop.work(read, cancel("L-1", amount=700), task="Cancel in A-1"))

    def test_in_two_lists_need_approval_unless_they_come_from_the_same_result(
        self, shop: Shop
    ) -> None:
        lists = (
            comes_from("orders.id", "shop.getOrder", "id", typed("id")),
            comes_from("payments.amount", "shop.getOrder", "total", typed("id")),
        )
        grant(shop.workshop, CANCEL, equals("order", "x"), *lists)
        first = shop.answer("shop.getOrder", "A-1", {"id": "A-1", "total": 10})
        other = shop.answer("shop.getOrder", "A-2", {"id": "A-2", "total": 9000})
        for orders, amounts, is_free in (
            (["A-1"], [10], True),
            (["A-1"], [9000], False),
            (["A-1", "A-2"], [10, 10], False),
        ):
            paid = {
                "orders": [{"id": each} for each in orders],
                "payments": [{"amount": each} for each in amounts],
            }
            run = shop.work(first, other, cancel("x", **paid), task="Pay A-1, then look at A-2")
            assert is_approved(run) is is_free, paid


def test_one_of_several_values_of_a_search_needs_approval_but_a_single_value_does_not(
    shop: Shop,
) -> None:
    only = comes_from("order", "shop.getCustomer", "orders.id", equals("name", "Ada"), only=True)
    grant(shop.workshop, CANCEL, only)
    assert is_approved(shop.work(look_up(shop, "A-1001", "A-1001"), cancel()))
    assert not is_approved(shop.work(look_up(shop, "A-1001", "A-1002"), cancel()))


class TestEachEntry:
    def test_must_meet_the_condition(self, shop: Shop) -> None:
        ours = each("items", Condition("items", Rule.HOST, "acme.example"))
        grant(shop.workshop, CANCEL, equals("order", "A-1"), ours)
        assert is_approved(shop.work(cancel("A-1", items=["ann@acme.example", "b@acme.example"])))
        for items in (
            ["ann@acme.example", "eve@evil.example"],
            ["ann@acme.example", None],
            ["ann@acme.example", ["eve@evil.example"]],
            ["ann@acme.example, eve@evil.example"],
            [],
        ):
            assert not is_approved(shop.work(cancel("A-1", items=items))), items

    def test_may_come_from_a_list_of_the_result(self, shop: Shop) -> None:
        from_order = each("items", comes_from("items", "shop.getOrder", "mails", typed("id")))
        grant(shop.workshop, CANCEL, equals("order", "A-1"), from_order)
        read = shop.answer("shop.getOrder", "A-1", {"id": "A-1", "mails": ["a@x.example", "b@x.example"]})  # fmt: skip
        step = cancel("A-1", items=["b@x.example", "a@x.example"])
        assert is_approved(shop.work(read, step, task="Cancel A-1"))
        step = cancel("A-1", items=["b@x.example", "c@x.example"])
        assert not is_approved(shop.work(read, step, task="Cancel A-1"))

    def test_is_not_required_if_the_grant_allows_an_empty_list(self, shop: Shop) -> None:
        ours = each("items", Condition("items", Rule.HOST, "acme.example"), [])
        grant(shop.workshop, CANCEL, equals("order", "A-1"), ours)
        assert is_approved(shop.work(cancel("A-1", items=[])))


class TestAnExplicitNull:
    def test_is_a_value_that_the_grant_must_allow(self, shop: Shop) -> None:
        grant(shop.workshop, CANCEL, equals("order", "A-1"))
        assert is_approved(shop.work(cancel("A-1")))
        assert not is_approved(shop.work(cancel("A-1", copy=None)))
        grant(shop.workshop, CANCEL, equals("order", "A-1"), equals("copy", None))
        assert is_approved(shop.work(cancel("A-1", copy=None)))

    def test_never_comes_from_a_null_in_the_result(self, shop: Shop) -> None:
        ids = comes_from("copy", "shop.getOrder", "id", typed("id"))
        grant(shop.workshop, CANCEL, equals("order", "A-1"), ids)
        read = shop.answer("shop.getOrder", "A-1", {"id": None})
        assert not is_approved(shop.work(read, cancel("A-1", copy=None), task="Cancel A-1"))
        read = shop.answer("shop.getOrder", "A-1", {"id": "x"})
        assert is_approved(shop.work(read, cancel("A-1", copy="x"), task="Cancel A-1"))


class TestATypedValue:
    def test_must_occur_in_the_task_as_a_whole(self, shop: Shop) -> None:
        grant(shop.workshop, CANCEL, typed("order"))
        assert is_approved(shop.work(cancel("A-1001"), task="Cancel order a-1001."))
        for task in ("Cancel XA-1001", "Cancel A-1001-7", "Cancel A-10011", "Cancel it"):
            assert not is_approved(shop.work(cancel("A-1001"), task=task)), task

    @pytest.mark.parametrize(
        ("value", "task"),
        [
            ("500", "Refund 1,500 EUR"),
            ("1", "Refund 1,500 EUR"),
            ("500", "Refund 1 500 EUR"),
            ("500", "Refund 1'500 EUR"),
            ("500", "Refund 1\u00a0500 EUR"),
            ("500", "Refund 1\u2019500 EUR"),
            ("0032", "Pay to BE68 5390 0032 7034"),
            ("500", "Refund 500, then 600 EUR"),
        ],
    )
    def test_cannot_be_part_of_a_longer_number(self, shop: Shop, value: str, task: str) -> None:
        grant(shop.workshop, CANCEL, typed("order"))
        assert is_approved(shop.work(cancel(value), task=task)) is ("then" in task)

    @pytest.mark.parametrize(
        ("amount", "task"),
        [
            (500, "Refund 1\u00a0500 EUR"),
            (500, "Refund 1\u202f500 EUR"),
            (500, "Refund 1\u2019500 EUR"),
            (5390, "Pay to BE68 5390 0032 7034"),
            (30, "Refund at 11:30"),
            (500, "Refund 500 EUR at 11:30, then stop"),
            (1500.5, "Refund 1\u202f500,50 EUR, then stop"),
        ],
    )
    def test_that_is_a_number_cannot_be_part_of_a_longer_number(
        self, shop: Shop, amount: float, task: str
    ) -> None:
        grant(shop.workshop, CANCEL, equals("order", "A-1"), typed("amount"))
        assert is_approved(shop.work(cancel("A-1", amount=amount), task=task)) is ("then" in task)

    @pytest.mark.parametrize("is_typed", [False, True])
    def test_cannot_come_from_a_task_that_a_program_sent(self, shop: Shop, is_typed: bool) -> None:
        grant(shop.workshop, CANCEL, typed("order"))
        run = shop.work(cancel("A-1001"), task="Cancel order A-1001", is_typed=is_typed)
        assert is_approved(run) is is_typed

    @pytest.mark.parametrize("is_typed", [False, True])
    def test_cannot_come_from_a_message_that_a_program_sent(
        self, shop: Shop, is_typed: bool
    ) -> None:
        grant(shop.workshop, CANCEL, typed("order"))
        run = shop.work(call("shop.saveDraft", id="x"))
        shop.workshop.play(asking(cancel("A-1001")))
        sender = shop.workshop.operator
        add = add_typed_message if is_typed else add_message
        add(sender, run.pk, "And cancel order A-1001")
        assert is_approved(shop.workshop.drive(run)) is is_typed

    @pytest.mark.parametrize("is_typed", [False, True])
    def test_cannot_come_from_an_answer_that_a_program_sent(
        self, shop: Shop, is_typed: bool
    ) -> None:
        grant(shop.workshop, CANCEL, typed("order"))
        may_ask(shop.workshop.employee)
        run = shop.work(ask("Which order?"), cancel("A-1001"))
        given = questions.Answer("A-1001", is_typed=is_typed)
        questions.answer(shop.workshop.operator, question_of(run).pk, given)
        assert is_approved(shop.workshop.drive(run)) is is_typed

    def test_cannot_come_from_a_result(self, shop: Shop) -> None:
        grant(shop.workshop, CANCEL, typed("order"))
        mail = shop.answer("shop.readMail", "m", {"text": "Cancel A-1001"})
        assert not is_approved(shop.work(mail, cancel("A-1001")))


class TestTheSource:
    def test_of_another_connection_is_refused(self, shop: Shop) -> None:
        other = comes_from("order", "other.getOrder", "id", typed("id"))
        with pytest.raises(Invalid, match="no tool of the same connection"):
            grant(shop.workshop, CANCEL, other)

    def test_with_a_field_that_is_not_in_its_schema_or_results_is_refused(self, shop: Shop) -> None:
        wrong = comes_from("order", "shop.getOrder", "lines.id", typed("id"))
        with pytest.raises(Invalid, match=r"have no field 'lines\.id'"):
            grant(shop.workshop, CANCEL, wrong)
        shop.work(shop.answer("shop.getOrder", "A-1", {"lines": [{"id": "L-1"}]}))
        grant(shop.workshop, CANCEL, wrong)

    def test_whose_definition_has_changed_is_ignored(self, shop: Shop, toolbox: Toolbox) -> None:
        grant(shop.workshop, CANCEL, comes_from("order", "shop.getOrder", "id", typed("id")))
        steps = shop.answer("shop.getOrder", "A-1", {"id": "A-1"}), cancel("A-1")
        assert is_approved(shop.work(*steps, task="Cancel A-1"))
        shop.replace("shop.getOrder", toolbox)
        assert not is_approved(shop.work(*steps, task="Cancel A-1"))


class TestTheSameJudgment:
    """Gate, start, simulator, preview and replay agree."""

    @pytest.fixture
    def runs(self, shop: Shop) -> dict[int, bool]:
        """Run calls under a grant; return, for each run, whether the grant approved its last
        call.
        """
        steps = (look_up(shop, "A-1001"), cancel("A-1001"))
        self.play(shop, steps)  # before there is a grant
        grant(shop.workshop, CANCEL, OF_ADA)
        return self.play(shop, steps)

    def play(self, shop: Shop, steps: tuple[Any, ...]) -> dict[int, bool]:
        looked_up, mail = shop.work(*steps), shop.answer("shop.readMail", "m", {"text": "A-1001"})
        runs = [looked_up, shop.work(mail, steps[1]), shop.work(list(steps))]
        return {run.pk: bool(answered(run)) for run in runs}

    def test_the_simulator_approves_the_same_calls(self, shop: Shop, runs: dict[int, bool]) -> None:
        assert list(runs.values()) == [True, False, False]
        change = PolicyChange.from_grant(propose_for(shop.workshop, CANCEL, OF_ADA))
        report = simulate(shop.workshop.organization.pk, [change], 1_000)
        approved = {each.row.run_id for each in report.listed if each.judged.after == PREAPPROVED}
        first = min(runs) - len(runs)
        assert approved == {first, *(pk for pk, is_granted in runs.items() if is_granted)}

    def test_the_preview_of_the_form_covers_the_same_calls(
        self, shop: Shop, runs: dict[int, bool]
    ) -> None:
        proposal = propose_for(shop.workshop, CANCEL, OF_ADA)
        tool = check_proposal(shop.workshop.organization.pk, proposal)
        past = find_covered_cards(shop.workshop.organization.pk, proposal, tool)
        assert (past.compared, len(past.covered)) == (6, 2)

    def test_the_replay_reproduces_the_verdicts_until_the_stored_grant_changes(
        self, shop: Shop, runs: dict[int, bool]
    ) -> None:
        assert count_replayed() == {"equal": 3}
        change_customer()
        assert count_replayed() == {"equal": 2, "different": 1}

    @pytest.mark.parametrize("is_changed", [False, True])
    def test_the_start_needs_a_person_only_if_the_stored_grant_has_changed(
        self, shop: Shop, is_changed: bool
    ) -> None:
        grant(shop.workshop, CANCEL, OF_ADA)
        run = shop.work(look_up(shop, "A-1001"))
        shop.workshop.play(asking(cancel("A-1001")))
        shop.workshop.say(run, "Now cancel it")
        die_while_executing(run)
        assert len(answered(run)) == 1
        if is_changed:
            change_customer()
        run = resume(shop.workshop, run)
        assert is_waiting(run) is is_changed


def change_customer() -> None:
    """Change the customer in the stored grant, because results of ended calls cannot change."""
    (made,) = StandingGrant.objects.all()
    made.conditions[0]["value"]["sources"][0]["where"][0]["value"] = "Bob"
    made.save()


def count_replayed() -> Counter[str]:
    bounded = find_bounds(CallFilter(None), None)
    assert bounded is not None
    return sum((part.preapprovals for part in replay(bounded)), Counter())
