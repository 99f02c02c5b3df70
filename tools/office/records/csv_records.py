"""Records of a CSV file; an unclosed quote spoils only the line that contains it."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_UNCLOSED = 100
"""The maximum number of lines with an unclosed quote. The limit bounds the work, because the lines
below each of them are read again."""


class TooManyFaultsError(ValueError):
    """The file has too many unclosed quotes to be CSV; the message is for the user."""


@dataclass(frozen=True)
class CsvRecord:
    """One record: the number of its first line, and its cells or its fault."""

    line: int
    cells: Sequence[str] = ()
    fault: str = ""


class CsvRecords:
    """An iterable of the records in these lines; each record is read only once.

    Args:
        lines: the lines with their line breaks.
        start: the index of the first line to read.

    Attributes:
        columns: the names of the columns, once they are known; a record may lack the cells for
            empty names at the end.
    """

    def __init__(self, lines: Sequence[str], start: int, delimiter: str) -> None:
        self._lines = lines
        self._next = start
        self._delimiter = delimiter
        self._unclosed = 0
        self.columns: Sequence[str] = ()

    def __iter__(self) -> Iterator[CsvRecord]:
        """Yield the records; a record whose quotes do not match ends with its first line.

        Raises:
            TooManyFaultsError: more than 100 lines have an unclosed quote.
        """
        while self._next < len(self._lines):
            reader = csv.reader(self._give_lines(), delimiter=self._delimiter, strict=True)
            while True:
                start = self._next
                try:
                    cells = next(reader)
                except StopIteration:
                    return
                except csv.Error as error:
                    yield self._recover(start, str(error))
                    break
                if self._next > start + 1 and not self._fits(cells):
                    yield self._recover(start, "another number of cells")
                    break
                yield CsvRecord(start + 1, cells)

    def _fits(self, cells: Sequence[str]) -> bool:
        """Return True if the cells fill the columns; if not, a quote has joined several lines."""
        if not self.columns:
            return True
        return len(cells) >= len(drop_empty_end(self.columns)) and len(
            drop_empty_end(cells)
        ) <= len(self.columns)

    def _give_lines(self) -> Iterator[str]:
        while self._next < len(self._lines):
            self._next += 1
            yield self._lines[self._next - 1]

    def _recover(self, start: int, error: str) -> CsvRecord:
        """Return the record of the first line alone, and continue below it."""
        spanned, self._next = self._next - start, start + 1
        line = self._lines[start]
        is_unclosed = spanned > 1 or "unexpected end" in error or line.count('"') % 2 == 1
        if is_unclosed:
            self._unclosed += 1
            if self._unclosed > MAX_UNCLOSED:
                raise TooManyFaultsError(
                    f"The file has more than {MAX_UNCLOSED} lines with an unclosed quote."
                )
            return CsvRecord(
                start + 1,
                fault="a quote is not closed on this line, so only this line was left out",
            )
        try:
            return CsvRecord(start + 1, next(csv.reader([line], delimiter=self._delimiter)))
        except csv.Error as fault:
            return CsvRecord(start + 1, fault=f"not readable as CSV: {fault}")


def drop_empty_end(cells: Sequence[str]) -> Sequence[str]:
    """Return the cells without the empty ones at the end."""
    end = len(cells)
    while end and not cells[end - 1].strip():
        end -= 1
    return cells[:end]
