"""The rules that only standing grants have: the form of their values, and the sources that they
name.

- COMES_FROM {sources, also}: a source is {tool, path, where, only, definition}: the `path` of a
  result's data, and `where`, conditions that cover every param of the call with the result. `*` in
  a path stands for any name in an object. With `only`, the result does not have another value
  there, so that nobody chose among several values.
- TYPED {also}: a person typed the value in the run.
- EACH {rule, value, also}: each entry of a list meets the rule.

`also` lists further exact values, such as null or an empty list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tools.contract import canonical_json
from tools.toolbox.conditions import OF_GRANTS, OVER_HISTORY, Condition, Otherwise, Rule

FIXING = frozenset({Rule.EQUALS, Rule.ONE_OF, Rule.COMES_FROM, Rule.TYPED})
"""Rules that fix the value completely."""
EXACT = frozenset({Rule.EQUALS, Rule.ONE_OF})
MAX_SOURCES = 20
DEEPEST = 4
"""The maximum number of results through which a value can be traced back."""
_DEEPEST_JSON = 60


@dataclass(frozen=True)
class ValueSource:
    """A field of a tool's results.

    Attributes:
        definition: the hash of the tool's definition; empty if any definition is accepted.
        where: the conditions that the call with the result must meet.
        only: the value must be the only one in the field.
    """

    tool: str
    path: str
    where: tuple[Condition, ...] = ()
    definition: str = ""
    only: bool = False

    @classmethod
    def from_json(cls, stored: Any) -> ValueSource:
        """Load and check a source.

        Raises:
            ValueError: this is not a source; the text is for people.
        """
        if not isinstance(stored, Mapping) or not stored.keys() >= {"tool", "path"}:
            raise ValueError("name the tool and the path of its result")
        if stored.keys() - {"tool", "path", "where", "only", "definition"}:
            raise ValueError("a source has only a tool, a path, where, only and a definition")
        texts = [stored["tool"], stored["path"], stored.get("definition", "")]
        if not all(isinstance(each, str) for each in texts) or not stored["tool"]:
            raise ValueError("the tool, the path and the definition are texts")
        where = stored.get("where", [])
        if not isinstance(where, list) or len(where) > 200:
            raise ValueError("where is a list of conditions")
        conditions = tuple(map(read_grant_condition, where))
        return cls(texts[0], texts[1], conditions, texts[2], stored.get("only") is True)

    def as_json(self) -> dict[str, Any]:
        """Return {tool, path, where, only, definition}, without `only` if it is false and the
        definition if it is empty."""
        kept = {
            "tool": self.tool,
            "path": self.path,
            "where": [
                {"param": each.param, "rule": each.rule.value, "value": each.value}
                for each in self.where
            ],
        }
        more = {"only": self.only, "definition": self.definition}
        return kept | {name: value for name, value in more.items() if value}


def read_grant_condition(stored: Any) -> Condition:
    """Load and check a condition of a standing grant.

    Raises:
        ValueError: the condition is invalid; the text is for the person who wrote it.
    """
    if not isinstance(stored, Mapping):
        raise ValueError(  # noqa: TRY004 - the text is for the person who wrote it
            "a condition is an object with a param, a rule and a value"
        )
    given = {"otherwise": Otherwise.ASK.value, **stored}
    if given.get("rule") not in OF_GRANTS:
        return Condition.from_json(given)
    # `from_json` refuses these rules: check the param as for EQUALS, then restore the rule.
    checked = Condition.from_json({**given, "rule": Rule.EQUALS.value})
    condition = replace(checked, rule=Rule(given["rule"]))
    _check_depth(condition)
    _check_value(condition)
    return condition


def list_sources(conditions: Iterable[Condition]) -> Iterator[ValueSource]:
    """Yield the sources of these conditions, and those of the conditions in the sources'
    `where`."""
    for condition in conditions:
        inner = unpack(condition)
        if inner.rule is Rule.COMES_FROM:
            for source in read_sources(inner):
                yield source
                yield from list_sources(source.where)


def read_sources(condition: Condition) -> list[ValueSource]:
    """Return the sources of a COMES_FROM condition, or of one inside EACH; none for other rules."""
    inner = unpack(condition)
    stored = inner.value["sources"] if inner.rule is Rule.COMES_FROM else ()
    return [ValueSource.from_json(each) for each in stored]


def replace_sources(condition: Condition, sources: Sequence[ValueSource]) -> Condition:
    """Return the condition with these sources."""
    if condition.rule is Rule.EACH:
        inner = replace_sources(unpack(condition), sources)
        return replace(condition, value={**condition.value, "value": inner.value})
    return replace(
        condition, value={**condition.value, "sources": [each.as_json() for each in sources]}
    )


def depends_on_run(conditions: Iterable[Condition]) -> bool:
    """Return True if a condition needs the results or the texts of the run."""
    return any(unpack(each).rule in (Rule.COMES_FROM, Rule.TYPED) for each in conditions)


def is_fixing(condition: Condition) -> bool:
    """Return True if the condition fixes the value completely."""
    return unpack(condition).rule in FIXING


def unpack(condition: Condition) -> Condition:
    """Return the condition inside EACH; return any other condition unchanged."""
    if condition.rule is not Rule.EACH:
        return condition
    return replace(condition, rule=Rule(condition.value["rule"]), value=condition.value["value"])


def is_also(condition: Condition, value: Any) -> bool:
    """Return True if the `also` of the condition contains exactly this value."""
    if condition.rule not in OF_GRANTS:
        return False
    return any(canonical_json(value) == canonical_json(each) for each in condition.value["also"])


def allows_null(condition: Condition) -> bool:
    """Return True if null meets the condition."""
    if condition.rule in EXACT:
        wanted = condition.value if condition.rule is Rule.ONE_OF else [condition.value]
        return None in wanted
    return is_also(condition, None)


def _check_depth(condition: Condition) -> None:
    waiting: list[tuple[Any, int, int]] = [(condition.value, 0, 0)]
    while waiting:
        node, depth, results = waiting.pop()
        inside = list(node.values()) if isinstance(node, dict) else node
        if not isinstance(inside, list):
            continue
        results += isinstance(node, dict) and "sources" in node
        if results > DEEPEST or depth > _DEEPEST_JSON:
            raise ValueError(
                f"{condition.param}: a value can be traced back through at most {DEEPEST} results"
            )
        waiting += ((each, depth + 1, results) for each in inside)


def _check_value(condition: Condition) -> None:
    """Check the value of a rule that only grants have.

    Raises:
        ValueError
    """
    param, value = condition.param, condition.value
    keys = _KEYS[condition.rule]
    if not isinstance(value, dict) or value.keys() != keys or not isinstance(value["also"], list):
        raise ValueError(f"{param} {condition.rule.value}: give {', '.join(sorted(keys))}")
    if condition.rule is Rule.EACH:
        inner = {"param": param, "rule": value["rule"], "value": value["value"]}
        if value["rule"] == Rule.EACH or read_grant_condition(inner).rule in _NOT_OF_ENTRIES:
            raise ValueError(f"{param} each: {value['rule']!r} is not a rule for an entry")
    if condition.rule is Rule.COMES_FROM:
        sources = value["sources"]
        if not isinstance(sources, list) or not 1 <= len(sources) <= MAX_SOURCES:
            raise ValueError(f"{param} comes from: choose 1 to {MAX_SOURCES} fields of results")
        for source in sources:
            ValueSource.from_json(source)


_KEYS: Mapping[Rule, frozenset[str]] = {
    Rule.COMES_FROM: frozenset({"sources", "also"}),
    Rule.TYPED: frozenset({"also"}),
    Rule.EACH: frozenset({"rule", "value", "also"}),
}
_NOT_OF_ENTRIES = frozenset({Rule.NOT_FROM_OUTSIDE, *OVER_HISTORY})
