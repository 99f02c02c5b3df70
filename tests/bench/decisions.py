"""The time from an approval to the tool's start and to the run's end, through web, queue and
worker."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents.runs.models import CallStatus, ToolCall
from tests.bench.browser import Browser, browsing
from tests.bench.figures import Figure, latency, rounds
from tests.bench.site import Worksite, succeeded, worksite
from tests.processes import Installation
from tools.office.records.models import Record

AIM_MS = 60.0
PATIENCE_S = 12.0


@dataclass(frozen=True)
class _Decided:
    """The times of one decision, in seconds since its request was sent."""

    answered: float
    started: float
    ended: float
    shown: float


def approvals(installation: Installation, samples: int) -> list[Figure]:
    """Measure runs one after another on an idle machine: each run waits until a person approves its
    call, and then continues to its answer."""
    with worksite([{"text": "Done."}]) as site, browsing(installation.url, site.token) as browser:
        record = Record.objects.create(
            organization=site.employee.organization,
            name="Acme Corp",
            region="EU",
            category="Software",
            status="active",
        )
        own = _measured(site, browser, samples, lambda number: _update(record, number))
        assert Record.objects.get(pk=record.pk).version == record.version + len(own) + 1
        outside = _measured(site, browser, samples, _effect)
    return [
        latency("approve → run's end: own database", [each.ended for each in own], AIM_MS),
        latency("approve → run's end on the screen: own database", [each.shown for each in own]),
        latency("approve → tool's start: own database", [each.started for each in own]),
        latency("approve → run's end: outside", [each.ended for each in outside], AIM_MS),
        latency("approve → run's end on the screen: outside", [each.shown for each in outside]),
        latency("approve → tool's start: outside", [each.started for each in outside]),
        latency("approve → response to the request", [each.answered for each in own + outside]),
    ]


def _update(record: Record, number: int) -> dict[str, Any]:
    changes = {"status": "inactive" if number % 2 == 0 else "active"}
    return {
        "tool": "data.updateRecord",
        "params": {"record_id": str(record.pk), "changes": changes},
    }


def _effect(number: int) -> dict[str, Any]:
    return {"tool": "probe.effect", "params": {"name": f"effect {number}"}}


def _measured(
    site: Worksite, browser: Browser, samples: int, call_of: Callable[[int], dict[str, Any]]
) -> list[_Decided]:
    return [_decide(site, browser, call_of(number)) for number in rounds(samples, PATIENCE_S)][1:]


def _decide(site: Worksite, browser: Browser, call: dict[str, Any]) -> _Decided:
    site.enqueue({"calls": [call]}, {"text": "Done."})
    watched = browser.watch(browser.start_run(site.employee.pk))
    card = watched.first("approval_requested").payload
    watched.first("run_waiting")
    sent = time.time()
    browser.post(f"/approvals/{card['approval_id']}/approve", {"digest": card["digest"]})
    answered = time.time()
    shown = watched.first("run_finished").at
    run = succeeded(watched.run_id)
    done = ToolCall.objects.get(run=run)
    assert done.status == CallStatus.SUCCEEDED, f"{done.tool}: {done.status} {done.content}"
    return _Decided(
        answered - sent, _since(sent, done.started_at), _since(sent, run.finished_at), shown - sent
    )


def _since(sent: float, moment: datetime | None) -> float:
    assert moment is not None
    return moment.timestamp() - sent
