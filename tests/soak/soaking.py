"""The soak itself: trouble during work, then calm until all runs have ended, then the checks."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from agents.accounts.models import AuditEntry
from agents.runs.models import ENDED, CallStatus, ExitReason, Run, ToolCall
from tests.awaiting import POLL_S
from tests.faults.site import Site
from tests.soak.trouble import Trouble
from tests.soak.watch import Watch
from tests.soak.world import People
from tests.workshop.invariants import assert_invariants
from tools.office.records.models import Record

SETTLES_WITHIN_S = 120.0
REPORT_EVERY = 25
_OUTSIDE = ("probe.effect", "probe.doom")
_EXPECTED_ENDS = (
    ExitReason.FINAL_ANSWER,
    ExitReason.ALL_TOOLS_DUPLICATE,
    ExitReason.MAX_PASSES,
    ExitReason.CANCELLED,
    ExitReason.CRASH_LOOP,
)


@dataclass(frozen=True)
class Plan:
    """The number of times that the installation is harmed, the time limit in seconds, and the
    source of every random choice."""

    harms: int
    seconds: float
    chance: random.Random


def soak(site: Site, trouble: Trouble, plan: Plan) -> tuple[dict[str, object], list[str]]:
    """Run the soak; return the figures, and a sentence for every broken promise."""
    began = time.monotonic()
    watch = Watch()
    people = People(site.workshop, site.recorder, plan.chance)

    def live(harmful: bool) -> None:
        trouble.replace_the_dead()
        people.act(start_more=harmful)
        if harmful:
            trouble.act()
        watch.look(a_worker_is_free=bool(trouble.ready_workers()))

    def has_harmed(goal: int) -> bool:
        return trouble.done[trouble.unit] >= goal

    for goal in [*range(REPORT_EVERY, plan.harms, REPORT_EVERY), plan.harms]:
        _until(partial(has_harmed, goal), began + plan.seconds, lambda: live(harmful=True))
        print(
            f"  {trouble.done[trouble.unit]} {trouble.unit} after {time.monotonic() - began:.0f} s",
            flush=True,
        )
    trouble.calm_down()
    is_settled = _until(
        lambda: not _open_runs(), time.monotonic() + SETTLES_WITHIN_S, lambda: live(harmful=False)
    )
    faults = [*trouble.alarms, *watch.faults(), *_list_broken_promises(site)]
    if not has_harmed(plan.harms):
        faults.append(
            f"only {trouble.done[trouble.unit]} of {plan.harms} {trouble.unit} in {plan.seconds:.0f} s"
        )
    if not site.recorder.effects:
        faults.append("no write took effect: nothing could have been done twice")
    if not is_settled:
        faults += [f"not settled: run {run.pk} is {run.status}" for run in _open_runs()]
    figures: dict[str, object] = {
        **dict(trouble.done),
        "runs": _count_ends(),
        "calls": dict(Counter(ToolCall.objects.values_list("status", flat=True))),
        "effects outside": sum(site.recorder.effects.values()),
        "unknown outcomes": AuditEntry.objects.filter(action="outcome_unknown").count(),
        "settled by people": AuditEntry.objects.filter(action="outcome_resolved").count(),
        "late reports": AuditEntry.objects.filter(action="late_report").count(),
        "refused actions": dict(people.refused),
        "longest unclaimed": f"{watch.longest_undriven_s:.1f} s",
        "seconds": round(time.monotonic() - began),
    }
    return figures, faults


def report(figures: dict[str, object], faults: list[str]) -> int:
    """Print the figures and faults; return the exit code."""
    for name, value in figures.items():
        print(f"  {name}: {value}", flush=True)
    for fault in faults:
        print(f"  BROKEN {fault}", flush=True)
    return 1 if faults else 0


def _until(reached: Callable[[], bool], deadline: float, live: Callable[[], None]) -> bool:
    while not reached():
        if time.monotonic() > deadline:
            return False
        live()
        time.sleep(POLL_S)
    return True


def _open_runs() -> list[Run]:
    return list(Run.objects.exclude(status__in=ENDED))


def _count_ends() -> dict[str, int]:
    ends = Run.objects.values_list("status", "exit_reason")
    return dict(Counter(f"{status}: {reason}" for status, reason in ends))


def _list_broken_promises(site: Site) -> list[str]:
    """Check the invariants, and compare every call with its recorded effects and with the records
    that it changed."""
    faults = []
    try:
        assert_invariants()
    except AssertionError as error:
        faults += str(error).splitlines()
    for run in Run.objects.filter(status__in=ENDED).exclude(exit_reason__in=_EXPECTED_ENDS):
        faults.append(f"run {run.pk} ended as {run.exit_reason}: {run.problem}")
    effects = site.recorder.effects
    faults += [
        f"I1: the effect {key} happened {count} times"
        for key, count in effects.items()
        if count > 1
    ]
    for call in ToolCall.objects.filter(tool__in=_OUTSIDE):
        happened = effects[call.idempotency_key]
        if happened and not call.attempts:
            faults.append(f"call {call.pk} was never started, but had an effect")
        if call.status == CallStatus.SUCCEEDED and not happened:
            faults.append(f"call {call.pk} succeeded, but had no effect")
    renamed = Counter(
        call.params["record_id"]
        for call in ToolCall.objects.filter(tool="probe.rename", status=CallStatus.SUCCEEDED)
    )
    for record in Record.objects.all():
        if record.version != 1 + renamed[record.pk]:
            faults.append(
                f"record {record.pk} has version {record.version} after {renamed[record.pk]} renames"
            )
    return faults
