"""Differences between two texts: line by line, with the changed characters of each changed line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents.web.text.safe_text import render_folded_contacts, render_text

MAX_COMPARED_LINES = 600
"""The maximum number of lines to compare between the first and the last difference; if there are
more, all of them are shown as replaced."""
LONGEST_HIGHLIGHTED_LINE = 300
MAX_HIGHLIGHTED_LINES = 100
MAX_SHOWN_LINES, MAX_SHOWN_CHARACTERS = 14, 1_000
HEAD_LINES, TAIL_LINES = 8, 3
MAX_CUT_LINE = 100
CONTEXT = 2
MIN_LIKENESS = 0.4
"""The minimum likeness at which two lines or values are compared letter by letter."""
_SENTENCE_END = re.compile(r"(?<=[.!?]) ")
SAME, REMOVED, ADDED, GAP = "same", "removed", "added", "gap"


@dataclass(frozen=True)
class DiffLine:
    """One line of a unified diff; a gap stands for unchanged lines."""

    kind: str
    html: SafeString
    text: str = ""

    @property
    def sign(self) -> str:
        return {REMOVED: "−", ADDED: "+"}.get(self.kind, " ")  # noqa: RUF001 - the minus sign is as wide as the plus


def build_diff(before: str, after: str) -> list[DiffLine]:
    """Build a unified diff with two lines of context."""
    old, new = _split_lines(before), _split_lines(after)
    start, end = _count_common(old, new)
    lines: list[DiffLine] = []
    for tag, i1, i2, j1, j2 in _compare(old, new, start, end):
        if tag == "equal":
            lines += _shorten_context(old[i1:i2], is_first=i1 == 0, is_last=i2 == len(old))
        else:
            lines += _compare_lines(
                old[i1:i2], new[j1:j2], highlights_left=MAX_HIGHLIGHTED_LINES - len(lines)
            )
    return lines


@dataclass(frozen=True)
class FoldedDiff:
    """A diff whose card shows only the start and the end.

    Attributes:
        contacts: the addresses in the folded lines.
    """

    head: list[DiffLine]
    tail: list[DiffLine]
    changed: int
    contacts: SafeString | str


def fold_diff(lines: list[DiffLine]) -> FoldedDiff | None:
    """Fold a long diff; return None for a diff that is short enough to be shown whole."""
    changed = [line for line in lines if line.kind in (REMOVED, ADDED)]
    if (
        len(lines) <= MAX_SHOWN_LINES
        and sum(len(line.text) for line in lines) <= MAX_SHOWN_CHARACTERS
    ):
        return None
    head = [_cut(line, slice(None, MAX_CUT_LINE)) for line in lines[:HEAD_LINES]]
    tail = [
        _cut(line, slice(-MAX_CUT_LINE, None))
        for line in lines[max(HEAD_LINES, len(lines) - TAIL_LINES) :]
    ]
    texts = ("\n".join(line.text for line in part) for part in (changed, head, tail))
    return FoldedDiff(head, tail, len(changed), render_folded_contacts(*texts))


def _cut(line: DiffLine, part: slice) -> DiffLine:
    text = line.text[part]
    return (
        line
        if len(text) == len(line.text)
        else DiffLine(line.kind, format_html("{}[…]", render_text(text)), text)
    )


def _split_lines(text: str) -> list[str]:
    """Split a text into lines, and split long lines after each sentence."""
    lines = text.replace("\r\n", "\n").split("\n")
    return [
        part
        for line in lines
        for part in (_SENTENCE_END.split(line) if len(line) > LONGEST_HIGHLIGHTED_LINE else [line])
    ]


def _count_common(old: list[str], new: list[str]) -> tuple[int, int]:
    """Count the lines that are the same at the start, and those at the end."""
    shorter = min(len(old), len(new))
    start = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    end = next(
        (at for at in range(shorter - start) if old[-1 - at] != new[-1 - at]), shorter - start
    )
    return start, end


def _compare(
    old: list[str], new: list[str], start: int, end: int
) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield the change to each block of lines, as `SequenceMatcher.get_opcodes` does."""
    old_end, new_end = len(old) - end, len(new) - end
    if start:
        yield "equal", 0, start, 0, start
    if old_end - start + new_end - start > MAX_COMPARED_LINES:
        yield "replace", start, old_end, start, new_end
    else:
        matcher = SequenceMatcher(None, old[start:old_end], new[start:new_end], autojunk=False)
        for tag, i1, i2, j1, j2 in matcher.get_opcodes():
            yield tag, start + i1, start + i2, start + j1, start + j2
    if end:
        yield "equal", old_end, len(old), new_end, len(new)


def mark_characters(before: str, after: str) -> tuple[SafeString, SafeString]:
    """Render two texts, with the removed and added characters marked if the texts are short and
    similar."""
    if len(before) + len(after) > 2 * LONGEST_HIGHLIGHTED_LINE:
        return render_text(before), render_text(after)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < MIN_LIKENESS:
        return render_text(before), render_text(after)
    removed, added = [], []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        old, new = render_text(before[i1:i2]), render_text(after[j1:j2])
        removed.append(old if tag == "equal" or not old else format_html("<del>{}</del>", old))
        added.append(new if tag == "equal" or not new else format_html("<ins>{}</ins>", new))
    return SafeString("".join(removed)), SafeString("".join(added))


def _shorten_context(lines: list[str], *, is_first: bool, is_last: bool) -> Iterator[DiffLine]:
    start = 0 if is_first else CONTEXT
    end = len(lines) - (0 if is_last else CONTEXT)
    if end - start <= 1:
        yield from (DiffLine(SAME, render_text(line), line) for line in lines)
        return
    yield from (DiffLine(SAME, render_text(line), line) for line in lines[:start])
    yield DiffLine(GAP, format_html("{} unchanged lines", f"{end - start:,}"))
    yield from (DiffLine(SAME, render_text(line), line) for line in lines[end:])


def _compare_lines(old: list[str], new: list[str], *, highlights_left: int) -> list[DiffLine]:
    """Compare the lines of one change, and list first all removed lines, then all added lines."""
    pairs = [
        mark_characters(one, other)
        if one is not None and other is not None and place < highlights_left
        else (render_text(one or ""), render_text(other or ""))
        for place, (one, other) in enumerate(zip_longest(old, new))
    ]
    removed = [DiffLine(REMOVED, html, line) for line, (html, _) in zip(old, pairs, strict=False)]
    return [
        *removed,
        *(DiffLine(ADDED, html, line) for line, (_, html) in zip(new, pairs, strict=False)),
    ]
