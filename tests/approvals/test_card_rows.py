"""A card's values: the number of their rows on a phone is estimated, and values that must be read
come first."""

from __future__ import annotations

from typing import Any

import pytest

from agents.approvals.warnings.card_values import (
    CHANGED,
    CREATED,
    DELETED,
    REQUESTED,
    NamedValue,
    list_request_values,
    must_be_read,
)
from agents.approvals.warnings.folding import (
    FIRST_TARGETS,
    MAX_COLUMNS,
    Room,
    Signs,
    plan_folding,
    split_values,
)
from agents.platform.value_text import ROW_WIDTH, count_rows

SENTENCE = "Use **Mailer**"


def plan_request(signs: Signs | None = None, **params: Any) -> Any:
    return plan_folding(SENTENCE, [], params, signs or Signs())


def name_values(names: list[str], value: Any = "plain") -> dict[str, Any]:
    return dict.fromkeys(names, value)


def number_names(count: int) -> list[str]:
    return [f"option_{number}" for number in range(count)]


def target(number: int, **after: Any) -> dict[str, Any]:
    return {"id": str(number), "label": f"Company {number}", "before": {}, "after": after}


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", 1),
        ("a" * ROW_WIDTH, 1),
        ("a" * (ROW_WIDTH + 1), 2),
        ("a" * (ROW_WIDTH * 3), 3),
        ("a\n\nb", 3),
        ("\n" * 9, 10),
        ("word " * 6 + "end", 2),
        (f"a {'b' * ROW_WIDTH}", 2),
        ("漢" * (ROW_WIDTH // 2), 1),
        ("漢" * ROW_WIDTH, 2),
    ],
)
def test_the_row_count_considers_lines_wrapped_words_and_wide_letters(text: str, rows: int) -> None:
    assert count_rows(text) == rows


@pytest.mark.parametrize(
    ("name", "before", "after", "kind"),
    [
        ("recipient", "a", "b", CHANGED),
        ("order · total_amount", None, 7, REQUESTED),
        ("notes", "a text", "", CHANGED),
        ("notes", None, None, REQUESTED),
        ("filter", None, "*", REQUESTED),
        ("scopes", None, ["read", "*"], REQUESTED),
        ("is_public", False, True, CHANGED),
        ("is_public", None, True, CHANGED),
        ("roles", ["viewer"], ["viewer", "admin"], CHANGED),
        ("rights", {"read": 1}, {"read": 1, "write": 1}, CHANGED),
        ("limit", 10, 100, CHANGED),
        ("limit", 10, -100, CHANGED),
        ("value", None, "Hunter2!x", REQUESTED),
        ("value", None, "Bearer abcdef0123456789abcdef", CREATED),
        ("value", None, "-----BEGIN PRIVATE KEY-----\nMII", REQUESTED),
        ("value", "9f8e7d6c5b4a39281706f5e4", None, DELETED),
    ],
)
def test_a_value_that_identifies_empties_widens_or_unlocks_something_must_be_read(
    name: str, before: Any, after: Any, kind: str
) -> None:
    assert must_be_read(NamedValue(name, before, after), kind)


@pytest.mark.parametrize(
    ("name", "before", "after", "kind"),
    [
        ("color", "red", "blue", CHANGED),
        ("color", None, None, CHANGED),
        ("color", "red", None, DELETED),
        ("color", None, "", CREATED),
        ("is_public", True, False, CHANGED),
        ("colors", ["red", "blue"], ["red"], CHANGED),
        ("limit", 10, 11, CHANGED),
        ("text", None, "An ordinary sentence of 2026, with 5 words.", REQUESTED),
        ("day", None, "2026-11-30", REQUESTED),
    ],
)
def test_an_ordinary_value_need_not_come_first(
    name: str, before: Any, after: Any, kind: str
) -> None:
    assert not must_be_read(NamedValue(name, before, after), kind)


def test_forty_short_values_are_folded_and_ten_are_not() -> None:
    assert plan_request(**name_values(number_names(40))).folds_parts
    assert not plan_request(**name_values(number_names(10))).folds_parts


@pytest.mark.parametrize(
    "value", ["漢" * 90, "a" * 180, "line\n" * 6 + "end", " ".join(["word"] * 38)]
)
def test_a_few_tall_values_are_folded_like_many_short_values(value: str) -> None:
    names = number_names(8)
    assert plan_request(**name_values(names, value)).request.folded
    assert not plan_request(**name_values(names, "short")).folds_parts


def test_a_long_sentence_leaves_fewer_rows_for_values() -> None:
    params = name_values(number_names(12))
    assert not plan_folding("Short", [], params, Signs()).folds_parts
    assert plan_folding("word " * 75, [], params, Signs()).folds_parts


@pytest.mark.parametrize("place", [0, 20, 39])
def test_a_destination_is_shown_first_whatever_its_position(place: int) -> None:
    names = number_names(40)
    names[place] = "recipient"
    assert plan_request(**name_values(names)).request.shown[0] == place


