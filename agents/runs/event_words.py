"""Write those sentences in descriptions of events that combine several fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents.runs.budgets import MICROS, format_money
from agents.runs.engine.ending import CUT_OFF_WORDS
from agents.runs.engine.transaction import MACHINE
from agents.runs.models import ExitReason, RunStatus

UNUSABLE = ("answer_cut", "answer_filtered", "call_as_text", "missing_call", "empty_answer")
"""The codes of provider errors about a received response."""
LABELED_REASONS = (ExitReason.MAX_PASSES, ExitReason.ANSWER_CUT, ExitReason.ANSWER_FILTERED)
"""The exit reasons that are shown by their labels, which say more than their values."""
MANY_MISSED = 100
"""The number of missed runs at which a schedule stops counting them."""
RESOLUTIONS = {
    "succeeded": "It happened, reported by",
    "not_done": "It did not happen, reported by",
    "failed": "It did not happen, reported by",
    "acknowledged": "It happened late. Acknowledged by",
}
"""The words for the outcomes of `call_resolved`: executors report `failed` where people report
`not_done`."""


def say_start(payload: Mapping[str, Any]) -> str:
    """Describe the start of a run, as in `Started by schedule 4 on behalf of ada, making up for 3
    missed runs`."""
    by = payload.get("by")
    on_behalf = f" on behalf of {by}" if by else ""
    if schedule := payload.get("schedule_id"):
        return f"Started by schedule {schedule}{on_behalf}{_say_missed(payload.get('missed') or 0)}"
    if trigger := payload.get("trigger"):
        return f"Started by the trigger {trigger}{on_behalf}"
    if key := payload.get("agent_key"):
        return f"Started by an agent with the key {key}{on_behalf}"
    return f"Started by {by}" if by else "Started"


def _say_missed(number: int) -> str:
    at_least = "at least " if number >= MANY_MISSED else ""
    return f", making up for {at_least}{_count(number, 'missed run')}" if number else ""


def say_title(payload: Mapping[str, Any], title: str) -> str:
    """Describe the run's new title or, if there is none, the usage of the request, as in `Naming
    the run used 900 + 5 tokens`."""
    return f"Named: {title}" if title else f"Naming the run used {say_tokens(payload)}"


def say_tokens(payload: Mapping[str, Any]) -> str:
    """Describe the usage as input and output, as in `1,200 + 80 tokens`."""
    return f"{payload.get('input_tokens', 0):,} + {payload.get('output_tokens', 0):,} tokens"


def say_shortening(payload: Mapping[str, Any]) -> str:
    """Describe how many results and texts were shortened, and the token counts before and after."""
    parts = [_count(payload["results"], "result"), _count(payload["texts"], "text")]
    tokens = f"about {payload['tokens_before']:,} → {payload['tokens_after']:,} tokens"
    shortened = _join([part for part in parts if part])
    return f"Earlier results were shortened to fit the model's context: {shortened}, {tokens}."


def say_cut(payload: Mapping[str, Any]) -> str:
    """Explain why the answer is incomplete."""
    return CUT_OFF_WORDS.get(str(payload["cut_off"]), "The answer is incomplete.")


def say_delay(payload: Mapping[str, Any]) -> str:
    """Describe why the provider is tried again, as the start of a sentence."""
    return (
        "The response was unusable"
        if payload["code"] in UNUSABLE
        else "The request to the model failed"
    )


def say_unusable(payload: Mapping[str, Any]) -> str:
    """Describe an unusable response with its usage, as in `The response was cut off: about 1,200 +
    80 tokens.`"""
    about = "about " if payload["usage_estimated"] else ""
    what = (
        "A response was abandoned"
        if payload["code"] == "stopped"
        else "A response could not be used"
    )
    return f"{'The response was cut off' if payload.get('text') else what}: {about}{say_tokens(payload)}."


def say_adaptation(payload: Mapping[str, Any]) -> str:
    """Describe the adaptation of a request, as in `The model's server refused the request. Sent
    again without temperature.`"""
    return f"The model's server refused the request. Sent again {_join(payload['changes'])}."


def say_usage(payload: Mapping[str, Any]) -> str:
    """Describe the reported usage, as in `The model's server reported the usage of pass 2: 1,200 +
    80 tokens.`"""
    return f"The model's server reported the usage of pass {payload['pass_number']}: {say_tokens(payload)}."


def say_exit_reason(payload: Mapping[str, Any]) -> str:
    """Explain why a run ended, as in `Out of passes: the employee was asked to answer with what it
    had.`; empty if the run was answered or cancelled."""
    reason = str(payload["exit_reason"])
    if reason in (ExitReason.FINAL_ANSWER, ExitReason.CANCELLED):
        return ""
    words = reason.replace("_", " ").capitalize()
    if reason in LABELED_REASONS:
        words = str(ExitReason(reason).label)
    if reason == ExitReason.MAX_PASSES and payload["status"] == RunStatus.SUCCEEDED:
        return f"{words}: the employee was asked to answer with what it had."
    return words


def say_use(payload: Mapping[str, Any]) -> str:
    """Describe the passes, tokens and cost of an ended run, as in `2 passes · about 1,200 + 80
    tokens · no price known`."""
    number = payload.get("pass_number")
    parts = [] if number is None else [f"{number} pass{'' if number == 1 else 'es'}"]
    if payload.get("input_tokens") or payload.get("output_tokens"):
        about = "about " if payload.get("usage_estimated") else ""
        parts.append(f"{about}{say_tokens(payload)}")
        if currency := payload.get("currency"):
            cost = payload.get("cost")
            parts.append(
                "no price known"
                if cost is None
                else f"{about}{format_money(round(cost * MICROS), currency)}"
            )
    return " · ".join(parts)


def say_waits(payload: Mapping[str, Any]) -> str:
    """List what a run waits for, as in `2 decisions, an answer and Kim`; empty if it does not wait
    for people or colleagues."""
    decisions = payload.get("decisions", len(payload["approval_ids"]))
    parts = [_one_or_more(decisions, "a decision", "decisions")]
    parts += [
        _one_or_more(payload.get("answers", 0), "an answer", "answers"),
        *payload.get("colleagues", ()),
    ]
    return _join([part for part in parts if part])


def say_resolution(payload: Mapping[str, Any]) -> str:
    """Describe how an unknown outcome was resolved, as in `It did not happen, reported by ada`."""
    outcome, by = str(payload["outcome"]), payload.get("by")
    return (
        f"{RESOLUTIONS.get(outcome, 'Resolved by')} {'Gadget' if by in ('', None, MACHINE) else by}"
    )


def _join(parts: Sequence[str]) -> str:
    *most, last = parts or [""]
    return f"{', '.join(most)} and {last}" if most else last


def _one_or_more(number: int, one: str, many: str) -> str:
    return one if number == 1 else f"{number:,} {many}" if number else ""


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}" if number else ""
