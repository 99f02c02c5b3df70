"""Calls that an agent requests from elsewhere: judged, recorded, approved and run like calls of an
employee."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.accounts.models import AuditEntry
from agents.employees.models import Employee, Grant
from agents.gateway.keys import revoke_key
from agents.gateway.models import AgentKey, AgentSession
from agents.gateway.requests import ToolRequest, record_request
from agents.gateway.sessions import find_or_create_session
from agents.gateway.tickets import Ticket, cancel_ticket, find_ticket, load_ticket
from agents.platform.refusals import Conflict, Forbidden, Invalid, NotFound
from agents.runs import actions, stops
from agents.runs.models import (
    TERMINAL_CALLS,
    Approval,
    ApprovalStatus,
    CallStatus,
    Origin,
    Run,
    RunStatus,
    ToolCall,
)
from tests.features import feature
from tests.gateway.conftest import make_key
from tests.probes import Effect, Fail
from tests.recorder import Recorder
from tests.workshop import (
    Workshop,
    again,
    all_at_once,
    calls,
    event_types,
    lose_worker,
    passes,
    payloads,
)
from tools.contract import ErrorCode, Level, ToolError, ToolResult
from tools.office.records.models import Record
from tools.toolbox.toolbox import Toolbox

MOST_STATEMENTS = 10
"""The maximum number of statements that find the run, load its grants, lock it, check the grants
again, and record the pass, the call and the events."""
SEARCH, UPDATE, EFFECT = "data.searchRecords", "data.updateRecord", Effect.name


def request(key: AgentKey, tool: str, session: Any = None, **params: Any) -> ToolCall:
    return record_request(key, session, ToolRequest(tool, params))


def update(workshop: Workshop, key: AgentKey, phone: str = "+49 1") -> ToolCall:
    """Request a change of the only record."""
    record = Record.objects.first() or workshop.record()
    return request(key, UPDATE, record_id=str(record.pk), changes={"phone": phone})


class TestARequestedRead:
    def test_is_executed_by_a_worker_and_leaves_its_run_resting(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        record = workshop.record(region="EU")
        call = request(key, SEARCH, region="EU")
        assert (call.status, call.run.origin, again(call.run).status) == (
            CallStatus.READY,
            Origin.MCP,
            RunStatus.QUEUED,
        )
        run = workshop.drive(call.run)
        assert (run.status, run.pass_number, run.lease_owner) == (RunStatus.WAITING, 1, "")
        assert run.next_wake_at is not None
        ticket = load_ticket(call.pk)
        assert ticket.has_ended
        assert ticket.result is not None
        assert ticket.result.data["records"][0]["id"] == str(record.pk)
        assert event_types(run) == ["run_started", "pass_started", "tool_start", "tool_result"]
        started = payloads(run, "run_started")
        assert started == [{"by": "acme-operator", "agent_key": "Laptop"}]
        assert run.created_by == workshop.operator.user, "the key's member is the one who asks"

    def test_that_is_refused_while_running_is_not_reported_as_an_unknown_tool(self) -> None:
        refused = ToolResult.failed(
            ToolError(ErrorCode.NOT_PERMITTED, "You may not delegate to Kim.")
        ).as_json()
        for status, is_unknown in ((CallStatus.FAILED, False), (CallStatus.REJECTED, True)):
            assert (
                Ticket(ToolCall(status=status, result=refused), str(status)).is_unknown_tool
                is is_unknown
            )

    def test_without_a_result_has_no_result_in_its_ticket(self) -> None:
        assert Ticket(ToolCall(status=CallStatus.CANCELLED), "cancelled").result is None

    @pytest.mark.parametrize(("code", "has_crashed"), [("", True), ("NOT_FOUND", False)])
    def test_that_crashed_is_distinguished_from_a_read_that_failed(
        self, workshop: Workshop, key: AgentKey, code: str, *, has_crashed: bool
    ) -> None:
        call = request(key, Fail.name, code=code)
        workshop.drive(call.run)
        assert load_ticket(call.pk).has_crashed == has_crashed

    @feature(
        "Agents elsewhere",
        "Each request is a recorded pass of the session's run",
        "agents/gateway/requests.py",
    )
    def test_is_a_separate_pass_of_the_shared_run_even_if_it_repeats_an_earlier_read(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        first, second = request(key, SEARCH, region="EU"), request(key, SEARCH, region="EU")
        assert first.run_id == second.run_id
        run = workshop.drive(first.run)
        assert [each.status for each in calls(run)] == [CallStatus.SUCCEEDED] * 2, (
            "an equal call is no duplicate"
        )
        assert [each.number for each in passes(run)] == [1, 2]
        (requested,) = passes(run)[0].response["tool_calls"]
        assert requested["function"] == {"name": SEARCH, "arguments": '{"limit":100,"region":"EU"}'}

    def test_executes_a_limited_number_of_statements(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        workshop.drive(request(key, SEARCH, region="EU").run)
        with CaptureQueriesContext(connection) as caught:
            call = request(key, SEARCH, region="EU")
        statements = [each["sql"].split()[0] for each in caught.captured_queries]
        assert (
            len([verb for verb in statements if verb in {"SELECT", "INSERT", "UPDATE"}])
            <= MOST_STATEMENTS
        )
        workshop.drive(call.run)
        with CaptureQueriesContext(connection) as caught:
            find_ticket(key, f"t-{call.pk}")
        assert len(caught) == 1

    def test_does_not_execute_statements_about_notices_even_if_a_card_is_open(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        def count_notices(act: Callable[[], ToolCall]) -> int:
            with CaptureQueriesContext(connection) as caught:
                act()
            return sum("notices_" in query["sql"] for query in caught)

        update(workshop, key)  # the run starts
        assert count_notices(lambda: update(workshop, key, "+49 2")) == 0
        assert count_notices(lambda: request(key, SEARCH, region="EU")) == 0
        workshop.drive(Run.objects.get())

    def test_shares_its_run_with_simultaneous_reads(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        all_at_once([lambda: request(key, SEARCH, region="EU")] * 5)
        run = Run.objects.get()
        workshop.drive(run)
        assert [each.status for each in calls(run)] == [CallStatus.SUCCEEDED] * 5

    def test_survives_the_loss_of_its_worker(
        self, workshop: Workshop, key: AgentKey, recorder: Recorder
    ) -> None:
        call = request(key, "probe.gate", name="a")
        recorder.hold("a")
        with workshop.driving(call.run):
            recorder.await_arrival("a")
            lose_worker(call.run)
            recorder.release("a")
        workshop.drive(call.run)
        assert load_ticket(call.pk).call.status == CallStatus.SUCCEEDED


class TestARequest:
    @pytest.mark.parametrize("value", [float("nan"), float("-inf"), "\0", "\ud800"])
    def test_is_refused_with_arguments_that_cannot_be_stored(
        self, key: AgentKey, value: Any
    ) -> None:
        with pytest.raises(Invalid, match="not valid JSON"):
            request(key, SEARCH, region=value)
        assert not Run.objects.exists()

    @pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 121])
    def test_is_refused_with_an_invalid_tool_name(self, key: AgentKey, name: str) -> None:
        with pytest.raises(Invalid):
            request(key, name)
        assert not Run.objects.exists()

    @feature(
        "Agents elsewhere",
        "A key that ends while a request is prepared asks nothing",
        "agents/gateway/keys.py",
    )
    @pytest.mark.parametrize("has_run", [False, True])
    @pytest.mark.parametrize("keeps_open", [False, True])
    def test_with_a_key_revoked_since_it_was_checked_is_refused_and_not_recorded(
        self, workshop: Workshop, key: AgentKey, has_run: bool, keeps_open: bool
    ) -> None:
        record = workshop.record()
        make_key(workshop, "approver")
        if has_run:
            workshop.drive(request(key, SEARCH).run)
        revoke_key(workshop.admin, key.pk, keeps_open=keeps_open)
        with pytest.raises(Conflict, match="no longer works"):
            request(key, UPDATE, record_id=str(record.pk), changes={"phone": "1"})
        assert Run.objects.count() == has_run
        assert not Approval.objects.exists()

    def test_is_not_refused_by_the_two_person_rule_but_its_member_cannot_decide_the_card(
        self, workshop: Workshop
    ) -> None:
        workshop.organization.four_eyes = True
        workshop.organization.save()
        card = workshop.card(update(workshop, make_key(workshop, "approver")).run)
        with pytest.raises(Forbidden):
            workshop.approve(card)
        workshop.approve(card, by=workshop.admin)

    def test_for_an_unknown_tool_is_refused_and_recorded(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        call = request(key, "data.nothing")
        assert (call.status, load_ticket(call.pk).is_unknown_tool) == (CallStatus.REJECTED, True)
        assert not load_ticket(request(key, SEARCH, limit=0).pk).is_unknown_tool
        assert not load_ticket(request(key, "x" * 120).pk).call.attempts, (
            "the longest name is recorded as well"
        )
        assert again(call.run).status == RunStatus.WAITING

    def test_is_refused_for_a_tool_without_a_grant(self, workshop: Workshop, key: AgentKey) -> None:
        Grant.objects.filter(employee=workshop.employee, tool=SEARCH).delete()
        assert request(key, SEARCH, region="EU").status == CallStatus.REJECTED

    def test_with_invalid_params_is_refused_and_the_refusal_names_them(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        call = request(key, SEARCH, limit=0)
        assert call.status == CallStatus.REJECTED
        assert "limit" in call.content

    def test_is_refused_with_unknown_params_such_as_a_level_or_an_approval(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        """A client that sends a level, an approval or another organization sends unknown params."""
        call = request(
            key, UPDATE, record_id="1", changes={}, level="read", approved=True, organization_id=7
        )
        assert call.status == CallStatus.REJECTED

    def test_is_refused_if_its_tool_has_the_name_of_an_ask(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        assert request(key, "ask/deploy").status == CallStatus.REJECTED

    def test_is_refused_during_a_stop(self, workshop: Workshop, key: AgentKey) -> None:
        stops.stop_everything(workshop.operator)
        with pytest.raises(Conflict):
            request(authenticated(key), SEARCH)
        assert not ToolCall.objects.exists()

    def test_is_refused_for_an_inactive_employee(self, workshop: Workshop, key: AgentKey) -> None:
        key.employee.is_active = False
        with pytest.raises(Conflict, match="not active"):
            request(key, SEARCH)

    def test_is_refused_once_the_budget_is_used_up(self, workshop: Workshop, key: AgentKey) -> None:
        spent = workshop.submit()
        Run.objects.filter(pk=spent.pk).update(input_tokens=1_000)
        Employee.objects.filter(pk=workshop.employee.pk).update(month_tokens=10)
        with pytest.raises(Conflict, match="has used"):
            request(authenticated(key), SEARCH)
        workshop.cancel(spent)

    def test_gets_a_run_to_which_people_cannot_send_messages_and_which_they_cannot_continue(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        run = request(key, SEARCH).run
        with pytest.raises(Conflict, match="no model"):
            workshop.say(run)
        with pytest.raises(Conflict, match="no model"):
            actions.continue_run(workshop.operator, run.pk)
        workshop.drive(run)


class TestATicket:
    def test_is_returned_again_for_the_same_write_even_if_the_target_is_gone(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        params = {"record_id": str(workshop.record().pk), "changes": {"phone": "+49 1"}}
        first = request(key, UPDATE, **params)
        Record.objects.all().delete()
        assert request(key, UPDATE, **params) == first

    def test_waits_for_a_person_without_occupying_a_worker(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        ticket = load_ticket(update(workshop, key).pk)
        assert (ticket.status, ticket.has_ended, ticket.ends_by_itself) == (
            "waiting_for_approval",
            False,
            False,
        )
        run = again(ticket.call.run)
        assert (run.status, run.next_wake_at) == (RunStatus.WAITING, None)
        card = workshop.card(run)
        assert ticket.card_id == card.pk
        described = ticket.describe("https://x/approvals/1/")
        assert set(described) == {"status", "ticket", "url", "expires_at"}

    @feature(
        "Agents elsewhere",
        "A write returns a ticket, and runs once it is approved, even if the agent is gone",
        "agents/gateway/tickets.py",
    )
    def test_is_executed_once_approved_even_if_the_agent_is_gone(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        call = update(workshop, key)
        workshop.approve(workshop.card(call.run))
        workshop.drive(call.run)
        found = find_ticket(key, f"t-{call.pk}")
        assert (found.call.status, found.call.attempts) == (CallStatus.SUCCEEDED, 1)
        assert again(call.run).next_wake_at is not None, "the run rests again"

    def test_of_a_denied_call_includes_the_reason(self, workshop: Workshop, key: AgentKey) -> None:
        call = update(workshop, key)
        workshop.deny(workshop.card(call.run), "wrong number")
        workshop.drive(call.run)
        ticket = find_ticket(key, f"t-{call.pk}")
        assert ticket.call.status == CallStatus.DENIED
        assert "wrong number" in ticket.content

    @feature(
        "Agents elsewhere",
        "A write that is sent again gets the ticket that is still open",
        "agents/gateway/requests.py",
    )
    def test_is_returned_again_for_the_same_write_while_the_call_is_open(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        first, second = update(workshop, key), update(workshop, key)
        assert first.pk == second.pk
        assert update(workshop, key, "+49 2").pk != first.pk
        assert update(workshop, make_key(workshop, name="Server")).pk != first.pk, (
            "another key has its own ticket"
        )
        workshop.deny(workshop.card(first.run))
        assert update(workshop, key).pk != first.pk, "a closed ticket is not returned"

    def test_with_an_unknown_outcome_prevents_repeating_the_call(
        self, workshop: Workshop, key: AgentKey, recorder: Recorder
    ) -> None:
        call = request(key, EFFECT, name="a")
        workshop.approve(workshop.card(call.run))
        recorder.hold("a")
        with workshop.driving(call.run):
            recorder.await_arrival("a")
            lose_worker(call.run)
            workshop.drive(call.run)
            assert load_ticket(call.pk).status == "outcome_unknown"
            assert request(key, EFFECT, name="a").pk == call.pk
            workshop.resolve(again_call(call), "not_done")
            recorder.release("a")
        workshop.drive(call.run)
        late = ToolCall.objects.get(pk=call.pk)
        assert (late.status, late.late_effect is not None) == (CallStatus.FAILED, True)

    @feature(
        "Agents elsewhere", "A ticket opens with its own key alone", "agents/gateway/tickets.py"
    )
    def test_can_be_read_only_with_its_own_key(self, workshop: Workshop, key: AgentKey) -> None:
        call = update(workshop, key)
        other = make_key(workshop, "approver")
        for ticket in (f"t-{call.pk}", str(call.pk), "t-", "t-0", "t-99999999999999999999999"):
            with pytest.raises(NotFound):
                find_ticket(other, ticket)
        with pytest.raises(NotFound):
            find_ticket(key, str(call.pk))
        with pytest.raises(NotFound):
            cancel_ticket(other, f"t-{call.pk}")

    def test_does_not_exist_for_a_call_within_a_call(self, key: AgentKey) -> None:
        outer, inner = (request(key, EFFECT, name=name) for name in "ab")
        ToolCall.objects.filter(pk=inner.pk).update(parent_call=outer)
        assert find_ticket(key, f"t-{outer.pk}").call == outer
        with pytest.raises(NotFound):
            find_ticket(key, f"t-{inner.pk}")
        ToolCall.objects.filter(pk=inner.pk).update(parent_call=None)

    def test_names_its_own_open_card(self, workshop: Workshop, key: AgentKey) -> None:
        one, two = (request(key, EFFECT, name=name) for name in "ab")
        cards = [Approval.objects.get(tool_call=each) for each in (one, two)]
        assert [load_ticket(each.pk).card_id for each in (one, two)] == [each.pk for each in cards]
        Approval.objects.filter(pk=cards[0].pk).update(status=ApprovalStatus.SUPERSEDED)
        assert load_ticket(one.pk).card_id is None

    def test_can_be_cancelled_until_the_call_starts(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        call = update(workshop, key)
        assert cancel_ticket(key, f"t-{call.pk}").call.status == CallStatus.CANCELLED
        workshop.drive(call.run)
        assert again(call.run).status == RunStatus.WAITING
        assert cancel_ticket(key, f"t-{call.pk}").call.status == CallStatus.CANCELLED, (
            "again changes nothing"
        )
        assert AuditEntry.objects.filter(action="ticket_cancelled").count() == 1

    def test_cancelled_by_a_person_is_not_attributed_to_the_agent(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        call = update(workshop, key)
        workshop.cancel(call.run)
        assert cancel_ticket(key, f"t-{call.pk}").call.status == CallStatus.CANCELLED
        assert not AuditEntry.objects.filter(action="ticket_cancelled").exists()

    @feature(
        "Agents elsewhere",
        "Cancelling a ticket cancels all steps of its recipes",
        "agents/runs/engine/ending.py",
    )
    def test_of_a_recipe_cancels_all_nested_steps(self, workshop: Workshop, key: AgentKey) -> None:
        names = ("probe.nested", "probe.recipe", "data.getRecordDetail")
        Grant.objects.bulk_create([Grant(employee=workshop.employee, tool=name) for name in names])
        call = request(key, "probe.nested", record_id=workshop.record().pk)
        workshop.drive(call.run)
        card = workshop.card(call.run)
        assert card.tool_call.parent_call is not None
        assert card.tool_call.parent_call.parent_call_id == call.pk
        assert cancel_ticket(key, f"t-{call.pk}").call.status == CallStatus.CANCELLED
        card.refresh_from_db()
        assert card.status == ApprovalStatus.CANCELLED
        assert not ToolCall.objects.exclude(status__in=TERMINAL_CALLS).exists()
        workshop.drive(call.run)

    def test_can_be_cancelled_after_the_approval_and_before_the_start(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        call = update(workshop, key)
        workshop.approve(workshop.card(call.run))
        assert cancel_ticket(key, f"t-{call.pk}").call.status == CallStatus.CANCELLED
        workshop.drive(call.run)
        assert ToolCall.objects.get(pk=call.pk).attempts == 0

    def test_of_a_running_call_cannot_be_cancelled(
        self, workshop: Workshop, key: AgentKey, recorder: Recorder
    ) -> None:
        call = request(key, "probe.gate", name="a")
        recorder.hold("a")
        with workshop.driving(call.run):
            recorder.await_arrival("a")
            assert cancel_ticket(key, f"t-{call.pk}").status == "running"
            recorder.release("a")
        assert load_ticket(call.pk).call.status == CallStatus.SUCCEEDED

    def test_is_shared_by_simultaneous_identical_writes_in_many_sessions(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        made: list[int] = []
        sessions = [find_or_create_session(key, f"s{number}") for number in range(4)]

        def ask(session: AgentSession) -> None:
            made.append(record_request(key, session, ToolRequest(EFFECT, {"name": "a"})).pk)

        all_at_once([partial(ask, session) for session in sessions])
        assert len(set(made)) == 1

    def test_of_a_recipes_step_is_not_returned_for_the_same_call_outside_the_recipe(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        names = ("probe.recipe", "data.getRecordDetail", "probe.rename")
        Grant.objects.bulk_create(
            [Grant(employee=workshop.employee, tool=name) for name in names[:2]]
        )
        record = workshop.record()
        recipe = request(key, "probe.recipe", record_id=record.pk, to="New")
        workshop.drive(recipe.run)
        step = workshop.card(recipe.run).tool_call
        assert request(key, step.tool, **step.params).pk != step.pk

    def test_of_a_read_with_a_raised_level_waits_for_approval(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        workshop.raise_for_all(SEARCH, Level.WRITE)
        assert load_ticket(request(key, SEARCH).pk).status == "waiting_for_approval"


def authenticated(key: AgentKey) -> AgentKey:
    """Reload the key, as the next request does."""
    return AgentKey.objects.select_related("membership__user", "employee__organization").get(
        pk=key.pk
    )


def again_call(call: ToolCall) -> ToolCall:
    return ToolCall.objects.get(pk=call.pk)


def test_the_toolbox_knows_asks_but_does_not_list_them_as_tools(toolbox: Toolbox) -> None:
    assert toolbox.get_tool("ask/deploy") is not None, "cards of asks have a title"
    assert not [tool for tool in toolbox.tools() if tool.name.startswith("ask/")]
