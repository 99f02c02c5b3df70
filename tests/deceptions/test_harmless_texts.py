"""Honest texts in many languages have almost no marks where their language is written."""

from __future__ import annotations

import json
from pathlib import Path

from agents.accounts.models.organization_languages import record_languages
from agents.accounts.models.organization_versions import record_versions
from agents.approvals.warnings.card_reading import find_params_marks
from agents.approvals.warnings.marks import name_marks
from agents.approvals.warnings.meanings import find_meanings

HARMLESS = Path(__file__).parent / "harmless_texts"
"""Texts by somebody who has not seen the code. People who work on the code may read open.json, but
not sealed.json, which is measured only when their work has ended."""
MOST_FALSE = 0.02


def list_false_marks(name: str, language: str = "") -> tuple[list[str], int]:
    """List the texts with marks, and count all texts.

    Args:
        language: the language that the organization writes, if it is not the text's own.
    """
    record_versions(1, 0)
    texts = json.loads((HARMLESS / name).read_text(encoding="utf-8"))
    marked = []
    for each in texts:
        record_languages(1, frozenset({language or each["language"]}))
        params = {each["kind"]: each["text"]}
        marks = name_marks(find_params_marks(1, params))
        meanings = ", ".join(found.kind for found in find_meanings(params, [], None))
        if marks or meanings:
            marked.append(f"{each['language']} {each['kind']}: {marks} {meanings}")
    return marked, len(texts)


def test_at_most_two_in_a_hundred_honest_texts_are_marked() -> None:
    marked, total = list_false_marks("open.json")
    assert total == 200
    assert len(marked) <= total * MOST_FALSE, "\n".join(marked)
    elsewhere, _ = list_false_marks("open.json", "en")
    assert len(elsewhere) > len(marked), "texts of other languages are marked in an English office"
