"""JSON schemas of params for the model, and the validation of params."""

from collections.abc import Mapping
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from tools.contract.canonical import canonical_json, storable_json
from tools.contract.errors import ErrorCode, ToolError


class NoParams(BaseModel):
    """Params of a tool that takes none."""


def build_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Build the model's JSON schema without titles; it is always an object with `properties`."""
    schema: dict[str, Any] = _drop_titles(model.model_json_schema())
    schema.setdefault("properties", {})
    return schema


def _drop_titles(node: Any, inside_properties: bool = False) -> Any:
    if isinstance(node, list):
        return [_drop_titles(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _drop_titles(value, inside_properties=key in ("properties", "$defs") and not inside_properties)
        for key, value in node.items()
        if inside_properties or not (key == "title" and isinstance(value, str))
    }


def check_model(model: type[BaseModel], raw: dict[str, Any], tool_name: str = "") -> BaseModel:
    """Validate the params and return an instance of the model, with defaults applied.

    The error uses the field's description as the expected value and the first of its `examples`.

    Raises:
        ToolError: MISSING_PARAM or INVALID_PARAMETER, naming the first invalid parameter and the expected value.
    """
    _refuse_unknown(model, raw)
    _refuse_unstorable(raw)
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise _explain(model, error, tool_name) from error


def canonical_params(checked: BaseModel) -> dict[str, Any]:
    """Return the params as plain JSON under the schema's names; loading them again gives the same params.

    Raises:
        ToolError: INVALID_PARAMETER for a value that has no JSON form, such as an infinite number.
        ValueError: loading the canonical form gives different params.
    """
    model = type(checked)
    params: dict[str, Any] = checked.model_dump(mode="json", by_alias=True)
    _refuse_unstorable(params)
    try:
        reloaded = model.model_validate(params).model_dump(mode="json", by_alias=True)
    except ValidationError as error:
        raise ToolError(
            ErrorCode.INVALID_PARAMETER, f"The params have no JSON form: {params!r}.", attempted=False
        ) from error
    if reloaded != params:
        raise ValueError(f"{model.__qualname__}: the executed params would differ from the approved ones: {params!r}")
    return params


def _refuse_unstorable(raw: dict[str, Any]) -> None:
    try:
        storable_json(raw)
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError(
            ErrorCode.INVALID_PARAMETER, f"The params cannot be stored: {error}.", attempted=False
        ) from error


def _refuse_unknown(model: type[BaseModel], raw: dict[str, Any]) -> None:
    if model.model_config.get("extra") == "allow":
        return
    known = {field.alias or name for name, field in model.model_fields.items()}
    unknown = sorted(set(raw) - known)
    if unknown:
        raise ToolError(
            ErrorCode.INVALID_PARAMETER,
            f"There is no parameter {unknown[0]!r}.",
            parameter=unknown[0],
            expected=f"only: {', '.join(sorted(known)) or 'no parameters'}",
            recovery_hint=f"Leave {unknown[0]!r} out and try again.",
            attempted=False,
        )


def _explain(model: type[BaseModel], error: ValidationError, tool_name: str) -> ToolError:
    first = error.errors(include_url=False, include_context=False)[0]
    *known, last = first["loc"] or ("",)
    is_unknown = first["type"] == "extra_forbidden"
    path, field = _locate(model, tuple(known) if is_unknown else first["loc"])
    if is_unknown:
        path.append(str(last))
    name = ".".join(path) or "params"
    description = (field.description or "") if field else ""
    is_missing = first["type"] == "missing"
    given = repr(first["input"])[:120]
    return ToolError(
        ErrorCode.MISSING_PARAM if is_missing else ErrorCode.INVALID_PARAMETER,
        f"The '{name}' parameter is required."
        if is_missing
        else f"The '{name}' parameter is invalid: {first['msg']} (given: {given}).",
        parameter=name,
        expected=description or ("a value" if is_missing else first["msg"]),
        example=_format_example(tool_name, name, field) if field else "",
        recovery_hint=f"{'Provide' if is_missing else 'Correct'} '{name}' and try again.",
        attempted=False,
    )


def _locate(model: type[BaseModel], place: tuple[int | str, ...]) -> tuple[list[str], FieldInfo | None]:
    """Return the path of a fault as the caller knows it, and the innermost field on it.

    Pydantic's own path also has the names of the forms that it tried, which are no params.
    """
    path, field = list[str](), None
    models, has_keys = [model], False
    for part in place:
        found = next((each for each in (_find_field(inside, str(part)) for inside in models) if each), None)
        if isinstance(part, str) and found is not None:
            field = found
            path.append(part)
            models, has_keys = _list_models(found.annotation), _holds_mapping(found.annotation)
        elif isinstance(part, int) or (has_keys and part not in {inside.__name__ for inside in models}):
            path.append(str(part))
    return path, field


def _list_models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _list_models(part)]


def _holds_mapping(annotation: Any) -> bool:
    origin = get_origin(annotation) or annotation
    is_mapping = isinstance(origin, type) and issubclass(origin, Mapping)
    return is_mapping or any(_holds_mapping(part) for part in get_args(annotation))


def _find_field(model: type[BaseModel], name: str) -> FieldInfo | None:
    return next((field for key, field in model.model_fields.items() if name in (key, field.alias)), None)


def _format_example(tool_name: str, name: str, field: FieldInfo) -> str:
    return f"{tool_name}({name}: {canonical_json(field.examples[0])})" if field.examples else ""