def test_a_value_with_a_warning_or_from_outside_is_shown_first() -> None:
    names = number_names(40)
    params = name_values(names) | {names[31]: "doubtful"}
    assert plan_request(Signs(texts={"doubtful"}), **params).request.shown[0] == 31
    assert plan_request(Signs(names={names[33]}), **params).request.shown[0] == 33
    assert plan_request(**name_values(names)).request.shown[0] == 0


@pytest.mark.parametrize("odd", ["no", 90_000, "x" * 60, "да", None])
def test_an_odd_value_is_shown_before_values_that_are_alike(odd: Any) -> None:
    params = name_values(number_names(40), "yes") | {"option_35": odd}
    request = plan_request(**params).request
    assert request.shown[0] == 35
    assert request.alike in (0, len(request.folded))


def test_a_number_that_is_too_large_to_compare_is_shown_first_without_an_error() -> None:
    params = name_values(number_names(40), 7) | {"option_35": 10**400}
    assert plan_request(**params).request.shown[0] == 35


def test_the_summary_names_odd_values_that_do_not_fit() -> None:
    params = name_values(number_names(60), "yes")
    params |= {name: f"{name} differs" for name in number_names(15)}
    request = plan_request(**params).request
    assert request.named
    assert set(request.named) <= set(range(15)) & set(request.folded)
    assert request.alike == len(request.folded) - len(request.named) == 45


def test_at_least_one_value_is_shown_and_none_is_lost() -> None:
    values = [NamedValue(name, None, "long " * 40) for name in number_names(9)]
    split = split_values(values, Room(1.0), Signs(), REQUESTED)
    assert len(split.shown) == 1
    assert sorted(split.shown + split.folded) == list(range(9))


def test_values_inside_objects_and_lists_of_objects_have_their_own_rows() -> None:
    params = {"order": {"id": 7, "lines": [{"sku": "a"}, {"sku": "b"}]}, "tags": ["x", "y"]}
    assert list_request_values(params) == [
        NamedValue("order · id", None, 7),
        NamedValue("order · lines · 1 · sku", None, "a"),
        NamedValue("order · lines · 2 · sku", None, "b"),
        NamedValue("tags", None, ["x", "y"]),
    ]


def test_a_param_with_too_many_values_is_shown_as_one_value() -> None:
    params = {"rows": [{"sku": number} for number in range(1_000)], "id": 1}
    assert [value.name for value in list_request_values(params)] == ["rows", "id"]


def test_a_deeply_nested_param_is_shown_as_one_value() -> None:
    deep: Any = "end"
    for _ in range(500):
        deep = {"a": deep}
    assert len(list_request_values({"deep": deep})) == 1


def test_targets_that_fit_are_shown_and_others_are_folded() -> None:
    few = [target(number, color=f"{number}") for number in range(FIRST_TARGETS)]
    assert not plan_folding(SENTENCE, few, {}, Signs()).folds_parts
    many = [target(number, color=f"{number}") for number in range(FIRST_TARGETS + 1)]
    assert len(plan_folding(SENTENCE, many, {}, Signs()).own) == FIRST_TARGETS
    high = [target(number, text=f"{number} {'word ' * 30}") for number in range(FIRST_TARGETS)]
    plan = plan_folding(SENTENCE, high, {}, Signs())
    assert 1 <= len(plan.own) < FIRST_TARGETS
    assert plan.folds_parts


def test_most_fields_of_a_single_target_with_sixty_fields_are_folded() -> None:
    before, after = name_values(number_names(60)), name_values(number_names(60), "other")
    one = {"id": "1", "label": "Acme", "before": before, "after": after}
    plan = plan_folding(SENTENCE, [one], {}, Signs())
    assert len(plan.own[0].folded) > 45
    assert plan.folds_parts


def test_values_that_all_targets_share_are_folded_too() -> None:
    shared = name_values(number_names(40))
    targets = [target(number, **shared) for number in range(3)]
    plan = plan_folding(SENTENCE, targets, {}, Signs())
    assert plan.shared.folded
    assert plan.folds_parts


@pytest.mark.parametrize(("columns", "is_table"), [(MAX_COLUMNS, True), (MAX_COLUMNS + 1, False)])
def test_targets_with_too_many_fields_are_not_shown_as_a_table(
    columns: int, is_table: bool
) -> None:
    targets = [target(each, **name_values(number_names(columns), each)) for each in range(3)]
    assert plan_folding(SENTENCE, targets, {}, Signs()).is_table == is_table


def test_a_target_with_a_warning_comes_first() -> None:
    targets = [target(number, color=f"{number}") for number in range(60)]
    targets[44]["label"] = "doubtful"
    assert plan_folding(SENTENCE, targets, {}, Signs(texts={"doubtful"})).order[0] == 44
    assert plan_folding(SENTENCE, targets, {}, Signs()).order[0] == 0
