"""Find out where the values of approved calls came from: people typed them, or a field in the
results of reads contained them."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from agents.standing_grants.proposals import read_value
from agents.standing_grants.run_facts import PastFacts
from tools.contract import Tool, canonical_json
from tools.schemas.result_paths import list_value_places
from tools.toolbox.conditions import Condition, Rule
from tools.toolbox.grant_conditions import (
    RecordedResult,
    drop_nulls,
    find_broken,
    list_value_paths,
    list_values,
)
from tools.toolbox.grant_sources import ValueSource, allows_null, unpack
from tools.toolbox.param_values import is_number

MAX_VALUES = 10
"""The maximum number of different values that a condition "one of" may list."""
LEAST_SUPPORT = 2
"""The minimum number of calls whose values a field must contain to be taken as their source."""
DEEPEST_SEARCH = 3
"""The maximum number of results through which a value is traced back."""
MAX_TRIED = 6
"""The maximum number of fields that are tried as the source of a param."""
LONGEST_NAME = 200
"""The maximum length, in characters, of a text whose origin is searched for."""
MAX_ENTRIES = 100
"""The maximum number of entries in a list whose origins are searched for."""
MAX_FIELDS = 3
"""The maximum number of fields that one condition names."""


@dataclass(frozen=True)
class Sample:
    """The params of one call, with the facts that its run had seen before the call.

    Attributes:
        before: the number of the first pass whose results are ignored; None if all results in
            `facts` are used.
    """

    params: Mapping[str, Any]
    facts: PastFacts
    before: int | None = None


class Found(NamedTuple):
    """A condition, and the indices of the samples that meet it."""

    condition: Condition
    covered: frozenset[int]


class _Field(NamedTuple):
    """A field in the results of a tool."""

    tool: str
    path: str


@dataclass
class KnownFacts:
    """The results of earlier searches in the same calls, kept so that no search is repeated.

    Attributes:
        lookups: the results of reads, by call.
        met: True if the params with this `id()` meet the condition with this JSON.
    """

    lookups: dict[int, Lookup] = field(default_factory=dict)
    met: dict[tuple[int, str], bool] = field(default_factory=dict)

    def list_covered(self, condition: Condition, samples: Sequence[Sample]) -> frozenset[int]:
        """List the indices of the samples that meet the condition."""
        found, words = set[int](), canonical_json(condition.as_json())
        for number, sample in enumerate(samples):
            key = (id(sample.params), words)
            if key not in self.met:
                broken = find_broken((condition,), sample.params, sample.facts)
                self.met[key] = broken is None
            if self.met[key]:
                found.add(number)
        return frozenset(found)


@dataclass(frozen=True)
class Lookup:
    """A result of a read, with its fields by value and the values of each field.

    Attributes:
        params: the params of its call, without nulls.
    """

    recorded: RecordedResult
    params: Mapping[str, Any]
    fields: Mapping[Any, set[str]]
    values: Mapping[str, set[Any]]


class _FieldHit(NamedTuple):
    """A value, and the result that contains the value in a field."""

    lookup: Lookup
    key: Any


_FieldHits = dict[int, list[_FieldHit]]
"""The values of each sample, by the sample's index; each value with the newest result that contains
it."""


def find_exact(path: str, values: Sequence[Any]) -> Condition | None:
    """Return the condition that lists the values if there are only a few, which repeat; None
    otherwise."""
    different = list_different(values)
    if len(different) == 1:
        return Condition(path, Rule.EQUALS, different[0])
    is_few = len(different) <= MAX_VALUES and 2 * len(different) <= len(values)
    return Condition(path, Rule.ONE_OF, different) if is_few else None


def list_different(values: Iterable[Any]) -> list[Any]:
    """List each of the values once."""
    return list({canonical_json(value): value for value in values}.values())


class ParamValues:
    """The values of one param in samples.

    Attributes:
        leaves: for each sample, its texts and numbers without nulls; the entries of a list one by
            one.
        full: the indices of the samples with a text or a number.
    """

    def __init__(self, path: str, samples: Sequence[Sample]) -> None:
        self.path, self.samples = path, samples
        self.values = [read_value(sample.params, path) for sample in samples]
        every = [list_values(sample.params, path) for sample in samples]
        self.leaves = [[each for each in one if each is not None] for one in every]
        self.is_list = any(isinstance(value, list) for value in self.values)
        self.full = frozenset(number for number, leaves in enumerate(self.leaves) if leaves)
        empty: Any = [] if self.is_list else None
        self._also = [empty] if empty in self.values else []

    @cached_property
    def is_named(self) -> bool:
        """True if the values can name something: all are numbers or short texts, and no list is
        long."""
        leaves = [leaf for one in self.leaves for leaf in one]
        is_long = any(len(one) > MAX_ENTRIES for one in self.leaves)
        return bool(leaves) and not is_long and all(map(_can_name, leaves))

    def build(self, rule: Rule, value: Any) -> Condition:
        """Build the condition for the param, or for each entry of its list.

        A condition on a list also allows an empty list if a sample has one. Any other condition
        whose value is an object also allows null if a sample has it.
        """
        inner = value | {"also": []} if isinstance(value, dict) else value
        if self.is_list:
            each = {"rule": rule.value, "value": inner, "also": self._also}
            return Condition(self.path, Rule.EACH, each)
        is_plain = not isinstance(value, dict)
        return Condition(self.path, rule, value if is_plain else value | {"also": self._also})


class OriginSearch:
    """A search for the origins of values in calls of one tool.

    All params that take values from the same read share one set of conditions on that read's calls,
    as in the form.

    Args:
        reads: the tools whose results may have the values, by name.
        known: the findings of earlier searches; this search adds its own.
    """

    def __init__(self, reads: Mapping[str, Tool], known: KnownFacts) -> None:
        self._reads, self._known = reads, known
        self._wheres: dict[str, tuple[Condition, ...]] = {}
        self._open: set[str] = set()

    def find_origin(self, values: ParamValues, depth: int = 1) -> Found | None:
        """Find the condition on a param's origin that more samples meet than any other condition;
        None if no two samples share an origin."""
        if not values.is_named:
            return None
        typed = values.build(Rule.TYPED, {})
        found = [Found(typed, self._known.list_covered(typed, values.samples))]
        if depth <= DEEPEST_SEARCH:
            found += self._find_sources(values, depth)
        best = max(found, key=lambda each: len(each.covered))
        return best if len(best.covered & values.full) >= LEAST_SUPPORT else None

    def _find_sources(self, values: ParamValues, depth: int) -> list[Found]:
        """Build one condition from the fields that contained the values; return an empty list if no
        field did."""
        hits = self._find_hits(values)
        chosen: list[ValueSource] = []
        covered: frozenset[int] = frozenset()
        for place in sorted(hits, key=lambda each: _rank(each, hits[each], values.path)):
            if len(chosen) == MAX_FIELDS or covered >= values.full:
                break
            if len(hits[place].keys() - covered) < LEAST_SUPPORT:
                continue
            found = self._build_source(values, place, hits[place], depth)
            if found is not None and len(found[1] - covered) >= LEAST_SUPPORT:
                chosen.append(found[0])
                covered |= found[1]
        if not chosen:
            return []
        is_only = all(source.only for source in chosen)
        sources = [replace(source, only=is_only).as_json() for source in chosen]
        condition = values.build(Rule.COMES_FROM, {"sources": sources})
        empty = frozenset(range(len(values.samples))) - values.full
        is_first = depth == 1  # deeper samples have `before`, which `list_covered` ignores
        exact = self._known.list_covered(condition, values.samples) if is_first else None
        return [Found(condition, covered | empty if exact is None else exact)]

    def _find_hits(self, values: ParamValues) -> dict[_Field, _FieldHits]:
        """Find up to six fields that each contain all values of at least two samples; fields with
        more samples come first."""
        found: defaultdict[_Field, _FieldHits] = defaultdict(dict)
        for number in values.full:
            lookups = self._list_lookups(values.samples[number])
            mine: dict[_Field, list[_FieldHit]] | None = None
            for key in map(_make_key, values.leaves[number]):
                here = {
                    _Field(each.recorded.tool, path): _FieldHit(each, key)
                    for each in reversed(lookups)
                    for path in each.fields.get(key, ())
                }
                mine = (
                    {field: [hit] for field, hit in here.items()}
                    if mine is None
                    else {f: [*hits, here[f]] for f, hits in mine.items() if f in here}
                )
            for place, hits in (mine or {}).items():
                found[place][number] = hits
        kept = [field for field, hits in found.items() if len(hits) >= LEAST_SUPPORT]
        kept.sort(key=lambda each: _rank(each, found[each], values.path))
        return {field: found[field] for field in kept[:MAX_TRIED]}

    def _list_lookups(self, sample: Sample) -> list[Lookup]:
        """List the results of reads before the sample, the newest of each tool first."""
        found = []
        for result in sample.facts.list_all_results():
            is_early = sample.before is None or result.pass_number < sample.before
            if is_early and result.tool in self._reads and result.tool not in self._open:
                lookups = self._known.lookups
                if result.call_id not in lookups:
                    lookups[result.call_id] = _read_result(result)
                found.append(lookups[result.call_id])
        return found

    def _build_source(
        self, values: ParamValues, field: _Field, hits: _FieldHits, depth: int
    ) -> tuple[ValueSource, frozenset[int]] | None:
        """Build the source with the conditions on its calls; return it with the indices of the
        samples whose lookups meet these conditions. Return None if the calls have nothing in
        common."""
        reads = {
            hit.lookup.recorded.call_id: Sample(
                hit.lookup.params,
                values.samples[number].facts,
                hit.lookup.recorded.pass_number,
            )
            for number, mine in hits.items()
            for hit in mine
        }
        known = self._wheres.get(field.tool)
        found = self._find_where(field.tool, list(reads.values()), depth) if known is None else None
        where = known if known is not None else found
        if where is None:
            return None
        met = {pk for pk, read in reads.items() if _meets(where, read)}
        covered = frozenset(
            number
            for number, mine in hits.items()
            if all(hit.lookup.recorded.call_id in met for hit in mine)
        )
        self._wheres[field.tool] = where
        return ValueSource(field.tool, field.path, where, only=_is_only(field, hits)), covered

    def _find_where(
        self, tool: str, reads: Sequence[Sample], depth: int
    ) -> tuple[Condition, ...] | None:
        """Find conditions that fix each param of the calls of a read; None if a param cannot be
        fixed."""
        listed = [list_value_paths(read.params) for read in reads]
        paths = {path for one in listed for path in one or ()}
        required = self._reads[tool].schema.get("required", ())
        if None in listed or set(required) - {path.partition(".")[0] for path in paths}:
            return None
        self._open.add(tool)
        try:
            found = [self._fix(ParamValues(path, reads), depth + 1) for path in sorted(paths)]
        finally:
            self._open.discard(tool)
        where = tuple(condition for condition in found if condition is not None)
        return where if len(where) == len(found) else None

    def _fix(self, values: ParamValues, depth: int) -> Condition | None:
        """Find the condition that fixes a param of a read; None if there is none."""
        exact = find_exact(values.path, values.values)
        if exact is not None:
            return exact
        origin = self.find_origin(values, depth)
        return origin.condition if origin is not None else None


def _can_name(value: Any) -> bool:
    """Return True for a number or a short text on one line."""
    if isinstance(value, str):
        return len(value) <= LONGEST_NAME and "\n" not in value
    return is_number(value)


def _rank(field: _Field, hits: _FieldHits, param: str) -> tuple[Any, ...]:
    """Return the sort key of a field: fields with more samples come first, then those with the
    param's name, then those with a single value."""
    name = param.rpartition(".")[2].rstrip("_").lower()
    is_alike = field.path.rpartition(".")[2].lower().endswith(name)
    return -len(hits), not is_alike, not _is_only(field, hits), field.path.count("."), field


def _is_only(field: _Field, hits: _FieldHits) -> bool:
    """Return True if the field had no other value in any of the results."""
    return all(hit.lookup.values[field.path] == {hit.key} for mine in hits.values() for hit in mine)


def _meets(where: Sequence[Condition], read: Sample) -> bool:
    """Return True if the conditions cover all params of the read, and the read meets every
    condition that does not need a result."""
    known = {condition.param for condition in where}
    paths = list_value_paths(read.params)
    if paths is None or not paths <= known:
        return False
    asked = [
        each
        for each in where
        if (each.param in paths or not allows_null(each))
        and unpack(each).rule is not Rule.COMES_FROM
    ]
    return find_broken(asked, read.params, read.facts) is None


def _read_result(result: RecordedResult) -> Lookup:
    fields: defaultdict[Any, set[str]] = defaultdict(set)
    values: defaultdict[str, set[Any]] = defaultdict(set)
    for path, value in list_value_places(result.data):
        fields[_make_key(value)].add(path)
        values[path].add(_make_key(value))
    return Lookup(result, drop_nulls(result.params), fields, values)


def _make_key(value: Any) -> Any:
    """Return the value in the form in which it is compared with results."""
    return unicodedata.normalize("NFC", value) if isinstance(value, str) else value
