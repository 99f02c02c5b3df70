"""Shortens the messages of a request as compaction has decided: what is short says so, and how to read the whole."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.engine.compaction import SUMMARY, TEXT, Cuts, Sizes
from agents.models import ToolCall
from tools.contract.portions import handle_of

LONGEST_SUMMARY = SUMMARY - 120


@dataclass(frozen=True)
class Recorded:
    """A recorded pass among the messages: the place of the model's message, which its results follow."""

    number: int
    place: int
    sizes: Sizes


@dataclass(frozen=True)
class Source:
    """Where the whole results are, and whether the employee may read them."""

    run_id: int
    reads_on: bool


@dataclass(frozen=True)
class _Result:
    """What a shortened result is told by."""

    handle: str
    summary: str
    is_edited: bool


def shorten(messages: list[dict[str, Any]], recorded: Sequence[Recorded], cuts: Cuts, source: Source) -> None:
    """Put the short messages in the places of the whole ones; one query if results are among them."""
    for index in cuts.texts:
        place = recorded[index].place
        messages[place] = {**messages[place], "content": f"{messages[place]['content'][:TEXT]}… [shortened]"}
    numbers = {recorded[index].number for index, _ in cuts.results}
    told = _told(source.run_id, numbers) if numbers else {}
    for (index, result), kept in cuts.results.items():
        place = recorded[index].place + 1 + result
        whole = messages[place]
        one = told[recorded[index].number, whole["tool_call_id"]]
        messages[place] = {**whole, "content": _short(whole["content"], kept, one, source.reads_on)}


def _told(run_id: int, numbers: set[int]) -> dict[tuple[int, str], _Result]:
    """By pass and the provider's id of the call; a duplicate is told by the call that it repeats."""
    calls = ToolCall.objects.filter(run_id=run_id, parent_call=None, pass_number__in=numbers).order_by()
    columns = ("pass_number", "provider_call_id", "pk", "duplicate_of_id", "model_params")
    summaries = ("result__summary", "duplicate_of__result__summary")
    return {
        (number, call_id): _Result(handle_of(origin or pk), own or earlier or "Done.", before is not None)
        for number, call_id, pk, origin, before, own, earlier in calls.values_list(*columns, *summaries)
    }


def _short(whole: str, kept: int, one: _Result, reads_on: bool) -> str:
    if kept:
        told = f"{whole[:kept]}\n"
        left = f"shortened: {kept:,} of {len(whole):,} characters"
    else:
        summary = " ".join(one.summary.split())
        told = f"{summary if len(summary) <= LONGEST_SUMMARY else f'{summary[: LONGEST_SUMMARY - 1]}…'} "
        left = "shortened"
    edited = "; a person had changed the params" if one.is_edited and not kept else ""
    whole_is = f"; handle {one.handle}: results.read(handle, offset)" if reads_on else "; the rest is left out"
    return f"{told}[{left}{edited}{whole_is}]"
