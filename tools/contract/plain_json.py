"""Plain JSON from any value that a tool returns, in the form in which pydantic writes it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import islice
from math import isfinite
from typing import Any
from uuid import UUID

from pydantic import BaseModel, TypeAdapter

from tools.contract.canonical import canonical_json, find_unstorable, make_storable

DEEPEST = 200
LONGEST_ITERATOR = 100_000
_DEEPEST_SHOWN = 3
_LONGEST_VALUE = 80
_MOST_BITS = 10_000
"""The maximum number of bits in a whole number. With more than about 14,000 bits, Python refuses to
write it as text."""
_SHOWN = (str, int, float, bool, Decimal, UUID, date, datetime, timedelta)
_ANY = TypeAdapter(Any)
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True)
class PlainJson:
    """A value as plain JSON, which does not share any object with the original.

    Attributes:
        size: the length of the JSON text, in characters.
        fault: a description of the first part that has no JSON form; empty if all parts have one.
    """

    value: Any
    size: int
    fault: str = ""


def to_plain_json(value: Any, place: str = "data") -> PlainJson:
    """Write the value as plain JSON that every database can store.

    Dates, Decimals, UUIDs, paths and enumerations become text or numbers; models and dataclasses
    become objects; NaN becomes null. A set is sorted, so that equal sets look the same. A part
    without a JSON form is replaced with a text that says so.

    Args:
        place: the name of the value in the description of a fault.

    Raises:
        Exception: the value's own code fails.
    """
    try:
        text, fault = _ENCODER.encode(value), ""
    except (TypeError, ValueError, RecursionError):
        writer = _Writer()
        text = _ENCODER.encode(writer.write(value, place, ()))
        fault = writer.fault
    plain = json.loads(text)
    return PlainJson(
        make_storable(plain) if find_unstorable(text) is not None else plain, len(text), fault
    )


def write_plain_json(value: Any) -> Any:
    """Return the value as plain JSON.

    Raises:
        ValueError: a part of it has no JSON form; the text names it.
    """
    plain = to_plain_json(value, "the value")
    if plain.fault:
        raise ValueError(plain.fault)
    return plain.value


def write_text(value: Any) -> Any:
    """Return a number, date, UUID or the like as text, and None as ""; return anything else
    unchanged."""
    if value is None:
        return ""
    if isinstance(value, str):
        return make_storable(str.__str__(value))
    if isinstance(value, bool | list | tuple | dict | set | frozenset | bytes | bytearray | type):
        return value
    plain = to_plain_json(value)
    return (
        str(plain.value)
        if not plain.fault and isinstance(plain.value, str | int | float)
        else value
    )


def describe_value(value: object) -> str:
    """Describe a wrong value on one line. Only plain values are quoted, because other values may
    hold secrets."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if not _is_plain(value, 0):
        return f"a value of type {type(value).__name__}"
    text = make_storable(" ".join(repr(value).split()))
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


class _Writer:
    """One conversion, which remembers the first part that has no JSON form."""

    def __init__(self) -> None:
        self.fault = ""

    def write(self, value: Any, place: str, above: tuple[int, ...]) -> Any:
        if _is_scalar(value):
            return value
        if isinstance(value, str):
            return make_storable(str.__str__(value))
        if id(value) in above or len(above) >= DEEPEST:
            return self._refuse(f"{place} is nested too deeply, or contains itself", value)
        above = (*above, id(value))
        if isinstance(value, Mapping):
            pairs = ((self._write_key(key, place, above), child) for key, child in value.items())
            return {key: self.write(child, f"{place}.{key}", above) for key, child in pairs}
        if isinstance(value, list | tuple | set | frozenset | Iterator) and not hasattr(
            value, "_fields"
        ):
            entries = self._read_iterator(value, place) if isinstance(value, Iterator) else value
            written = [
                self.write(child, f"{place}.{number}", above)
                for number, child in enumerate(entries)
            ]
            return (
                sorted(written, key=canonical_json)
                if isinstance(value, set | frozenset)
                else written
            )
        return self._write_object(value, place, above)

    def _write_key(self, key: Any, place: str, above: tuple[int, ...]) -> str:
        written = self.write(key, place, above)
        return written if isinstance(written, str) else canonical_json(written)

    def _read_iterator(self, value: Iterator[Any], place: str) -> list[Any]:
        read = list(islice(value, LONGEST_ITERATOR + 1))
        if len(read) > LONGEST_ITERATOR:
            self.fault = self.fault or f"{place} has more than {LONGEST_ITERATOR:,} entries"
        return read[:LONGEST_ITERATOR]

    def _write_object(self, value: Any, place: str, above: tuple[int, ...]) -> Any:
        """Write any value that pydantic can serialize, with its contents."""
        try:
            is_model = isinstance(value, BaseModel)
            dumped: Any = (
                value.model_dump(mode="json") if is_model else _ANY.dump_python(value, mode="json")
            )
        except ValueError:
            return self._refuse(f"{place} is {type(value).__name__}, which is not JSON", value)
        if isinstance(dumped, list | dict):
            return self.write(dumped, place, above)
        if isinstance(dumped, float):
            return dumped if isfinite(dumped) else None
        return (
            dumped
            if isinstance(dumped, str) or _is_scalar(dumped)
            else self._refuse(f"{place} is too large", value)
        )

    def _refuse(self, fault: str, value: object) -> str:
        self.fault = self.fault or fault
        return f"[not readable: {type(value).__name__}]"


def _is_scalar(value: object) -> bool:
    """Return True for null, booleans and the numbers that can be written as JSON."""
    if type(value) is int:
        return value.bit_length() <= _MOST_BITS
    return value is None or isinstance(value, bool) or (type(value) is float and isfinite(value))


def _is_plain(value: object, depth: int) -> bool:
    if depth > _DEEPEST_SHOWN:
        return False
    if isinstance(value, list | tuple | set | frozenset):
        return all(_is_plain(each, depth + 1) for each in value)
    if isinstance(value, dict):
        return all(_is_plain(each, depth + 1) for each in (*value, *value.values()))
    return value is None or type(value) in _SHOWN
