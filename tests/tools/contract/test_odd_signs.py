"""In an amount, letters and signs that are read as figures or as a minus are found."""

# ruff: noqa: RUF001 - the tests contain look-alike characters
from __future__ import annotations

import pytest

from agents.approvals.warnings.card_reading import read_card
from agents.approvals.warnings.marks import LETTERS
from tests.world import make_world
from tools.contract.odd_signs import find_odd_amount, has_odd_groups


@pytest.mark.parametrize(
    ("amount", "odd"),
    [
        ("1OO", "O"),
        ("1O", "O"),
        ("lOO", "lO"),
        ("I,OOO.OO", "IO"),
        ("l00 EUR", "l"),
        ("EUR 1OO", "O"),
        ("|00", "|"),
        ("1Ø0", "Ø"),
        ("ℓ00", "ℓ"),
        ("−100", "−"),
        ("–100", "–"),
        ("100−", "−"),
        ("(－100)", "－"),
        ("–100,–", "–"),
        ("€ −100", "−"),
        ("⁻100", "⁻"),
        ("➖100", "➖"),
        ("ⅭⅭ", "Ⅽ"),
        ("Ⅹ EUR", "Ⅹ"),
    ],
)
def test_letters_and_signs_that_are_read_as_others_are_found(amount: str, odd: str) -> None:
    assert find_odd_amount(amount, ()) == frozenset(odd)


@pytest.mark.parametrize(
    "amount",
    [
        *("100", "-100", "+5", "1,000.00", "1.000,00 €", "12\u202f000 €", "(100)", "USD 5"),
        *("100,– €", "CHF 100.–", "49,—", "49,−", "CHF 1.250.––"),
        *("10 l", "10l", "100 kg", "10–20", "2026–12–01", "5 %", "O", "IOU", "Oil", "", "x" * 100),
    ],
)
def test_ordinary_amounts_are_left_alone(amount: str) -> None:
    assert not find_odd_amount(amount, ())


def test_the_minus_sign_is_ordinary_where_a_language_is_written_with_it() -> None:
    assert find_odd_amount("−100", {"sv"}) == frozenset()
    assert find_odd_amount("–100", {"sv"}) == frozenset("–")
    assert find_odd_amount("−1OO", {"sv"}) == frozenset("O")


@pytest.mark.parametrize(
    "amount",
    [
        *("5 00", "1,0000", "1.000.00", "1,00,00", "12 5 €", "5\u00a000", "5’00", "1 0000 000"),
        *("12345,678,901", "1  000", "12,500000", "CHF 5'00.–", "1,000 000", "-5 00"),
        *("5,00,15", "0,10,15"),
    ],
)
def test_digits_in_unusual_groups_are_found(amount: str) -> None:
    assert has_odd_groups(amount)


@pytest.mark.parametrize(
    "amount",
    [
        *("1,00,000", "12,34,567.89", "1 234 567,89", "1.2345", "1,2345", "100.0000", "1'000.50"),
        *("1’000", "0.5", "0,0000", "1,000", "USD 1,000,000.00", "10, 20, 30", "1,2,3", "100 €"),
        *("5,10,15", "9,10,11,12"),
        *("10 l", "1234,567", "1234,0000", "100 000", "5.", "1\u00a0000 000", "5 items", "x" * 100),
        *("", "CHF 1'250.–", "(1,000)", "10–20", "1.000.000,5"),
    ],
)
def test_ordinary_groups_of_digits_are_left_alone(amount: str) -> None:
    assert not has_odd_groups(amount)


@pytest.mark.django_db
@pytest.mark.parametrize("value", ["l00", "−100", "ⅭⅭ", "5 00"])
def test_only_a_field_for_amounts_has_a_warning(value: str) -> None:
    card = make_world().card()
    kinds = []
    for name in ("amount", "total_price", "model"):
        card.params, card.digest = {name: value}, name + value
        kinds.append([mark.kind for mark in read_card(card).marks])
    assert kinds == [[LETTERS], [LETTERS], []]
