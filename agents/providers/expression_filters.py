"""Filters and tests of expressions: Jinja's usual ones, which pay for their results."""

import math
from collections.abc import Callable
from itertools import groupby
from operator import itemgetter
from typing import Any

from jinja2 import Undefined

from agents.providers.expression_allowance import CHARACTER, STEP, ExpressionError
from agents.providers.expression_values import DICT_METHODS, TEXT_METHODS, Operation, ValueOperations, replace

_LONGEST_NUMBER = 100


def _default(_: ValueOperations, value: Any, otherwise: Any = "", boolean: bool = False) -> Any:
    return otherwise if isinstance(value, Undefined) or (boolean and not value) else value


def _length(_: ValueOperations, value: Any) -> int:
    return len(value)


def _list(values: ValueOperations, value: Any) -> list[Any]:
    items = values.items(value)
    values.allowance.spend(STEP * len(items))
    return list(items)


def _first(values: ValueOperations, value: Any) -> Any:
    items = values.items(value)
    return items[0] if items else values.build_missing("first")


def _last(values: ValueOperations, value: Any) -> Any:
    items = values.items(value)
    return items[-1] if items else values.build_missing("last")


def _reverse(values: ValueOperations, value: Any) -> Any:
    return values.item(value if isinstance(value, str) else _list(values, value), slice(None, None, -1))


def _join(values: ValueOperations, value: Any, between: str = "", attribute: Any = None) -> str:
    items = values.items(value)
    between = values.text(between)
    values.allowance.spend(CHARACTER * len(between) * len(items))
    parts = []
    for each in items:
        values.allowance.spend(STEP)
        parts.append(values.text(each if attribute is None else values.attribute_path(each, attribute)))
    return between.join(parts)


def _map(values: ValueOperations, value: Any, name: str = "", *args: Any, **options: Any) -> list[Any]:
    if "attribute" in options:
        path, default = options["attribute"], options.get("default")
        found = [values.attribute_path(each, path) for each in values.items(value)]
        return found if default is None else [_default(values, each, default) for each in found]
    operation = _find_operation(FILTERS, "filter", name)
    results = []
    for each in values.items(value):
        values.allowance.spend(2 * STEP)
        results.append(operation(values, each, *args, **options))
    return results


def _build_chooser(wanted: bool, by_attribute: bool) -> Operation:
    """Build one of the filters select, reject, selectattr and rejectattr."""

    def choose(values: ValueOperations, value: Any, *args: Any) -> list[Any]:
        path, (name, *rest) = (args[0], args[1:] or ("",)) if by_attribute else (None, args or ("",))
        holds = _find_operation(TESTS, "test", name) if name else _is_truthy
        chosen = []
        for each in values.items(value):
            values.allowance.spend(2 * STEP)
            subject = values.attribute_path(each, path) if by_attribute else each
            if holds(values, subject, *rest) is wanted:
                chosen.append(each)
        return chosen

    return choose


def _sort(values: ValueOperations, value: Any, reverse: bool = False, attribute: Any = None) -> list[Any]:
    keyed = _pair_with_keys(values, value, attribute)
    keyed.sort(key=itemgetter(0), reverse=reverse)
    return [each for _, each in keyed]


def _pair_with_keys(
    values: ValueOperations, value: Any, attribute: Any, case_sensitive: bool = False
) -> list[tuple[Any, Any]]:
    """Pair every item with its sort key, and pay for sorting."""
    items = values.items(value)
    rounds = max(len(items).bit_length(), 1)
    keyed = []
    for each in items:
        values.allowance.spend(2 * STEP)
        key = each if attribute is None else values.attribute_path(each, attribute)
        for _ in range(rounds):
            values.allowance.pay_to_read(key)
        keyed.append((key.lower() if isinstance(key, str) and not case_sensitive else key, each))
    return keyed


def _unique(values: ValueOperations, value: Any, case_sensitive: bool = False, attribute: Any = None) -> list[Any]:
    found: dict[str, Any] = {}
    for key, each in _pair_with_keys(values, value, attribute, case_sensitive):
        # numbers with equal hashes can make a dict slow; their texts cannot
        found.setdefault(f"{type(key).__name__} {values.text(key)}", each)
    return list(found.values())


def _build_extreme(choose: Callable[..., Any]) -> Operation:
    def find(values: ValueOperations, value: Any, case_sensitive: bool = False, attribute: Any = None) -> Any:
        keyed = _pair_with_keys(values, value, attribute, case_sensitive)
        return choose(keyed, key=itemgetter(0))[1] if keyed else values.build_missing(choose.__name__)

    return find


def _sum(values: ValueOperations, value: Any, attribute: Any = None, start: Any = 0) -> Any:
    total = start
    for each in values.items(value):
        values.allowance.spend(STEP)
        total = values.calculate("+", total, each if attribute is None else values.attribute_path(each, attribute))
    return total


def _group(values: ValueOperations, value: Any, attribute: Any) -> list[tuple[Any, list[Any]]]:
    keyed = sorted(_pair_with_keys(values, value, attribute, case_sensitive=True), key=itemgetter(0))
    return [(key, [each for _, each in pairs]) for key, pairs in groupby(keyed, key=itemgetter(0))]


