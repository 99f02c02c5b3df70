"""Samples of tests: without a word, the default sample is always taken; another word selects
another sample, and samples are never empty."""

from __future__ import annotations

import pytest

from tests import sampling
from tests.source_tree import ROOT

ITEMS = tuple("abcdefghij")
DATABASES = ("sqlite", "postgresql")
JOURNEYS = 27
"""The minimum number of journeys in the fixed set: one for each subject that has journeys."""


@pytest.fixture(autouse=True)
def only_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(sampling.WHOLE_VARIABLE, raising=False)


def take(monkeypatch: pytest.MonkeyPatch, commit: str, name: str = "letters") -> tuple[str, ...]:
    monkeypatch.setenv(sampling.SAMPLE_VARIABLE, commit)
    return sampling.take_sample(ITEMS, 4, name)


def test_without_a_word_the_default_sample_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = take(monkeypatch, sampling.USUAL_SAMPLE)
    monkeypatch.delenv(sampling.SAMPLE_VARIABLE)
    assert sampling.take_sample(ITEMS, 4, "letters") == usual
    assert sampling.describe() == "sample: usual"


def test_a_word_always_takes_the_same_sample_in_the_same_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = take(monkeypatch, "one")
    assert first == take(monkeypatch, "one")
    assert first == tuple(sorted(first))
    assert len(first) == 3


def test_each_item_is_in_the_sample_of_at_least_one_word(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {item for commit in range(50) for item in take(monkeypatch, str(commit))} == set(ITEMS)


def test_sets_with_different_names_are_sampled_independently(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert len({take(monkeypatch, "one", str(name)) for name in range(20)}) > 1


def test_a_sample_of_few_items_is_not_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sampling.SAMPLE_VARIABLE, "one")
    assert len(sampling.take_sample("ab", 4, "few")) == 1


def test_the_fixed_set_runs_unless_the_whole_sets_are_requested(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(sampling.FIXED_VARIABLE, raising=False)
    assert not sampling.is_fixed_set()
    monkeypatch.setenv(sampling.FIXED_VARIABLE, "1")
    assert sampling.is_fixed_set()
    monkeypatch.setenv(sampling.WHOLE_VARIABLE, "1")
    assert not sampling.is_fixed_set()


def test_the_engine_approvals_the_gate_and_queries_are_tested_on_both_databases(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")]
    for path in sampling.ON_BOTH:
        assert any(file.startswith(path) for file in files), path
    monkeypatch.setenv(sampling.FIXED_VARIABLE, "1")
    for rule in (
        "runs/test_lease",
        "approvals/test_votes",
        "gateway/test_requests",
        "platform/test_compiled_queries",
    ):
        assert all(sampling.has_file(f"tests/{rule}.py", database) for database in DATABASES)
    once = "tests/web/test_home.py"
    assert [sampling.has_file(once, database) for database in DATABASES] == [True, False]
    monkeypatch.setenv(sampling.WHOLE_VARIABLE, "1")
    assert all(sampling.has_file(once, database) for database in DATABASES)


def test_every_path_in_the_tables_of_samples_matches_tests() -> None:
    files = {path.relative_to(ROOT).as_posix(): path for path in (ROOT / "tests").rglob("*.py")}
    for path in (*sampling.ONE_OF, *sampling.ONLY_WHOLE):
        file, _, test = path.partition("::")
        found = [text.read_text() for name, text in files.items() if name.startswith(file)]
        assert found, path
        assert any(f"def {test}" in text for text in found), path


def test_a_quarter_of_the_cases_of_each_test_and_at_least_one_run_on_postgresql() -> None:
    names = ["a.py::one", *(f"a.py::two[{case}]" for case in "abcdefgh"), "a.py::three[-]"]
    chosen = sampling.choose_cases(names)
    assert {"a.py::one", "a.py::three[-]"} < chosen
    assert len(chosen) == 4
    assert chosen == sampling.choose_cases(names)


def test_each_database_runs_a_different_share_of_the_slowest_tests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(sampling.SAMPLE_VARIABLE, "one")
    kills = [f"tests/faults/test_kills.py::{number}" for number in range(400)]
    on_sqlite, on_postgresql = (
        {name for name in kills if sampling.is_in_share(name, database)} for database in DATABASES
    )
    assert 3 < len(on_sqlite) < 25
    assert len(on_postgresql - on_sqlite) > 3
    assert all(
        sampling.is_in_share(f"tests/runs/test_lease.py::{number}", "sqlite")
        for number in range(50)
    )
    for left_out in ("tests/journeys/test_one.py", *sampling.ONLY_WHOLE):
        assert not any(
            sampling.is_in_share(f"{left_out}::{number}", "sqlite") for number in range(50)
        )


def test_each_subject_has_a_journey_in_the_fixed_set() -> None:
    texts = [path.read_text() for path in (ROOT / sampling.JOURNEYS).glob("test_*.py")]
    assert sum("@pytest.mark.every_commit" in text for text in texts) >= JOURNEYS


def test_the_whole_sets_contain_every_item(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sampling.WHOLE_VARIABLE, "1")
    assert take(monkeypatch, "one") == ITEMS
