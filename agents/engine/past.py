"""What a run's model has been told already: read once by whoever drives the run, since what has ended never changes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.engine.compaction import Sizes, sizes_of_message
from agents.models import Pass, ToolCall
from agents.statements import SMALL_STAND_INS, STAND_INS, Prepared

SENT_HARDER = "gadget_sent_harder"
"""Beside the model's message of a pass whose request was refused as too long before a shorter one was taken."""

_OF_PASSES = (STAND_INS[0], SMALL_STAND_INS[0])
"""The run, and the last pass that is known."""
_TOLD = Prepared(
    lambda run_id, known: (
        ToolCall.objects.filter(run_id=run_id, pass_number__gt=known)
        .order_by("pass_number", "index")
        .values_list(
            "pass_number", "provider_call_id", "content", "duplicate_of__content", "signature", "parent_call_id"
        )
    ),
    slots=_OF_PASSES,
)
_ANSWERED = Prepared(
    lambda run_id, known: (
        Pass.objects.filter(run_id=run_id, number__gt=known)
        .order_by("number")
        .values_list("number", "response", "messages_upto", "input_tokens", "usage_estimated")
    ),
    slots=_OF_PASSES,
)


class OpenCalls(RuntimeError):
    """A call of the run has not ended, so it is no time to ask the model."""


@dataclass(frozen=True)
class PastPass:
    """A recorded pass, as it is told.

    Attributes:
        heard: the number of the last message of a person that its request held.
        response: the model's message.
        results: the tool messages.
        sizes: of these, without what people had said.
    """

    number: int
    heard: int
    response: dict[str, Any]
    results: Sequence[dict[str, Any]]
    sizes: Sizes


@dataclass
class Past:
    """The passes of a run of which every call has ended, and the signatures of all calls in them.

    One driver's: passes come to a run only through it. Nothing in it is changed by whoever reads it.
    """

    passes: list[PastPass] = field(default_factory=list)
    signatures: set[str] = field(default_factory=set)

    def read_on(self, run_id: int) -> None:
        """Take in the passes that came since; costs two queries.

        Raises:
            OpenCalls: a call has no result yet; whoever drives the run asks only once all have.
        """
        known = self.passes[-1].number if self.passes else 0
        results: dict[int, list[dict[str, Any]]] = {}
        signatures = set()
        for number, call_id, own, earlier, signature, parent_id in _TOLD.rows(run_id, known):
            signatures.add(signature)
            if parent_id is not None:
                continue
            if (content := own or earlier) is None:
                raise OpenCalls(f"run {run_id}: a call of pass {number} has no result")
            results.setdefault(number, []).append({"role": "tool", "tool_call_id": call_id, "content": content})
        self.passes += [_past(row, results.get(row[0], [])) for row in _ANSWERED.rows(run_id, known)]
        self.signatures |= signatures


def _past(row: tuple[Any, ...], results: list[dict[str, Any]]) -> PastPass:
    number, response, heard, input_tokens, is_estimated = row
    harder = response.pop(SENT_HARDER, False)
    whole, text = sizes_of_message(response)
    lengths = [len(each["content"]) for each in results]
    return PastPass(
        number, heard, response, results, Sizes(0, whole, text, lengths, 0 if is_estimated else input_tokens, harder)
    )
