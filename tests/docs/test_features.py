"""The page of features matches the tests' `@feature` decorators, and each feature names an existing
file and test."""

from __future__ import annotations

import pytest

from tests.docs.test_references import is_missing
from tests.features import PAGE, Feature, collect, render
from tests.source_tree import assert_none


def test_the_page_of_features_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(collect()), (
        "`python -m tests.features` writes the page"
    )


def test_every_feature_names_an_existing_file_and_test() -> None:
    features = collect()
    assert len(features) > 200
    named = [reference for each in features for reference in (*each.code.split(", "), each.test)]
    assert_none(
        sorted({each for each in named if is_missing(each)}), "a feature has a file and a test"
    )


def test_no_two_features_have_the_same_sentence() -> None:
    sentences = [each.sentence for each in collect()]
    assert_none(
        sorted({each for each in sentences if sentences.count(each) > 1}), "a feature is told once"
    )


def test_a_feature_in_an_unknown_section_is_refused() -> None:
    with pytest.raises(ValueError, match="no such section: Nowhere"):
        render([Feature("Nowhere", "Nothing", "README.md", "tests/features.py")])
