"""Recorded calls of real runs are replayed under their own snapshots and facts: every verdict is
reproduced."""

from __future__ import annotations

import json
import os
import random
import secrets
from collections import Counter
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError

from agents.accounts.models import Organization
from agents.employees.models import Grant, ToolRule
from agents.policy import replay as replays
from agents.policy.recorded_calls import CallFilter
from agents.policy.replay import ReplayReport, find_bounds, replay
from agents.runs.models import Pass, PolicySnapshot, RunStatus, ToolCall
from agents.runs.snapshots import UnreadableSnapshot, load_snapshot
from tests.employees.random_permissions import World
from tests.features import feature
from tests.policy.random_runs import RandomRuns
from tests.recorder import Recorder
from tests.workshop import Workshop, asking, call
from tools.caches import clear_caches
from tools.contract import Level
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)

SEED_VARIABLE = "GADGET_TEST_SEED"
HISTORIES = 4
RUNS = 40


def replay_all(organization: Organization | None = None) -> ReplayReport:
    whole = ReplayReport()
    bounded = find_bounds(CallFilter(organization.pk if organization else None), None)
    for part in replay(bounded) if bounded else ():
        whole.counts += part.counts
        whole.differences += part.differences
        whole.unreadable |= part.unreadable
    return whole


def test_random_histories_are_reproduced_exactly(
    workshop: Workshop, recorder: Recorder, toolbox: Toolbox
) -> None:
    seed = int(os.environ.get(SEED_VARIABLE) or secrets.randbelow(10**6))
    print(f"{SEED_VARIABLE}={seed} repeats this")
    with World(workshop, recorder, random.Random(seed)) as world:
        for _ in range(HISTORIES):
            world.live()
    report = replay_all()
    print(dict(report.counts))
    assert report.counts == Counter(equal=ToolCall.objects.count()), "\n".join(report.differences)
    assert PolicySnapshot.objects.count() > HISTORIES / 2


@feature(
    "The gate",
    "Recorded calls are replayed under the rules and facts of their time, and every difference is named",
    "agents/policy/replay.py",
)
def test_random_runs_are_reproduced_while_rules_change(workshop: Workshop) -> None:
    seed = int(os.environ.get(SEED_VARIABLE) or secrets.randbelow(10**6))
    print(f"{SEED_VARIABLE}={seed} repeats this")
    runs = RandomRuns(workshop, random.Random(seed))
    for _ in range(RUNS):
        runs.live()
    report = replay_all()
    print(dict(runs.figures), dict(report.counts))
    assert report.counts == Counter(equal=ToolCall.objects.count()), "\n".join(report.differences)


def test_every_kind_of_call_is_reproduced(workshop: Workshop) -> None:
    """A read, a write with a card, a tool that is not granted, one that does not exist, and invalid
    params."""
    workshop.record()
    workshop.play(
        asking(
            call("probe.clock"),
            call("data.updateRecord", record_id="1", changes={"phone": "+1 555 0100"}),
            call("data.importRecords", text="name\nAcme"),
            call("no.suchTool"),
            call("data.searchRecords", limit="many"),
        )
    )
    workshop.work()
    report = replay_all()
    assert report.counts == Counter(equal=5), "\n".join(report.differences)
    assert {(row.judgment or {})["verdict"] for row in ToolCall.objects.all()} >= {
        "auto",
        "ask",
        "forbidden",
    }


def two_runs(workshop: Workshop) -> tuple[ToolCall, ToolCall]:
    workshop.play(asking(call("probe.clock")))
    return tuple(ToolCall.objects.get(run=workshop.work()) for _ in range(2))  # type: ignore[return-value]


@feature(
    "The gate",
    "Each pass names the rules by which its calls were judged; equal rules are stored once",
    "agents/runs/snapshots.py",
)
def test_the_same_rules_are_stored_once_and_changed_rules_are_stored_separately(
    workshop: Workshop,
) -> None:
    first, second = two_runs(workshop)
    names = list(Pass.objects.values_list("snapshot", flat=True))
    assert len(set(names)) == 1
    assert PolicySnapshot.objects.get().hash == names[0]
    ToolRule.objects.create(organization=workshop.organization, tool="probe.clock", level="write")
    run = workshop.work()
    assert Pass.objects.get(run=run, number=1).snapshot != names[0]
    assert PolicySnapshot.objects.count() == 2
    assert replay_all().counts == Counter(equal=3)
    assert first.pk != second.pk


def test_a_changed_verdict_is_reported_as_a_difference(workshop: Workshop) -> None:
    changed, _ = two_runs(workshop)
    judgment = {**(changed.judgment or {}), "verdict": "ask"}
    ToolCall.objects.filter(pk=changed.pk).update(judgment=judgment)
    report = replay_all()
    assert report.counts == Counter(equal=1, different=1)
    assert report.differences == [f"call {changed.pk}: verdict 'ask', replayed 'auto'"]
    with pytest.raises(CommandError, match="1 of 2 calls do not match their records"):
        call_command("replay_policy", processes=1, stdout=StringIO())


def test_a_replay_does_not_use_the_current_rules(workshop: Workshop) -> None:
    two_runs(workshop)
    Grant.objects.all().delete()
    assert replay_all().counts == Counter(equal=2)


