"""The rules with conditions and a second, slow judge agree on random histories of cards."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.tools.toolbox import conditioned_histories
from tests.tools.toolbox.conditioned_histories import play_history

HISTORIES = 500


def test_rules_agree_with_a_slow_judge_on_random_histories() -> None:
    ends = _play_all()
    assert all(ends[f"approved by {needed}"] for needed in (1, 2, 3)), ends


def test_a_wrong_judge_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditioned_histories, "matches_slowly", lambda *_: False)
    with pytest.raises(AssertionError):
        _play_all()


def _play_all() -> Counter[str]:
    return Counter(play_history(random.Random(f"20261214 {number}")) for number in range(HISTORIES))
