"""The usual sample is always the same, never empty, and another word takes another one."""

from __future__ import annotations

import pytest

from tests import sampling
from tests.soak.samples import list_sampled_files

ITEMS = tuple("abcdefghij")


@pytest.fixture(autouse=True)
def only_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(sampling.WHOLE_VARIABLE, raising=False)


def take(monkeypatch: pytest.MonkeyPatch, commit: str, name: str = "letters") -> tuple[str, ...]:
    monkeypatch.setenv(sampling.SAMPLE_VARIABLE, commit)
    return sampling.take_sample(ITEMS, 4, name)


def test_without_a_word_the_usual_sample_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = take(monkeypatch, sampling.USUAL_SAMPLE)
    monkeypatch.delenv(sampling.SAMPLE_VARIABLE)
    assert sampling.take_sample(ITEMS, 4, "letters") == usual
    assert sampling.describe() == "sample: usual"


def test_a_word_always_takes_the_same_sample_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    first = take(monkeypatch, "one")
    assert first == take(monkeypatch, "one")
    assert first == tuple(sorted(first))
    assert len(first) == 3


def test_each_item_is_in_the_sample_of_some_word(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {item for commit in range(50) for item in take(monkeypatch, str(commit))} == set(ITEMS)


def test_sets_with_different_names_are_sampled_independently(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len({take(monkeypatch, "one", str(name)) for name in range(20)}) > 1


def test_a_sample_of_few_items_is_not_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sampling.SAMPLE_VARIABLE, "one")
    assert len(sampling.take_sample("ab", 4, "few")) == 1


def test_each_test_of_a_half_runs_on_one_database_and_on_both_in_the_soak(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = {name: [sampling.is_turn_of(one, name) for one in ("sqlite", "postgresql")] for name in map(str, range(50))}
    assert all(sum(pair) == 1 for pair in turns.values())
    assert 15 < sum(pair[0] for pair in turns.values()) < 45
    monkeypatch.setenv(sampling.WHOLE_VARIABLE, "1")
    assert all(sampling.is_turn_of(one, "any") for one in ("sqlite", "postgresql"))


def test_a_share_of_some_tests_runs_and_all_of_them_in_the_soak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sampling.SAMPLE_VARIABLE, "one")
    kills = [f"tests/faults/test_kills.py::{number}" for number in range(300)]
    assert 15 < sum(map(sampling.is_in_share, kills)) < 60
    assert all(sampling.is_in_share(f"tests/runs/test_lease.py::{number}") for number in range(50))
    monkeypatch.setenv(sampling.WHOLE_VARIABLE, "1")
    assert all(map(sampling.is_in_share, kills))


def test_the_soak_takes_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sampling.WHOLE_VARIABLE, "1")
    assert take(monkeypatch, "one") == ITEMS


def test_the_soak_runs_the_files_that_take_samples() -> None:
    files = list_sampled_files()
    assert {"tests/hostile/test_pages.py", "tests/journeys/test_accessibility.py"} <= set(files)
    assert {"tests/faults/test_killed_workers.py", "tests/admin/test_limits.py"} <= set(files)
    assert "tests/runs/test_lease.py" not in files
