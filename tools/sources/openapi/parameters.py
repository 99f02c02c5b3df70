"""The params of one operation: what a model may give, and where each of them goes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl

from .credential_names import changes_method, is_credential
from .names import one_line, param_name, words_in
from .operations import Body, Placement
from .references import References, RefusedError
from .schemas import NeededError, Schemas, Shape

_VARIABLE = re.compile(r"\{([^{}/]+)\}")
_PLACES = ("path", "query", "header", "cookie")
_SET_BY_THE_REQUEST = words_in(
    "accept accept-encoding connection content-encoding content-length content-type expect host keep-alive te trailer "
    "transfer-encoding upgrade user-agent x-original-method x-original-url x-rewrite-url"
)
"""Also what many servers take for the method or the path of the request."""
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
    """What becomes of the params of one operation; `properties` and `required` make the schema.

    Attributes:
        fixed: names, in lower case, in the query that stands in the operation's path.
    """

    properties: dict[str, Any] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    placements: list[Placement] = field(default_factory=list)
    body: Body | None = None
    fixed: frozenset[str] = frozenset()

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
        self._schemas = Schemas(references, keys)
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
        inputs = Inputs(fixed=_names_in(path.partition("?")[2]))
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
        told = one_line(parameter.get("description"), _LONGEST_DESCRIPTION)
        is_required = place == "path" or parameter.get("required") is True
        if self._is_kept_back(name, place, told, is_required=is_required):
            return
        placement, schema = self._written(name, place, parameter)
        try:
            shape = self._schemas.parameter(schema, placement.spread)
        except NeededError as error:
            if is_required:
                raise RefusedError(f"its parameter {name[:100]!r} {error}") from None
            return
        shown = param_name(name, inputs.properties, place)
        inputs.properties[shown] = {**shape.schema, **({"description": told} if told else {})}
        if is_required:
            inputs.required.append(shown)
        refused = self._refused(inputs, placement) if _may_be_object(shape.schema) else []
        inputs.placements.append(replace(placement, shown=shown, names=shape.names, refused=refused))

    def _is_kept_back(self, name: str, place: str, told: str, *, is_required: bool) -> bool:
        """Whether no model may give it; RefusedError where the operation would be another one without it."""
        if (place, name.lower()) in self._keys or is_credential(name, place, told):
            if place == "path":
                raise RefusedError(f"its path holds a credential: {{{name}}}")
            return True
        if place != "path" and changes_method(name):
            if is_required:
                raise RefusedError(f"it needs {name[:100]!r}, which may change its method")
            return True
        return place == "header" and name.lower().replace("_", "-") in _SET_BY_THE_REQUEST

    def _refused(self, inputs: Inputs, placement: Placement) -> list[str]:
        if not placement.spread:
            return []
        keys = {name for place, name in self._keys if place == placement.spread}
        return sorted(keys | inputs.fixed if placement.spread == "query" else keys)

    def _written(self, name: str, place: str, parameter: Mapping[str, Any]) -> tuple[Placement, Any]:
        """How its value is written, not yet under the name for the model; and the schema."""
        default = _STYLES[place][0]
        content = parameter.get("content")
        if isinstance(content, Mapping) and content:
            media_type, media = next(iter(content.items()))
            if not _is_json(str(media_type)):
                raise RefusedError(f"its parameter {name!r} is written as {str(media_type)[:100]}")
            placement = Placement("", name, place, default, explode=False, as_json=True)
            return placement, self._references.found(media).get("schema", {})
        if "schema" not in parameter:
            style, explode = _OLD_STYLES.get(str(parameter.get("collectionFormat", "csv")), ("", False))
            return Placement("", name, place, style or default, explode), parameter
        style = str(parameter.get("style") or default)
        if style not in _STYLES[place]:
            raise RefusedError(f"its {place} parameter {name!r} has the style {style[:40]!r}")
        each_by_itself = parameter.get("explode")
        explode = each_by_itself if isinstance(each_by_itself, bool) else style == "form"
        return Placement("", name, place, style, explode), parameter["schema"]

    def _put_body(self, inputs: Inputs, content: Content) -> None:
        try:
            shape = self._schemas.body(content.schema)
        except NeededError as error:
            raise RefusedError(f"its body {error}") from None
        fields = _fields_of(shape, content)
        owned = {shown: shape.names.get(shown, [shown])[0] for shown in fields or ()}
        legal = all(param_name(own, inputs.properties, "body") == shown for shown, own in owned.items())
        if fields is not None and legal:
            inputs.properties.update(fields)
            inputs.required += [name for name in shape.schema.get("required", []) if name in fields]
            names = {shown: [own, shape.names.get(shown, (own, {}))[1]] for shown, own in owned.items()}
            inputs.body = Body(content.media_type, "", content.required, names)
            return
        shown = param_name("body", inputs.properties, "content")
        inputs.properties[shown] = shape.schema or {"description": "Any value."}
        if content.required:
            inputs.required.append(shown)
        inputs.body = Body(content.media_type, shown, content.required, shape.names)


def pin_parameters(parameters: list[dict[str, Any]], mark: str) -> list[dict[str, Any]]:
    """Pin the parameters of a path that distinguishes operations after a `#`, as AWS does: `/#Action=DeleteUser`.

    That part is sent as a parameter, with only the given value.

    Raises:
        RefusedError: no parameter is there to say it, so that the request would be that of another operation.
    """
    if not mark:
        return parameters
    wanted = dict(part.partition("=")[::2] for part in mark.split("&"))
    known = {str(each["name"]) for each in parameters if each["in"] in ("query", "header")}
    if missing := sorted(wanted.keys() - known):
        raise RefusedError(f"no parameter matches the part after '#' in its path: {missing[0][:100]!r}")
    return [
        {**each, "required": True, **(_only(wanted[each["name"]]) if wanted[each["name"]] else {})}
        if each["in"] in ("query", "header") and each["name"] in wanted
        else each
        for each in parameters
    ]


def _only(value: str) -> dict[str, Any]:
    return {"schema": {"type": "string", "enum": [value]}}


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


def _may_be_object(schema: Mapping[str, Any]) -> bool:
    return "type" not in schema or "object" in schema["type"]


def _names_in(query: str) -> frozenset[str]:
    return frozenset(name.lower() for name, _ in parse_qsl(query, keep_blank_values=True))


def _fields_of(shape: Shape, content: Content) -> dict[str, Any] | None:
    """The body's fields if they can stand among the params; None if the body has to stay one value."""
    schema = shape.schema
    if not _is_json(content.media_type) and not _is_form(content.media_type) and not _is_multipart(content.media_type):
        return None
    merged = _merged_forms(schema)
    if merged is None or merged.get("additionalProperties") or "object" not in str(merged.get("type")):
        return None
    if not content.required and merged.get("required"):
        return None
    schema.update(merged)
    is_empty = not merged.get("properties") and merged.get("additionalProperties") is not False
    return None if is_empty else dict(merged.get("properties", {}))


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
