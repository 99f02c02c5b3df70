"""The surroundings of the soak: a slow outside world, and people who start and cancel runs and
decide cards."""

from __future__ import annotations

import json
import random
import time
from collections import Counter

from django.db import OperationalError

from agents.approvals import resolutions
from agents.platform.refusals import Refusal
from agents.runs import actions
from agents.runs.models import ENDED, Approval, ApprovalKind, ApprovalStatus, Run
from tests.recorder import Recorder
from tests.workshop import Workshop

OPEN_RUNS = 12
SLOWEST_S = 0.6
SLOWEST_INSIDE_S = 0.1


class SlowRecorder(Recorder):
    """Counts every effect immediately, and replies after a random delay."""

    def __init__(self, chance: random.Random, host: str = "127.0.0.1") -> None:
        super().__init__(host)
        self._chance = chance

    def arrive(self, name: str, effect_key: str) -> None:
        super().arrive(name, effect_key)
        time.sleep(self._chance.uniform(0, SLOWEST_INSIDE_S if name == "inside" else SLOWEST_S))


def _call(tool: str, **params: str | int) -> dict[str, object]:
    return {"tool": tool, "params": params}


_GATES = [_call("probe.gate", name=f"g{number}") for number in range(3)]
_RENAME = _call(
    "probe.rename", record_id="{{ match.record | int }}", to="{{ match.to }}", gate="inside"
)
_AGAIN = _call("probe.rename", record_id="{{ match.record | int }}", to="{{ match.to }} again")
SCRIPTS = {
    "reads": [
        {"delay_ms": 200, "calls": _GATES},
        {"calls": [_call("probe.sleep", ms=200), _call("probe.draw", name="d")]},
    ],
    "pays": [
        {"delay_ms": 100, "calls": [_call("probe.effect", name="pay")]},
        {"delay_ms": 100, "calls": _GATES[:1]},
    ],
    "renames": [{"calls": [_RENAME]}, {"delay_ms": 100, "calls": [_AGAIN]}],
    "mixes": [
        {"delay_ms": 50, "calls": [_call("probe.effect", name="pay"), _RENAME, *_GATES[:2]]},
        {
            "delay_ms": 50,
            "calls": [_call("probe.effect", name="again"), _call("probe.doom", name="doom")],
        },
    ],
}


class People:
    """People who do a few things at each `act`; refused actions are only counted."""

    def __init__(self, workshop: Workshop, recorder: Recorder, chance: random.Random) -> None:
        self.refused: Counter[str] = Counter()
        self._workshop, self._recorder, self._chance = workshop, recorder, chance
        self._number = 0
        workshop.play_text(json.dumps({"scripts": [_script(name) for name in SCRIPTS]}))

    def act(self, start_more: bool) -> None:
        """Decide some cards; with `start_more`, first start missing runs and sometimes
        cancel one."""
        try:
            if start_more:
                self._start()
                self._cancel()
            self._decide()
        except (Refusal, OperationalError) as error:
            self.refused[type(error).__name__] += 1

    def _start(self) -> None:
        if Run.objects.exclude(status__in=ENDED).count() >= OPEN_RUNS:
            return
        self._number += 1
        record = self._workshop.record(name="Old")
        kind = self._chance.choice(list(SCRIPTS))
        self._workshop.submit(f"{kind} record {record.pk} to New{self._number}")

    def _cancel(self) -> None:
        if self._chance.random() > 0.01:
            return
        run = Run.objects.exclude(status__in=ENDED).order_by("?").first()
        if run is not None:
            actions.cancel(self._workshop.operator, run.pk)

    def _decide(self) -> None:
        pending = (
            Approval.objects.filter(status=ApprovalStatus.PENDING)
            .select_related("tool_call")
            .order_by("pk")
        )
        for card in pending[:3]:
            if self._chance.random() < 0.2:
                continue
            if card.kind == ApprovalKind.UNKNOWN:
                self._resolve(card)
            elif self._chance.random() < 0.1:
                self._workshop.deny(card)
            else:
                self._workshop.approve(card, grace_s=self._chance.choice((0, 0, 0, 1)))

    def _resolve(self, card: Approval) -> None:
        """Resolve the card as a person would who looks at the effects outside."""
        happened = self._recorder.effects[card.tool_call.idempotency_key]
        outcome = "succeeded" if happened else "not_done"
        resolutions.resolve(
            self._workshop.approver, card.tool_call_id, outcome, "Looked at it outside."
        )


def _script(name: str) -> dict[str, object]:
    task = rf"^{name} record (?P<record>\d+) to (?P<to>\w+)$"
    return {"title": name, "task": task, "passes": SCRIPTS[name], "answer": "Done."}
