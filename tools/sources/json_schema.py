"""Validation of params by a tool's JSON schema (Draft 2020-12), for tools without a Pydantic model."""

import json
import re
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

MAX_EXPANDED = 20_000
"""The most subschemas of one schema, with all references expanded."""
MAX_STEPS = 100_000
"""The most keywords applied to the params of one call."""
MAX_CHECK_S = 10.0
"""A time limit besides MAX_STEPS, because one step can be slow: long lists of choices, messages about large values."""
_QUOTED = 120

_SAME_VALUE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")
"""Keywords whose schemas apply to the same value; all others apply to parts of it."""
_PARTS = (
    *("properties", "patternProperties", "additionalProperties", "propertyNames", "unevaluatedProperties"),
    *("items", "prefixItems", "contains", "unevaluatedItems"),
)
_BY_NAME = frozenset({"dependentSchemas", "properties", "patternProperties"})
_REFERENCES = ("$ref", "$dynamicRef")


class IllegalSchemaError(ValueError):
    """A schema that cannot be used; the message gives the reason, for the admin."""


class UncheckableError(ValueError):
    """A value that cannot be checked within the limits; the message gives the reason as part of a sentence."""


@dataclass
class _StepBudget:
    """The remaining budget of one check."""

    steps: int
    ends_at: float

    def spend(self) -> None:
        self.steps -= 1
        if self.steps < 0 or time.monotonic() > self.ends_at:
            raise UncheckableError("checking it against its schema takes too many steps")


_budget: ContextVar[_StepBudget] = ContextVar("step_budget")


