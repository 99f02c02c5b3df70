"""Small bar charts with a column per day, computed as plain numbers that a template draws as
SVG."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple, Protocol

from agents.insight import figures, oversight
from agents.runs.budgets import format_money
from agents.web.charts.daily_counts import Day

HEIGHT = 48.0
STEP = 10.0
GAP = 2.5
MIN_BAR_HEIGHT = 1.5
"""The smallest height of a bar, so that a count of one is visible beside large counts."""


@dataclass(frozen=True)
class Bar:
    """The rectangle of one count, in the chart's own units."""

    kind: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class ChartColumn:
    """One day: the text of its tooltip, and its bars from bottom to top."""

    label: str
    x: float
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class ChartSeries:
    """One color of the chart: one kind of count, and its total."""

    kind: str
    name: str
    total: str


@dataclass(frozen=True)
class Chart:
    """A chart as the template draws it; numbers that people read are formatted."""

    key: str
    name: str
    title: str
    description: str
    total: str
    today: str
    first: date
    columns: tuple[ChartColumn, ...]
    series: tuple[ChartSeries, ...]
    width: float
    height: float = HEIGHT
    step: float = STEP

    @property
    def shapes(self) -> list[tuple[str, str]]:
        """One SVG path for all bars of each kind, which is much shorter than a rectangle for each
        bar."""
        bars = [bar for column in self.columns for bar in column.bars]
        return [
            (each.kind, " ".join(_draw_path(bar) for bar in bars if bar.kind == each.kind))
            for each in self.series
        ]


class _DatedFigures(Protocol):
    """A day, with its counts as attributes of `figures`."""

    @property
    def date(self) -> date: ...

    @property
    def figures(self) -> object: ...


class _DatedCalls(NamedTuple):
    """The calls of a tool or an employee on one day."""

    date: date
    figures: figures.DayCalls


class _DatedDecisions(NamedTuple):
    """The cards that people decided on one day."""

    date: date
    figures: oversight.DayDecisions


class _DatedUse(NamedTuple):
    """The usage of an employee's model on one day."""

    date: date
    figures: figures.ModelUse


@dataclass(frozen=True)
class _ChartSubject:
    """The texts of a chart, and the kinds of numbers that it shows for each day.

    Attributes:
        kinds: the kinds of its bars, each with its name.
        format: turns a number into text.
    """

    key: str
    name: str
    title: str
    kinds: tuple[tuple[str, str], ...]
    format: Callable[[int], str] = "{:,}".format


_SUBJECTS = (
    _ChartSubject("runs", "Runs", "Runs started", (("runs", "runs"),)),
    _ChartSubject("calls", "Tool calls", "Tool calls", (("calls", "tool calls"),)),
    _ChartSubject(
        "decisions",
        "Decisions",
        "Cards approved and denied",
        (("approved", "approved"), ("denied", "denied")),
    ),
)


def build_charts(days: Sequence[Day]) -> list[Chart]:
    """Build the charts of runs, tool calls and decisions, with a column per day."""
    return [_build_chart(subject, days) for subject in _SUBJECTS]


def build_calls_chart(key: str, days: Mapping[date, figures.DayCalls]) -> Chart:
    """Build the chart of succeeded and failed calls on each of the last 30 days.

    Args:
        key: makes the chart's ids unique on the page.
    """
    kinds = (("succeeded", "succeeded"), ("failed", "failed"))
    dated = [_DatedCalls(day, days.get(day, figures.DayCalls())) for day in _list_last_days()]
    return _build_chart(_ChartSubject(key, "Calls", "Finished calls", kinds), dated)


def build_cost_chart(key: str, days: Mapping[date, figures.ModelUse], currency: str) -> Chart:
    """Build the chart of the model's cost on each of the last 30 days."""
    dated = [_DatedUse(day, days.get(day, figures.ModelUse())) for day in _list_last_days()]
    subject = _ChartSubject(
        key,
        "Cost",
        "Model cost",
        (("cost_micros", "cost"),),
        lambda micros: format_money(micros, currency),
    )
    return _build_chart(subject, dated)


