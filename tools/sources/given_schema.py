"""Params of tools that bring a JSON schema (Draft 2020-12) in the place of a pydantic model."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import re2
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from tools.contract import ErrorCode, ToolError, storable_json

LARGEST_EXPANDED = 20_000
"""Schemas within one, each counted wherever it is referred to."""
MOST_STEPS = 100_000
"""Keywords that are applied to one call's params."""
LONGEST_CHECK_S = 10.0
"""For what a step can cost by itself: long lists of choices, and words about large values."""
_QUOTED = 120

_AT_ONCE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")
"""Judge the same value; all others judge what is in it."""
_INSIDE = (
    *("properties", "patternProperties", "additionalProperties", "propertyNames", "unevaluatedProperties"),
    *("items", "prefixItems", "contains", "unevaluatedItems"),
)
_BY_NAME = frozenset({"dependentSchemas", "properties", "patternProperties"})
_REFERENCES = ("$ref", "$dynamicRef")


class IllegalSchemaError(ValueError):
    """The schema cannot be used; says why, for the admin."""


class UncheckableError(ValueError):
    """The value cannot be judged by the schema within the bounds; says why, as part of a sentence."""


@dataclass
class _Effort:
    """What one check may still cost."""

    steps: int
    ends_at: float

    def spend(self) -> None:
        self.steps -= 1
        if self.steps < 0 or time.monotonic() > self.ends_at:
            raise UncheckableError("together with its schema it takes too many steps")


_effort: ContextVar[_Effort] = ContextVar("effort")


@lru_cache(maxsize=1024)
def linear_pattern(pattern: str) -> Any:
    """The regular expression, matched in time that grows with the text alone; None if RE2 does not know it."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None


def _matches(_: Any, pattern: Any, value: Any, __: Any) -> Iterator[ValidationError]:
    compiled = linear_pattern(pattern) if isinstance(pattern, str) and isinstance(value, str) else None
    if compiled is not None and compiled.search(value) is None:
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def refuse_endless(schema: Mapping[str, Any]) -> None:
    """Raises IllegalSchemaError for what repeats itself too often, or leads in a circle that no value ends.

    A circle through what is in a value (a tree of folders) ends with the value, and `faults_of` bounds what it costs.

    Args:
        schema: a legal one; its references are paths within it (`#/…`).
    """
    try:
        _Expansion(schema).refuse_endless()
    except RecursionError:
        raise IllegalSchemaError("its schema refers from one place to the next too often") from None
    except Unresolvable as error:
        raise IllegalSchemaError(f"its schema refers to what is not there: {error.ref!r:.200}") from None


class _Expansion:
    """Each schema within one is measured once, however often it is referred to."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._root = schema
        self._resolver = Registry().resolver_with_root(DRAFT202012.create_resource(schema))
        self._found: list[Mapping[str, Any]] = []
        self._sizes: dict[int, int] = {}
        self._ends: dict[int, bool] = {}

    def refuse_endless(self) -> None:
        self._size(self._root)
        for node in self._found:
            self._follow(node)

    def _size(self, node: Mapping[str, Any]) -> int:
        """One that is being measured already counts as one."""
        if id(node) in self._sizes:
            return self._sizes[id(node)]
        self._found.append(node)
        self._sizes[id(node)] = size = 1
        for part in (*self._at_once(node), *_parts(node, _INSIDE)):
            size += self._size(part)
            if size > LARGEST_EXPANDED:
                raise IllegalSchemaError(f"its schema repeats itself: it stands for more than {LARGEST_EXPANDED:,}")
        self._sizes[id(node)] = size
        return size

    def _follow(self, node: Mapping[str, Any]) -> None:
        if id(node) not in self._ends:
            self._ends[id(node)] = False
            for part in self._at_once(node):
                self._follow(part)
            self._ends[id(node)] = True
        elif not self._ends[id(node)]:
            raise IllegalSchemaError("its schema leads in a circle")

    def _at_once(self, node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        yield from _parts(node, _AT_ONCE)
        for reference in (node[keyword] for keyword in _REFERENCES if keyword in node):
            target = self._resolver.lookup(reference).contents
            if isinstance(target, Mapping):
                yield target
            elif not isinstance(target, bool):
                raise IllegalSchemaError(f"its schema refers to what is no schema: {reference!r:.200}")


def _parts(node: Mapping[str, Any], keywords: tuple[str, ...]) -> Iterator[Mapping[str, Any]]:
    for keyword in keywords:
        value = node.get(keyword)
        if isinstance(value, Mapping):
            parts: Any = value.values() if keyword in _BY_NAME else (value,)
        else:
            parts = value if isinstance(value, list) else ()
        yield from (part for part in parts if isinstance(part, Mapping))


def _counted(keyword: Callable[..., Any]) -> Callable[..., Any]:
    def applied(*told: Any) -> Iterator[ValidationError]:
        _effort.get().spend()
        yield from keyword(*told) or ()

    return applied


_KEYWORDS = {**Draft202012Validator.VALIDATORS, "pattern": _matches}
_Validator = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, {name: _counted(keyword) for name, keyword in _KEYWORDS.items()}
)


