"""Agent keys: how they are created, when they are valid, and what happens when they end."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from pytest_django import DjangoAssertNumQueries

from agents.accounts.membership import hash_secret
from agents.accounts.models import AuditEntry, Role
from agents.gateway import keys
from agents.gateway.keys import (
    MAX_DAYS,
    MAX_KEYS,
    MAX_REQUESTS_PER_MINUTE,
    authenticate_key,
    issue_key,
    list_keys,
    refuse_flood,
    revoke_key,
)
from agents.gateway.models import AgentKey, AgentSession
from agents.gateway.requests import ToolRequest, record_request
from agents.gateway.sessions import end_session, find_or_create_session
from agents.platform.refusals import Conflict, Forbidden, Invalid, NotFound, TooManyRequests
from agents.runs.models import Approval, CallStatus, Run, RunStatus
from agents.worker.sweeper import sweep_once
from tests.features import feature
from tests.gateway.conftest import make_key
from tests.recorder import Recorder
from tests.workshop import LONG_AGO, Workshop, again, build_workshop, calls


def make_secret(workshop: Workshop) -> str:
    return issue_key(workshop.operator, workshop.employee.pk, "Laptop", 30)[1]


class TestCreatingAKey:
    @feature(
        "Agents elsewhere",
        "An agent key belongs to a member and names an employee, expires, is shown once and stored as a hash",
        "agents/gateway/keys.py",
    )
    def test_stores_only_a_hash_of_the_secret(self, workshop: Workshop) -> None:
        key, secret = issue_key(workshop.operator, workshop.employee.pk, "  My \n laptop ", 30)
        assert (key.name, key.ending) == ("My laptop", secret[-4:])
        assert secret not in str(AgentKey.objects.values().get())
        (entry,) = AuditEntry.objects.filter(action="agent_key_created")
        assert secret not in str(entry.payload)

    def test_is_denied_to_a_viewer(self, workshop: Workshop) -> None:
        with pytest.raises(Forbidden):
            issue_key(workshop.members["viewer"], workshop.employee.pk, "Laptop", 30)

    def test_for_an_employee_of_another_organization_is_refused_as_not_found(
        self, workshop: Workshop
    ) -> None:
        with pytest.raises(NotFound):
            issue_key(workshop.operator, build_workshop("globex").employee.pk, "Laptop", 30)

    def test_for_an_inactive_employee_is_refused(self, workshop: Workshop) -> None:
        workshop.employee.is_active = False
        workshop.employee.save()
        with pytest.raises(Conflict, match="not active"):
            make_secret(workshop)

    @pytest.mark.parametrize(
        ("name", "days"), [("", 30), ("\u200b", 30), ("x" * 81, 30), ("x", 0), ("x", MAX_DAYS + 1)]
    )
    def test_reports_an_invalid_field(self, workshop: Workshop, name: str, days: int) -> None:
        with pytest.raises(Invalid):
            issue_key(workshop.operator, workshop.employee.pk, name, days)

    def test_accepts_a_name_and_a_lifetime_of_maximum_length(self, workshop: Workshop) -> None:
        for days in (1, MAX_DAYS):
            assert (
                issue_key(workshop.operator, workshop.employee.pk, "x" * 80, days)[0].name
                == "x" * 80
            )

    def test_is_refused_beyond_the_limit_of_keys_per_member(
        self, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert MAX_KEYS == 50
        monkeypatch.setattr(keys, "MAX_KEYS", 2)
        make_key(workshop, "approver")
        for _ in range(2):
            make_secret(workshop)
        with pytest.raises(Conflict, match="revoke one first"):
            make_secret(workshop)


class TestUsingAKey:
    def test_identifies_the_member_and_the_employee(self, workshop: Workshop) -> None:
        key = authenticate_key(make_secret(workshop))
        assert key is not None
        assert (key.membership, key.employee) == (workshop.operator, workshop.employee)
        assert key.last_used_at is None
        assert AgentKey.objects.get().last_used_at is not None

    def test_updates_the_time_of_last_use_only_for_that_key_and_at_most_once_in_a_while(
        self, workshop: Workshop
    ) -> None:
        secret, other = make_secret(workshop), make_key(workshop, "approver")
        AgentKey.objects.update(last_used_at=None)
        authenticate_key(secret)
        first = AgentKey.objects.exclude(pk=other.pk).get().last_used_at
        authenticate_key(secret)
        used, other_used = (
            AgentKey.objects.get(hash=hash_) for hash_ in (hash_secret(secret), other.hash)
        )
        assert (used.last_used_at, other_used.last_used_at) == (first, None)
        AgentKey.objects.filter(pk=used.pk).update(last_used_at=Now() - LONG_AGO)
        authenticate_key(secret)
        used.refresh_from_db()
        assert used.last_used_at is not None
        assert first is not None
        assert used.last_used_at >= first

    def test_fails_if_the_key_is_unknown(self, workshop: Workshop) -> None:
        assert authenticate_key("gadget_agent_unknown") is None

    def test_executes_no_query_for_a_text_that_cannot_be_a_key(
        self, workshop: Workshop, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        with django_assert_num_queries(0):
            assert authenticate_key("gadget_api_token") is None

    def test_is_refused_beyond_the_limit_of_requests_per_minute(self, key: AgentKey) -> None:
        for _ in range(MAX_REQUESTS_PER_MINUTE):
            refuse_flood(key)
        with pytest.raises(TooManyRequests):
            refuse_flood(key)

    def test_fails_if_the_key_has_expired(self, workshop: Workshop) -> None:
        secret = make_secret(workshop)
        AgentKey.objects.update(expires_at=Now() - timedelta(seconds=1))
        assert authenticate_key(secret) is None

    def test_fails_if_the_key_is_revoked(self, workshop: Workshop) -> None:
        secret = make_secret(workshop)
        revoke_key(workshop.operator, AgentKey.objects.get().pk)
        assert authenticate_key(secret) is None

    def test_fails_if_the_account_of_its_member_is_deactivated(self, workshop: Workshop) -> None:
        secret = make_secret(workshop)
        workshop.operator.user.is_active = False
        workshop.operator.user.save()
        assert authenticate_key(secret) is None

    def test_fails_if_its_member_lost_the_role(self, workshop: Workshop) -> None:
        secret = make_secret(workshop)
        workshop.operator.role = Role.VIEWER
        workshop.operator.save()
        assert authenticate_key(secret) is None

    def test_fails_if_its_employee_is_in_another_organization(self, workshop: Workshop) -> None:
        secret = make_secret(workshop)
        AgentKey.objects.update(employee=build_workshop("globex").employee)
        assert authenticate_key(secret) is None

    def test_fails_if_its_member_has_left(self, workshop: Workshop) -> None:
        secret = make_secret(workshop)
        workshop.operator.delete()
        assert authenticate_key(secret) is None
        assert AgentKey.objects.get().membership is None, "its runs stay attached to it"


class TestRevokingAKey:
    def test_is_possible_for_its_member_and_for_admins(self, workshop: Workshop) -> None:
        of_operator, of_approver = make_key(workshop), make_key(workshop, "approver")
        assert list(list_keys(workshop.operator)) == [of_operator]
        assert set(list_keys(workshop.admin)) == {of_operator, of_approver}
        with pytest.raises(NotFound):
            revoke_key(workshop.operator, of_approver.pk)
        assert (
            revoke_key(workshop.admin, of_approver.pk).revoked_by
            == workshop.admin.user.get_username()
        )
        assert list(AgentKey.usable()) == [of_operator], "and no other one"

    def test_is_impossible_for_admins_of_other_organizations(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        with pytest.raises(NotFound):
            revoke_key(build_workshop("globex").admin, key.pk)

    def test_twice_is_refused(self, workshop: Workshop, key: AgentKey) -> None:
        revoke_key(workshop.operator, key.pk)
        with pytest.raises(Conflict):
            revoke_key(workshop.operator, key.pk)

    def test_cancels_its_open_calls(self, workshop: Workshop, key: AgentKey) -> None:
        run = open_call(workshop, key)
        revoke_key(workshop.operator, key.pk)
        assert (again(run).status, calls(run)[0].status) == (
            RunStatus.CANCELLED,
            CallStatus.CANCELLED,
        )
        why = "The run was cancelled. The agent's key no longer works."
        assert Approval.objects.get().reason == why
        assert why in calls(run)[0].content

    def test_gives_the_reason_on_the_card_even_during_a_read(
        self, workshop: Workshop, key: AgentKey, recorder: Recorder
    ) -> None:
        run = open_call(workshop, key)
        record_request(key, None, ToolRequest("probe.gate", {"name": "a"}))
        recorder.hold("a")
        with workshop.driving(run):
            recorder.await_arrival("a")
            revoke_key(workshop.operator, key.pk)
            recorder.release("a")
        assert Approval.objects.get().reason.endswith("The agent's key no longer works.")
        assert again(run).status == RunStatus.CANCELLED

    @pytest.mark.parametrize("is_ended", [True, False])
    def test_finds_the_runs_to_cancel_among_many_other_runs(
        self, workshop: Workshop, key: AgentKey, monkeypatch: pytest.MonkeyPatch, *, is_ended: bool
    ) -> None:
        runs = []
        # The run to cancel is neither the first nor the last.
        for name in ("before", "open", "after"):
            session = find_or_create_session(key, name)
            if is_ended and name != "open":
                workshop.drive(
                    record_request(
                        key, session, ToolRequest("data.searchRecords", {"region": "EU"})
                    ).run
                )
                end_session(session)
            else:
                runs.append(open_call(workshop, key, session))
        if not is_ended:
            Run.objects.filter(pk__in=[runs[0].pk, runs[2].pk]).update(cancel_requested_at=Now())
        monkeypatch.setattr(keys, "CANCELLED_AT_ONCE", 1)
        revoke_key(workshop.operator, key.pk)
        assert again(runs[len(runs) // 2]).status == RunStatus.CANCELLED

    def test_cancels_the_runs_of_the_key_before_runs_of_other_keys(
        self, workshop: Workshop, key: AgentKey, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        others = [make_key(workshop, name=name) for name in ("before", "after")]
        runs = [open_call(workshop, each) for each in (others[0], key, others[1])]
        AgentKey.objects.filter(pk__in=[each.pk for each in others]).update(
            expires_at=Now() - LONG_AGO
        )
        monkeypatch.setattr(keys, "CANCELLED_AT_ONCE", 1)
        revoke_key(workshop.operator, key.pk)
        assert [again(run).status for run in runs] == [
            RunStatus.WAITING,
            RunStatus.CANCELLED,
            RunStatus.WAITING,
        ]

    def test_can_keep_open_calls_if_an_admin_asks_for_it(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        run = open_call(workshop, key)
        revoke_key(workshop.admin, key.pk, keeps_open=True)
        sweep_once()
        assert calls(run)[0].status == CallStatus.AWAITING_APPROVAL
        workshop.approve(workshop.card(run))
        workshop.drive(run)
        assert calls(run)[0].status == CallStatus.SUCCEEDED

    def test_cannot_keep_open_calls_if_a_member_asks_for_it(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        with pytest.raises(Forbidden):
            revoke_key(workshop.operator, key.pk, keeps_open=True)

    @feature(
        "Agents elsewhere",
        "A key ends with its member's account, role or membership, and cancels what it left open",
        "agents/gateway/keys.py",
    )
    @pytest.mark.parametrize("end", ["expiry", "role", "leaving"])
    def test_is_not_needed_to_cancel_calls_if_the_key_expires_or_its_member_may_no_longer_use_it(
        self, workshop: Workshop, key: AgentKey, end: str
    ) -> None:
        run = open_call(workshop, key)
        sweep_once()
        assert again(run).status == RunStatus.WAITING, "the key still works"
        if end == "expiry":
            AgentKey.objects.update(expires_at=Now() - LONG_AGO)
        elif end == "role":
            workshop.operator.role = Role.VIEWER
            workshop.operator.save()
        else:
            workshop.operator.delete()
        sweep_once()
        assert again(run).status == RunStatus.CANCELLED


def open_call(workshop: Workshop, key: AgentKey, session: AgentSession | None = None) -> Run:
    """Request a write that waits for approval."""
    record = workshop.record()
    params = {"record_id": str(record.pk), "changes": {"phone": "+49 1"}}
    return record_request(key, session, ToolRequest("data.updateRecord", params)).run