def build_decisions_chart(decided: Mapping[date, oversight.DayDecisions], days: int) -> Chart:
    """Build the chart of approved, edited and denied cards on each of the last `days` days."""
    kinds = (("approved", "approved"), ("edited", "edited"), ("denied", "denied"))
    dated = [
        _DatedDecisions(day, decided.get(day, oversight.DayDecisions()))
        for day in _list_last_days(days)
    ]
    return _build_chart(
        _ChartSubject("decided", "Cards decided", "Cards approved, edited and denied", kinds), dated
    )


def _list_last_days(days: int = figures.DAYS) -> list[date]:
    first = figures.get_today() - timedelta(days=days - 1)
    return [first + timedelta(days=offset) for offset in range(days)]


def build_table(days: Sequence[Day]) -> list[tuple[date, list[str]]]:
    """Build a table with the numbers of the charts, newest day first: runs, tool calls, approved,
    denied."""
    return [(day.date, [f"{number:,}" for number in day.figures]) for day in reversed(days)]


def _build_chart(subject: _ChartSubject, days: Sequence[_DatedFigures]) -> Chart:
    counts = [[int(getattr(day.figures, kind)) for kind, _ in subject.kinds] for day in days]
    totals = [sum(day_counts) for day_counts in counts]
    highest = max(1, *totals)
    return Chart(
        key=subject.key,
        name=subject.name,
        title=f"{subject.title} on each of the last {len(days)} days",
        description=_describe_chart(subject, days, totals),
        total=subject.format(sum(totals)),
        today=subject.format(totals[-1]),
        first=days[0].date,
        columns=tuple(
            _build_column(
                subject, index, day.date, [(count, count / highest) for count in counts[index]]
            )
            for index, day in enumerate(days)
        ),
        series=tuple(
            ChartSeries(kind, name, subject.format(sum(day_counts[index] for day_counts in counts)))
            for index, (kind, name) in enumerate(subject.kinds)
        ),
        width=STEP * len(days),
    )


def _build_column(
    subject: _ChartSubject, index: int, day: date, counts: list[tuple[int, float]]
) -> ChartColumn:
    """Stack the bars of a day; `counts` has each kind's count, with its share of the highest
    column."""
    bars, top = [], HEIGHT
    for (kind, _), (count, share) in zip(subject.kinds, counts, strict=True):
        height = max(MIN_BAR_HEIGHT, round(share * HEIGHT, 2)) if count else 0.0
        top -= height
        if count:
            bars.append(
                Bar(kind, index * STEP + GAP / 2, round(max(0.0, top), 2), STEP - GAP, height)
            )
    numbers = ", ".join(
        f"{subject.format(count)} {name}"
        for (_, name), (count, _) in zip(subject.kinds, counts, strict=True)
    )
    return ChartColumn(f"{_format_day(day)}: {numbers}", index * STEP, tuple(bars))


def _describe_chart(
    subject: _ChartSubject, days: Sequence[_DatedFigures], totals: list[int]
) -> str:
    """Describe the chart in one or two sentences, for screen readers."""
    if not any(totals):
        return "None in this period."
    busiest = max(range(len(totals)), key=lambda index: totals[index])
    day = "today" if busiest == len(totals) - 1 else f"on {_format_day(days[busiest].date)}"
    total, today, most = (
        subject.format(number) for number in (sum(totals), totals[-1], totals[busiest])
    )
    return f"{total} in total, {today} today. Highest: {most} {day}."


def _draw_path(bar: Bar) -> str:
    return f"M{bar.x:g} {bar.y:g}h{bar.width:g}v{bar.height:g}h-{bar.width:g}z"


def _format_day(day: date) -> str:
    return f"{day:%a} {day.day} {day:%b}"
