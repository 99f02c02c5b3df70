"""Base of tools from outside: a JSON schema of their params, and the names that the toolbox reserves.

The toolbox refuses a param that says for whom a tool works, such as `user`. In another system it is another person, so
such a param has an extra `_` inside Gadget, and its own name for the model.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from tools.contract import Tool
from tools.contract.addresses import resolve_reference
from tools.toolbox import comes_from_the_run

from .given_schema import checked_params, validator_of

_OF_NAMES = ("properties", "dependentSchemas", "dependentRequired")


class OutsideTool(Tool):
    """A tool whose params are described by a JSON schema."""

    @property
    def definition(self) -> dict[str, Any]:
        """The definition shown to the model, with every param under its own name."""
        function = {"name": self.name, "description": self.description, "parameters": self._own_schema}
        return {"type": "function", "function": function}

    def check_params(self, raw: dict[str, Any]) -> dict[str, Any]:
        """Return canonical params, without defaults: the source applies them.

        Raises:
            ToolError: MISSING_PARAM or INVALID_PARAMETER.
        """
        return checked_params(self._validator, keep_reserved_names(raw, self.schema) if self._keeps_names else raw)

    def load_params(self, canonical: dict[str, Any]) -> dict[str, Any]:
        return canonical

    @cached_property
    def _validator(self) -> Any:
        return validator_of(self.schema)

    @cached_property
    def _own_schema(self) -> dict[str, Any]:
        return own_names(self.schema) if self._keeps_names else self.schema

    @cached_property
    def _keeps_names(self) -> bool:
        properties = list(_all_properties(self.schema))
        return any(_own_name(name, each) != name for each in properties for name in each)


def own_names(node: Any) -> Any:
    """Return the schema with the source's own names, unless two params would share one."""
    if isinstance(node, list):
        return [own_names(part) for part in node]
    if not isinstance(node, Mapping):
        return node
    names = _properties(node)
    made: dict[str, Any] = {}
    for key, value in node.items():
        if key in _OF_NAMES and isinstance(value, Mapping):
            made[key] = {_own_name(name, names): own_names(part) for name, part in value.items()}
        elif key == "required" and isinstance(value, list):
            made[key] = [_own_name(str(name), names) for name in value]
        else:
            made[key] = own_names(value)
    return made


def keep_reserved_names(value: Any, schema: Mapping[str, Any]) -> Any:
    """Replace the source's names in the value with the toolbox's."""
    waiting: list[tuple[Any, list[Mapping[str, Any]]]] = []
    made = _rename_keys(value, list(_forms(schema, schema)), waiting)
    while waiting:  # no recursion: params may be as deep as JSON can be
        holder, forms = waiting.pop()
        for key, child in holder.items() if isinstance(holder, dict) else enumerate(holder):
            inside = [each for form in forms for part in _parts(form, key) for each in _forms(part, schema)]
            holder[key] = _rename_keys(child, inside, waiting)
    return made


def _rename_keys(value: Any, forms: list[Mapping[str, Any]], waiting: list[Any]) -> Any:
    """Copy the value with its own names changed; nested values follow later."""
    if isinstance(value, dict):
        known = {name for form in forms for name in _properties(form)}
        made: Any = {_kept_name(name, known): child for name, child in value.items()}
    elif isinstance(value, list):
        made = list(value)
    else:
        return value
    if forms:
        waiting.append((made, forms))
    return made


def _kept_name(name: str, known: set[str]) -> str:
    if name in known or not comes_from_the_run(name):
        return name
    kept = [each for each in known if each.rstrip("_") == name]
    return kept[0] if len(kept) == 1 else name


def _own_name(name: str, properties: Mapping[str, Any]) -> str:
    own = name.rstrip("_")
    is_only = [each for each in properties if each.rstrip("_") == own] == [name]
    return own if is_only and comes_from_the_run(own) else name


def _forms(schema: Any, root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the schema and every other schema for the same value."""
    waiting, seen = [schema], set[int]()
    while waiting:
        here = waiting.pop()
        if not isinstance(here, Mapping) or id(here) in seen:
            continue
        seen.add(id(here))
        yield here
        target = resolve_reference(here, root)
        waiting += [target, *(form for word in ("allOf", "anyOf", "oneOf") for form in here.get(word) or ())]


def _parts(form: Mapping[str, Any], key: Any) -> Iterator[Any]:
    """Yield the schemas for this key, or for this place of a list."""
    if isinstance(key, int):
        yield form.get("items")
        return
    properties = _properties(form)
    yield properties[key] if key in properties else form.get("additionalProperties")


def _properties(node: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = node.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _all_properties(node: Any) -> Iterator[Mapping[str, Any]]:
    waiting = [node]
    while waiting:
        here = waiting.pop()
        if isinstance(here, Mapping):
            yield _properties(here)
            waiting += here.values()
        elif isinstance(here, list):
            waiting += here
