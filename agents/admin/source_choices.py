"""An admin's choices on the page of a source's tools: read from the form, checked, and shown again
on errors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from django.http.request import QueryDict

from agents.admin.audit_subjects import describe_last_editor
from agents.admin.source_definitions import MAX_CHARACTERS, DefinitionSummary, summarize_definition
from agents.web.text.safe_text import quote_outside
from tools.connections.changes import ToolChoice
from tools.connections.models import Source, SourceTool
from tools.contract import Level, canonical_json, fingerprint
from tools.contract.param_naming import DESCRIPTIONS, ParamNaming
from tools.sources.risks import explain_embedded_requests, explain_exfiltration, get_schema

LEVELS = frozenset({"", *(each.value for each in Level)})
DEFINITIONS = ("definition", "accepted_definition")
"""Large columns, loaded only for the tools of one page."""
MAX_PARAMS = 200
"""The maximum number of params of one tool that an admin can mark as naming something, or as naming
nothing."""
ALL, NONE = "all", "none"
"""Values of the buttons that tick or untick everything on the page and save it."""


class SubmittedChoices:
    """The submitted form of the tools page.

    Attributes:
        rows: the current rows, by id, of the tools that were on the page.
    """

    def __init__(self, source: Source, data: QueryDict) -> None:
        self.source = source
        self._data = data
        ids = [int(key) for key in data.getlist("shown") if key.isdecimal() and len(key) < 19]
        self.rows = {
            row.pk: row
            for row in SourceTool.objects.filter(source=source, pk__in=ids).defer(*DEFINITIONS)
        }

    def get_shown_state(self, row: SourceTool) -> str:
        """Return the tool's state as the page showed it, see `encode_state`."""
        return self._data.get(f"was-{row.pk}", encode_state(row))

    def is_touched(self, row: SourceTool) -> bool:
        """Return True if this person changed the tool's state, or accepted its changed definition
        or title."""
        return self._encode(row) != self.get_shown_state(row) or self.has_accept_tick(row)

    def has_conflict(self, row: SourceTool) -> bool:
        """Return True if somebody else has meanwhile set the tool to a state that this person
        neither saw nor wants."""
        known = (self.get_shown_state(row), self._encode(row))
        return self.is_touched(row) and encode_state(row) not in known

    def _encode(self, row: SourceTool) -> str:
        """Encode the submitted settings like `encode_state`."""
        params = (self.list_params("named", row), self.list_params("plain", row))
        return _encode(self.get_level(row), params, is_chosen=self.is_ticked(row))

    def is_ticked(self, row: SourceTool) -> bool:
        every = self._data.get("every")
        return f"chosen-{row.pk}" in self._data if every not in (ALL, NONE) else every == ALL

    def get_level(self, row: SourceTool) -> str:
        return self._data.get(f"level-{row.pk}", "")

    def list_params(self, kind: str, row: SourceTool) -> tuple[str, ...]:
        """List the tool's params that the form marks as naming something, such as a recipient
        (`named`), or as naming nothing (`plain`)."""
        sent = self._data.getlist(f"{kind}-{row.pk}")[:MAX_PARAMS]
        return tuple(sorted({path for path in sent if "\0" not in path}))

    def is_accepted(self, row: SourceTool) -> bool:
        """Return True unless the tool's definition has changed and this change was not ticked, so
        that nobody accepts a changed definition by accident."""
        return row.state != "quarantined" or self.has_accept_tick(row)

    def has_accept_tick(self, row: SourceTool) -> bool:
        return f"accept-{row.pk}" in self._data

    @cached_property
    def choices(self) -> dict[int, ToolChoice]:
        """The choices to save, by id. Tools that this person did not touch are left out, because
        somebody else may have changed them. So are ticked tools whose changed definition was not
        accepted."""
        return {
            pk: ToolChoice(
                self.is_ticked(row),
                self.get_level(row),
                seen=self._data.get(f"seen-{pk}", ""),
                seen_title=self._data.get(f"title-{pk}"),
                accepts_title=f"accept-{pk}" in self._data,
                named=self.list_params("named", row),
                plain=self.list_params("plain", row),
            )
            for pk, row in self.rows.items()
            if self.is_touched(row) and (not self.is_ticked(row) or self.is_accepted(row))
        }

    @property
    def enabled_ids(self) -> list[int]:
        """The ids of the tools to enable, or to keep enabled."""
        return [pk for pk, choice in self.choices.items() if choice.is_chosen]

    @cached_property
    def problem(self) -> str | None:
        """The reason why the choices cannot be saved; None if they can be saved.

        A definition that was not on the screen is never accepted.
        """
        if conflicts := [row.tool for row in self.rows.values() if self.has_conflict(row)]:
            by = describe_last_editor(self.source)
            return f"Changed{by} since you opened this page: {', '.join(conflicts)}. Check, then save again."
        problems = (
            self._describe_problem(self.rows[pk], each) for pk, each in self.choices.items()
        )
        return next(filter(None, problems), None)

    def _describe_problem(self, row: SourceTool, choice: ToolChoice) -> str | None:
        if both := set(choice.named or ()) & set(choice.plain or ()):
            return f"{row.tool}: {min(both)} cannot name both something and nothing."
        if choice.level not in LEVELS:
            return f"{row.tool}: {choice.level[:40]!r} is not a level. Choose one from the list."
        is_unseen_title = choice.accepts_title and choice.seen_title not in (None, row.title)
        if choice.is_chosen and (choice.seen != row.hash or is_unseen_title):
            part = "title" if is_unseen_title else "definition"
            return (
                f"The {part} of {row.tool} has changed since you opened this page. Check it again."
            )
        if choice.is_chosen and row.gone_at is not None:
            return f"{row.tool} is gone: its source no longer describes it. Untick it."
        if choice.is_chosen and self.source.is_mcp and not choice.level:
            return f"Choose a level for {row.tool}: the server's own hints are not trusted."
        return None

    @cached_property
    def consequences(self) -> dict[str, str]:
        """The sentences that must still be confirmed, by key: one for each chosen level that is
        lower than the inferred level of its tools, and one for params that the form newly marks as
        naming nothing.

        The level of a tool that was off needs confirmation, because nobody has confirmed it before.
        A tick confirms exactly the sentence that was shown, as in `ConfirmationForm`.
        """
        lowered: dict[str, list[str]] = defaultdict(list)
        for pk, choice in self.choices.items():
            row = self.rows[pk]
            is_confirmed = row.is_chosen and choice.level == row.level
            if (
                choice.is_chosen
                and choice.level
                and not is_confirmed
                and _is_below_inferred(row, choice.level)
            ):
                lowered[choice.level].append(_describe_lowered(row))
        sentences = [
            f"From now on, these tools have the level {level}, lower than inferred: {', '.join(names)}."
            for level, names in lowered.items()
        ]
        if freed := list(self._describe_freed()):
            sentences.append(
                f"From now on, standing grants can leave these parameters free: {'; '.join(freed)}."
            )
        keyed = {fingerprint(sentence)[:16]: sentence for sentence in sentences}
        return keyed if keyed.keys() - set(self._data.getlist("confirmed")) else {}

    def _describe_freed(self) -> Iterator[str]:
        """Yield each tool with the params that the form newly marks as naming nothing."""
        for pk, choice in self.choices.items():
            row = self.rows[pk]
            if freed := sorted(set(choice.plain or ()) - set(row.plain_params)):
                yield f"{row.tool} {', '.join(freed)}"


