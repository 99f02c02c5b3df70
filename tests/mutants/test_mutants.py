"""The mutation run finds every kind of edit that it describes, and every excused guard exists."""

from __future__ import annotations

import ast

import pytest

from tests.mutants.edits import find_edits
from tests.mutants.equivalents import EQUIVALENT
from tests.mutants.targets import ALWAYS, ROOT, TARGETS

CASES = {
    "guard": ("if late:\n    raise Late", "if False:\n    raise Late"),
    "operand": ("kept = a and b", "kept = ((b))"),
    "comparison": ("kept = a < b", "kept = a <= b"),
    "not": ("kept = not a", "kept = (a)"),
    "condition": ("Run.objects.filter(pk=1, status=2)", "Run.objects.filter(status=2)"),
    "column": ("update(Run, new, {'id': 1, 'epoch': 2})", "update(Run, new, {'epoch': 2})"),
    "check": ("refuse_closed(card)", "pass"),
}


@pytest.mark.parametrize("kind", CASES)
def test_each_kind_of_edit_weakens_the_source_in_one_place(kind: str) -> None:
    before, after = CASES[kind]
    first = next(edit for edit in find_edits(before) if edit.kind == kind)
    assert first.apply(before) == after


def test_an_operand_keeps_its_brackets() -> None:
    for source, edited in (
        ("a in (b or c)", "a not in (b or c)"),
        ("(rest := a - b) > 0", "(rest := a - b) >= 0"),
    ):
        edit = next(each for each in find_edits(source) if each.kind == "comparison")
        assert edit.apply(source) == edited


def test_a_route_is_not_mistaken_for_a_lookup() -> None:
    assert [
        each for each in find_edits('router.get("/x", response=Answer)') if each.kind == "condition"
    ] == []


def test_an_edit_after_multibyte_characters_is_made_at_the_right_place() -> None:
    source = 'text = "Zürich ✓" if not found else ""\n'
    edit = next(each for each in find_edits(source) if each.kind == "not")
    assert edit.apply(source) == 'text = "Zürich ✓" if (found) else ""\n'


def test_every_target_has_guards_and_tests() -> None:
    for target in TARGETS:
        assert target.sample()
        assert target.tests


def test_every_named_mutant_exists_and_every_excused_mutant_has_a_reason() -> None:
    names = {mutant.name for target in TARGETS for mutant in target.edits()}
    assert [
        name for name, reason in EQUIVALENT.items() if name not in names or len(reason.split()) < 4
    ] == []
    assert names >= ALWAYS


def test_every_sampled_mutant_is_valid_python() -> None:
    for mutant in (each for target in TARGETS for each in target.sample()):
        ast.parse(mutant.edit.apply((ROOT / mutant.file).read_text()))
