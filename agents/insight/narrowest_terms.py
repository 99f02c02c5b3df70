"""Propose the narrowest terms of a standing grant that cover approved calls of one shape."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, NamedTuple

from agents.insight.value_origins import (
    MAX_VALUES,
    KnownFacts,
    OriginSearch,
    ParamValues,
    Sample,
    find_exact,
    list_different,
)
from agents.platform.refusals import Invalid
from agents.standing_grants.models import MAX_DAYS
from agents.standing_grants.past_calls import GrantMatcher, PastCall
from agents.standing_grants.proposals import (
    ProposedGrant,
    check_terms,
    find_naming,
    propose_equal,
    read_value,
)
from agents.standing_grants.run_facts import PastFacts
from tools.contract import Tool, canonical_json
from tools.contract.value_shapes import is_name
from tools.schemas.param_paths import list_types
from tools.toolbox.conditions import Condition, Rule, find_single_host
from tools.toolbox.grant_conditions import list_value_paths
from tools.toolbox.grant_sources import read_grant_condition
from tools.toolbox.param_values import is_number

SMALLEST_ID = 1_000
"""The smallest whole number that may be an id, and may therefore name something."""
LONGEST_WORD = 8
"""In scripts without spaces, a text of this many letters counts as several words."""
MOST_ROUNDS = 4
"""The maximum number of proposals that are made in turn; each of them leaves out the calls that the
previous one did not cover."""
FOLDS = 5
"""The number of parts into which the approvals are divided; each part is tried on terms made from
the other parts."""


@dataclass(frozen=True)
class TermsMaker:
    """Makes terms for calls of one tool.

    Attributes:
        reads: the reads from whose results values may come, by name.
        known: earlier findings about the calls.
    """

    tool: Tool
    reads: Mapping[str, Tool]
    known: KnownFacts = field(default_factory=KnownFacts)

    def propose(self, calls: Sequence[PastCall], least: int) -> ProposedGrant | None:
        """Propose the narrowest terms that cover as many of the calls as possible; None if they
        cover fewer than `least`."""
        left = list(calls)
        for _ in range(MOST_ROUNDS):
            if len(left) < least:
                return None
            try:
                proposal, covered = self._propose_for(left, least)
            except (Invalid, ValueError):
                return None
            if len(covered) == len(left):
                return proposal
            left = [left[number] for number in sorted(covered)]
        return None

    def _propose_for(
        self, calls: Sequence[PastCall], least: int
    ) -> tuple[ProposedGrant, frozenset[int]]:
        """Propose terms, and return them with the indices of the calls that meet every condition.

        Raises:
            Invalid, ValueError: no standing grant can have the terms.
        """
        first = calls[0]
        base = propose_equal(first.tool, first.employee_id, dict(first.params))
        present = [self.list_paths(call) for call in calls]
        paths = sorted(set().union(*present))
        used = [call.params for call in calls]
        narrowing = _Narrowing(
            self.tool,
            OriginSearch(self.reads, self.known),
            frozenset(find_naming(self.tool, paths, used)),
            least,
        )
        conditions: list[Condition] = []
        covered = frozenset(range(len(calls)))
        for path in paths:
            values, numbers = _read_values(path, calls, present)
            others = covered.difference(numbers)
            if 2 * len(numbers) < len(calls):
                covered = others  # most calls leave the param out, so the terms do as well
                continue
            outside = frozenset(
                place for place, each in enumerate(numbers) if _is_from_outside(calls[each], path)
            )
            found = narrowing.narrow(values, outside)
            conditions += found.conditions
            covered &= frozenset(numbers[each] for each in found.covered)
            covered |= others if not found.conditions and found.covered else frozenset()
        checked = tuple(read_grant_condition(each.as_json()) for each in conditions)
        proposal = replace(
            base, params=tuple(paths), conditions=checked, lifetime=timedelta(days=MAX_DAYS)
        )
        if len(covered) == len(calls):
            check_terms(proposal, self.tool, used)
        return proposal, covered

    def needs_origins(self, calls: Sequence[PastCall]) -> bool:
        """Return True if the terms depend on where the value of a param came from."""
        present = [self.list_paths(call) for call in calls]
        every = (_read_values(path, calls, present)[0] for path in sorted(set().union(*present)))
        return any(
            values.is_named and find_exact(values.path, values.values) is None for values in every
        )

    def list_paths(self, call: PastCall) -> frozenset[str]:
        """List the paths of the call's values, without nulls that are the tool's default."""
        return list_value_paths(call.params, call.find_defaults(self.tool)) or frozenset()


def _read_values(
    path: str, calls: Sequence[PastCall], present: Sequence[frozenset[str]]
) -> tuple[ParamValues, list[int]]:
    """Return the values of a param, with the indices of the calls that have it.

    Args:
        present: the paths of each call.
    """
    numbers = [number for number, mine in enumerate(present) if path in mine]
    samples = [Sample(calls[each].params, _read_facts(calls[each])) for each in numbers]
    return ParamValues(path, samples), numbers


def _read_facts(call: PastCall) -> PastFacts:
    assert isinstance(call.facts, PastFacts), "past calls are read with the facts of their runs"
    return call.facts


class _Narrowed(NamedTuple):
    """The conditions on a param, and the indices of the samples that meet them."""

    conditions: list[Condition]
    covered: frozenset[int]


@dataclass(frozen=True)
class _Narrowing:
    """Narrows the params of a tool, one after the other.

    Attributes:
        destinations: the params that hold a recipient, a destination or an amount.
        least: the minimum number of calls that terms must cover.
    """

    tool: Tool
    origins: OriginSearch
    destinations: frozenset[str]
    least: int

    def narrow(self, values: ParamValues, outside: frozenset[int]) -> _Narrowed:
        """Return the narrowest conditions that new calls can meet, too: a few values, an origin, a
        range or a host; none for text that may be free.

        Args:
            outside: the indices of the samples whose value came from outside, so that neither a
                host nor a free param covers them.
        """
        every = frozenset(range(len(values.samples)))
        is_measured = self._is_measured(values)
        exact = find_exact(values.path, values.values)
        if exact is not None and not (is_measured and exact.rule is Rule.ONE_OF):
            return _Narrowed([exact], every)
        origin = None if exact is not None else self.origins.find_origin(values)
        least = len(every) if is_measured else self.least
        if origin is not None and len(origin.covered) >= least:
            return _Narrowed([origin.condition], origin.covered)
        leaves = [leaf for one in values.leaves for leaf in one]
        if is_measured:
            bounds = ((Rule.MINIMUM, min(leaves)), (Rule.MAXIMUM, max(leaves)))
            return _Narrowed([Condition(values.path, *bound) for bound in bounds], every)
        return self._narrow_openly(values, leaves, outside)

    def _narrow_openly(
        self, values: ParamValues, leaves: Sequence[Any], outside: frozenset[int]
    ) -> _Narrowed:
        """Narrow a param whose values do not share an origin or a range: require their host, leave
        text free, or list the values if some repeat."""
        every = frozenset(range(len(values.samples)))
        is_destination = values.path in self.destinations
        host = _find_host(leaves) if is_destination else None
        if host is not None:
            return _Narrowed([values.build(Rule.HOST, host)], every - outside)
        if not is_destination and sum(map(_is_plain_text, leaves)) * 2 > len(leaves):
            return _Narrowed([], every - outside)
        different = list_different(values.values)
        if len(different) > min(MAX_VALUES, len(every) - 1):
            return _Narrowed([], frozenset())
        return _Narrowed([Condition(values.path, Rule.ONE_OF, different)], every)

    def _is_measured(self, values: ParamValues) -> bool:
        """Return True for numbers that measure something; large whole numbers name things, unless
        the schema allows fractions."""
        numbers = values.values
        if values.is_list or not numbers or not all(map(is_number, numbers)):
            return False
        are_ids = all(isinstance(each, int) and each >= SMALLEST_ID for each in numbers)
        return not are_ids or "number" in list_types(self.tool.schema, values.path)


def _find_host(values: Iterable[Any]) -> str | None:
    """Return the host of all the values; None if there is none, several, or an ambiguous one."""
    hosts = set(map(find_single_host, values))
    host = min(hosts, key=str, default=None)
    return host if len(hosts) == 1 and host is not None and "'" not in host else None


def _is_plain_text(value: Any) -> bool:
    """Return True for a text of several words, or a date or a time, which does not name anything;
    some scripts do not have spaces between words."""
    if not isinstance(value, str) or is_name(value):
        return False
    text = value.strip()
    if any(char.isspace() or char.isdecimal() for char in text):
        return True
    kinds = Counter(map(unicodedata.category, text))
    return kinds["Po"] > 0 or kinds["Lo"] >= LONGEST_WORD


def _is_from_outside(call: PastCall, path: str) -> bool:
    known = call.provenance
    return known is None or known.find_outside(path, counts_fields=False) is not None


class CrossCheck(NamedTuple):
    """The number of approved calls that were tried on terms made from the others, and the number
    that those terms would have approved."""

    tried: int
    approved: int


def cross_check(maker: TermsMaker, calls: Sequence[PastCall], least: int) -> CrossCheck:
    """Make terms from four fifths of the calls and try them on the last fifth, in turn."""
    approved = 0
    for fold in range(FOLDS):
        made = maker.propose([c for n, c in enumerate(calls) if n % FOLDS != fold], least)
        if made is not None:
            matcher = GrantMatcher.of(made, maker.tool)
            approved += sum(map(matcher.covers, calls[fold::FOLDS]))
    return CrossCheck(len(calls), approved)


def leave_out(maker: TermsMaker, calls: Sequence[PastCall], denied: PastCall) -> list[PastCall]:
    """Return the largest group of the calls that one param sets apart from the denied call: calls
    with a smaller number, with a larger number, or with another value. Empty if there is none."""
    choices: list[list[PastCall]] = [[]]
    for path in sorted(maker.list_paths(denied)):
        value = read_value(denied.params, path)
        others = [(call, read_value(call.params, path)) for call in calls]
        if is_number(value) and all(is_number(each) for _, each in others):
            choices.append([call for call, each in others if each < value])
            choices.append([call for call, each in others if each > value])
        else:
            wanted = canonical_json(value)
            choices.append([call for call, each in others if canonical_json(each) != wanted])
    fewer = [each for each in choices if len(each) < len(calls)]
    return max(fewer, key=len)
