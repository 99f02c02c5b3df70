"""The figures as a table for the terminal, and as the measured part of docs/performance.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.figures import Figure, short
from tests.bench.machine import Machine

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
BEGIN = "<!-- measured: written by make bench -->"
END = "<!-- end of what was measured -->"


@dataclass(frozen=True)
class Column:
    """One database with its figures; `anatomy` as passes.Anatomy gives it, or None."""

    database: str
    durable: bool
    figures: dict[str, Figure]
    anatomy: dict[str, Any] | None

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Column:
        figures = [Figure(**{**each, "values": tuple(each["values"])}) for each in told["figures"]]
        version = told["version"]
        return cls(version["name"], version["durable"], {each.name: each for each in figures}, told["anatomy"])


def table(columns: Sequence[Column]) -> str:
    """Markdown: what, unit, aim, and each database's median with smallest and largest; what has an aim comes first."""
    every = {name: figure for column in columns for name, figure in column.figures.items()}
    rows = [["what", "unit", "aim", *(column.database for column in columns)]]
    for name, known in sorted(every.items(), key=lambda item: item[1].aim is None):
        cells = [column.figures[name].text if name in column.figures else "" for column in columns]
        rows.append([name, known.unit, f"≤ {known.aim:g}" if known.aim is not None else "", *cells])
    return _aligned(rows)


def write_page(machine: Machine, columns: Sequence[Column]) -> None:
    """Replaces the measured part of the page; what people wrote around it stays."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    parts = [_machine_text(machine, columns), table(columns)]
    parts += [_anatomy_text(column.database, column.anatomy) for column in columns if column.anatomy]
    PAGE.write_text(before + "\n\n".join([BEGIN, *parts, END]) + after)


def _machine_text(machine: Machine, columns: Sequence[Column]) -> str:
    databases = " and ".join(column.database for column in columns)
    where = f"{machine.cores} cores of {machine.processor}, {machine.system}, Python {machine.python}, {databases}."
    speed = f"A Python loop of a million multiplications takes {short(machine.loop_ms)} ms here"
    lines = [f"{where} {speed}, an append of 4 KB with fsync {short(machine.sync_ms)} ms (medians)."]
    if machine.is_busy:
        lines.append(
            f"**Provisional:** the machine was busy with other work (load {machine.load:.1f} before the start), "
            "so everything below is slower than it has to be."
        )
    lines += [f"**{column.database} was not set to survive a power cut.**" for column in columns if not column.durable]
    return "\n\n".join(lines)


def _anatomy_text(database: str, anatomy: dict[str, Any]) -> str:
    statements = anatomy["statements"]
    total = 1000 * sum(each["seconds"] for each in statements)
    commits = 1000 * sum(each["seconds"] for each in statements if each["shape"] == "COMMIT")
    rest = anatomy["wall_ms"] - total - anatomy["model_ms"]
    rows = [["", "statement", "ms"]]
    rows += [[str(place), each["shape"], short(1000 * each["seconds"])] for place, each in enumerate(statements, 1)]
    split = (
        f"Of {short(anatomy['wall_ms'])} ms a pass (with the listening itself): statements "
        f"{short(total - commits)}, commits {short(commits)}, the model's answer over HTTP "
        f"{short(anatomy['model_ms'])}, everything else in Python {short(rest)}."
    )
    return f"### A pass on {database}\n\n{split}\n\n{_aligned(rows)}"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
