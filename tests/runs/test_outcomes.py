"""A run's outcome is truthful: a run that made no change or was denied is never shown as done."""

from __future__ import annotations

import pytest

from agents.runs.models import Outcome
from agents.runs.models.outcome import CallKind, judge_outcome
from agents.runs.status_labels import label_status
from tests.features import feature

READ = CallKind(1, "read", "succeeded", None)
WRITTEN = CallKind(1, "write", "succeeded", None)
DENIED = CallKind(1, "write", "denied", None)


@feature(
    "The gate",
    "A run that did nothing, was denied or was stopped says so in badge, bar and lists",
    "agents/runs/status_labels.py",
    whole_file=True,
)
@pytest.mark.parametrize(
    ("calls", "outcome"),
    [
        ([], Outcome.UNCHANGED),
        ([CallKind(1, "read", "failed", None)], Outcome.UNCHANGED),
        ([READ], Outcome.ANSWERED),
        ([READ, WRITTEN], Outcome.DONE),
        ([READ, CallKind(2, "draft", "succeeded", None)], Outcome.DONE),
        ([READ, CallKind(2, "write", "failed", None)], Outcome.UNCHANGED),
        ([READ, DENIED], Outcome.DENIED),
        ([CallKind(1, "write", "expired", None)], Outcome.DENIED),
        ([CallKind(1, "read", "denied", None)], Outcome.DENIED),
        ([WRITTEN, DENIED], Outcome.PARTLY_DENIED),
        ([WRITTEN, CallKind(2, "write", "denied", None)], Outcome.PARTLY_DENIED),
        ([DENIED, CallKind(2, "write", "succeeded", None)], Outcome.DONE),
        ([CallKind(1, "draft", "succeeded", "done")], Outcome.DONE),
        ([CallKind(1, "draft", "succeeded", "answered")], Outcome.ANSWERED),
        ([CallKind(1, "draft", "succeeded", "unchanged")], Outcome.UNCHANGED),
        ([CallKind(1, "draft", "succeeded", "denied")], Outcome.DENIED),
    ],
)
def test_the_outcome_follows_from_the_calls(calls: list[CallKind], outcome: Outcome) -> None:
    assert judge_outcome(calls) == outcome


@pytest.mark.parametrize(
    ("ended", "label", "look"),
    [
        (("succeeded", "final_answer", "done"), "Succeeded", "good"),
        (("succeeded", "final_answer", "answered"), "Answered", "good"),
        (("succeeded", "final_answer", "unchanged"), "Finished without changes", "plain"),
        (("succeeded", "final_answer", "denied"), "Denied", "wait"),
        (("succeeded", "max_passes", "done"), "Stopped: out of passes", "wait"),
        (("failed", "max_passes", "done"), "Stopped: out of passes", "bad"),
        (("failed", "denied_repeatedly", "denied"), "Denied", "wait"),
        (("failed", "provider_error", "done"), "Failed: the model did not respond", "bad"),
        (("cancelled", "cancelled", "done"), "Cancelled", "plain"),
    ],
)
def test_each_outcome_has_its_label_and_color(
    ended: tuple[str, str, str], label: str, look: str
) -> None:
    shown = label_status(*ended)
    assert (shown.text, shown.look) == (label, look)
