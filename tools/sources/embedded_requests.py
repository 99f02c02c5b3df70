"""Detection of tools that can embed other requests in a call: batches, GraphQL, RPC.

Such a call does whatever its params say, so its method and its grant do not limit what it does.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tools.contract.embedded_requests import (
    ACTIONS,
    DESTINATION_NAMES,
    HTTP_METHODS,
    METHOD_NAMES,
    normalize_name,
)
from tools.schemas.references import expand_forms, list_properties

_CERTAIN_WORDS = ("graphql", "jsonrpc", "xmlrpc", "gql", "rpc")
_BATCH_WORDS = frozenset(
    {"batch", "batched", "multicall", "multirequest", "multiquery", "multiplex", "msearch"}
)
_AFTER_MULTI = frozenset(
    {
        "request",
        "call",
        "query",
        "operation",
        "action",
        "command",
        "exec",
        "execute",
        "get",
        "put",
        "search",
        "status",
    }
)
_OPERATIONS = frozenset({"operation", "request", "action", "command", "call", "op", "item", "job"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def detect_embedded_requests(
    names: Mapping[str, str], schema: Mapping[str, Any], *, only_reads: bool = False
) -> str | None:
    """Return why a tool may embed other requests, as part of a sentence; None if it cannot.

    Args:
        names: the tool's name, path and id, by their description in a sentence: {"its path":
            "/v1/batch"}.
        schema: the schema of the tool's params.
        only_reads: the tool's HTTP method only reads, so that `batch` means something to read.
    """
    for where, text in names.items():
        if word := _find_batch_word(text, only_reads=only_reads):
            return f"{where} says {word!r}"
    fields = list(_list_fields(schema))
    if any(_has_requests(each) for each in fields):
        return "its params contain methods and paths of other requests"
    if any(
        {"query"} <= each.keys() and {"variables", "operationname"} & each.keys() for each in fields
    ):
        return "its params contain GraphQL"
    if any({"jsonrpc", "method"} <= each.keys() for each in fields):
        return "its params contain remote procedure calls"
    is_bulk = any("bulk" in _split_words(text) for text in names.values())
    named_operations = any(
        name.removesuffix("s") in _OPERATIONS for each in fields for name in each
    )
    if is_bulk and (named_operations or any(len(ACTIONS & each.keys()) > 1 for each in fields)):
        return "it takes many operations at once"
    return None


def _split_words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _find_batch_word(text: str, *, only_reads: bool) -> str:
    """Return the word that suggests embedded requests; `batch` does so only as a name's first or
    last word."""
    for word in _CERTAIN_WORDS:
        if word in _split_words(text) or (len(word) > 3 and word in normalize_name(text)):
            return word
    for words in () if only_reads else map(_split_words, re.split("[/.:]", text)):
        for word, after in zip(words, [*words[1:], ""], strict=False):
            if word in _BATCH_WORDS and word in (words[0], words[-1]):
                return word
            if word == "multi" and (not after or after.removesuffix("s") in _AFTER_MULTI):
                return f"{word} {after}".strip()
    return ""


def _has_requests(fields: Mapping[str, Any]) -> bool:
    is_placed = any(
        name in DESTINATION_NAMES or name.removesuffix("s") in DESTINATION_NAMES for name in fields
    )
    return is_placed and any(
        name in METHOD_NAMES and _may_be_method(schema) for name, schema in fields.items()
    )


def _may_be_method(schema: Any) -> bool:
    """Return True if a field may hold an HTTP method: any text, or a list of choices with one."""
    chosen = schema.get("enum") if isinstance(schema, Mapping) else None
    return not isinstance(chosen, list) or any(str(each).upper() in HTTP_METHODS for each in chosen)


def _list_fields(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield each object's properties, by normalized name; the properties in one `allOf` are
    combined."""
    waiting: list[Any] = [schema]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, Mapping):
            fields = dict(_name_properties(expand_forms(node, schema, ("allOf",))))
            if fields:
                yield fields
            waiting += node.values()


def _name_properties(parts: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    for part in parts:
        for name, schema in list_properties(part).items():
            yield normalize_name(str(name)), schema
