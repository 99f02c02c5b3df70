"""Detection of HTTP, RPC and GraphQL requests in the params of tools that Gadget does not ship.

A batch endpoint performs the requests in its params, so it can do more than its own method and
grant allow.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tools.contract.embedded_json import TOO_DEEP, parse_embedded_json

HTTP_METHODS = frozenset(
    {
        "GET",
        "HEAD",
        "POST",
        "PUT",
        "PATCH",
        "DELETE",
        "OPTIONS",
        "TRACE",
        "CONNECT",
        "COPY",
        "MOVE",
        "MKCOL",
        "PURGE",
    }
)
METHOD_NAMES = frozenset({"method", "httpmethod", "requestmethod", "httpverb", "verb"})
"""Names of fields that hold a method, normalized by `normalize_name`."""
DESTINATION_NAMES = frozenset(
    {
        "path",
        "url",
        "uri",
        "href",
        "endpoint",
        "relativeurl",
        "relativepath",
        "requesturl",
        "requesturi",
        "requestpath",
    }
    | {"resource", "resourcepath"}
)
"""Names of fields that hold a request's destination, normalized; a plural `s` is allowed."""
ACTIONS = frozenset(
    {"index", "create", "insert", "update", "upsert", "replace", "patch", "put", "delete", "remove"}
)
"""Fields named by a bulk request's action, with its item as value: `{"delete": {"_id": "7"}}`."""
_LONGEST_SHOWN = 200
_LINE = re.compile(
    rf"^[ \t]*({'|'.join(sorted(HTTP_METHODS))})[ \t]+(\S+)([ \t]+HTTP/[0-9.]+)?[ \t]*\r?$",
    re.MULTILINE,
)
_DESTINATION = re.compile(r"/|[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_GRAPHQL = re.compile(
    r"[\s,\ufeff]*(?:#[^\n]*\n[\s,]*)*(?:query|mutation|subscription|fragment)\b[^{}]*\{"
)
_DEFINITION = re.compile(r"\b(?:query|mutation|subscription|fragment)\b")
_IGNORED = re.compile(r'#[^\n]*|"""(?:[^"]|"(?!""))*"""|"(?:[^"\\\n]|\\.)*"')
_FIELD = re.compile(r"(?:\w+\s*:\s*)?(\w+)")


def normalize_name(name: str) -> str:
    """Reduce a name to lower-case letters: `http_method` and `httpMethod` become httpmethod."""
    return re.sub("[^a-z]", "", name.lower())


def find_embedded_requests(params: Mapping[str, Any]) -> tuple[str, ...]:
    """List requests in params: `DELETE /pets/7`, `call pets.drop`, `GraphQL mutation: dropPet`.

    A request without a method is combined with every method that stands without a destination,
    because some APIs use such methods as defaults.
    """
    objects, lists, texts = _flatten(params)
    lone_methods = [
        method
        for each in objects
        if (method := _find_method(each)) and not list(_find_destinations(each))
    ]
    found, without_method = list[str](), list[str]()
    for each in objects:
        own = _find_method(each)
        methods = [own] if own else sorted(set(lone_methods))
        destinations = list(_find_destinations(each))
        found += [f"{method} {destination}" for destination in destinations for method in methods]
        without_method += (
            [] if methods else [f"no method: {destination}" for destination in destinations]
        )
        if "jsonrpc" in each and isinstance(each.get("method"), str):
            found.append(f"call {each['method']}")
    for items in lists:
        found += _find_actions(items)
    for text in texts:
        found += [text] if text is TOO_DEEP else _find_in_text(text)
    found += without_method if found else []
    return tuple(" ".join(each.split())[:_LONGEST_SHOWN] for each in found)


def describe_requests(requests: Iterable[str], most: int = 5) -> str:
    """Describe the requests, e.g. `carries 2 other requests: DELETE /pets/7; GET /pets`."""
    every = list(requests)
    more = f"; and {len(every) - most:,} more" if len(every) > most else ""
    return f"carries {len(every):,} other request{'' if len(every) == 1 else 's'}: {'; '.join(every[:most])}{more}"


def _flatten(
    params: Mapping[str, Any],
) -> tuple[list[Mapping[str, Any]], list[list[Any]], list[str]]:
    """Return all objects, lists and texts in order; a text that holds JSON is replaced by its
    contents.

    Params may be nested deeply, so the function does not recurse.
    """
    objects: list[Mapping[str, Any]] = []
    lists: list[list[Any]] = []
    texts: list[str] = []
    waiting: list[Any] = [params]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            objects.append(value)
            waiting += reversed(list(value.values()))
        elif isinstance(value, list):
            lists.append(value)
            waiting += reversed(value)
        elif isinstance(value, str):
            inner = parse_embedded_json(value)
            waiting += [inner] if inner else []
            texts += [] if inner else [value]
    return objects, lists, texts


def _find_method(node: Mapping[str, Any]) -> str:
    for name, value in node.items():
        if (
            isinstance(value, str)
            and normalize_name(name) in METHOD_NAMES
            and value.strip().upper() in HTTP_METHODS
        ):
            return value.strip().upper()
    return ""


def _find_actions(items: list[Any]) -> Iterator[str]:
    """Yield text such as `delete {"_id": "7"}` for each item of the list that consists of a single
    action."""
    for item in items:
        if isinstance(item, Mapping) and len(item) == 1:
            ((name, target),) = item.items()
            if normalize_name(name) in ACTIONS and isinstance(target, Mapping):
                yield f"{name} {json.dumps(target, ensure_ascii=False)}"


def _find_destinations(node: Mapping[str, Any]) -> Iterator[str]:
    for name, value in node.items():
        plain = normalize_name(name)
        if plain in DESTINATION_NAMES and isinstance(value, str):
            yield value
        elif plain.removesuffix("s") in DESTINATION_NAMES and isinstance(value, list):
            yield from (each for each in value if isinstance(each, str))


def _find_in_text(text: str) -> Iterator[str]:
    lines = list(_LINE.finditer(text))
    is_one = len(lines) == 1 and lines[0][0].strip() == text.strip()
    for line in lines:
        if (is_one or line[3]) and _DESTINATION.match(line[2]):
            yield f"{line[1]} {line[2]}"
    if _GRAPHQL.match(text):
        yield from _find_graphql(_IGNORED.sub(" ", text))


def _find_graphql(text: str) -> Iterator[str]:
    """Yield each operation of a document with its top-level fields."""
    at = 0
    while found := _DEFINITION.search(text, at):
        start = text.find("{", found.start())
        if start < 0:
            return
        fields, at = _read_top_fields(text, start + 1)
        if found[0] != "fragment":
            yield f"GraphQL {found[0]}: {', '.join(fields)}"


def _read_top_fields(text: str, at: int) -> tuple[list[str], int]:
    """Return the top-level fields after an opening brace, and the position after the brace pair."""
    depth, fields = 1, []
    while at < len(text) and depth:
        if text[at] in "{(":
            depth += 1
        elif text[at] in "})":
            depth -= 1
        elif depth == 1 and (name := _FIELD.match(text, at)):
            fields.append(name[1])
            at = name.end() - 1
        at += 1
    return fields, at
