"""The form for a standing grant, with one sentence for each param."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from django.http import QueryDict

from agents.platform.refusals import Invalid
from agents.platform.row_ids import parse_row_id_or_none
from agents.standing_grants.coverage import build_call_schema
from agents.standing_grants.proposals import ProposedGrant, complete_grant_prefix
from agents.web.grants.origin_rows import (
    EACH,
    NO_ORIGIN,
    ORIGIN_CHOICES,
    FindTool,
    OriginPart,
    OriginSentence,
    build_condition,
    check_depth,
    is_origin_rule,
    list_tools,
    offers_fields,
    read_part,
)
from tools.contract import Tool, canonical_json, fingerprint, storable_json
from tools.schemas.param_paths import SchemaParam
from tools.toolbox.conditions import OF_GRANTS, Condition, Rule
from tools.toolbox.grant_sources import DEEPEST, MAX_SOURCES, list_sources, read_grant_condition
from tools.toolbox.param_values import is_number

RANGE, ANY, ABSENT = "range", "any", "absent"
CHOICES = (
    (Rule.EQUALS.value, "is exactly"),
    (Rule.ONE_OF.value, "is one of (one per line)"),
    (RANGE, "is a number between"),
    (Rule.PREFIX.value, "starts with"),
    (Rule.HOST.value, "is at the domain"),
    *ORIGIN_CHOICES,
    (ANY, "any value"),
    (ABSENT, "not set"),
)
LOOKUP_CHOICES = tuple(
    each
    for each in CHOICES
    if each[0].removeprefix(EACH) in {Rule.EQUALS, Rule.ONE_OF, Rule.COMES_FROM, Rule.TYPED, ABSENT}
)
"""The choices for a param of the call whose result supplies a value: each choice limits the
param."""
LIFETIMES = (
    ("1h", "1 hour", timedelta(hours=1)),
    ("8h", "8 hours", timedelta(hours=8)),
    ("1d", "1 day", timedelta(days=1)),
    ("7d", "7 days", timedelta(days=7)),
)
_TEXTS = (Rule.PREFIX, Rule.HOST)
MAX_PARAMS = 200
MAX_LINES = 6
_TEXT = "text"
_JSON = "json"


@dataclass(frozen=True)
class SentenceRow:
    """The sentence about one param.

    Attributes:
        kind: "text" if the values are used as typed, "json" if they are written as JSON.
        rule: one of `CHOICES`.
        least, most: the bounds of RANGE, as typed.
        tool: the tool whose call has the param, for a call whose result supplies a value; empty for
            a param of the granted call.
        origin: where the value comes from.
    """

    path: str
    kind: str = _TEXT
    rule: str = Rule.EQUALS.value
    value: str = ""
    least: str = ""
    most: str = ""
    tool: str = ""
    origin: OriginPart = NO_ORIGIN

    @property
    def key(self) -> str:
        """The suffix of the names of its inputs."""
        return f"{self.tool}/{self.path}" if self.tool else self.path

    @property
    def offers_fields(self) -> bool:
        return offers_fields(self.rule)

    @property
    def lines(self) -> int:
        """The height of the value's input, in lines."""
        return min(self.value.count("\n") + 1, MAX_LINES)

    @property
    def is_json(self) -> bool:
        return self.kind == _JSON


@dataclass(frozen=True)
class GrantForm:
    """The contents of the form, as typed.

    Attributes:
        employee: an employee's id, or empty for every employee.
        run: a run's id, or empty for every run.
        lifetime: one of `LIFETIMES`.
    """

    tool: str
    employee: str = ""
    run: str = ""
    max_uses: str = "20"
    lifetime: str = "1d"
    rows: tuple[SentenceRow, ...] = ()
    lookups: tuple[SentenceRow, ...] = ()

    def list_missing_tools(self) -> list[str]:
        """List the tools of chosen fields whose calls have no sentences yet."""
        named = list_tools(row.origin for row in (*self.rows, *self.lookups) if row.offers_fields)
        return [tool for tool in named if tool not in {row.tool for row in self.lookups}]


def make_form(proposal: ProposedGrant) -> GrantForm:
    """Build the form that shows a proposal."""
    lifetime = next(
        (name for name, _, length in LIFETIMES if length >= proposal.lifetime), LIFETIMES[-1][0]
    )
    return GrantForm(
        tool=proposal.tool,
        employee=str(proposal.employee_id or ""),
        run=str(proposal.run_id or ""),
        max_uses=str(proposal.max_uses),
        lifetime=lifetime,
        rows=tuple(_make_row(path, proposal.conditions) for path in proposal.params),
        lookups=_make_lookups(proposal.conditions),
    )


