"""The params of one operation: what a model may give, and where each of them goes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .credential_names import is_credential
from .names import param_name, words_in
from .operations import Body, Placement
from .references import References, RefusedError
from .schemas import Names, Schemas, Shape

_VARIABLE = re.compile(r"\{([^{}/]+)\}")
_PLACES = ("path", "query", "header", "cookie")
_SET_BY_THE_REQUEST = words_in(
    "accept accept-encoding connection content-encoding content-length content-type expect host keep-alive te trailer "
    "transfer-encoding upgrade user-agent"
)
_STYLES = {
    "path": ("simple",),
    "query": ("form", "spaceDelimited", "pipeDelimited", "tabDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
_OLD_STYLES = {
    "csv": ("", False),
    "ssv": ("spaceDelimited", False),
    "tsv": ("tabDelimited", False),
    "pipes": ("pipeDelimited", False),
    "multi": ("form", True),
}
_LONGEST_DESCRIPTION = 500
_MOST = 150
_MOST_IN_ALL = 40_000


@dataclass(frozen=True)
class Content:
    """A body as a description tells it: one media type and its schema."""

    media_type: str
    schema: Any
    required: bool


@dataclass
class Inputs:
    """What becomes of the params of one operation; `properties` and `required` make the schema."""

    properties: dict[str, Any] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    placements: list[Placement] = field(default_factory=list)
    body: Body | None = None

    @property
    def schema(self) -> dict[str, Any]:
        required = {"required": self.required} if self.required else {}
        return {"type": "object", "properties": self.properties, **required, "additionalProperties": False}


class Parameters:
    """Reads the params of all operations of one document: at most 150 of each, 40,000 of all together.

    Args:
        keys: place and name, in lower case, of API keys that the document's security schemes name.
    """

    def __init__(self, references: References, keys: frozenset[tuple[str, str]]) -> None:
        self._references = references
        self._schemas = Schemas(references)
        self._keys = keys
        self._left = _MOST_IN_ALL

    def merged(self, *lists: Any) -> list[dict[str, Any]]:
        """The parameters of path and operation; of two with the same name and place, the later one.

        Raises:
            RefusedError: one leads nowhere, or there are too many.
        """
        nodes = [given for given in lists if isinstance(given, list)]
        _refuse_many(sum(map(len, nodes)))
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for given in nodes:
            for node in given:
                parameter = self._references.found(node)
                name, place = parameter.get("name"), parameter.get("in")
                if isinstance(name, str) and isinstance(place, str):
                    found[place, name] = parameter
        return list(found.values())

    def inputs(self, path: str, parameters: list[dict[str, Any]], content: Content | None) -> Inputs:
        """Raises RefusedError: there are too many, or a value cannot be written as the description asks for."""
        inputs = Inputs()
        in_path = _VARIABLE.findall(path)
        _refuse_many(len(in_path))
        given = {(each["in"], each["name"]): each for each in parameters}
        for name in dict.fromkeys(in_path):
            self._place(inputs, given.get(("path", name), {"name": name, "in": "path"}))
        for place in _PLACES[1:]:
            for parameter in parameters:
                if parameter["in"] == place:
                    self._place(inputs, parameter)
        if content is not None:
            self._put_body(inputs, content)
        return inputs

    def _place(self, inputs: Inputs, parameter: Mapping[str, Any]) -> None:
        self._left -= 1
        if self._left < 0:
            raise RefusedError(f"it stands behind the first {_MOST_IN_ALL:,} parameters of the description")
        name, place = str(parameter["name"]), str(parameter["in"])
        told = _told(parameter)
        if (place, name.lower()) in self._keys or is_credential(name, place, told):
            if place == "path":
                raise RefusedError(f"its path holds a credential: {{{name}}}")
            return
        if place == "header" and name.lower() in _SET_BY_THE_REQUEST:
            return
        placement, schema = self._written(name, place, parameter)
        shape = self._schemas.parameter(schema)
        shown = param_name(name, inputs.properties, place)
        described = {"description": told[:_LONGEST_DESCRIPTION]} if told else {}
        inputs.properties[shown] = {**shape.schema, **described}
        if place == "path" or parameter.get("required") is True:
            inputs.required.append(shown)
        style, explode, as_json = placement
        inputs.placements.append(Placement(shown, name, place, style, explode, as_json, shape.names))

    def _written(self, name: str, place: str, parameter: Mapping[str, Any]) -> tuple[tuple[str, bool, bool], Any]:
        """Style, explode and as_json; and the schema."""
        default = _STYLES[place][0]
        content = parameter.get("content")
        if isinstance(content, Mapping) and content:
            media_type, media = next(iter(content.items()))
            if not _is_json(str(media_type)):
                raise RefusedError(f"its parameter {name!r} is written as {str(media_type)[:100]}")
            return (default, False, True), self._references.found(media).get("schema", {})
        if "schema" not in parameter:
            style, explode = _OLD_STYLES.get(str(parameter.get("collectionFormat", "csv")), ("", False))
            return (style or default, explode, False), parameter
        style = str(parameter.get("style") or default)
        if style not in _STYLES[place]:
            raise RefusedError(f"its {place} parameter {name!r} has the style {style[:40]!r}")
        each_by_itself = parameter.get("explode")
        explode = each_by_itself if isinstance(each_by_itself, bool) else style == "form"
        return (style, explode, False), parameter["schema"]

    def _put_body(self, inputs: Inputs, content: Content) -> None:
        shape = self._schemas.body(content.schema)
        fields = _fields_of(shape, content)
        owned = {shown: shape.names.get(shown, [shown])[0] for shown in fields}
        legal = all(param_name(own, inputs.properties, "body") == shown for shown, own in owned.items())
        if fields and legal:
            self._put_fields(inputs, content, shape, fields)
            return
        if fields:
            shape = _without_credentials(shape, fields)
        shown = param_name("body", inputs.properties, "content")
        inputs.properties[shown] = shape.schema or {"description": "Any value."}
        if content.required:
            inputs.required.append(shown)
        inputs.body = Body(content.media_type, shown, content.required, shape.names)

    def _put_fields(self, inputs: Inputs, content: Content, shape: Shape, fields: Mapping[str, Any]) -> None:
        required = shape.schema.get("required", [])
        names: Names = {}
        for shown, schema in fields.items():
            own, inside = shape.names.get(shown, (shown, {}))
            if is_credential(own, "body", str(schema.get("description", ""))):
                if shown in required:
                    raise RefusedError(f"its body needs a credential: {own!r}")
                continue
            inputs.properties[shown] = schema
            names[shown] = [own, inside]
        inputs.required += [name for name in required if name in names]
        inputs.body = Body(content.media_type, "", content.required, names)


def _refuse_many(count: int) -> None:
    if count > _MOST:
        raise RefusedError(f"it has {count:,} parameters; at most {_MOST} are read")


def chosen_content(content: Mapping[str, Any], *, required: bool) -> Content | None:
    """The media type that is the easiest to write; None if there is no body at all.

    Raises:
        RefusedError: none of them can be written from JSON.
    """
    for writable in (_is_json, _is_any, _is_form, _is_multipart, _is_text):
        for given, media in content.items():
            plain = str(given).partition(";")[0].strip().lower()
            if writable(plain):
                schema = media.get("schema", {}) if isinstance(media, Mapping) else {}
                return Content("application/json" if _is_any(plain) else plain, schema, required)
    if content:
        raise RefusedError(f"its body is {', '.join(map(str, content))[:200]}, which no params can say")
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


def _told(parameter: Mapping[str, Any]) -> str:
    text = parameter.get("description")
    return " ".join(text[: 2 * _LONGEST_DESCRIPTION].split()) if isinstance(text, str) else ""


def _fields_of(shape: Shape, content: Content) -> dict[str, Any]:
    """The body's fields if they can stand among the params; empty if the body has to stay one value."""
    schema = shape.schema
    if not _is_json(content.media_type) and not _is_form(content.media_type) and not _is_multipart(content.media_type):
        return {}
    merged = _merged_forms(schema)
    if merged is None or merged.get("additionalProperties") or "object" not in str(merged.get("type")):
        return {}
    if not content.required and merged.get("required"):
        return {}
    schema.update(merged)
    return dict(merged.get("properties") or {})


