"""The base class of external tools: names, params with a JSON schema, and reserved param names.

The other side chooses a tool's title and may change it at any time, so people decide by its name
only.

The toolbox refuses params whose values only the run may provide, such as `user`. In another system,
`user` means someone else, so Gadget adds a `_` to the name of such a param; the model sees the
original name.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from tools.contract import Tool
from tools.contract.outside_text import OutsideText
from tools.contract.params import validate_params
from tools.schemas.references import expand_forms, list_properties
from tools.schemas.validation import build_validator
from tools.toolbox import is_run_parameter

_KEYED_BY_NAME = ("properties", "dependentSchemas", "dependentRequired")


class ExternalTool(Tool):
    """A tool of another system, with params described by a JSON schema.

    Attributes:
        server_title: the other side's title for the tool, as an admin accepted it; always shown as
            a text of the other side.
    """

    returns_outside_text = True
    server_title: str = ""

    @property
    def title(self) -> str:
        """The name shown to people: the tool's name in Gadget, whatever the other side calls it."""
        return OutsideText(self.name)

    @property
    def definition(self) -> dict[str, Any]:
        """The definition shown to the model, with the original names of all params."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self._original_schema,
        }
        return {"type": "function", "function": function}

    def check_params(self, raw: dict[str, Any]) -> dict[str, Any]:
        """Return canonical params without defaults, because the source applies them.

        Raises:
            ToolError: MISSING_PARAM or INVALID_PARAMETER.
        """
        return validate_params(
            self._validator,
            replace_source_names(raw, self.schema) if self._has_reserved_names else raw,
        )

    def load_params(self, canonical: dict[str, Any]) -> dict[str, Any]:
        return canonical

    @cached_property
    def _validator(self) -> Any:
        return build_validator(self.schema)

    @cached_property
    def _original_schema(self) -> dict[str, Any]:
        return restore_source_names(self.schema) if self._has_reserved_names else self.schema

    @cached_property
    def _has_reserved_names(self) -> bool:
        properties = list(_find_properties(self.schema))
        return any(_to_source_name(name, each) != name for each in properties for name in each)


def get_server_title(tool: Tool | None) -> str:
    """Return the other side's title for the tool; empty for a tool that is not external."""
    return tool.server_title if isinstance(tool, ExternalTool) else ""


def restore_source_names(node: Any) -> Any:
    """Return the schema with the source's original names, except where two params would have the
    same name."""
    if isinstance(node, list):
        return [restore_source_names(part) for part in node]
    if not isinstance(node, Mapping):
        return node
    names = list_properties(node)
    renamed: dict[str, Any] = {}
    for key, value in node.items():
        if key in _KEYED_BY_NAME and isinstance(value, Mapping):
            renamed[key] = {
                _to_source_name(name, names): restore_source_names(part)
                for name, part in value.items()
            }
        elif key == "required" and isinstance(value, list):
            renamed[key] = [_to_source_name(str(name), names) for name in value]
        else:
            renamed[key] = restore_source_names(value)
    return renamed


def replace_source_names(value: Any, schema: Mapping[str, Any]) -> Any:
    """Replace the source's names in the value with the toolbox's names."""
    waiting: list[tuple[Any, list[Mapping[str, Any]]]] = []
    renamed = _rename_keys(value, list(expand_forms(schema, schema)), waiting)
    while waiting:  # no recursion, because params may be nested as deeply as JSON allows
        holder, forms = waiting.pop()
        for key, child in holder.items() if isinstance(holder, dict) else enumerate(holder):
            inside = [
                each
                for form in forms
                for part in _list_part_schemas(form, key)
                for each in expand_forms(part, schema)
            ]
            holder[key] = _rename_keys(child, inside, waiting)
    return renamed


def _rename_keys(value: Any, forms: list[Mapping[str, Any]], waiting: list[Any]) -> Any:
    """Copy the value and rename its top-level keys; add its nested values to the queue."""
    if isinstance(value, dict):
        known = {name for form in forms for name in list_properties(form)}
        renamed: Any = {_to_toolbox_name(name, known): child for name, child in value.items()}
    elif isinstance(value, list):
        renamed = list(value)
    else:
        return value
    if forms:
        waiting.append((renamed, forms))
    return renamed


def _to_toolbox_name(name: str, known: set[str]) -> str:
    if name in known or not is_run_parameter(name):
        return name
    matches = [each for each in known if each.rstrip("_") == name]
    return matches[0] if len(matches) == 1 else name


def _to_source_name(name: str, properties: Mapping[str, Any]) -> str:
    own = name.rstrip("_")
    is_only = [each for each in properties if each.rstrip("_") == own] == [name]
    return own if is_only and is_run_parameter(own) else name


def _list_part_schemas(form: Mapping[str, Any], key: Any) -> Iterator[Any]:
    """Yield the schemas for this key, or for this position in a list."""
    if isinstance(key, int):
        yield form.get("items")
        return
    properties = list_properties(form)
    yield properties[key] if key in properties else form.get("additionalProperties")


def _find_properties(node: Any) -> Iterator[Mapping[str, Any]]:
    waiting = [node]
    while waiting:
        here = waiting.pop()
        if isinstance(here, Mapping):
            yield list_properties(here)
            waiting += here.values()
        elif isinstance(here, list):
            waiting += here