def make_empty_form(tool: Tool, employee: str) -> GrantForm:
    """Build the form for a tool. Params that every call has need a value; other params must be
    absent."""
    rows = tuple(_make_empty_row(param) for param in build_call_schema(tool).list_params())
    return GrantForm(tool.name, employee, rows=rows)


def read_form(posted: QueryDict) -> GrantForm:
    """Read the submitted form."""
    rows = [_read_row(posted, path) for path in posted.getlist("path")[:MAX_PARAMS]]
    lookups = [
        replace(_read_row(posted, key), tool=key.partition("/")[0], path=key.partition("/")[2])
        for key in posted.getlist("lookup")[:MAX_PARAMS]
    ]
    return GrantForm(
        tool=posted.get("tool", ""),
        employee=posted.get("employee", ""),
        run=posted.get("run", ""),
        max_uses=posted.get("max_uses", "").strip(),
        lifetime=posted.get("lifetime", ""),
        rows=tuple(rows),
        lookups=tuple(lookups),
    )


def _read_row(posted: QueryDict, key: str) -> SentenceRow:
    return SentenceRow(
        key,
        _JSON if posted.get(f"kind.{key}") == _JSON else _TEXT,
        posted.get(f"rule.{key}", ""),
        posted.get(f"value.{key}", "").replace("\r\n", "\n"),
        posted.get(f"least.{key}", "").strip(),
        posted.get(f"most.{key}", "").strip(),
        origin=OriginPart(
            tuple(posted.getlist(f"from.{key}")[:MAX_SOURCES]),
            f"only.{key}" in posted,
            f"empty.{key}" in posted,
        ),
    )


def add_lookups(form: GrantForm, find: FindTool) -> GrantForm:
    """Return the form with sentences about the calls whose results supply values.

    By default, a param that every call has must be typed by a person; others must be absent.
    """
    for _ in range(DEEPEST):
        found = [tool for name in form.list_missing_tools() if (tool := find(name)) is not None]
        added = [
            replace(
                _make_empty_row(param),
                tool=tool.name,
                rule=Rule.TYPED.value if param.is_always_there else ABSENT,
                value="",
            )
            for tool in found
            for param in build_call_schema(tool).list_params()
        ]
        form = replace(form, lookups=(*form.lookups, *added))
    return form


def parse_proposal(form: GrantForm) -> ProposedGrant:
    """Return the proposal that the form describes.

    Raises:
        Invalid: names the input that cannot be read, and why.
    """
    if not form.max_uses.isascii() or not form.max_uses.isdigit() or len(form.max_uses) > 6:
        raise Invalid("max_uses", "Enter the number of calls in digits.")
    lifetime = next((length for name, _, length in LIFETIMES if name == form.lifetime), None)
    if lifetime is None:
        raise Invalid("lifetime", "Choose how long the standing grant is valid.")
    kept = [row for row in form.rows if row.rule != ABSENT]
    return ProposedGrant(
        tool=form.tool,
        employee_id=_parse_id("employee", form.employee),
        run_id=_parse_id("run", form.run),
        params=tuple(row.path for row in kept),
        conditions=tuple(condition for row in kept for condition in _parse_row(row, form.lookups)),
        max_uses=int(form.max_uses),
        lifetime=lifetime,
    )


def hash_form(form: GrantForm) -> str:
    """Hash the form's contents regardless of their order, to detect changes since the preview."""
    rows = sorted(
        canonical_json([row.key, row.kind, row.rule, row.value, row.least, row.most, *row.origin])
        for row in (*form.rows, *form.lookups)
    )
    return fingerprint([form.tool, form.employee, form.run, form.max_uses, form.lifetime, rows])


def _make_empty_row(param: SchemaParam) -> SentenceRow:
    kind = _TEXT if param.type in ("string", "string or null") else _JSON
    rule = Rule.EQUALS.value if param.is_always_there else ABSENT
    value = (
        ""
        if param.default is None
        else param.default
        if kind == _TEXT
        else canonical_json(param.default)
    )
    return SentenceRow(param.path, kind, rule, value)


def _make_row(path: str, conditions: Sequence[Condition]) -> SentenceRow:
    mine = {condition.rule: condition.value for condition in conditions if condition.param == path}
    if Rule.MINIMUM in mine or Rule.MAXIMUM in mine:
        least, most = (
            canonical_json(mine[rule]) if rule in mine else ""
            for rule in (Rule.MINIMUM, Rule.MAXIMUM)
        )
        return SentenceRow(path, _JSON, RANGE, least=least, most=most)
    if not mine:
        return SentenceRow(path, _TEXT, ANY)
    rule, value = next(iter(mine.items()))
    if rule in OF_GRANTS:
        return _make_origin_row(Condition(path, rule, value))
    values = value if rule is Rule.ONE_OF else [value]
    is_text = all(
        isinstance(each, str) and (rule is Rule.EQUALS or "\n" not in each) for each in values
    )
    lines = "\n".join(each if is_text else canonical_json(each) for each in values)
    return SentenceRow(path, _TEXT if is_text else _JSON, rule.value, lines)


