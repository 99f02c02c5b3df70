"""Keep a model's response on the run if its pass could not be recorded, so that the response is
paid for only once.

The run's next driver uses the kept response and sends no other request.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from agents.platform.error_boundary import log_and_continue
from agents.providers.base import (
    ContextWindow,
    CutOff,
    ModelResponse,
    ProviderError,
    ProviderStopped,
    RequestedCall,
    Usage,
)
from agents.runs.engine.context import RunContext
from agents.runs.engine.history import WAS_TOO_LONG, History, read_window
from agents.runs.engine.lease import Lease, LeaseLost
from agents.runs.engine.transaction import Action, LostRace, NextStep
from agents.runs.models import Run
from tools.contract.canonical import make_storable

logger = logging.getLogger(__name__)
CountUsage = Callable[[Run, Usage], int]
"""A function that adds a response's usage to its run and returns the cost in micros."""

_NOT_OURS = (LeaseLost, LostRace, ProviderError, ProviderStopped)
"""The failures after which another driver has the run, or there is no response to keep."""


@dataclass(frozen=True)
class KeptResponse:
    """A response stored on the run.

    Attributes:
        messages_upto: the number of the last message by a person in the request.
        refused: set if an earlier request was refused as too long for this window.
    """

    response: ModelResponse
    duration_ms: int
    messages_upto: int
    refused: ContextWindow | None


class UnrecordedResponse(Protocol):
    """The response of a pass that is about to be recorded."""

    @property
    def context(self) -> RunContext: ...
    @property
    def history(self) -> History: ...
    @property
    def response(self) -> ModelResponse: ...
    @property
    def duration_ms(self) -> int: ...
    @property
    def is_kept(self) -> bool: ...


def keep_after_failure(
    lease: Lease, step: NextStep, received: UnrecordedResponse, count: CountUsage
) -> None:
    """Store the response on the run and count its usage, unless it is stored already or another
    driver has the run; call this in `finally`."""
    if not received.is_kept and not isinstance(sys.exc_info()[1], _NOT_OURS):
        with log_and_continue(f"keeping the response of run {lease.run_id}"):
            _keep(lease, step, received, count)


def find_kept_response(run: Run, step: NextStep) -> KeptResponse | None:
    """Return the response that was stored on the run for the pass of this step; None if there is
    none."""
    kept: dict[str, Any] | None = run.kept_answer
    if kept is None or (kept["number"], kept["closing"]) != _identify(run, step):
        return None
    stored = kept["response"]
    response = ModelResponse(
        message=stored["message"],
        text=stored["text"],
        calls=tuple(RequestedCall(**call) for call in stored["calls"]),
        usage=Usage(**stored["usage"]),
        thought=stored["thought"],
        cut_off=CutOff(stored["cut_off"]),
    )
    return KeptResponse(
        response, kept["duration_ms"], kept["messages_upto"], read_window(kept["was_too_long"])
    )


def _identify(run: Run, step: NextStep) -> tuple[int, bool]:
    return run.pass_number + 1, step.action == Action.ASK_FOR_ANSWER


def _keep(lease: Lease, step: NextStep, received: UnrecordedResponse, count: CountUsage) -> None:
    """Store the response in a transaction that does not decide the next step, because the driver
    has failed."""
    response, context = received.response, received.context
    with lease.transaction() as tx:
        run = tx.run
        run.employee, run.organization = context.run.employee, context.run.organization
        run.kept_answer = make_storable(
            {
                "number": context.run.pass_number + 1,
                "closing": step.action == Action.ASK_FOR_ANSWER,
                "response": {
                    "message": response.message,
                    "text": response.text,
                    "calls": [asdict(call) for call in response.calls],
                    "usage": asdict(response.usage),
                    "thought": response.thought,
                    "cut_off": response.cut_off.value,
                },
                "duration_ms": received.duration_ms,
                "messages_upto": received.history.messages_upto,
                "was_too_long": received.history.flags.get(WAS_TOO_LONG),
            }
        )
        count(run, response.usage)
        tx.step_continues = True
    logger.warning("run %s: its pass could not be recorded; the response is kept", lease.run_id)
