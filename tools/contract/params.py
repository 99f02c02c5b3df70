"""Checks of params: by a Pydantic model or, for tools without a model, by a JSON schema."""

import json
from collections.abc import Mapping
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from tools.contract.canonical import canonical_json, storable_json
from tools.contract.errors import ErrorCode, ToolError
from tools.schemas.validation import UncheckableError, describe_fault, find_faults, locate_fault

_QUOTED = 120


class NoParams(BaseModel):
    """Params of a tool that takes none."""


def check_model(model: type[BaseModel], raw: dict[str, Any], tool_name: str = "") -> BaseModel:
    """Validate the params and return an instance of the model, with defaults applied.

    The error gives the field's description as the expected value, and the first of the field's
    `examples`.

    Raises:
        ToolError: MISSING_PARAM or INVALID_PARAMETER, naming the first invalid parameter and the
            expected value.
    """
    _refuse_unknown(model, raw)
    _encode(raw)
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise _explain(model, error, tool_name) from error


def canonical_params(checked: BaseModel) -> dict[str, Any]:
    """Return the params as plain JSON with the names of the schema; loading that JSON gives the
    same params again.

    Raises:
        ToolError: INVALID_PARAMETER for a value that has no JSON form, such as an infinite number.
        ValueError: loading the canonical form gives different params.
    """
    model = type(checked)
    params: dict[str, Any] = checked.model_dump(mode="json", by_alias=True)
    _encode(params)
    try:
        reloaded = model.model_validate(params).model_dump(mode="json", by_alias=True)
    except ValidationError as error:
        raise ToolError(
            ErrorCode.INVALID_PARAMETER,
            f"The params have no JSON form: {params!r}.",
            attempted=False,
        ) from error
    if reloaded != params:
        raise ValueError(
            f"{model.__qualname__}: the executed params would differ from the approved ones: {params!r}"
        )
    return params


def validate_params(validator: Any, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Validate the params and return their canonical copy: keys sorted, nothing added.

    Args:
        validator: from `build_validator`.

    Raises:
        ToolError: MISSING_PARAM or INVALID_PARAMETER, with the first faulty parameter and the
            expected value.
    """
    params: dict[str, Any] = json.loads(_encode(raw))
    try:
        found = find_faults(validator, params)
    except UncheckableError as error:
        message = f"The params cannot be checked: {error}."
        hint = "Send fewer values, nested less deeply."
        raise ToolError(
            ErrorCode.INVALID_PARAMETER, message, recovery_hint=hint, attempted=False
        ) from None
    if faults := sorted(
        found, key=lambda fault: (fault.validator != "required", locate_fault(fault))
    ):
        raise _explain_fault(faults[0], validator.schema)
    return params


def _encode(raw: Mapping[str, Any]) -> str:
    try:
        return storable_json(raw)
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError(
            ErrorCode.INVALID_PARAMETER, f"The params cannot be stored: {error}.", attempted=False
        ) from error


def _refuse_unknown(model: type[BaseModel], raw: dict[str, Any]) -> None:
    if model.model_config.get("extra") == "allow":
        return
    known = {field.alias or name for name, field in model.model_fields.items()}
    if unknown := sorted(set(raw) - known):
        raise _build_unknown(unknown[0], sorted(known))


def _explain(model: type[BaseModel], error: ValidationError, tool_name: str) -> ToolError:
    first = error.errors(include_url=False, include_context=False)[0]
    *known, last = first["loc"] or ("",)
    is_unknown = first["type"] == "extra_forbidden"
    path, field = _locate(model, tuple(known) if is_unknown else first["loc"])
    if is_unknown:
        path.append(str(last))
    name = ".".join(path) or "params"
    description = (field.description or "") if field else ""
    example = _format_example(tool_name, name, field) if field else ""
    if first["type"] == "missing":
        return _build_missing(name, description, example)
    return _build_invalid(name, (first["msg"], first["input"]), description, example)


def _explain_fault(fault: Any, schema: Mapping[str, Any]) -> ToolError:
    place, wanted, here = locate_fault(fault), fault.validator_value, fault.schema
    if fault.validator == "required":
        name = next(each for each in wanted if each not in fault.instance)
        part = here.get("properties", {}).get(name)
        description = part.get("description", "") if isinstance(part, dict) else ""
        return _build_missing(".".join(filter(None, [place, name])), description)
    if fault.validator == "additionalProperties" and wanted is False:
        known = sorted(here.get("properties", {}))
        name = next(name for name in sorted(fault.instance) if name not in known)
        return _build_unknown(".".join(filter(None, [place, name])), known)
    outer = (
        schema.get("properties", {}).get(str(fault.absolute_path[0]), {})
        if fault.absolute_path
        else {}
    )
    part = here if isinstance(here, Mapping) and here.get("description") else outer
    return _build_invalid(
        place or "params",
        (describe_fault(fault), fault.instance),
        str(part.get("description") or ""),
    )


def _build_missing(name: str, description: str, example: str = "") -> ToolError:
    return ToolError(
        ErrorCode.MISSING_PARAM,
        f"The '{name}' parameter is required.",
        parameter=name,
        expected=description or "a value",
        example=example,
        recovery_hint=f"Provide '{name}' and try again.",
        attempted=False,
    )


def _build_invalid(
    name: str, fault: tuple[str, Any], description: str, example: str = ""
) -> ToolError:
    """Build the error for an invalid param; `fault` is (problem, given value)."""
    return ToolError(
        ErrorCode.INVALID_PARAMETER,
        f"The '{name}' parameter is invalid: {fault[0]} (given: {fault[1]!r:.{_QUOTED}}).",
        parameter=name,
        expected=description or fault[0],
        example=example,
        recovery_hint=f"Correct '{name}' and try again.",
        attempted=False,
    )


def _build_unknown(name: str, known: list[str]) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_PARAMETER,
        f"There is no parameter {name!r:.{_QUOTED}}.",
        parameter=name[:_QUOTED],
        expected=f"only: {', '.join(known) or 'no parameters'}",
        recovery_hint=f"Leave {name!r:.{_QUOTED}} out and try again.",
        attempted=False,
    )


def _locate(
    model: type[BaseModel], place: tuple[int | str, ...]
) -> tuple[list[str], FieldInfo | None]:
    """Return the path of a fault, spelled with the names that the caller used, and the innermost
    field on that path.

    Pydantic's own path also contains the union members that it tried, which are not params.
    """
    path, field = list[str](), None
    models, has_keys = [model], False
    for part in place:
        found = next(
            (each for each in (_find_field(inside, str(part)) for inside in models) if each), None
        )
        if isinstance(part, str) and found is not None:
            field = found
            path.append(part)
            models, has_keys = _list_models(found.annotation), _holds_mapping(found.annotation)
        elif isinstance(part, int) or (
            has_keys and part not in {inside.__name__ for inside in models}
        ):
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
    return next(
        (field for key, field in model.model_fields.items() if name in (key, field.alias)), None
    )


def _format_example(tool_name: str, name: str, field: FieldInfo) -> str:
    return f"{tool_name}({name}: {canonical_json(field.examples[0])})" if field.examples else ""