def test_a_damaged_snapshot_is_reported(workshop: Workshop) -> None:
    two_runs(workshop)
    stored = PolicySnapshot.objects.get()
    rules = json.loads(stored.rules)
    rules["policy"]["strict_capabilities"] = not rules["policy"]["strict_capabilities"]
    PolicySnapshot.objects.update(rules=json.dumps(rules))
    report = replay_all()
    assert report.counts == Counter(unreadable=2)
    assert "was changed" in next(iter(report.unreadable))
    PolicySnapshot.objects.update(rules="{")
    with pytest.raises(UnreadableSnapshot, match="cannot be read"):
        load_snapshot(workshop.organization.pk, stored.hash)
    said = StringIO()
    with pytest.raises(CommandError):
        call_command("replay_policy", processes=1, stdout=said)
    assert "2 have a snapshot or facts that cannot be read: not replayed" in said.getvalue()


def test_calls_with_missing_erased_or_pruned_records_are_never_equal(workshop: Workshop) -> None:
    erased, pruned = two_runs(workshop)
    missing = ToolCall.objects.get(run=workshop.work())
    ToolCall.objects.filter(pk=erased.pk).update(judgment={"erased": True}, params={})
    ToolCall.objects.filter(pk=pruned.pk).update(judgment=None)
    ToolCall.objects.filter(pk=missing.pk).update(
        judgment={**(missing.judgment or {}), "snapshot": "0" * 64}
    )
    assert replay_all().counts == Counter(erased=1, pruned=1, missing=1)
    said = StringIO()
    call_command("replay_policy", processes=1, stdout=said)
    for line in (
        "0 equal",
        "0 different",
        "1 erased",
        "1 kept no facts or no snapshot",
        "000000000000 is missing",
    ):
        assert line in said.getvalue()


def test_a_snapshot_that_cannot_be_stored_does_not_stop_a_run(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise DatabaseError("full")

    workshop.play(asking(call("probe.clock")))
    with monkeypatch.context() as patch:
        patch.setattr(PolicySnapshot.objects, "bulk_create", fail)
        run = workshop.work()
    assert run.status == RunStatus.SUCCEEDED
    assert not PolicySnapshot.objects.exists()
    assert replay_all().counts == Counter(missing=1)
    workshop.work()  # the next pass stores it
    assert replay_all().counts == Counter(equal=2)


def test_a_snapshot_stored_by_another_process_is_not_stored_again(workshop: Workshop) -> None:
    two_runs(workshop)
    clear_caches()
    workshop.work()
    assert PolicySnapshot.objects.count() == 1


def test_an_edited_call_keeps_the_rules_of_its_edit(workshop: Workshop) -> None:
    record = workshop.record()
    params = {"record_id": str(record.pk), "changes": {"phone": "+1 555 0100"}}
    workshop.play(asking(call("data.updateRecord", **params)))
    run = workshop.work()
    ToolRule.objects.create(
        organization=workshop.organization, tool="data.updateRecord", level="destructive"
    )
    workshop.edit(workshop.card(run), {**params, "changes": {"phone": "+1 555 0199"}})
    edited = ToolCall.objects.get(run=run)
    assert edited.judgment is not None
    assert edited.judgment["snapshot"] != Pass.objects.get(run=run).snapshot
    assert edited.level == Level.DESTRUCTIVE.value
    assert replay_all().counts == Counter(equal=1)


def test_only_the_chosen_calls_are_replayed(workshop: Workshop) -> None:
    two_runs(workshop)
    said = StringIO()
    call_command(
        "replay_policy", organization=workshop.organization.slug, limit=1, processes=1, stdout=said
    )
    assert said.getvalue().startswith("1 calls replayed")
    other = Organization.objects.create(name="Globex", slug="globex")
    assert replay_all(other).counts == Counter()
    for wrong, message in (
        ({"organization": "nobody"}, "no organization with the slug 'nobody'"),
        ({"since": "soon"}, "'soon' is not a date"),
        ({"limit": 0}, "at least 1"),
    ):
        with pytest.raises(CommandError, match=message):
            call_command("replay_policy", stdout=StringIO(), **wrong)


def test_the_parts_of_a_replay_cover_every_call_once(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replays, "CALLS_AT_ONCE", 1)
    two_runs(workshop)
    bounded = find_bounds(CallFilter(None), None)
    assert bounded is not None
    parts = list(replay(bounded))
    assert len(parts) == (bounded.last_id or 0) - bounded.first_id + 1
    assert sum(part.counts["equal"] for part in parts) == 2


def test_limits_over_history_are_replayed_with_the_recorded_counts(workshop: Workshop) -> None:
    limit = {
        "param": "",
        "rule": "call_count",
        "value": {"most": 2, "period": "hour"},
        "otherwise": "forbid",
    }
    Grant.objects.filter(employee=workshop.employee, tool="probe.clock").update(conditions=[limit])
    workshop.play(asking(call("probe.clock")))
    for _ in range(3):
        workshop.work()
    verdicts = [(row.judgment or {})["verdict"] for row in ToolCall.objects.order_by("pk")]
    assert verdicts == ["auto", "auto", "forbidden"]
    assert replay_all().counts == Counter(equal=3)
    counted = ToolCall.objects.order_by("pk").first()
    assert counted is not None
    assert counted.judgment is not None
    facts = {name: value for name, value in counted.judgment["facts"].items() if name != "history"}
    ToolCall.objects.filter(pk=counted.pk).update(judgment={**counted.judgment, "facts": facts})
    assert replay_all().differences == [f"call {counted.pk}: the fact 'history' was not recorded"]
