"""Paths into a tool's params, checked against its schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tools.schemas.references import find_target, list_forms, resolve_reference
from tools.schemas.types import describe_type, name_type

_LEADING = frozenset({"$ref", "anyOf", "oneOf", "allOf"})
"""Keywords that lead to other schemas for the same value."""
_DEEPEST = 20
_DEEPEST_LISTED = 5
"""The maximum number of dots in a listed path. Without a limit, a schema that refers to itself
would have endless paths."""


@dataclass(frozen=True)
class SchemaParam:
    """A param that has no named params of its own.

    Attributes:
        type: in words, such as `string or null`.
        is_always_there: True if every call has it.
    """

    path: str
    type: str
    is_always_there: bool
    default: Any = None


@dataclass(frozen=True)
class CallSchema:
    """The params that calls of a tool can have.

    Attributes:
        root: the tool's schema.
        has_defaults: True if a call gets the defaults of the params that it leaves out.
    """

    root: Mapping[str, Any]
    has_defaults: bool

    def list_params(self) -> list[SchemaParam]:
        """List the params; a closed object is replaced by the params inside it."""
        return list(self._list_params(self.root, "", is_there=True))

    def find_missing(self, paths: Iterable[str]) -> str:
        """Find a param that every call has and that none of the paths names or enters; empty if
        there is none."""
        return self._find_missing(self.root, "", frozenset(paths))

    def _list_params(self, node: Any, where: str, *, is_there: bool) -> Iterator[SchemaParam]:
        for name, schema in self._read_properties(node):
            path, is_here = (
                f"{where}.{name}" if where else name,
                is_there and self._is_there(node, name, schema),
            )
            inner = self._find_closed(schema) if path.count(".") < _DEEPEST_LISTED else None
            if inner is not None:
                yield from self._list_params(inner, path, is_there=is_here)
            else:
                default = (
                    schema.get("default")
                    if self.has_defaults and isinstance(schema, Mapping)
                    else None
                )
                yield SchemaParam(path, describe_type(schema, self.root), is_here, default)

    def _find_missing(self, node: Any, where: str, paths: frozenset[str]) -> str:
        here = self._resolve(node)
        # If the list itself is in `paths`, it may be empty, so its items need not be named.
        if "items" in here and where not in paths:
            return self._find_missing(here["items"], where, paths)
        for name, schema in self._read_properties(here):
            path = f"{where}.{name}" if where else name
            if not self._is_there(here, name, schema):
                continue
            if not any(each == path or each.startswith(f"{path}.") for each in paths):
                return path
            if (
                inner := self._find_missing(schema, path, paths)
                if name in here.get("required", ())
                else ""
            ):
                return inner
        return ""

    def _is_there(self, node: Any, name: str, schema: Any) -> bool:
        """Return True if the object always has this param with a value; null is treated as
        absent."""
        is_filled = (
            self.has_defaults and isinstance(schema, Mapping) and schema.get("default") is not None
        )
        return (is_filled or name in self._resolve(node).get("required", ())) and not _may_be_null(
            schema, self.root
        )

    def _find_closed(self, schema: Any) -> Mapping[str, Any] | None:
        """Return the closed object that describes the value or each entry of the list, or None."""
        here = self._resolve(schema)
        here = self._resolve(here["items"]) if "items" in here else here
        return here if here.get("properties") and _is_closed(here) else None

    def _read_properties(self, node: Any) -> Iterable[tuple[str, Any]]:
        properties: Mapping[str, Any] = self._resolve(node).get("properties", {})
        return properties.items()

    def _resolve(self, node: Any) -> Mapping[str, Any]:
        return resolve_reference(node, self.root) if isinstance(node, Mapping) else {}


def list_types(schema: Mapping[str, Any], param: str, tool: str = "") -> frozenset[str]:
    """List the JSON types of values at the path, without null; empty if the schema does not say.

    Args:
        tool: the tool's name, to check the path; without it, any path passes.

    Raises:
        ValueError: the tool does not have this param; the text names the params that it has.
    """
    return _list_named_types(_find_nodes(schema, param, tool))


def list_entry_types(schema: Mapping[str, Any], param: str) -> frozenset[str]:
    """List the JSON types of the entries of lists at the path, without null; empty if the schema
    does not say, or if the values are not lists."""
    entries = [
        item
        for node in _find_nodes(schema, param, "")
        if "items" in node
        for item in _enter_lists(node, schema)
    ]
    return _list_named_types(entries)


def list_value_forms(schema: Mapping[str, Any], param: str) -> list[Mapping[str, Any]]:
    """List the schemas of the values at the path, or of the entries if the values are lists; empty
    if the schema has no such path."""
    nodes = _find_nodes(schema, param, "")
    return [item for node in nodes for item in _enter_lists(node, schema)]


def find_title(schema: Mapping[str, Any], param: str) -> str:
    """Find the title that the schema gives to the param at the path; empty if there is none."""
    titles = (node.get("title") for node in _find_nodes(schema, param, ""))
    return next((title.strip() for title in titles if isinstance(title, str)), "")


def _find_nodes(schema: Mapping[str, Any], param: str, tool: str) -> list[Mapping[str, Any]]:
    """Find the schemas of the values at the path; empty if the schema has no such path."""
    nodes = list(_list_variants(schema, schema))
    so_far = tool
    for name in param.split("."):
        nodes = [item for node in nodes for item in _enter_lists(node, schema)]
        known = {key for node in nodes for key in node.get("properties", {})}
        is_open = any(_takes_any_name(node) for node in nodes)
        if tool and name not in known and not is_open:
            raise ValueError(
                f"{so_far} has no parameter {name!r}, only {', '.join(sorted(known)) or 'none'}"
            )
        so_far = f"{so_far}.{name}" if so_far != tool else f"{tool} {name}"
        inner = [node["properties"][name] for node in nodes if name in node.get("properties", {})]
        if not inner:
            return []
        nodes = [variant for each in inner for variant in _list_variants(each, schema)]
    return nodes


def find_closed_object(schema: Mapping[str, Any], param: str) -> tuple[str, list[str]] | None:
    """Find the object in which the path's next name cannot be; return the object's path and its
    names.

    Return None if a call may have the path. Only an object without additional properties excludes
    other names.
    """
    nodes, so_far = list(_list_variants(schema, schema)), list[str]()
    for name in param.split("."):
        nodes = [item for node in nodes for item in _enter_lists(node, schema)]
        known = {key for node in nodes for key in node.get("properties", {})}
        if name not in known:
            return (
                (".".join(so_far), sorted(known)) if nodes and all(map(_is_closed, nodes)) else None
            )
        so_far.append(name)
        inner = [node["properties"][name] for node in nodes if name in node.get("properties", {})]
        nodes = [variant for each in inner for variant in _list_variants(each, schema)]
    return None


def find_open_objects(schema: Mapping[str, Any], params: Mapping[str, Any]) -> frozenset[str]:
    """Return the paths of a call's objects that may have params which the schema does not list;
    the path of the call itself is empty.

    The schema allows unlisted names in such an object, or the object contains one. An inner object
    is a map, whose names are data, if its schema does not list names and does not explicitly allow
    any name.
    """
    return frozenset(path for path, is_open, _ in _compare(schema, params) if is_open)


def find_unset_params(schema: Mapping[str, Any], params: Mapping[str, Any]) -> frozenset[str]:
    """Find the params whose value is null by default, so that the call may not have contained
    them."""
    return frozenset(path for _, _, unset in _compare(schema, params) for path in unset)


def _compare(
    schema: Mapping[str, Any], params: Mapping[str, Any]
) -> Iterator[tuple[str, bool, list[str]]]:
    """Yield the path of each object of a call, whether it is open, and its params that are null by
    default."""
    waiting: list[tuple[str, Any, list[Mapping[str, Any]]]] = [
        ("", params, list(_list_variants(schema, schema)))
    ]
    while waiting:
        path, value, nodes = waiting.pop()
        nodes = [item for node in nodes for item in _enter_lists(node, schema)]
        if isinstance(value, list):
            waiting += [(path, entry, nodes) for entry in value]
        if not isinstance(value, Mapping):
            continue
        listed: dict[str, list[Any]] = {}
        for node in nodes:
            for name, inner in node.get("properties", {}).items():
                listed.setdefault(name, []).append(inner)
        says_more = any(node.get("additionalProperties") for node in nodes)
        is_map = path != "" and not listed and not (says_more and value)
        yield (
            path,
            not is_map and _is_open(nodes, set(value) - set(listed)),
            [
                _join(path, name)
                for name, forms in listed.items()
                if value.get(name, ...) is None and any(map(_is_null_by_default, forms))
            ],
        )
        for name in value.keys() & listed.keys():
            variants = [each for form in listed[name] for each in _list_variants(form, schema)]
            waiting.append((_join(path, name), value[name], variants))


def _is_open(nodes: list[Mapping[str, Any]], unlisted: set[str]) -> bool:
    if any(node.get("additionalProperties") or "patternProperties" in node for node in nodes):
        return True
    return bool(unlisted)


def _is_null_by_default(form: Any) -> bool:
    return isinstance(form, Mapping) and form.get("default", ...) is None


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _may_be_null(schema: Any, root: Mapping[str, Any]) -> bool:
    """Return True if null, which is treated as absent, is allowed, or if the schema does not
    say."""
    nodes = list(_list_variants(schema, root))
    return not nodes or any(_allows_null(node) for node in nodes)


def _allows_null(node: Mapping[str, Any]) -> bool:
    if "enum" in node or "const" in node:
        return None in node.get("enum", [node.get("const")])
    return "null" in _read_types(node) or not _read_types(node)


def _is_closed(node: Mapping[str, Any]) -> bool:
    """Return True for a closed object, and for a value that is not an object or a list."""
    types = _read_types(node)
    if types and not types & {"object", "array"}:
        return True
    return node.get("additionalProperties") is False and "patternProperties" not in node


def _read_types(node: Mapping[str, Any]) -> frozenset[str]:
    named = node.get("type", ())
    return frozenset([named] if isinstance(named, str) else named)


def _list_named_types(nodes: list[Mapping[str, Any]]) -> frozenset[str]:
    found: set[str] = set()
    for node in nodes:
        named = node.get("type")
        if named is None and "enum" not in node and "const" not in node:
            return frozenset()
        values = node.get("enum", [node["const"]] if "const" in node else [])
        found.update([named] if isinstance(named, str) else named or map(name_type, values))
    return frozenset(found - {"null"})


def _list_variants(
    node: Any, root: Mapping[str, Any], depth: int = 0
) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas that the node stands for: its reference's target, or each alternative."""
    if not isinstance(node, Mapping) or depth > _DEEPEST:
        return
    beside = {key: value for key, value in node.items() if key not in _LEADING}
    if "$ref" in node:
        forms = [find_target(str(node["$ref"]), root) or {}]
    elif not (forms := list_forms(node)):
        yield node
        return
    for form in forms:
        for variant in _list_variants(form, root, depth + 1):
            yield _merge(beside, variant) if beside else variant


def _merge(node: Mapping[str, Any], form: Mapping[str, Any]) -> Mapping[str, Any]:
    """Merge the keywords beside a reference or alternatives into one target; both describe the
    value.

    A name is known if at least one of them lists it; an object is closed if at least one of them
    closes it.
    """
    merged = {**node, **form}
    if "properties" in node and "properties" in form:
        merged["properties"] = {**node["properties"], **form["properties"]}
    if "required" in node and "required" in form:
        merged["required"] = [*node["required"], *form["required"]]
    more = [each["additionalProperties"] for each in (node, form) if "additionalProperties" in each]
    if more:
        merged["additionalProperties"] = False if False in more else any(more)
    return merged


def _enter_lists(node: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "items" in node:
        for variant in _list_variants(node["items"], root):
            yield from _enter_lists(variant, root)
    else:
        yield node


def _takes_any_name(node: Mapping[str, Any]) -> bool:
    """Return True for an object that may have params of any name, or for a node without a type or
    properties."""
    if node.get("type") not in (None, "object") and "object" not in node.get("type", ()):
        return False
    has_names = bool(node.get("properties"))
    return bool(node.get("additionalProperties", not has_names))
