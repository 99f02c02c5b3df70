"""What an admin chooses on the page of a source's tools: read from the form, judged, and shown again if it fails."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from django.http.request import QueryDict

from tools.connections.changes import Choice
from tools.connections.models import Source, SourceTool
from tools.contract import Level, fingerprint
from tools.sources.risks import carried_by, reached_by

from .acts import last_changed_by
from .source_definitions import MOST_CHARACTERS, Told, told_of

LEVELS = frozenset({"", *(each.value for each in Level)})
DEFINITIONS = ("definition", "accepted_definition")
"""Columns that may be large, and that only the tools of one page need."""
ALL, NONE = "all", "none"
"""Values of the buttons that tick, and untick, everything on the page before it is saved."""


class Sent:
    """The form as it came in.

    Attributes:
        rows: the tools that were on the page, as they are now, by id.
    """

    def __init__(self, source: Source, data: QueryDict) -> None:
        self.source = source
        self._data = data
        ids = [int(key) for key in data.getlist("shown") if key.isdecimal() and len(key) < 19]
        self.rows = {row.pk: row for row in SourceTool.objects.filter(source=source, pk__in=ids).defer(*DEFINITIONS)}

    def was(self, row: SourceTool) -> str:
        """The state that was shown, see `shown_state`."""
        return self._data.get(f"was-{row.pk}", shown_state(row))

    def is_touched(self, row: SourceTool) -> bool:
        """Whether this person wants another state than was shown, or accepts what is quarantined."""
        wanted = _state(is_chosen=self.is_ticked(row), level=self.level_of(row))
        return wanted != self.was(row) or f"accept-{row.pk}" in self._data

    def is_overtaken(self, row: SourceTool) -> bool:
        """Whether somebody else has changed it since, and to something else than is wanted here."""
        wanted = _state(is_chosen=self.is_ticked(row), level=self.level_of(row))
        return self.is_touched(row) and shown_state(row) not in (self.was(row), wanted)

    def is_ticked(self, row: SourceTool) -> bool:
        every = self._data.get("every")
        return f"chosen-{row.pk}" in self._data if every not in (ALL, NONE) else every == ALL

    def level_of(self, row: SourceTool) -> str:
        return self._data.get(f"level-{row.pk}", "")

    def is_accepted(self, row: SourceTool) -> bool:
        """What is in use and has changed is accepted by a tick of its own, so that nobody does it by the way."""
        return row.state != "quarantined" or f"accept-{row.pk}" in self._data

    @cached_property
    def choices(self) -> dict[int, Choice]:
        """Those that are to be written: what this person has not touched stays as somebody else may have left it."""
        return {
            pk: Choice(self.is_ticked(row), self.level_of(row), self._data.get(f"seen-{pk}", ""))
            for pk, row in self.rows.items()
            if self.is_touched(row) and (not self.is_ticked(row) or self.is_accepted(row))
        }

    @property
    def meant(self) -> list[int]:
        """The ids of those that shall be offered from now on."""
        return [pk for pk, choice in self.choices.items() if choice.is_chosen]

    @cached_property
    def problem(self) -> str:
        """Why the choices cannot be saved; empty if they can. Nothing is accepted that was not on the screen."""
        if overtaken := [row.tool for row in self.rows.values() if self.is_overtaken(row)]:
            by = last_changed_by(self.source)
            return f"Changed meanwhile{by}: {', '.join(overtaken)}. Look again, and save once more what you want."
        for pk, choice in self.choices.items():
            row = self.rows[pk]
            if choice.level not in LEVELS:
                return "There is no such level."
            if choice.is_chosen and choice.seen != row.hash:
                return f"{row.tool} has changed meanwhile: look at it again."
            if choice.is_chosen and row.gone_at is not None:
                return f"{row.tool} is gone: its source describes it no more."
            if choice.is_chosen and self.source.is_mcp and not choice.level:
                return f"Say which level {row.tool} has: what its server says of it binds nobody."
        return ""

    @cached_property
    def questions(self) -> dict[str, str]:
        """A sentence for each level to which tools fall below what was inferred, by what is sent to confirm it.

        The level of what was not chosen was confirmed by nobody. None if all are ticked. A tick is bound to its
        sentence, as in `ConfirmingForm`.
        """
        fallen: dict[str, list[str]] = defaultdict(list)
        for pk, choice in self.choices.items():
            row = self.rows[pk]
            is_confirmed = row.is_chosen and choice.level == row.level
            if choice.is_chosen and choice.level and not is_confirmed and _is_low(row, choice.level):
                fallen[choice.level].append(_describe_lowered(row))
        sentences = [
            f"From now on these count as {level}, which is less than their source suggests: {', '.join(names)}."
            for level, names in fallen.items()
        ]
        asked = {fingerprint(sentence)[:16]: sentence for sentence in sentences}
        return asked if asked.keys() - set(self._data.getlist("confirmed")) else {}


@dataclass(frozen=True)
class Line:
    """One tool on the page.

    Attributes:
        told: what is described, and accepted with it.
        was: the state that it had when this person saw it, see `shown_state`.
        is_ticked: in the form, which is not yet what is saved if it came back.
        levels: that it may be given, each with whether it has it now; the first is what was inferred.
    """

    row: SourceTool
    told: Told
    was: str
    is_ticked: bool
    is_accepted: bool
    levels: tuple[tuple[str, str, bool], ...]


def lines_of(source: Source, shown: Iterable[SourceTool], sent: Sent | None) -> list[Line]:
    """With the definitions, which only the tools of one page need."""
    whole = SourceTool.objects.in_bulk([row.pk for row in shown])
    told = {pk: told_of(row, MOST_CHARACTERS // len(whole)) for pk, row in whole.items()}
    return [_line(source, whole[row.pk], told[row.pk], sent) for row in shown if row.pk in whole]


def _line(source: Source, row: SourceTool, told: Told, sent: Sent | None) -> Line:
    now = shown_state(row)
    if sent is None or row.pk not in sent.rows or not sent.is_touched(row):
        return Line(row, told, now, row.is_chosen, is_accepted=False, levels=_levels(source, row, row.level))
    is_accepted = row.state == "quarantined" and sent.is_accepted(row)
    was = now if sent.is_overtaken(row) else sent.was(row)
    return Line(row, told, was, sent.is_ticked(row), is_accepted, _levels(source, row, sent.level_of(row)))


def shown_state(row: SourceTool) -> str:
    """What an admin has decided about it, as the page carries it: two admins may have the page open at once."""
    return _state(is_chosen=row.is_chosen, level=row.level)


def _state(*, is_chosen: bool, level: str) -> str:
    return f"{'chosen' if is_chosen else 'not chosen'} {level}"


def _levels(source: Source, row: SourceTool, chosen: str) -> tuple[tuple[str, str, bool], ...]:
    """An MCP server's own hints bind nobody, so that a level has to be chosen; an API's method says enough."""
    first = "choose one" if source.is_mcp else f"{row.inferred_level} (inferred)"
    return (("", first, not chosen), *((each.value, each.value, chosen == each.value) for each in Level))


def _describe_lowered(row: SourceTool) -> str:
    """Describe the tool, its inferred level, and the reason for that level."""
    why = "; ".join(filter(None, (carried_by(row.definition), reached_by(row.definition))))
    return f"{row.tool} (inferred: {row.inferred_level}{f', {why}' if why else ''})"


def _is_low(row: SourceTool, level: str) -> bool:
    return Level(level).rank < Level(row.inferred_level).rank