@dataclass(frozen=True)
class ParamChoice:
    """One param on the page.

    Attributes:
        guess: a description of the thing that the param seems to name, judged by its name and
            schema; empty if they do not show it.
        is_named, is_plain: True if the submitted form, or else an admin's earlier choice, marks the
            param as naming something, or nothing.
    """

    path: str
    guess: str
    is_named: bool
    is_plain: bool


@dataclass(frozen=True)
class ToolChoiceRow:
    """One tool on the page.

    Attributes:
        definition: the definition that is accepted by choosing the tool.
        shown_state: the state that the page showed this person, see `encode_state`.
        is_ticked: True if the tool is ticked in the submitted form, which may differ from the saved
            value.
        levels: (value, label, is_selected) for each possible level; the first is the inferred one.
        params: the tool's params, so that an admin can mark which of them name something.
    """

    row: SourceTool
    definition: DefinitionSummary
    shown_state: str
    is_ticked: bool
    is_accepted: bool
    levels: tuple[tuple[str, str, bool], ...]
    params: tuple[ParamChoice, ...]


def build_choice_rows(
    source: Source, shown: Iterable[SourceTool], sent: SubmittedChoices | None
) -> list[ToolChoiceRow]:
    """Build the rows of one page, with the definitions of its tools."""
    complete = SourceTool.objects.in_bulk([row.pk for row in shown])
    definitions = {
        pk: summarize_definition(row, MAX_CHARACTERS // len(complete))
        for pk, row in complete.items()
    }
    return [
        _build_row(source, complete[row.pk], definitions[row.pk], sent)
        for row in shown
        if row.pk in complete
    ]


def _build_row(
    source: Source, row: SourceTool, definition: DefinitionSummary, sent: SubmittedChoices | None
) -> ToolChoiceRow:
    now = encode_state(row)
    if sent is None or row.pk not in sent.rows or not sent.is_touched(row):
        levels = _list_levels(source, row, row.level)
        params = _list_params(row, definition, row.named_params, row.plain_params)
        state = (now, row.is_chosen)
        return ToolChoiceRow(
            row, definition, *state, is_accepted=False, levels=levels, params=params
        )
    is_accepted = (row.state == "quarantined" or row.has_waiting_title) and sent.has_accept_tick(
        row
    )
    shown_state = now if sent.has_conflict(row) else sent.get_shown_state(row)
    levels = _list_levels(source, row, sent.get_level(row))
    both = (sent.list_params("named", row), sent.list_params("plain", row))
    params = _list_params(row, definition, *both)
    is_ticked = sent.is_ticked(row)
    return ToolChoiceRow(row, definition, shown_state, is_ticked, is_accepted, levels, params)


def _list_params(
    row: SourceTool, definition: DefinitionSummary, named: Collection[str], plain: Collection[str]
) -> tuple[ParamChoice, ...]:
    """List the params that hold values, and the params that are marked as naming something or as
    naming nothing."""
    shown = [each.name for each in definition.params]
    inner = {name.rpartition(".")[0] for name in shown}
    paths = dict.fromkeys([*(name for name in shown if name not in inner), *named, *plain])
    naming = ParamNaming(get_schema(row.definition))
    return tuple(
        ParamChoice(
            path, DESCRIPTIONS.get(naming.find(path), ""), path in set(named), path in set(plain)
        )
        for path in islice(paths, MAX_PARAMS)
    )


def encode_state(row: SourceTool) -> str:
    """Encode an admin's settings for the tool for a hidden input, so that concurrent edits are
    noticed."""
    params = (tuple(row.named_params), tuple(row.plain_params))
    return _encode(row.level, params, is_chosen=row.is_chosen)


def _encode(level: str, params: tuple[tuple[str, ...], ...], *, is_chosen: bool) -> str:
    said = canonical_json([list(each) for each in params]) if any(params) else ""
    return f"{'chosen' if is_chosen else 'not chosen'} {level}{said}"


def _list_levels(
    source: Source, row: SourceTool, selected: str
) -> tuple[tuple[str, str, bool], ...]:
    """List the levels to choose from. An MCP tool has no default, because its server's hints are
    not trusted."""
    first = "Choose a level" if source.is_mcp else f"{row.inferred_level} (inferred)"
    return (
        ("", first, not selected),
        *((each.value, each.value, selected == each.value) for each in Level),
    )


def _describe_lowered(row: SourceTool) -> str:
    """Describe the tool, its inferred level, and the reason for that level."""
    why = "; ".join(
        filter(
            None, (explain_embedded_requests(row.definition), explain_exfiltration(row.definition))
        )
    )
    return f"{quote_outside(row.tool)} (inferred: {row.inferred_level}{f', {why}' if why else ''})"


def _is_below_inferred(row: SourceTool, level: str) -> bool:
    return Level(level).rank < Level(row.inferred_level).rank