def _merged_forms(schema: dict[str, Any]) -> dict[str, Any] | None:
    """An object with the fields of all its `allOf`; None if it is not plainly one object."""
    if "anyOf" in schema or "enum" in schema or "const" in schema or isinstance(schema.get("type"), list):
        return None
    parts = [_merged_forms(form) for form in schema.get("allOf", ())]
    merged = {key: value for key, value in schema.items() if key != "allOf"}
    for part in parts:
        if part is None or part.get("additionalProperties") or part.get("type", "object") != "object":
            return None
        merged["type"] = "object"
        merged["properties"] = {**part.get("properties", {}), **merged.get("properties", {})}
        merged["required"] = list(dict.fromkeys([*merged.get("required", []), *part.get("required", [])]))
    return merged


def _without_credentials(shape: Shape, fields: Mapping[str, Any]) -> Shape:
    schema = dict(shape.schema)
    required = schema.get("required", [])
    hidden = {
        shown
        for shown, field_schema in fields.items()
        if is_credential(shape.names.get(shown, (shown,))[0], "body", str(field_schema.get("description", "")))
    }
    if needed := hidden & set(required):
        raise RefusedError(f"its body needs a credential: {sorted(needed)[0]!r}")
    schema["properties"] = {shown: value for shown, value in fields.items() if shown not in hidden}
    return Shape(schema, shape.names)
