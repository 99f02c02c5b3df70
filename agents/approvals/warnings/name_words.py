"""Count the words of an organization's names, to separate legal forms and ordinary words from words
that distinguish names."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from tools.contract.name_likeness import LONGEST_ENDING, split_words
from tools.registries.records import RECORD_STORE

MAX_READ = 1_000
"""The maximum number of names that are read, beginning with the oldest records."""
COMMON = 3
"""The number of names that must contain a word before it counts as common."""
MOST_DISTINGUISHED = 0.2
"""The maximum share of the names with an ending that may differ from another name only in that
ending. An ending with a larger share distinguishes names, as surnames do."""


@dataclass
class NameWords:
    """Counts of words and of last words in names.

    Attributes:
        words: the number of names with each word.
        endings: the number of names with each last word.
        distinguishing: the number of these names, for each last word, that differ from another name
            only in that word.
    """

    words: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    distinguishing: Counter[str] = field(default_factory=Counter)

    def is_common(self, word: str) -> bool:
        """Return True if several names have this word."""
        return self.words[word.casefold()] >= COMMON

    def is_ending(self, word: str) -> bool:
        """Return True if the word ends names without distinguishing them, as legal forms do.

        A word that ends only a few names counts if it is short.
        """
        word = word.casefold()
        count = self.endings[word]
        if count < COMMON:
            return len(word) <= LONGEST_ENDING
        return self.distinguishing[word] <= count * MOST_DISTINGUISHED


def count_words(names: Iterable[str]) -> NameWords:
    """Count the words of different names."""
    counts, endings = NameWords(), defaultdict[tuple[str, ...], list[str]](list)
    for words in {split_words(name.casefold()) for name in names}:
        counts.words.update(set(words))
        if len(words) > 1:
            endings[words[:-1]].append(words[-1])
    for found in endings.values():
        counts.endings.update(found)
        if len(found) > 1:
            counts.distinguishing.update(found)
    return counts


def load_name_words(organization_id: int) -> NameWords:
    """Count the words of the organization's oldest names, with one query."""
    records = RECORD_STORE.get().get_records(organization_id).order_by("pk")
    return count_words(records.values_list("name", flat=True)[:MAX_READ])
