"""The order of the sentences in a standing grant's form, and the names of their params for
people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from agents.platform.refusals import Invalid
from agents.runs.models import Approval
from agents.standing_grants.proposals import propose_equal
from agents.web.grants.grant_form import ABSENT, ANY, GrantForm, SentenceRow, make_form
from agents.web.panel.call_inputs import RECORD_PARAMS, label_path, load_names
from tools.contract import Tool
from tools.toolbox.conditions import Rule

MAX_OPEN = 6
"""The maximum number of sentences that the form shows before the folded ones."""


@dataclass(frozen=True)
class NamedRow:
    """A sentence with the name of its param for people.

    Attributes:
        label: the param's title in the schema, or its name in words.
        value_name: the name of the record whose id is the value; empty if there is no such record.
        reason: why the param needs a condition; empty if it needs none.
    """

    row: SentenceRow
    label: str
    value_name: str = ""
    reason: str = ""

    @property
    def is_renamed(self) -> bool:
        """True if the label is a title, which may differ from the param's name."""
        return self.label != label_path(self.row.path)


@dataclass(frozen=True)
class ArrangedRows:
    """The sentences of the form in their order.

    Attributes:
        first: those that vary, name something or lack a value.
        folded: the others.
        absent: those about params that calls must not have.
    """

    first: tuple[NamedRow, ...] = ()
    folded: tuple[NamedRow, ...] = ()
    absent: tuple[NamedRow, ...] = ()

    @property
    def free(self) -> list[str]:
        """The labels of the params that may have any value."""
        return [each.label for each in (*self.first, *self.folded) if each.row.rule == ANY]

    @property
    def limited(self) -> list[str]:
        """The labels of the params with a condition that allows several values."""
        rows = (*self.first, *self.folded)
        return [each.label for each in rows if each.row.rule not in (ANY, Rule.EQUALS)]

    @cached_property
    def _fixed_rows(self) -> list[SentenceRow]:
        rows = (each.row for each in (*self.first, *self.folded))
        return [row for row in rows if row.rule == Rule.EQUALS]

    @property
    def fixed(self) -> int:
        """The number of the params with exactly one value."""
        return len(self._fixed_rows)

    def keeps_values(self, card: Approval) -> bool:
        """Return True if each param with exactly one value has the card's value."""
        try:
            equal = propose_equal(card.tool_call.tool, card.run.employee_id, card.params)
        except Invalid:
            return False
        return set(self._fixed_rows) <= set(make_form(equal).rows)

    @property
    def are_all_fixed(self) -> bool:
        """True if each folded param has exactly one value."""
        return all(each.row.rule == Rule.EQUALS for each in self.folded)


def arrange_rows(
    organization_id: int, form: GrantForm, tool: Tool | None, needs: Mapping[str, str]
) -> ArrangedRows:
    """Arrange the sentences of the form: those that vary or name something come first, and are
    shown; costs at most one query, for the names of records.

    Args:
        needs: why the params that name something need a condition, by path.
    """
    rows = _name_rows(organization_id, form.rows, tool)
    rows = [replace(each, reason=needs.get(each.row.path, "")) for each in rows]
    absent = tuple(each for each in rows if each.row.rule == ABSENT)
    present = [each for each in rows if each.row.rule != ABSENT]
    present.sort(key=_rank)
    kept = sum(_rank(each) < _FIXED for each in present)
    if len(present) <= MAX_OPEN:
        kept = len(present)
    kept = min(kept, MAX_OPEN)
    return ArrangedRows(tuple(present[:kept]), tuple(present[kept:]), absent)


_FIXED = 3


def _rank(named: NamedRow) -> int:
    """Return the sort key: sentences without a value come first, then those with several values,
    then those that name something."""
    row = named.row
    if row.rule == Rule.EQUALS and not row.value:
        return 0
    if row.rule != Rule.EQUALS:
        return 1
    return 2 if named.reason else _FIXED


def _name_rows(
    organization_id: int, rows: Sequence[SentenceRow], tool: Tool | None
) -> list[NamedRow]:
    names = load_names(organization_id, _list_ids(rows, tool))
    return [
        NamedRow(
            row,
            label_path(row.path, tool),
            names.get(row.value, "") if row.path in RECORD_PARAMS else "",
        )
        for row in rows
    ]


def _list_ids(rows: Iterable[SentenceRow], tool: Tool | None) -> list[str]:
    if tool is None or tool.is_from_outside:
        return []
    return [row.value for row in rows if row.path in RECORD_PARAMS]