def _sort_dict(values: ValueOperations, value: Any) -> list[Any]:
    return _sort(values, DICT_METHODS["items"](values, value), attribute=0)


def _truncate(values: ValueOperations, value: Any, length: int = 255, end: str = "...") -> str:
    """Cut the text after the last whole word that fits."""
    text = values.text(value)
    return text if len(text) <= length else text[: max(length - len(end), 0)].rsplit(" ", 1)[0] + end


def _round(values: ValueOperations, value: Any, precision: int = 0, method: str = "common") -> Any:
    if not 0 <= precision <= 15 or method not in ("common", "ceil", "floor"):
        raise ExpressionError("round takes 0 to 15 digits, and common, ceil or floor")
    if method == "common":
        return round(float(value), precision)
    scale = 10**precision
    return (math.ceil if method == "ceil" else math.floor)(values.calculate("*", value, scale)) / scale


def _build_converter(kind: Callable[[Any], Any]) -> Operation:
    zero = kind(0)

    def convert(_: ValueOperations, value: Any, default: Any = zero) -> Any:
        if isinstance(value, str) and len(value) > _LONGEST_NUMBER:
            return default
        try:
            return kind(float(value)) if isinstance(value, str) and "." in value else kind(value)
        except (TypeError, ValueError, OverflowError):
            return default

    return convert


def _build_text_filter(name: str) -> Operation:
    """Build a filter from a str method, for any value that has a text."""
    return lambda values, value, *args: TEXT_METHODS[name](values, values.text(value), *args)


def _find_operation(table: dict[str, Operation], kind: str, name: Any) -> Operation:
    if not isinstance(name, str) or name not in table:
        raise ExpressionError(f"there is no {kind} {str(name)[:40]!r}")
    return table[name]


FILTERS: dict[str, Operation] = {
    "abs": lambda _, value: abs(value),
    "capitalize": _build_text_filter("capitalize"),
    "count": _length,
    "d": _default,
    "default": _default,
    "dictsort": _sort_dict,
    "first": _first,
    "float": _build_converter(float),
    "groupby": _group,
    "int": _build_converter(int),
    "items": DICT_METHODS["items"],
    "join": _join,
    "last": _last,
    "length": _length,
    "list": _list,
    "lower": _build_text_filter("lower"),
    "map": _map,
    "max": _build_extreme(max),
    "min": _build_extreme(min),
    "reject": _build_chooser(wanted=False, by_attribute=False),
    "rejectattr": _build_chooser(wanted=False, by_attribute=True),
    "replace": lambda values, value, old, new: replace(values, values.text(value), old, new),
    "reverse": _reverse,
    "round": _round,
    "select": _build_chooser(wanted=True, by_attribute=False),
    "selectattr": _build_chooser(wanted=True, by_attribute=True),
    "sort": _sort,
    "string": lambda values, value: values.text(value),
    "sum": _sum,
    "title": _build_text_filter("title"),
    "trim": _build_text_filter("strip"),
    "truncate": _truncate,
    "unique": _unique,
    "upper": _build_text_filter("upper"),
    "wordcount": lambda values, value: len(TEXT_METHODS["split"](values, values.text(value))),
}


def _is_truthy(_: ValueOperations, value: Any) -> bool:
    return bool(value)


def _build_comparison(sign: str) -> Operation:
    return lambda values, value, other: values.compare(sign, value, other)


def _build_type_test(*kinds: type) -> Operation:
    return lambda _, value: isinstance(value, kinds)


TESTS: dict[str, Operation] = {
    "boolean": _build_type_test(bool),
    "defined": lambda _, value: not isinstance(value, Undefined),
    "divisibleby": lambda values, value, number: values.calculate("%", value, number) == 0,
    "even": lambda values, value: values.calculate("%", value, 2) == 0,
    "false": lambda _, value: value is False,
    "float": _build_type_test(float),
    "integer": lambda _, value: isinstance(value, int) and not isinstance(value, bool),
    "iterable": _build_type_test(str, list, tuple, dict, range),
    "lower": lambda values, value: values.text(value).islower(),
    "mapping": _build_type_test(dict),
    "none": lambda _, value: value is None,
    "number": _build_type_test(int, float),
    "odd": lambda values, value: values.calculate("%", value, 2) == 1,
    "sequence": _build_type_test(str, list, tuple, dict, range),
    "string": _build_type_test(str),
    "true": lambda _, value: value is True,
    "undefined": _build_type_test(Undefined),
    "upper": lambda values, value: values.text(value).isupper(),
    **dict.fromkeys(("eq", "equalto", "=="), _build_comparison("eq")),
    **dict.fromkeys(("ne", "!="), _build_comparison("ne")),
    **dict.fromkeys(("gt", "greaterthan", ">"), _build_comparison("gt")),
    **dict.fromkeys(("ge", ">="), _build_comparison("gteq")),
    **dict.fromkeys(("lt", "lessthan", "<"), _build_comparison("lt")),
    **dict.fromkeys(("le", "<="), _build_comparison("lteq")),
    "in": _build_comparison("in"),
}
