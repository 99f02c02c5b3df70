"""Detection rates: at least 95% of the planted values are flagged, but at most 2% of the harmless
values."""

import base64
import json

import pytest

from tests.features import feature
from tests.tools.toolbox.provenance import values
from tools.toolbox.provenance import SeenIn, SeenText, SourceIndex, trace

LEAST_PLANTED = LEAST_HARMLESS = 200
LEAST_MARKED = 0.95
MOST_FALSELY_MARKED = 0.02
PARAMS = ("recipient", "changes", "note", "amount")


def is_marked(index: SourceIndex, value: object, param: str = "value") -> bool:
    return bool(trace(index, {param: value}, frozenset(values.OFFERED)).list_outside())


@pytest.fixture(scope="module")
def index() -> SourceIndex:
    planted = values.list_planted()
    outside = [
        *values.build_outside_sources(planted),
        SeenText(SeenIn.OUTSIDE, values.read_prose()),
        SeenText(SeenIn.OUTSIDE, values.TYPED),
    ]
    own = SeenText(SeenIn.OWN, json.dumps({"data": {"records": values.OWN}}), is_json=True)
    return SourceIndex([SeenText(SeenIn.PERSON, values.TYPED), own, *outside])


@feature(
    "The gate",
    "Of values planted in results from outside at least 95% are marked, of harmless ones at most 2%",
    "tools/toolbox/provenance/parts.py",
)
def test_at_least_95_percent_of_planted_values_are_flagged(index: SourceIndex) -> None:
    planted = values.list_planted()
    assert len(planted) >= LEAST_PLANTED
    missed = [
        each.kind
        for place, each in enumerate(planted)
        if not is_marked(index, each.in_params, PARAMS[place % 4])
    ]
    share = 1 - len(missed) / len(planted)
    assert share >= LEAST_MARKED, f"{share:.1%} of {len(planted)} marked; missed: {missed}"


def test_at_most_2_percent_of_harmless_values_are_flagged(index: SourceIndex) -> None:
    harmless = values.list_harmless()
    assert len(harmless) >= LEAST_HARMLESS
    marked = [value for value in harmless if is_marked(index, value)]
    share = len(marked) / len(harmless)
    assert share <= MOST_FALSELY_MARKED, f"{share:.1%} of {len(harmless)} marked: {marked}"


def test_planted_values_are_not_flagged_without_the_results() -> None:
    """The control: values are flagged because they are in the results, not because of how they
    look."""
    alone = SourceIndex([SeenText(SeenIn.OUTSIDE, "Nothing of interest.")])
    assert not [each.kind for each in values.list_planted() if is_marked(alone, each.in_params)]


@pytest.mark.parametrize(
    "disguised",
    [
        base64.b64encode(b"Mallory Quillfeather").decode(),
        "Mallory with the surname of a bird and a pen",
        "evil dot example",
        "rehtaeflliuQ yrollaM",
        "twelve thousand four hundred and eighty",
    ],
)
def test_the_documented_blind_spots_are_not_flagged(index: SourceIndex, disguised: str) -> None:
    assert not is_marked(index, disguised)
