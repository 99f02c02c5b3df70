"""Texts are compared line by line, and changed lines and short values character by character."""

from __future__ import annotations

import time

import pytest

from agents.web.text.text_diff import ADDED, REMOVED, build_diff, fold_diff, mark_characters
from tests.features import feature


def show(before: str, after: str) -> list[str]:
    return [f"{line.sign}{line.html}" for line in build_diff(before, after)]


@feature(
    "The gate",
    "Texts are compared line by line and character by character",
    "agents/web/text/text_diff.py",
)
def test_changed_lines_are_shown_below_each_other_with_the_changed_characters() -> None:
    minus = "\N{MINUS SIGN}"
    assert show("one\ntwo\nthree", "one\ntoo\nthree") == [
        " one",
        f"{minus}t<del>w</del>o",
        "+to<ins>o</ins>",
        " three",
    ]


def test_unchanged_lines_are_counted() -> None:
    lines = [f"line {number}" for number in range(20)]
    changed = [*lines[:10], "another", *lines[11:]]
    assert show("\n".join(lines), "\n".join(changed))[0] == " 8 unchanged lines"
    assert show("\n".join(lines), "\n".join(changed))[-1] == " 7 unchanged lines"


def test_text_is_escaped_even_within_changed_parts() -> None:
    removed, added = mark_characters("price <b>", "price <i>")
    assert removed == "price &lt;<del>b</del>&gt;"
    assert added == "price &lt;<ins>i</ins>&gt;"


def test_dissimilar_values_are_not_compared_by_character() -> None:
    assert mark_characters("abc", "xyz") == ("abc", "xyz")


def test_long_lines_are_compared_by_sentence() -> None:
    text = "Nothing is unusual here. " * 20
    kinds = [line.kind for line in build_diff(text, text.replace("unusual", "odd", 1))]
    assert (kinds.count(REMOVED), kinds.count(ADDED)) == (1, 1)


def test_a_long_diff_folds_its_middle_and_names_the_addresses_in_it() -> None:
    before = "\n".join(f"line {number}" for number in range(60))
    after = "\n".join(
        f"text {number}" if number != 30 else "https://evil.net/" for number in range(60)
    )
    folded = fold_diff(build_diff(before, after))
    assert folded is not None
    assert (len(folded.head), len(folded.tail), folded.changed) == (8, 3, 120)
    assert "evil.net" in folded.contacts
    assert fold_diff(build_diff("a\nb", "a\nc")) is None


@pytest.mark.parametrize("piece", ["x\n", "ab\n", "\n", "a"])
def test_large_texts_are_compared_quickly(piece: str) -> None:
    before, after = piece * 20_000, (piece + "y\n") * 10_000
    began = time.process_time()
    fold_diff(build_diff(before, after))
    assert time.process_time() - began < 10
