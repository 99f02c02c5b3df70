"""The figures as a table for the terminal, and as the measured part of
docs/internals/performance.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.figures import Figure, short
from tests.bench.machine import Machine

PAGE = Path(__file__).parents[2] / "docs" / "internals" / "performance.md"
BEGIN = "<!-- measured: written by make bench -->"
END = "<!-- end of what was measured -->"


@dataclass(frozen=True)
class Column:
    """The figures of one database.

    Attributes:
        durable: a commit survives a power cut.
        anatomy: the fields of `passes.Anatomy`; None if passes were not measured.
    """

    database: str
    durable: bool
    figures: dict[str, Figure]
    anatomy: dict[str, Any] | None

    @classmethod
    def from_json(cls, results: dict[str, Any]) -> Column:
        figures = [
            Figure(**{**each, "values": tuple(each["values"])}) for each in results["figures"]
        ]
        version = results["version"]
        return cls(
            version["name"],
            version["durable"],
            {each.name: each for each in figures},
            results["anatomy"],
        )


def table(columns: Sequence[Column]) -> str:
    """Build a Markdown table of all figures, one column for each database; figures with an aim come
    first."""
    every = {name: figure for column in columns for name, figure in column.figures.items()}
    rows = [["figure", "unit", "aim", *(column.database for column in columns)]]
    for name, known in sorted(every.items(), key=lambda item: item[1].aim is None):
        cells = [column.figures[name].text if name in column.figures else "" for column in columns]
        rows.append([name, known.unit, f"≤ {known.aim:g}" if known.aim is not None else "", *cells])
    return _aligned(rows)


def write_page(machine: Machine, columns: Sequence[Column]) -> None:
    """Replace the measured part of docs/internals/performance.md; keep the text around it."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    parts = [_machine_text(machine, columns), table(columns)]
    parts += [
        _anatomy_text(column.database, column.anatomy) for column in columns if column.anatomy
    ]
    PAGE.write_text(before + "\n\n".join([BEGIN, *parts, END]) + after)


def _machine_text(machine: Machine, columns: Sequence[Column]) -> str:
    databases = " and ".join(column.database for column in columns)
    where = f"{machine.cores} cores of {machine.processor}, {machine.system}, Python {machine.python}, {databases}."
    loop = f"A Python loop of a million multiplications takes {short(machine.loop_ms)} ms on this machine"
    lines = [
        f"{where}\n{loop}, and an append of 4 KB with fsync {short(machine.sync_ms)} ms (medians)."
    ]
    if machine.is_busy:
        lines.append(
            f"**Provisional:** before the start, other work kept the machine busy (load {machine.load:.1f}), "
            "so times are longer than on an idle machine."
        )
    lines += [
        f"**{column.database} was not configured to survive a power cut.**"
        for column in columns
        if not column.durable
    ]
    return "\n\n".join(lines)


def _anatomy_text(database: str, anatomy: dict[str, Any]) -> str:
    statements = anatomy["statements"]
    total = 1000 * sum(each["seconds"] for each in statements)
    commits = 1000 * sum(each["seconds"] for each in statements if each["shape"] == "COMMIT")
    rest = anatomy["wall_ms"] - total - anatomy["model_ms"]
    rows = [["", "statement", "ms"]]
    rows += [
        [str(place), each["shape"], short(1000 * each["seconds"])]
        for place, each in enumerate(statements, 1)
    ]
    split = (
        f"A pass takes {short(anatomy['wall_ms'])} ms while its statements are recorded: statements "
        f"{short(total - commits)} ms, commits {short(commits)} ms,\nthe model's response over HTTP "
        f"{short(anatomy['model_ms'])} ms, everything else in Python {short(rest)} ms."
    )
    return f"### A pass on {database}\n\n{split}\n\n{_aligned(rows)}"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
