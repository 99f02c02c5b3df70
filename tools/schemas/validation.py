"""Validation of values by a JSON schema (Draft 2020-12), in bounded time."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend
from referencing import Registry

from tools.schemas.patterns import compile_linear_pattern

MAX_STEPS = 100_000
"""The maximum number of keywords applied to the params of one call."""
MAX_CHECK_S = 10.0
"""The time limit, in addition to MAX_STEPS, because a step with many choices or large values can be
slow."""


class UncheckableError(ValueError):
    """A value cannot be checked within the limits; the message is part of a sentence."""


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


def _check_pattern(_: Any, pattern: Any, value: Any, __: Any) -> Iterator[ValidationError]:
    compiled = (
        compile_linear_pattern(pattern)
        if isinstance(pattern, str) and isinstance(value, str)
        else None
    )
    if compiled is not None and compiled.search(value) is None:
        yield ValidationError(f"{value!r} does not match {pattern!r}")


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
    """Build a thread-safe validator for `find_faults`; it never loads other documents."""
    return _Validator(schema, registry=Registry())


def find_faults(
    validator: Any, value: Any, *, most: int | None = None, steps: int = MAX_STEPS
) -> list[ValidationError]:
    """Find the faults of the value in bounded time, even for a repetitive or recursive schema.

    Args:
        validator: from `build_validator`.
        most: stop after this many faults; None for all.
        steps: the maximum number of keywords to apply.

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


def locate_fault(fault: ValidationError) -> str:
    """Return the path of the faulty part; empty for the whole value."""
    return ".".join(str(part) for part in fault.absolute_path)


def describe_fault(fault: ValidationError) -> str:
    """Describe the fault as part of a sentence."""
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
