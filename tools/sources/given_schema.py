"""Params of tools that bring a JSON schema (Draft 2020-12) in the place of a pydantic model."""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import re2
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend
from referencing import Registry

from tools.contract import ErrorCode, ToolError, storable_json

_QUOTED = 120


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


_Validator = extend(Draft202012Validator, {"pattern": _matches})  # type: ignore[no-untyped-call]


def validator_of(schema: Mapping[str, Any]) -> Any:
    """Judges params by the schema; a reference that leads out of it is never loaded. Safe to use from many threads."""
    return _Validator(schema, registry=Registry())


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
    faults = sorted(validator.iter_errors(params), key=lambda fault: (fault.validator != "required", _place(fault)))
    if faults:
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