def _make_origin_row(condition: Condition) -> SentenceRow:
    part = read_part(condition)
    if condition.rule is not Rule.EACH:
        return SentenceRow(condition.param, _TEXT, condition.rule.value, origin=part)
    inner = Condition(condition.param, Rule(condition.value["rule"]), condition.value["value"])
    row = _make_row(condition.param, [inner])
    return replace(row, rule=f"{EACH}{inner.rule.value}", origin=part)


def _make_lookups(conditions: Iterable[Condition]) -> tuple[SentenceRow, ...]:
    """Make the sentences about the calls whose results supply values; if a tool has two sources,
    the first one is used."""
    wheres: dict[str, tuple[Condition, ...]] = {}
    for source in list_sources(conditions):
        wheres.setdefault(source.tool, source.where)
    return tuple(
        replace(_make_row(path, where), tool=tool)
        for tool, where in wheres.items()
        for path in sorted({condition.param for condition in where})
    )


def _parse_row(
    row: SentenceRow, lookups: Sequence[SentenceRow] = (), depth: int = 1
) -> Iterable[Condition]:
    if row.rule == ANY:
        return ()
    if is_origin_rule(row.rule):
        return (_check(_parse_origin(row, lookups, depth)),)
    if row.rule == RANGE:
        bounds = ((Rule.MINIMUM, row.least), (Rule.MAXIMUM, row.most))
        found = [
            _check(Condition(row.path, rule, _parse_number(row.path, text)))
            for rule, text in bounds
            if text
        ]
        if not found:
            raise Invalid(
                "conditions", f"{row.path}: enter the lowest number, the highest, or both."
            )
        return found
    try:
        rule = Rule(row.rule)
    except ValueError:
        raise Invalid("conditions", f"{row.path}: choose a condition.") from None
    if rule is Rule.ONE_OF:
        value: Any = [_parse_value(row, line) for line in row.value.split("\n") if line.strip()]
    else:
        value = row.value.strip() if rule in _TEXTS else _parse_value(row, row.value)
    if rule is Rule.PREFIX:
        value = complete_grant_prefix(row.path, value)
    return (_check(Condition(row.path, rule, value)),)


def _parse_origin(row: SentenceRow, lookups: Sequence[SentenceRow], depth: int) -> Condition:
    check_depth(depth)
    wheres = {
        tool: [
            condition
            for each in lookups
            if each.tool == tool and each.rule != ABSENT
            for condition in _parse_row(each, lookups, depth + 1)
        ]
        for tool in (list_tools([row.origin]) if row.offers_fields else ())
    }
    value: Any = row.value.strip()
    if row.rule == f"{EACH}{Rule.ONE_OF}":
        value = [_parse_value(row, line) for line in row.value.split("\n") if line.strip()]
    return build_condition(OriginSentence(row.path, row.rule, value, row.origin), wheres)


def _check(condition: Condition) -> Condition:
    """Return the condition after a round trip through its stored form."""
    try:
        return read_grant_condition(condition.as_json())
    except ValueError as error:
        raise Invalid("conditions", f"{str(error)[:1].upper()}{str(error)[1:]}.") from error


def _parse_value(row: SentenceRow, text: str) -> Any:
    if not row.is_json:
        return text
    try:
        return _load_json(text)
    except (ValueError, RecursionError):
        raise Invalid(
            "conditions", f"{row.path}: {text[:80]!r} is not JSON, such as 12, true or [1, 2]."
        ) from None


def _parse_number(path: str, text: str) -> int | float:
    try:
        number = _load_json(text)
    except (ValueError, RecursionError):
        number = None
    if not is_number(number):
        raise Invalid("conditions", f"{path}: {text[:80]!r} is not a number.")
    found: int | float = number
    return found


def _load_json(text: str) -> Any:
    """Load a JSON value that can be stored. NaN and 1e999, which Python also reads, cannot be
    stored.

    Raises:
        ValueError, RecursionError: the text is not JSON, or its value cannot be stored.
    """
    value = json.loads(text)
    storable_json(value)
    return value


def _parse_id(field: str, text: str) -> int | None:
    if not text:
        return None
    found = parse_row_id_or_none(text)
    if found is None:
        raise Invalid(field, f"{text[:40]!r} is not an id.")
    return found
