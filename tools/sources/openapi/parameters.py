"""The params of an operation that a model may set, and the place of each in the request."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl

from tools.schemas.openapi import read_line
from tools.sources.openapi.credential_names import (
    ForbiddenParamError,
    is_credential,
    may_change_method,
)
from tools.sources.openapi.names import choose_param_name, word_set
from tools.sources.openapi.operations import OperationBody, Placement
from tools.sources.openapi.references import References, UnsupportedOperationError
from tools.sources.openapi.schemas import SchemaReader, Shape

_VARIABLE = re.compile(r"\{([^{}/]+)\}")
_PLACES = ("path", "query", "header", "cookie")
_RESERVED_HEADERS = word_set(
    "accept accept-encoding connection content-encoding content-length content-type expect host keep-alive te trailer "
    "transfer-encoding upgrade user-agent x-original-method x-original-url x-rewrite-url"
)
"""Headers that the client sets, or that many servers read as the request's method or path."""
_STYLES = {
    "path": ("simple",),
    "query": ("form", "spaceDelimited", "pipeDelimited", "tabDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
_SWAGGER_STYLES = {
    "csv": ("", False),
    "ssv": ("spaceDelimited", False),
    "tsv": ("tabDelimited", False),
    "pipes": ("pipeDelimited", False),
    "multi": ("form", True),
}
_MAX_DESCRIPTION_LENGTH = 500
_MAX_PARAMETERS = 150
_MAX_IN_TOTAL = 40_000


@dataclass(frozen=True)
class BodyContent:
    """The chosen media type of a body, with its schema."""

    media_type: str
    schema: Any
    required: bool


@dataclass
class OperationInputs:
    """The params of one operation; `properties` and `required` form the schema.

    Attributes:
        fixed: the names, in lower case, in the query of the operation's path.
    """

    properties: dict[str, Any] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    placements: list[Placement] = field(default_factory=list)
    body: OperationBody | None = None
    fixed: frozenset[str] = frozenset()

    @property
    def schema(self) -> dict[str, Any]:
        required = {"required": self.required} if self.required else {}
        return {
            "type": "object",
            "properties": self.properties,
            **required,
            "additionalProperties": False,
        }


class ParameterReader:
    """A reader of the params of a document's operations: at most 150 of one operation, and 40,000
    in total.

    Args:
        keys: place and name, in lower case, of the API keys in the document's security schemes.
        provided: the fields of bodies that the connection fills.
    """

    def __init__(
        self,
        references: References,
        keys: frozenset[tuple[str, str]],
        provided: frozenset[str] = frozenset(),
    ) -> None:
        self._references = references
        self._schemas = SchemaReader(references, keys, provided)
        self._keys = keys
        self._left = _MAX_IN_TOTAL

    def merge(self, *lists: Any) -> list[dict[str, Any]]:
        """Merge the parameters of path and operation; if two have the same name and place, the last
        one wins.

        Raises:
            UnsupportedOperationError: a reference is broken, or there are too many parameters.
        """
        nodes = [given for given in lists if isinstance(given, list)]
        _refuse_many(sum(map(len, nodes)))
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for given in nodes:
            for node in given:
                parameter = self._references.resolve_object(node)
                name, place = parameter.get("name"), parameter.get("in")
                if isinstance(name, str) and isinstance(place, str):
                    found[place, name] = parameter
        return list(found.values())

    def read_inputs(
        self, path: str, parameters: list[dict[str, Any]], content: BodyContent | None
    ) -> OperationInputs:
        """Read the params of one operation.

        Raises:
            UnsupportedOperationError: there are too many params, or the description's style of a
                value is not supported.
        """
        inputs = OperationInputs(fixed=_list_names(path.partition("?")[2]))
        in_path = _VARIABLE.findall(path)
        _refuse_many(len(in_path))
        given = {(each["in"], each["name"]): each for each in parameters}
        for name in dict.fromkeys(in_path):
            self._add_parameter(inputs, given.get(("path", name), {"name": name, "in": "path"}))
        for place in _PLACES[1:]:
            for parameter in parameters:
                if parameter["in"] == place:
                    self._add_parameter(inputs, parameter)
        if content is not None:
            self._add_body(inputs, content)
        return inputs

    def _add_parameter(self, inputs: OperationInputs, parameter: Mapping[str, Any]) -> None:
        self._left -= 1
        if self._left < 0:
            raise UnsupportedOperationError(
                f"only the first {_MAX_IN_TOTAL:,} parameters of the description are read"
            )
        name, place = str(parameter["name"]), str(parameter["in"])
        description = read_line(parameter.get("description"), _MAX_DESCRIPTION_LENGTH)
        is_required = place == "path" or parameter.get("required") is True
        if self._is_withheld(name, place, description, is_required=is_required):
            return
        placement, schema = self._read_placement(name, place, parameter)
        try:
            shape = self._schemas.read_parameter(schema, placement.spread)
        except ForbiddenParamError as error:
            if is_required:
                raise UnsupportedOperationError(f"its parameter {name[:100]!r} {error}") from None
            return
        shown = choose_param_name(name, inputs.properties, place)
        inputs.properties[shown] = {
            **shape.schema,
            **({"description": description} if description else {}),
        }
        if is_required:
            inputs.required.append(shown)
        refused = self._list_refused(inputs, placement) if _may_be_object(shape.schema) else []
        inputs.placements.append(
            replace(placement, shown=shown, names=shape.names, refused=refused)
        )

    def _is_withheld(self, name: str, place: str, description: str, *, is_required: bool) -> bool:
        """Return True if a model may not set the parameter.

        Raises:
            UnsupportedOperationError: the operation cannot be called without it.
        """
        if (place, name.lower()) in self._keys or is_credential(name, place, description):
            if place == "path":
                raise UnsupportedOperationError(f"its path contains a credential: {{{name}}}")
            return True
        if place != "path" and may_change_method(name):
            if is_required:
                raise UnsupportedOperationError(
                    f"it needs {name[:100]!r}, which may change its method"
                )
            return True
        return place == "header" and name.lower().replace("_", "-") in _RESERVED_HEADERS

    def _list_refused(self, inputs: OperationInputs, placement: Placement) -> list[str]:
        if not placement.spread:
            return []
        keys = {name for place, name in self._keys if place == placement.spread}
        return sorted(keys | inputs.fixed if placement.spread == "query" else keys)

    def _read_placement(
        self, name: str, place: str, parameter: Mapping[str, Any]
    ) -> tuple[Placement, Any]:
        """Read the parameter's placement, without its name for the model, and its schema."""
        default = _STYLES[place][0]
        content = parameter.get("content")
        if isinstance(content, Mapping) and content:
            media_type, media = next(iter(content.items()))
            if not _is_json(str(media_type)):
                raise UnsupportedOperationError(
                    f"its parameter {name!r} has the media type {str(media_type)[:100]}"
                )
            placement = Placement("", name, place, default, explode=False, as_json=True)
            return placement, self._references.resolve_object(media).get("schema", {})
        if "schema" not in parameter:
            style, explode = _SWAGGER_STYLES.get(
                str(parameter.get("collectionFormat", "csv")), ("", False)
            )
            return Placement("", name, place, style or default, explode), parameter
        style = str(parameter.get("style") or default)
        if style not in _STYLES[place]:
            raise UnsupportedOperationError(
                f"its {place} parameter {name!r} has the style {style[:40]!r}"
            )
        given_explode = parameter.get("explode")
        explode = given_explode if isinstance(given_explode, bool) else style == "form"
        return Placement("", name, place, style, explode), parameter["schema"]

    def _add_body(self, inputs: OperationInputs, content: BodyContent) -> None:
        try:
            shape = self._schemas.read_body(content.schema)
        except ForbiddenParamError as error:
            raise UnsupportedOperationError(f"its body {error}") from None
        fields = _list_fields(shape, content)
        owned = {shown: shape.names.get(shown, [shown])[0] for shown in fields or ()}
        legal = all(
            choose_param_name(own, inputs.properties, "body") == shown
            for shown, own in owned.items()
        )
        if fields is not None and legal:
            inputs.properties.update(fields)
            inputs.required += [name for name in shape.schema.get("required", []) if name in fields]
            names = {
                shown: [own, shape.names.get(shown, (own, {}))[1]] for shown, own in owned.items()
            }
            inputs.body = OperationBody(content.media_type, "", content.required, names)
            return
        shown = choose_param_name("body", inputs.properties, "content")
        inputs.properties[shown] = shape.schema or {"description": "Any value."}
        if content.required:
            inputs.required.append(shown)
        inputs.body = OperationBody(content.media_type, shown, content.required, shape.names)


def pin_parameters(parameters: list[dict[str, Any]], fragment: str) -> list[dict[str, Any]]:
    """Pin the parameters that a path names after a `#`, as AWS does: `/#Action=DeleteUser`.

    Each of these parameters becomes required, and allows only the given value, if there is one.

    Raises:
        UnsupportedOperationError: the operation has no such parameter, so the request would call
            another operation.
    """
    if not fragment:
        return parameters
    wanted = dict(part.partition("=")[::2] for part in fragment.split("&"))
    known = {str(each["name"]) for each in parameters if each["in"] in ("query", "header")}
    if missing := sorted(wanted.keys() - known):
        raise UnsupportedOperationError(
            f"no parameter matches the part after '#' in its path: {missing[0][:100]!r}"
        )
    return [
        {
            **each,
            "required": True,
            **(_fix_value(wanted[each["name"]]) if wanted[each["name"]] else {}),
        }
        if each["in"] in ("query", "header") and each["name"] in wanted
        else each
        for each in parameters
    ]


def _fix_value(value: str) -> dict[str, Any]:
    return {"schema": {"type": "string", "enum": [value]}}


def _refuse_many(count: int) -> None:
    if count > _MAX_PARAMETERS:
        raise UnsupportedOperationError(
            f"it has {count:,} parameters; the limit is {_MAX_PARAMETERS}"
        )


def choose_content(content: Mapping[str, Any], *, required: bool) -> BodyContent | None:
    """Choose the media type that is easiest to write; return None if there is no body.

    Raises:
        UnsupportedOperationError: none of the media types can be written from JSON.
    """
    for writable in (_is_json, _is_any, _is_form, _is_multipart, _is_text):
        for given, media in content.items():
            plain = str(given).partition(";")[0].strip().lower()
            if writable(plain):
                schema = media.get("schema", {}) if isinstance(media, Mapping) else {}
                return BodyContent(
                    "application/json" if _is_any(plain) else plain, schema, required
                )
    if content:
        raise UnsupportedOperationError(
            f"its body is {', '.join(map(str, content))[:200]}, which params cannot express"
        )
    return None


def _is_json(media_type: str) -> bool:
    plain = media_type.partition(";")[0].strip().lower()
    return plain in ("application/json", "text/json") or plain.endswith("+json")


def _is_any(media_type: str) -> bool:
    return media_type in ("*/*", "application/*")


def _is_form(media_type: str) -> bool:
    return media_type == "application/x-www-form-urlencoded"


def _is_multipart(media_type: str) -> bool:
    return media_type == "multipart/form-data"


def _is_text(media_type: str) -> bool:
    return media_type.startswith("text/") and media_type not in ("text/xml", "text/event-stream")


def _may_be_object(schema: Mapping[str, Any]) -> bool:
    return "type" not in schema or "object" in schema["type"]


def _list_names(query: str) -> frozenset[str]:
    return frozenset(name.lower() for name, _ in parse_qsl(query, keep_blank_values=True))


def _list_fields(shape: Shape, content: BodyContent) -> dict[str, Any] | None:
    """Return the body's fields if each can be a param; None if the body must remain a single
    value."""
    schema = shape.schema
    if (
        not _is_json(content.media_type)
        and not _is_form(content.media_type)
        and not _is_multipart(content.media_type)
    ):
        return None
    merged = _merge_forms(schema)
    if (
        merged is None
        or merged.get("additionalProperties")
        or "object" not in str(merged.get("type"))
    ):
        return None
    if not content.required and merged.get("required"):
        return None
    schema.update(merged)
    is_empty = not merged.get("properties") and merged.get("additionalProperties") is not False
    return None if is_empty else dict(merged.get("properties", {}))


def _merge_forms(schema: dict[str, Any]) -> dict[str, Any] | None:
    """Merge every `allOf` into one object; return None if the schema is not clearly a single
    object."""
    if (
        "anyOf" in schema
        or "enum" in schema
        or "const" in schema
        or isinstance(schema.get("type"), list)
    ):
        return None
    parts = [_merge_forms(form) for form in schema.get("allOf", ())]
    merged = {key: value for key, value in schema.items() if key != "allOf"}
    for part in parts:
        if (
            part is None
            or part.get("additionalProperties")
            or part.get("type", "object") != "object"
        ):
            return None
        merged["type"] = "object"
        merged["properties"] = {**part.get("properties", {}), **merged.get("properties", {})}
        merged["required"] = list(
            dict.fromkeys([*merged.get("required", []), *part.get("required", [])])
        )
    return merged
