"""References within a schema: follow them, or replace them with their targets."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

_FORMS = ("anyOf", "oneOf", "allOf")


def find_target(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Find the target of a reference such as `#/$defs/Address`; None if it is not in the schema."""
    if not reference.startswith("#"):
        return None
    node: Any = root
    for part in filter(None, reference[1:].split("/")):
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        node = node.get(key) if isinstance(node, Mapping) else None
    return node if isinstance(node, Mapping) else None


def resolve_reference(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow references within `root`. Return the schema itself if a reference is broken, and the
    last schema of a cycle."""
    here, seen = schema, set[str]()
    while (
        isinstance(reference := here.get("$ref"), str)
        and reference.startswith("#/")
        and reference not in seen
    ):
        seen.add(reference)
        target = find_target(reference, root)
        if target is None:
            return schema
        here = target
    return here


def inline_references(schema: Any, root: Mapping[str, Any], trail: tuple[int, ...] = ()) -> Any:
    """Replace the schema's references with their targets; keep circular ones.

    Keywords next to a reference, such as a description, are kept, too.

    Args:
        trail: the ids of the schemas to which references have led so far.
    """
    if isinstance(schema, list):
        return [inline_references(part, root, trail) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    target = resolve_reference(schema, root)
    if target is schema:
        return {key: inline_references(value, root, trail) for key, value in schema.items()}
    if id(target) in trail:
        return schema
    merged = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    return {
        key: inline_references(value, root, (*trail, id(target))) for key, value in merged.items()
    }


def list_choices(schema: Mapping[str, Any]) -> list[Any]:
    """List the schemas in `anyOf`, or else in `oneOf`; one of them describes the value."""
    return list(schema.get("anyOf") or schema.get("oneOf") or ())


def leave_out_null(choices: Iterable[Any]) -> list[Any]:
    """Return the choices without null, which pydantic adds to optional fields."""
    return [
        each for each in choices if not (isinstance(each, Mapping) and each.get("type") == "null")
    ]


def expand_forms(
    schema: Any,
    root: Mapping[str, Any],
    keywords: Iterable[str] = _FORMS,
    *,
    with_entries: bool = False,
) -> Iterator[Mapping[str, Any]]:
    """Yield the schema and, once each, all other schemas for the same value: the targets of
    references, and the schemas inside `keywords`.

    Args:
        with_entries: also yield the schemas for the entries, if the value is a list.
    """
    waiting, seen = [schema], set[int]()
    while waiting:
        here = waiting.pop()
        if not isinstance(here, Mapping) or id(here) in seen:
            continue
        seen.add(id(here))
        yield here
        entries = [here["items"]] if with_entries and "items" in here else []
        waiting += reversed([resolve_reference(here, root), *list_forms(here, keywords), *entries])


def list_properties(form: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schemas of an object's named parts, in this form alone."""
    properties = form.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def list_forms(schema: Mapping[str, Any], keywords: Iterable[str] = _FORMS) -> list[Any]:
    """List the schemas in these keywords, which describe the same value."""
    return [
        form for word in keywords if isinstance(forms := schema.get(word), list) for form in forms
    ]
