"""Sentences about events, for the panel, the transcript and the replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents.runs.engine.ending import CUT_OFF_WORDS
from agents.runs.engine.transaction import MACHINE

UNDOABLE = "Waiting a moment: the approval can still be undone"
RESOLUTIONS = {
    "succeeded": "It happened, reported by",
    "not_done": "It did not happen, reported by",
    "failed": "It did not happen, reported by",
    "acknowledged": "It happened late. Acknowledged by",
}
"""The outcomes of `call_resolved`: `failed` is the executor's word for a person's `not_done`."""


def describe_shortening(payload: Mapping[str, Any]) -> str:
    """Describe `history_shortened`: the shortened results and texts, and the tokens before and after."""
    parts = [_count(payload["results"], "result"), _count(payload["texts"], "text")]
    tokens = f"about {payload['tokens_before']:,} → {payload['tokens_after']:,} tokens"
    shortened = _join([part for part in parts if part])
    return f"Earlier results were shortened to fit the model's context: {shortened}, {tokens}."


def describe_cut(payload: Mapping[str, Any]) -> str:
    """Describe `answer_cut`: the reason why the answer is incomplete."""
    return CUT_OFF_WORDS.get(str(payload["cut_off"]), "The answer is incomplete.")


def describe_delay(payload: Mapping[str, Any]) -> str:
    """Describe the failure behind `provider_delayed`, as the beginning of a sentence."""
    return "The answer was unusable" if payload["code"] == "answer_cut" else "The model could not be asked"


def describe_usage(payload: Mapping[str, Any]) -> str:
    """Describe `usage_reported`: `The model's server reported the usage of pass 2: 1,200 + 80 tokens.`"""
    tokens = f"{payload['input_tokens']:,} + {payload['output_tokens']:,} tokens"
    return f"The model's server reported the usage of pass {payload['pass_number']}: {tokens}."


def describe_waits(payload: Mapping[str, Any]) -> str:
    """List the reasons of `run_waiting`: `2 decisions, an answer and Kim`; empty if nobody has to act."""
    decisions = payload.get("decisions", len(payload["approval_ids"]))
    parts = [_one_or_more(decisions, "a decision", "decisions")]
    parts += [_one_or_more(payload.get("answers", 0), "an answer", "answers"), *payload.get("colleagues", ())]
    return _join([part for part in parts if part])


def describe_resolution(payload: Mapping[str, Any]) -> str:
    """Describe `call_resolved`: `It did not happen, reported by ada`."""
    outcome, by = str(payload["outcome"]), payload.get("by")
    if outcome == "late_report":
        return "Reported late"
    return f"{RESOLUTIONS.get(outcome, 'Resolved by')} {'Gadget' if by in ('', None, MACHINE) else by}"


def _join(parts: Sequence[str]) -> str:
    *most, last = parts or [""]
    return f"{', '.join(most)} and {last}" if most else last


def _one_or_more(number: int, one: str, many: str) -> str:
    return one if number == 1 else f"{number:,} {many}" if number else ""


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}" if number else ""
