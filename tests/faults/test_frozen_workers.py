"""A frozen worker is replaced; its runs continue on another worker, and a crash is counted."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings

from agents.runs.models import Event, EventType, RunStatus
from gadget_site.management.parts_output import PartsOutput
from gadget_site.management.processes import build_sweeper_process, build_worker_process
from gadget_site.management.supervisor import Supervisor
from tests.awaiting import await_that
from tests.faults.site import Site, reload


@contextmanager
def supervised(site: Site, output: io.StringIO) -> Iterator[None]:
    """Run a worker under a supervisor during the block."""
    worker = build_worker_process(1)
    environment = {**site.installation.environment, **worker.environment}
    supervisor, over = Supervisor(Path(settings.BASE_DIR), PartsOutput(output)), threading.Event()
    supervisor.start(replace(worker, environment=environment))

    def watch() -> None:
        while not over.is_set():
            supervisor.watch(0.1)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()
        supervisor.stop()


def test_a_frozen_worker_is_replaced_and_its_run_continues(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gadget_site.management.supervisor.FROZEN_AFTER_S", 4.0)
    output = io.StringIO()
    site.start(build_sweeper_process())
    with supervised(site, output):
        await_that(lambda: "worker ready" in output.getvalue(), output.getvalue, 30)
        run = site.submit(
            "Freeze", {"calls": [{"tool": "probe.freeze", "params": {"name": "once"}}]}
        )
        await_that(
            lambda: reload(run).crash_count == 1, lambda: site.describe(run) + output.getvalue(), 30
        )
        site.await_status(run, RunStatus.SUCCEEDED)
    assert "no heartbeat for 4 s; killing it" in output.getvalue()
    assert (
        Event.objects.filter(run=run, type=EventType.RUN_RESUMED, payload__by="gadget").count() == 1
    )