def validator_of(schema: Mapping[str, Any]) -> Any:
    """For `faults_of`; a reference that leads out of the schema is never loaded. Safe to use from many threads."""
    return _Validator(schema, registry=Registry())


def faults_of(validator: Any, value: Any, *, most: int | None = None, steps: int = MOST_STEPS) -> list[ValidationError]:
    """What is wrong with the value, in bounded time whatever the schema repeats and wherever it leads.

    Args:
        validator: of `validator_of`.
        most: so many faults are enough; None, all.
        steps: keywords that may be applied.

    Raises:
        UncheckableError: it took more of them, or more than LONGEST_CHECK_S, or is nested without end.
    """
    token = _effort.set(_Effort(steps, time.monotonic() + LONGEST_CHECK_S))
    try:
        return list(islice(validator.iter_errors(value), most))
    except RecursionError:
        raise UncheckableError("it, or its schema, is nested without end") from None
    finally:
        _effort.reset(token)


def checked_params(validator: Any, raw: Mapping[str, Any]) -> dict[str, Any]:
    """The canonical params: a copy of what was given, keys sorted, nothing added.

    Args:
        validator: of `validator_of`.

    Raises:
        ToolError: MISSING_PARAM or INVALID_PARAMETER, naming the first parameter at fault and what was expected.
    """
    try:
        params: dict[str, Any] = json.loads(storable_json(raw))
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError(ErrorCode.INVALID_PARAMETER, f"The params cannot be kept: {error}.", attempted=False) from error
    try:
        found = faults_of(validator, params)
    except UncheckableError as error:
        message = f"What was given cannot be checked: {error}."
        hint = "Give less, and less deeply nested."
        raise ToolError(ErrorCode.INVALID_PARAMETER, message, recovery_hint=hint, attempted=False) from None
    if faults := sorted(found, key=lambda fault: (fault.validator != "required", _place(fault))):
        raise _explained(faults[0], validator.schema)
    return params


def _place(fault: ValidationError) -> str:
    return ".".join(str(part) for part in fault.absolute_path)


def _explained(fault: ValidationError, schema: Mapping[str, Any]) -> ToolError:
    place = _place(fault)
    given: Any = fault.instance
    wanted: Any = fault.validator_value
    here: Any = fault.schema
    if fault.validator == "required":
        name = next(each for each in wanted if each not in given)
        return _missing(".".join(filter(None, [place, name])), here.get("properties", {}).get(name))
    if fault.validator == "additionalProperties" and wanted is False:
        known = sorted(here.get("properties", {}))
        return _unknown(place, next(name for name in sorted(given) if name not in known), known)
    name = place or "params"
    part = schema.get("properties", {}).get(str(fault.absolute_path[0]), {}) if fault.absolute_path else {}
    return ToolError(
        ErrorCode.INVALID_PARAMETER,
        f"The '{name}' parameter is wrong: {_fault_in_words(fault)} (given: {given!r:.{_QUOTED}}).",
        parameter=name,
        expected=str(part.get("description") or "") or _fault_in_words(fault),
        recovery_hint=f"Correct '{name}' and try again.",
        attempted=False,
    )


def _fault_in_words(fault: ValidationError) -> str:
    wanted = json.dumps(fault.validator_value, ensure_ascii=False)
    words = {
        "type": f"its type has to be {wanted}",
        "enum": f"it has to be one of {wanted:.400}",
        "const": f"it has to be {wanted}",
        "pattern": f"it has to match {wanted}",
        "anyOf": "it fits none of the forms that are allowed",
        "minimum": f"it has to be at least {wanted}",
        "maximum": f"it has to be at most {wanted}",
        "exclusiveMinimum": f"it has to be more than {wanted}",
        "exclusiveMaximum": f"it has to be less than {wanted}",
        "multipleOf": f"it has to be a multiple of {wanted}",
    }
    return words.get(str(fault.validator), f"{fault.validator} has to be {wanted:.200}")


def _missing(name: str, part: Any) -> ToolError:
    described = part.get("description", "") if isinstance(part, dict) else ""
    return ToolError(
        ErrorCode.MISSING_PARAM,
        f"The '{name}' parameter is required.",
        parameter=name,
        expected=described or "a value",
        recovery_hint=f"Provide '{name}' and try again.",
        attempted=False,
    )


def _unknown(place: str, name: str, known: list[str]) -> ToolError:
    named = ".".join(filter(None, [place, name]))
    return ToolError(
        ErrorCode.INVALID_PARAMETER,
        f"There is no parameter {named!r:.{_QUOTED}}.",
        parameter=named[:_QUOTED],
        expected=f"only: {', '.join(known) or 'no parameters'}",
        recovery_hint=f"Leave {named!r:.{_QUOTED}} out and try again.",
        attempted=False,
    )
