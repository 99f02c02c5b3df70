"""What some events say, in words that the panel and the transcript share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def shortened(payload: Mapping[str, Any]) -> str:
    """Of `history_shortened`: `Earlier results were shortened … : 3 results, about 21,000 → 14,500 tokens.`"""
    parts = [_counted(payload["results"], "result"), _counted(payload["texts"], "text")]
    tokens = f"about {payload['tokens_before']:,} → {payload['tokens_after']:,} tokens"
    what = joined([part for part in parts if part])
    return f"Earlier results were shortened to fit the model's context: {what}, {tokens}."


def waits_for(payload: Mapping[str, Any]) -> str:
    """Of `run_waiting`: `2 decisions, an answer and Kim`; empty if nobody has to do anything."""
    decisions = payload.get("decisions", len(payload["approval_ids"]))
    parts = [_one_or_more(decisions, "a decision", "decisions")]
    parts += [_one_or_more(payload.get("answers", 0), "an answer", "answers"), *payload.get("colleagues", ())]
    return joined([part for part in parts if part])


def joined(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    *most, last = parts or [""]
    return f"{', '.join(most)} and {last}" if most else last


def _one_or_more(number: int, one: str, many: str) -> str:
    return one if number == 1 else f"{number:,} {many}" if number else ""


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}" if number else ""
