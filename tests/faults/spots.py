"""Bring runs to each point at which a worker may be killed, and check how they end."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from agents.runs.models import Approval, CallStatus, Run, RunStatus
from tests.faults.site import Site, effect, read, reload, rename
from tests.model_server import Response
from tests.workshop import calls, event_types, passes, statuses
from tools.office.records.models import Record

SETTLED_WITHIN_S = 60
CALL_AS_TEXT = '<tool_call>{"name": "probe__gate", "arguments": {"name": "read"}}</tool_call>'


@dataclass
class Spots:
    """Runs at the points at which a worker may be killed; `settle` checks how they end."""

    site: Site
    runs: dict[str, Run] = field(default_factory=dict)
    record: Record = field(default_factory=Record)
    card: Approval = field(default_factory=Approval)
    print_gate: str = "print"

    def bring(self, spot: str) -> None:
        getattr(self, f"_bring_{spot}")()

    def release(self) -> None:
        """Release the model and all gates for the next worker."""
        self.site.model.release()
        for gate in ("read", "pay", "inside", self.print_gate):
            self.site.recorder.release(gate)

    def settle(self, spot: str) -> None:
        getattr(self, f"_settle_{spot}")(self.runs[spot])

    def _bring_asking(self) -> None:
        self.site.model.hold()
        self.runs["asking"] = self.site.submit_to_model()
        self.site.model.wait_for_held(1, timeout=30)

    def _settle_asking(self, run: Run) -> None:
        done = self.site.await_status(run, RunStatus.SUCCEEDED, seconds=SETTLED_WITHIN_S)
        assert done.answer == "Done."
        assert len(passes(run)) == 1
        assert len(self.site.model.requests) == done.lease_epoch

    def _bring_asking_again(self) -> None:
        """Hold the second response in the middle; the first one is a call written as text."""
        self.site.model.enqueue(
            Response(text=CALL_AS_TEXT), Response(text="Half an answer.", hold="middle")
        )
        self.runs["asking_again"] = self.site.submit_to_model()
        self.site.model.wait_for_held(1, timeout=30)

    def _settle_asking_again(self, run: Run) -> None:
        done = self.site.await_status(run, RunStatus.SUCCEEDED, seconds=SETTLED_WITHIN_S)
        assert done.answer in ("Half an answer.", "Done.")
        assert len(passes(run)) == 1
        assert event_types(run).count("answer_unusable") == 1

    def _bring_printing(self) -> None:
        self.print_gate = f"print-{secrets.token_hex(4)}"
        self.site.recorder.hold(self.print_gate)
        printing = {"tool": "probe.print", "params": {"name": self.print_gate}}
        self.runs["printing"] = self.site.submit(self.print_gate, {"calls": [printing]})
        self.site.recorder.await_arrival(self.print_gate)

    def _settle_printing(self, run: Run) -> None:
        self.site.await_status(run, RunStatus.SUCCEEDED, seconds=SETTLED_WITHIN_S)
        (call,) = calls(run)
        assert call.status == CallStatus.SUCCEEDED
        assert call.attempts in (1, 2)
        assert call.result is not None
        assert [file["name"] for file in call.result["metadata"]["files"]] == ["page.txt"]

    def _bring_reading(self) -> None:
        self.site.recorder.hold("read")
        self.runs["reading"] = self.site.submit("Read", read("read"))
        self.site.recorder.await_arrival("read")

    def _settle_reading(self, run: Run) -> None:
        self.site.await_status(run, RunStatus.SUCCEEDED, seconds=SETTLED_WITHIN_S)
        (call,) = calls(run)
        assert (call.status, call.attempts) == (CallStatus.SUCCEEDED, 2)
        assert len(passes(run)) == 2

    def _bring_paying(self) -> None:
        self.site.recorder.hold("pay")
        self.runs["paying"] = run = self.site.submit("Pay", effect("pay"))
        self.site.approve_next(run)
        self.site.recorder.await_arrival("pay")

    def _settle_paying(self, run: Run) -> None:
        """Settle the unknown outcome of an effect that happened; the run then succeeds."""
        self.site.await_status(run, RunStatus.NEEDS_ATTENTION, seconds=SETTLED_WITHIN_S)
        assert statuses(run) == [CallStatus.OUTCOME_UNKNOWN]
        self.site.resolve(run, "succeeded")
        self.site.await_status(run, RunStatus.SUCCEEDED)
        (call,) = calls(run)
        assert (call.status, call.attempts) == (CallStatus.SUCCEEDED, 1)
        assert self.site.recorder.effects[call.idempotency_key] == 1

    def _bring_renaming(self) -> None:
        self.site.recorder.hold("inside")
        self.record = self.site.workshop.record(name="Old")
        self.runs["renaming"] = run = self.site.submit(
            "Rename", rename(self.record.pk, "New", "inside")
        )
        self.site.approve_next(run)
        self.site.recorder.await_arrival("inside")

    def _settle_renaming(self, run: Run) -> None:
        self.site.await_status(run, RunStatus.SUCCEEDED, seconds=SETTLED_WITHIN_S)
        (call,) = calls(run)
        assert (call.status, call.attempts) == (CallStatus.SUCCEEDED, 1)
        renamed = Record.objects.get(pk=self.record.pk)
        assert (renamed.name, renamed.version) == ("New", self.record.version + 1)
        assert event_types(run).count("tool_start") == 1

    def _bring_waiting(self) -> None:
        self.runs["waiting"] = run = self.site.submit("Wait", effect("later"))
        self.card = self.site.await_card(run)

    def _settle_waiting(self, run: Run) -> None:
        assert reload(run).crash_count == 0
        self.site.workshop.approve(self.card)
        self.site.await_status(run, RunStatus.SUCCEEDED, seconds=SETTLED_WITHIN_S)
        (call,) = calls(run)
        assert call.attempts == 1
        assert self.site.recorder.effects[call.idempotency_key] == 1

    def _bring_decided(self) -> None:
        """Pause every worker before the decision, so that no worker starts the approved call."""
        self.runs["decided"] = run = self.site.submit("Decide", effect("decided"))
        card = self.site.await_card(run)
        for worker in self.site.workers():
            self.site.pause(worker)
        self.site.workshop.approve(card)

    def _settle_decided(self, run: Run) -> None:
        self.site.await_status(run, RunStatus.SUCCEEDED, seconds=SETTLED_WITHIN_S)
        (call,) = calls(run)
        assert (call.status, call.attempts) == (CallStatus.SUCCEEDED, 1)
        assert self.site.recorder.effects[call.idempotency_key] == 1
