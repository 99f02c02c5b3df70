"""Names that differ in one letter, and the keys by which they are found."""

# ruff: noqa: RUF001 - some of the names are in other alphabets
from __future__ import annotations

import random

import pytest

from tools.contract.look_alikes import compute_look, is_one_apart
from tools.contract.name_likeness import (
    compare_words,
    compute_keys,
    compute_stem,
    is_one_letter_apart,
    is_series,
    list_keys,
)

LETTERS = "abcde"


def edit(look: str, rng: random.Random) -> str:
    """Insert, delete, replace or swap a letter at a random place."""
    at = rng.randrange(len(look))
    letter = rng.choice(LETTERS)
    return rng.choice(
        (
            look[:at] + letter + look[at:],
            look[:at] + look[at + 1 :],
            look[:at] + letter + look[at + 1 :],
            look[:at] + look[at : at + 2][::-1] + look[at + 2 :],
        )
    )


def test_looks_one_edit_apart_share_a_key() -> None:
    rng = random.Random(39)
    for _ in range(3_000):
        look = "".join(rng.choices(LETTERS, k=rng.randint(4, 30)))
        other = edit(look, rng)
        assert any(
            mine == theirs
            for keys in list_keys(look)
            for mine, theirs in zip(keys, compute_keys(other), strict=True)
        ), (look, other)
        assert other == look or is_one_apart(look, other)


def test_most_looks_do_not_share_a_key_after_several_edits() -> None:
    assert not any(
        mine == theirs
        for keys in list_keys("goldenharbor")
        for mine, theirs in zip(keys, compute_keys("gxldenhaxbox"), strict=True)
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("Initech", "Inittech"), ("Initech", "Intiech"), ("Initech", "Initch")),
        *(("Umbrella", "Umbrello"), ("Mueller AG", "Müller AG"), ("Москва Трейд", "Москва Треид")),
        *(("Acme Corp", "Acme Crop"), ("Initech", "Initech1")),
    ],
)
def test_names_that_differ_in_one_letter_are_near(one: str, other: str) -> None:
    assert is_one_letter_apart(one, other) or compute_look(one) == compute_look(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("Ann", "Anna"), ("EU", "UK"), ("Store 7", "Store 8"), ("Invoice 1041", "Invoice 1042")),
        *(
            ("Fund II", "Fund III"),
            ("Acme EU", "Acme UK"),
            ("Building A", "Building B"),
            ("r-9f3a2c", "r-9f3b2c"),
        ),
        *(("株式会社青木", "株式会社青山"), ("김민준", "김민중"), ("Acme Corp", "Apex Corp")),
    ],
)
def test_short_names_and_steps_in_a_series_are_not_near(one: str, other: str) -> None:
    assert not is_one_letter_apart(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("Müller", "Muller"), ("Électricité", "Electricite"), ("Łódź Bank", "Lodz Bank")),
        *(("Adobe", "Aclobe"), ("Clay Works", "day works")),
    ],
)
def test_accents_and_joined_letters_do_not_distinguish_looks(one: str, other: str) -> None:
    assert compute_look(one) == compute_look(other)


@pytest.mark.parametrize(("one", "other"), [("कमल", "कमला"), ("かき", "かぎ"), ("กา", "ก่า")])
def test_vowel_and_tone_signs_distinguish_looks(one: str, other: str) -> None:
    assert compute_look(one) != compute_look(other)


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        *(("Acme Ltd", "acme"), ("Acme Pty Ltd", "acme"), ("Acme GmbH & Co. KG", "acme")),
        *(("Acme", "acme"), ("Al Co", "al co"), ("Golden Harbor Limited", "goldenharbor")),
    ],
)
def test_a_stem_omits_the_last_words(name: str, stem: str) -> None:
    assert compute_stem(name) == stem


def test_words_are_compared_by_their_looks() -> None:
    difference = compare_words("Golden Harbor Ltd", "Gоlden Harbor Inc")
    assert (difference.one, difference.other) == (("Ltd",), ("Inc",))
    assert difference.is_at_end
    assert is_series(compare_words("Store 7", "Store 8"))
    assert not is_series(compare_words("Store", "Store 8"))
