"""Small bar charts of days, as plain numbers that a template draws as SVG."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple, Protocol

from agents.employees.budgets import format_money
from agents.insight import figures
from agents.web.charts.figures import Day

HEIGHT = 48.0
STEP = 10.0
GAP = 2.5
LEAST = 1.5
"""A bar that stands for anything at all can be seen."""


@dataclass(frozen=True)
class Bar:
    """A rectangle in the chart's own units; `kind` says what it counts."""

    kind: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Column:
    """One day: what its tooltip says, and its bars from the ground up."""

    label: str
    x: float
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Part:
    """What one color of the chart counts, and how many there were altogether."""

    kind: str
    name: str
    total: str


@dataclass(frozen=True)
class Chart:
    """Everything that the template shows of one figure; numbers for people are text."""

    key: str
    name: str
    title: str
    description: str
    total: str
    today: str
    first: date
    columns: tuple[Column, ...]
    parts: tuple[Part, ...]
    width: float
    height: float = HEIGHT
    step: float = STEP

    @property
    def shapes(self) -> list[tuple[str, str]]:
        """All bars of a kind as one path: much less to send than a rectangle for each, where many charts are shown."""
        bars = [bar for column in self.columns for bar in column.bars]
        return [(part.kind, " ".join(_path(bar) for bar in bars if bar.kind == part.kind)) for part in self.parts]


class _Dated(Protocol):
    """A day, with what happened on it as attributes of `figures`."""

    @property
    def date(self) -> date: ...

    @property
    def figures(self) -> object: ...


class DayOfCalls(NamedTuple):
    """One day of a tool's or an employee's figures."""

    date: date
    figures: figures.DayCalls


class DayOfUse(NamedTuple):
    """One day of what an employee's model cost."""

    date: date
    figures: figures.ModelUse


@dataclass(frozen=True)
class _Subject:
    """What a chart is about; `parts` are the kinds of its bars, with the word for each; `say` makes a number a text."""

    key: str
    name: str
    title: str
    parts: tuple[tuple[str, str], ...]
    say: Callable[[int], str] = "{:,}".format


_SUBJECTS = (
    _Subject("runs", "Runs", "Runs started", (("runs", "runs"),)),
    _Subject("calls", "Tool calls", "Tool calls made", (("calls", "tool calls"),)),
    _Subject("decisions", "Decisions", "Cards approved and denied", (("approved", "approved"), ("denied", "denied"))),
)


def charts_of(days: Sequence[Day]) -> list[Chart]:
    """Runs, tool calls and decisions, with a column for each day."""
    return [_chart(subject, days) for subject in _SUBJECTS]


def chart_of_calls(key: str, days: Mapping[date, figures.DayCalls]) -> Chart:
    """How many calls succeeded and failed on each of the last 30 days; `key` makes its ids unique on the page."""
    parts = (("succeeded", "succeeded"), ("failed", "failed"))
    every = [DayOfCalls(day, days.get(day, figures.DayCalls())) for day in _last_days()]
    return _chart(_Subject(key, "Calls", "Calls that ended", parts), every)


def chart_of_cost(key: str, days: Mapping[date, figures.ModelUse], currency: str) -> Chart:
    """What the model cost on each of the last 30 days."""
    every = [DayOfUse(day, days.get(day, figures.ModelUse())) for day in _last_days()]
    about = _Subject(
        key, "Cost", "Cost of the model", (("cost_micros", "cost"),), lambda micros: format_money(micros, currency)
    )
    return _chart(about, every)


def _last_days() -> list[date]:
    first = figures.get_first_day()
    return [first + timedelta(days=after) for after in range(figures.DAYS)]


def table_of(days: Sequence[Day]) -> list[tuple[date, list[str]]]:
    """The same numbers to read, newest day first: runs, tool calls, approved, denied."""
    return [(day.date, [f"{number:,}" for number in day.figures]) for day in reversed(days)]


def _chart(subject: _Subject, days: Sequence[_Dated]) -> Chart:
    counts = [[int(getattr(day.figures, kind)) for kind, _ in subject.parts] for day in days]
    sums = [sum(each) for each in counts]
    highest = max(1, *sums)
    return Chart(
        key=subject.key,
        name=subject.name,
        title=f"{subject.title} on each of the last {len(days)} days",
        description=_described(subject, days, sums),
        total=subject.say(sum(sums)),
        today=subject.say(sums[-1]),
        first=days[0].date,
        columns=tuple(
            _column(subject, place, day.date, [(count, count / highest) for count in counts[place]])
            for place, day in enumerate(days)
        ),
        parts=tuple(
            Part(kind, name, subject.say(sum(each[place] for each in counts)))
            for place, (kind, name) in enumerate(subject.parts)
        ),
        width=STEP * len(days),
    )


def _column(subject: _Subject, place: int, day: date, counts: list[tuple[int, float]]) -> Column:
    """The bars of a day, one on the other; each count comes with its share of the highest column."""
    bars, ground = [], HEIGHT
    for (kind, _), (count, share) in zip(subject.parts, counts, strict=True):
        height = max(LEAST, round(share * HEIGHT, 2)) if count else 0.0
        ground -= height
        if count:
            bars.append(Bar(kind, place * STEP + GAP / 2, round(max(0.0, ground), 2), STEP - GAP, height))
    said = ", ".join(
        f"{subject.say(count)} {name}" for (_, name), (count, _) in zip(subject.parts, counts, strict=True)
    )
    return Column(f"{_named(day)}: {said}", place * STEP, tuple(bars))


def _described(subject: _Subject, days: Sequence[_Dated], sums: list[int]) -> str:
    """The chart in one or two sentences, for who cannot see it."""
    if not any(sums):
        return "None on any of these days."
    say, busiest = subject.say, max(range(len(sums)), key=lambda place: sums[place])
    on = "today" if busiest == len(sums) - 1 else f"on {_named(days[busiest].date)}"
    return f"{say(sum(sums))} altogether, {say(sums[-1])} today. Most {on}: {say(sums[busiest])}."


def _path(bar: Bar) -> str:
    return f"M{bar.x:g} {bar.y:g}h{bar.width:g}v{bar.height:g}h-{bar.width:g}z"


def _named(day: date) -> str:
    return f"{day:%a} {day.day} {day:%b}"