@lru_cache(maxsize=1024)
def compile_linear_pattern(pattern: str) -> Any:
    """Compile a regular expression that matches in linear time; return None if RE2 does not support it."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(translate_pattern(pattern), options)
    except (re2.error, UnicodeError):
        return None


_ECMA_ESCAPES = re.compile(
    r"\\\\|\\u\{(?P<braced>[0-9A-Fa-f]{1,6})\}|\\u(?P<plain>[0-9A-Fa-f]{4})|\\c(?P<control>[A-Za-z])"
    r"|(?P<property>\\[pP])\{(?P<key>[A-Za-z_]+=)?(?P<value>[A-Za-z_0-9]+)\}|(?P<any>\[\^\])|(?P<back>\[\\b\])"
    r"|\\(?P<other>[^\x00-\x7f])"
)
_CATEGORIES = {
    "Letter": "L",
    "Mark": "M",
    "Number": "N",
    "Punctuation": "P",
    "Symbol": "S",
    "Separator": "Z",
    "Other": "C",
    "Uppercase_Letter": "Lu",
    "Lowercase_Letter": "Ll",
    "Titlecase_Letter": "Lt",
    "Decimal_Number": "Nd",
    "Modifier_Letter": "Lm",
    "Other_Letter": "Lo",
    "Nonspacing_Mark": "Mn",
    "Space_Separator": "Zs",
}


def translate_pattern(pattern: str) -> str:
    """Translate an ECMA pattern, which JSON Schema uses, into the syntax of RE2, where they differ."""
    return _ECMA_ESCAPES.sub(_translate_escape, pattern)


def _translate_escape(found: re.Match[str]) -> str:
    if number := found["braced"] or found["plain"]:
        return f"\\x{{{number}}}"
    if found["control"]:
        return f"\\x{ord(found['control']) % 32:02x}"
    if found["property"]:
        return f"{found['property']}{{{_CATEGORIES.get(found['value'], found['value'])}}}"
    if found["any"] or found["back"]:
        return r"[\s\S]" if found["any"] else r"\x08"
    return found["other"] or found[0]


def _check_pattern(_: Any, pattern: Any, value: Any, __: Any) -> Iterator[ValidationError]:
    compiled = compile_linear_pattern(pattern) if isinstance(pattern, str) and isinstance(value, str) else None
    if compiled is not None and compiled.search(value) is None:
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def refuse_endless(schema: Mapping[str, Any]) -> None:
    """Refuse a schema that expands too far or has an endless reference cycle.

    A cycle through parts of a value, such as a tree of folders, ends with the value; `find_faults` bounds its cost.

    Args:
        schema: a legal schema whose references are paths within it (`#/…`).

    Raises:
        IllegalSchemaError: the schema is endless.
    """
    try:
        _Expansion(schema).refuse_endless()
    except RecursionError:
        raise IllegalSchemaError("its schema has too long a chain of references") from None
    except Unresolvable as error:
        raise IllegalSchemaError(f"its schema has a broken reference: {error.ref!r:.200}") from None


class _Expansion:
    """The expansion of a schema; each subschema is measured once, even if many references lead to it."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._root = schema
        self._resolver = Registry().resolver_with_root(DRAFT202012.create_resource(schema))
        self._found: list[Mapping[str, Any]] = []
        self._sizes: dict[int, int] = {}
        self._ends: dict[int, bool] = {}

    def refuse_endless(self) -> None:
        self._measure(self._root)
        for node in self._found:
            self._follow(node)

    def _measure(self, node: Mapping[str, Any]) -> int:
        """Measure the subschema; one that is still being measured counts as 1."""
        if id(node) in self._sizes:
            return self._sizes[id(node)]
        self._found.append(node)
        self._sizes[id(node)] = size = 1
        for part in (*self._list_applied(node), *_list_parts(node, _PARTS)):
            size += self._measure(part)
            if size > MAX_EXPANDED:
                raise IllegalSchemaError(f"its schema repeats itself: it expands to more than {MAX_EXPANDED:,} parts")
        self._sizes[id(node)] = size
        return size

    def _follow(self, node: Mapping[str, Any]) -> None:
        if id(node) not in self._ends:
            self._ends[id(node)] = False
            for part in self._list_applied(node):
                self._follow(part)
            self._ends[id(node)] = True
        elif not self._ends[id(node)]:
            raise IllegalSchemaError("its schema has a circular reference")

    def _list_applied(self, node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        yield from _list_parts(node, _SAME_VALUE)
        for reference in (node[keyword] for keyword in _REFERENCES if keyword in node):
            target = self._resolver.lookup(reference).contents
            if isinstance(target, Mapping):
                yield target
            elif not isinstance(target, bool):
                raise IllegalSchemaError(f"its schema refers to something that is not a schema: {reference!r:.200}")


def _list_parts(node: Mapping[str, Any], keywords: tuple[str, ...]) -> Iterator[Mapping[str, Any]]:
    for keyword in keywords:
        value = node.get(keyword)
        if isinstance(value, Mapping):
            parts: Any = value.values() if keyword in _BY_NAME else (value,)
        else:
            parts = value if isinstance(value, list) else ()
        yield from (part for part in parts if isinstance(part, Mapping))


def _count_steps(keyword: Callable[..., Any]) -> Callable[..., Any]:
    def apply_keyword(*arguments: Any) -> Iterator[ValidationError]:
        _budget.get().spend()
        yield from keyword(*arguments) or ()

    return apply_keyword


_KEYWORDS = {**Draft202012Validator.VALIDATORS, "pattern": _check_pattern}
_Validator = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, {name: _count_steps(keyword) for name, keyword in _KEYWORDS.items()}
)


def build_validator(schema: Mapping[str, Any]) -> Any:
    """Build a thread-safe validator for `find_faults`; it never loads references to other documents."""
    return _Validator(schema, registry=Registry())


def find_faults(
    validator: Any, value: Any, *, most: int | None = None, steps: int = MAX_STEPS
) -> list[ValidationError]:
    """Find the faults of the value in bounded time, even for a repetitive or recursive schema.

    Args:
        validator: from `build_validator`.
        most: stop after this many faults; None for all.
        steps: the most keywords to apply.

    Raises:
        UncheckableError: the check exceeded `steps` or MAX_CHECK_S, or the nesting is endless.
    """
    token = _budget.set(_StepBudget(steps, time.monotonic() + MAX_CHECK_S))
    try:
        return list(islice(validator.iter_errors(value), most))
    except RecursionError:
        raise UncheckableError("it or its schema is nested endlessly") from None
    finally:
        _budget.reset(token)


