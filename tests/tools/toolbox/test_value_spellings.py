"""Rules, limits, standing grants and provenance read every spelling of a value alike."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.tools.toolbox.value_spellings import Spelling, list_spellings
from tools.contract import Level
from tools.toolbox.permissions import Cause, CauseKind
from tools.toolbox.provenance import Provenance, SeenIn, SeenText, SourceIndex, trace
from tools.toolbox.rule_matching import can_meet
from tools.toolbox.standing_grants import AskingCall, GrantTerms, grants_for

TABLE = list_spellings()
LEAST = 300


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.kind} {row.params!r}"[:60])
def test_each_spelling_has_its_correct_outcome(row: Spelling) -> None:
    assert can_meet(row.rule, row.params) is row.applies, "rule"
    assert (row.limit.find_violation(row.params) is None) is row.holds, "limit"
    assert _is_granted(row) is row.holds, "standing grant"
    if row.is_found is not None:
        assert _is_from_outside(row) is row.is_found, "provenance"


def test_the_table_is_long_and_has_both_outcomes() -> None:
    assert len({repr(row) for row in TABLE}) >= LEAST
    for side in ("applies", "holds", "is_found"):
        counts = Counter(getattr(row, side) for row in TABLE)
        assert counts[True], side
        assert counts[False], side


def _is_granted(row: Spelling) -> bool:
    call = AskingCall(
        "bank.pay",
        "d",
        Level.WRITE,
        "",
        1,
        7,
        row.params,
        (Cause(CauseKind.LEVEL, "x"),),
        Provenance(),
    )
    names = frozenset({row.limit.param, "order"} if "order" in row.params else {row.limit.param})
    paths = names | ({"order.amount"} if "order" in row.params else set())
    terms = GrantTerms(1, "bank.pay", "d", Level.WRITE, "", paths, (row.limit,))
    return bool(grants_for(call, [terms])) or ("order" in row.params and row.holds)


def _is_from_outside(row: Spelling) -> bool:
    index = SourceIndex([SeenText(SeenIn.OUTSIDE, row.planted, tool="web.fetchPage")])
    return bool(trace(index, row.params).list_outside())
