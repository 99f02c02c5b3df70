"""The widget for limits: for each stored limit, a sentence that can be changed or removed; for each
kind of limit, a sentence with blanks for a new one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from agents.employees.limit_sentences import (
    AFTER,
    COMPARISON,
    COMPARISONS,
    LEVEL,
    MOST,
    OTHERWISE,
    OTHERWISES,
    PERIOD,
    SENTENCES,
    TOOL,
    VALUE,
    Blank,
    Row,
    Sentence,
    is_empty,
)
from tools.contract import Level
from tools.toolbox.history import Period

REMOVE = "remove"
_CHOOSE = ("", "choose a tool")
_FIXED: dict[Blank, Mapping[str, str]] = {
    PERIOD: {period.value: period.value for period in Period},
    COMPARISON: COMPARISONS,
    OTHERWISE: OTHERWISES,
    LEVEL: {level.value: level.value for level in Level if level is not Level.READ},
}
_DEFAULTS = {PERIOD.name: Period.HOUR.value}


class LimitsWidget(forms.Widget):
    """A widget of sentences with words, selects and inputs; it works without scripts.

    Attributes:
        params: the names of each tool's params, by the tool's name.
    """

    use_fieldset = True

    def __init__(self) -> None:
        super().__init__()
        self.params: Mapping[str, Sequence[str]] = {}

    def id_for_label(self, id_: str | None) -> str:
        """Return no id, because the label belongs to all sentences together."""
        return ""

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> list[Row]:
        """Return the filled-in sentences in their order; a sentence that is to be removed has the
        key `remove`."""
        place = re.compile(rf"{re.escape(name)}-(\d{{1,4}})-([a-z]+)")
        rows: dict[int, Row] = {}
        for key in data:
            if found := place.fullmatch(key):
                rows.setdefault(int(found[1]), {})[found[2]] = str(data[key])
        return [
            row
            for _, row in sorted(rows.items())
            if row.get("sentence") in tuple(Sentence) and not is_empty(row)
        ]

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        """Render the stored sentences, then a sentence with blanks for each kind of limit."""
        filled: list[Row] = list(value or ())
        stored = [self._describe(f"{name}-{number}", row) for number, row in enumerate(filled)]
        empty = [
            self._describe(f"{name}-{number}", {"sentence": sentence})
            for number, sentence in enumerate(Sentence, start=len(filled))
        ]
        params = [
            (f"{name}-params-{tool}", names) for tool, names in self._list_used_params(filled)
        ]
        groups = [
            ("In force", stored),
            ("Add a limit: choose its tool and fill in the sentence", empty),
        ]
        return render_to_string("admin/limit_sentences.html", {"groups": groups, "params": params})

    def _list_used_params(self, rows: Sequence[Row]) -> list[tuple[str, Sequence[str]]]:
        used = {row.get(blank.name, "") for row in rows for blank in (TOOL, AFTER)}
        return [(tool, names) for tool, names in sorted(self.params.items()) if tool in used]

    def _describe(self, prefix: str, row: Row) -> dict[str, Any]:
        sentence = Sentence(row["sentence"])
        pieces = [
            {"words": piece} if isinstance(piece, str) else self._describe_blank(prefix, piece, row)
            for piece in SENTENCES[sentence]
        ]
        return {
            "kind": {"name": f"{prefix}-sentence", "value": sentence.value},
            "pieces": pieces,
            "remove": {
                "name": f"{prefix}-{REMOVE}",
                "checked": REMOVE in row,
                "shown": not is_empty(row),
            },
        }

    def _describe_blank(self, prefix: str, blank: Blank, row: Row) -> dict[str, Any]:
        text = row.get(blank.name, _DEFAULTS.get(blank.name, ""))
        piece = {"name": f"{prefix}-{blank.name}", "label": blank.label, "value": text}
        if (choices := self._list_choices(blank, text)) is not None:
            return {**piece, "choices": choices}
        if blank == VALUE:
            return {**piece, "lines": max(1, min(6, len(text.splitlines())))}
        tool = row.get(AFTER.name if blank.name == "same" else TOOL.name, "")
        known = f"{prefix.rpartition('-')[0]}-params-{tool}" if tool in self.params else ""
        return {**piece, "is_number": blank == MOST, "known": "" if blank == MOST else known}

    def _list_choices(self, blank: Blank, chosen: str) -> list[tuple[str, str]] | None:
        if blank in (TOOL, AFTER):
            names = sorted({*self.params, chosen} - {""})
            return [_CHOOSE, *((name, name) for name in names)]
        return list(_FIXED[blank].items()) if blank in _FIXED else None
