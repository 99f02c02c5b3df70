"""The table of figures with the aims that the design sets, and the lists below it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One line of the table; `aim` is empty if the design sets none."""

    name: str
    value: str
    aim: str = ""


@dataclass(frozen=True)
class Listing:
    """Lines below the table that itemize a figure."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """The figures of one measure, with their lists."""

    figures: tuple[Figure, ...]
    listings: tuple[Listing, ...] = ()


def format_figures(figures: Iterable[Figure]) -> str:
    """Format the table, with as many spaces as its widest cells need."""
    rows = [("", "now", "aim"), *((each.name, each.value, each.aim) for each in figures)]
    name, value = (max(len(row[column]) for row in rows) for column in (0, 1))
    return "\n".join(f"{row[0]:<{name}}  {row[1]:>{value}}  {row[2]}".rstrip() for row in rows)


def format_listing(listing: Listing) -> str:
    return "\n".join((f"\n{listing.title}", *(f"  {line}" for line in listing.lines or ("none",))))