def validate_params(validator: Any, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Validate the params and return their canonical copy: keys sorted, nothing added.

    Args:
        validator: from `build_validator`.

    Raises:
        ToolError: MISSING_PARAM or INVALID_PARAMETER, with the first faulty parameter and the expected value.
    """
    try:
        params: dict[str, Any] = json.loads(storable_json(raw))
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError(
            ErrorCode.INVALID_PARAMETER, f"The params cannot be stored: {error}.", attempted=False
        ) from error
    try:
        found = find_faults(validator, params)
    except UncheckableError as error:
        message = f"The params cannot be checked: {error}."
        hint = "Send fewer values, nested less deeply."
        raise ToolError(ErrorCode.INVALID_PARAMETER, message, recovery_hint=hint, attempted=False) from None
    if faults := sorted(found, key=lambda fault: (fault.validator != "required", _locate_fault(fault))):
        raise _explain_fault(faults[0], validator.schema)
    return params


def _locate_fault(fault: ValidationError) -> str:
    return ".".join(str(part) for part in fault.absolute_path)


def _explain_fault(fault: ValidationError, schema: Mapping[str, Any]) -> ToolError:
    place = _locate_fault(fault)
    given: Any = fault.instance
    wanted: Any = fault.validator_value
    here: Any = fault.schema
    if fault.validator == "required":
        name = next(each for each in wanted if each not in given)
        return _build_missing_param_error(".".join(filter(None, [place, name])), here.get("properties", {}).get(name))
    if fault.validator == "additionalProperties" and wanted is False:
        known = sorted(here.get("properties", {}))
        return _build_unknown_param_error(place, next(name for name in sorted(given) if name not in known), known)
    name = place or "params"
    outer = schema.get("properties", {}).get(str(fault.absolute_path[0]), {}) if fault.absolute_path else {}
    part = here if isinstance(here, Mapping) and here.get("description") else outer
    return ToolError(
        ErrorCode.INVALID_PARAMETER,
        f"The '{name}' parameter is invalid: {_describe_fault(fault)} (given: {given!r:.{_QUOTED}}).",
        parameter=name,
        expected=str(part.get("description") or "") or _describe_fault(fault),
        recovery_hint=f"Correct '{name}' and try again.",
        attempted=False,
    )


def _describe_fault(fault: ValidationError) -> str:
    wanted = json.dumps(fault.validator_value, ensure_ascii=False)
    words = {
        "type": f"its type must be {wanted}",
        "enum": f"it must be one of {wanted:.400}",
        "const": f"it must be {wanted}",
        "pattern": f"it must match {wanted}",
        "anyOf": "it matches none of the allowed forms",
        "minimum": f"it must be at least {wanted}",
        "maximum": f"it must be at most {wanted}",
        "exclusiveMinimum": f"it must be more than {wanted}",
        "exclusiveMaximum": f"it must be less than {wanted}",
        "multipleOf": f"it must be a multiple of {wanted}",
    }
    return words.get(str(fault.validator), f"{fault.validator} must be {wanted:.200}")


def _build_missing_param_error(name: str, part: Any) -> ToolError:
    description = part.get("description", "") if isinstance(part, dict) else ""
    return ToolError(
        ErrorCode.MISSING_PARAM,
        f"The '{name}' parameter is required.",
        parameter=name,
        expected=description or "a value",
        recovery_hint=f"Provide '{name}' and try again.",
        attempted=False,
    )


def _build_unknown_param_error(place: str, name: str, known: list[str]) -> ToolError:
    named = ".".join(filter(None, [place, name]))
    return ToolError(
        ErrorCode.INVALID_PARAMETER,
        f"There is no parameter {named!r:.{_QUOTED}}.",
        parameter=named[:_QUOTED],
        expected=f"only: {', '.join(known) or 'no parameters'}",
        recovery_hint=f"Leave {named!r:.{_QUOTED}} out and try again.",
        attempted=False,
    )
