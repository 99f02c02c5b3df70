"""Small bar charts of days, as plain numbers that a template draws as SVG."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple, Protocol

from agents.employees.budgets import format_money
from agents.insight import figures
from agents.web.charts.daily_counts import Day

HEIGHT = 48.0
STEP = 10.0
GAP = 2.5
LEAST = 1.5
"""The least height of a bar, so that one item is visible."""


@dataclass(frozen=True)
class Bar:
    """A rectangle in the chart's own units, for the counts of one kind."""

    kind: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class ChartColumn:
    """One day: the text of its tooltip, and its bars from the ground up."""

    label: str
    x: float
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class ChartSeries:
    """One color of the chart: the counted kind and its total."""

    kind: str
    name: str
    total: str


@dataclass(frozen=True)
class Chart:
    """A chart as the template draws it; numbers for people are formatted."""

    key: str
    name: str
    title: str
    description: str
    total: str
    today: str
    first: date
    columns: tuple[ChartColumn, ...]
    parts: tuple[ChartSeries, ...]
    width: float
    height: float = HEIGHT
    step: float = STEP

    @property
    def shapes(self) -> list[tuple[str, str]]:
        """The bars of each kind as one SVG path, which is much shorter than a rectangle for each bar."""
        bars = [bar for column in self.columns for bar in column.bars]
        return [(part.kind, " ".join(_draw_path(bar) for bar in bars if bar.kind == part.kind)) for part in self.parts]


class _Dated(Protocol):
    """A day with its counts as attributes of `figures`."""

    @property
    def date(self) -> date: ...

    @property
    def figures(self) -> object: ...


class DayOfCalls(NamedTuple):
    """One day of the figures of a tool or an employee."""

    date: date
    figures: figures.DayCalls


class DayOfUse(NamedTuple):
    """One day of the cost of an employee's model."""

    date: date
    figures: figures.ModelUse


@dataclass(frozen=True)
class _ChartSubject:
    """The subject of a chart: `parts` names the kinds of its bars with their words, `say` formats a number."""

    key: str
    name: str
    title: str
    parts: tuple[tuple[str, str], ...]
    say: Callable[[int], str] = "{:,}".format


_SUBJECTS = (
    _ChartSubject("runs", "Runs", "Runs started", (("runs", "runs"),)),
    _ChartSubject("calls", "Tool calls", "Tool calls made", (("calls", "tool calls"),)),
    _ChartSubject(
        "decisions", "Decisions", "Cards approved and denied", (("approved", "approved"), ("denied", "denied"))
    ),
)


def build_charts(days: Sequence[Day]) -> list[Chart]:
    """Build the charts of runs, tool calls and decisions, with a column per day."""
    return [_build_chart(subject, days) for subject in _SUBJECTS]


def build_calls_chart(key: str, days: Mapping[date, figures.DayCalls]) -> Chart:
    """Build the chart of succeeded and failed calls of the last 30 days; `key` makes its ids unique on the page."""
    parts = (("succeeded", "succeeded"), ("failed", "failed"))
    every = [DayOfCalls(day, days.get(day, figures.DayCalls())) for day in _list_last_days()]
    return _build_chart(_ChartSubject(key, "Calls", "Calls that ended", parts), every)


def build_cost_chart(key: str, days: Mapping[date, figures.ModelUse], currency: str) -> Chart:
    """Build the chart of the model's cost on each of the last 30 days."""
    every = [DayOfUse(day, days.get(day, figures.ModelUse())) for day in _list_last_days()]
    about = _ChartSubject(
        key, "Cost", "Cost of the model", (("cost_micros", "cost"),), lambda micros: format_money(micros, currency)
    )
    return _build_chart(about, every)


def _list_last_days() -> list[date]:
    first = figures.get_first_day()
    return [first + timedelta(days=after) for after in range(figures.DAYS)]


def build_table(days: Sequence[Day]) -> list[tuple[date, list[str]]]:
    """Build the table of the charts' numbers, newest day first: runs, tool calls, approved, denied."""
    return [(day.date, [f"{number:,}" for number in day.figures]) for day in reversed(days)]


def _build_chart(subject: _ChartSubject, days: Sequence[_Dated]) -> Chart:
    counts = [[int(getattr(day.figures, kind)) for kind, _ in subject.parts] for day in days]
    sums = [sum(each) for each in counts]
    highest = max(1, *sums)
    return Chart(
        key=subject.key,
        name=subject.name,
        title=f"{subject.title} on each of the last {len(days)} days",
        description=_describe(subject, days, sums),
        total=subject.say(sum(sums)),
        today=subject.say(sums[-1]),
        first=days[0].date,
        columns=tuple(
            _build_column(subject, place, day.date, [(count, count / highest) for count in counts[place]])
            for place, day in enumerate(days)
        ),
        parts=tuple(
            ChartSeries(kind, name, subject.say(sum(each[place] for each in counts)))
            for place, (kind, name) in enumerate(subject.parts)
        ),
        width=STEP * len(days),
    )


def _build_column(subject: _ChartSubject, place: int, day: date, counts: list[tuple[int, float]]) -> ChartColumn:
    """Stack the bars of a day; each count comes with its share of the highest column."""
    bars, ground = [], HEIGHT
    for (kind, _), (count, share) in zip(subject.parts, counts, strict=True):
        height = max(LEAST, round(share * HEIGHT, 2)) if count else 0.0
        ground -= height
        if count:
            bars.append(Bar(kind, place * STEP + GAP / 2, round(max(0.0, ground), 2), STEP - GAP, height))
    said = ", ".join(
        f"{subject.say(count)} {name}" for (_, name), (count, _) in zip(subject.parts, counts, strict=True)
    )
    return ChartColumn(f"{_format_day(day)}: {said}", place * STEP, tuple(bars))


def _describe(subject: _ChartSubject, days: Sequence[_Dated], sums: list[int]) -> str:
    """Describe the chart in one or two sentences, for screen readers."""
    if not any(sums):
        return "None on any of these days."
    say, busiest = subject.say, max(range(len(sums)), key=lambda place: sums[place])
    on = "today" if busiest == len(sums) - 1 else f"on {_format_day(days[busiest].date)}"
    return f"{say(sum(sums))} in total, {say(sums[-1])} today. Most {on}: {say(sums[busiest])}."


def _draw_path(bar: Bar) -> str:
    return f"M{bar.x:g} {bar.y:g}h{bar.width:g}v{bar.height:g}h-{bar.width:g}z"


def _format_day(day: date) -> str:
    return f"{day:%a} {day.day} {day:%b}"
